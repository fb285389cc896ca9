"""No automatic author sends the same again and again: the rule, and every author held to it."""

import itertools
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.language_models import FakeListChatModel
from langgraph.checkpoint.memory import InMemorySaver

from graph_retry import (
    AttemptsExhausted,
    approve,
    comment,
    edit,
    pending_reviews,
    respond,
    retry_llm_call,
)
from graph_retry._core.state.transitions import why_no_call
from graph_retry._core.threads import expiry
from graph_retry.hooks import escalate, model_reviewer
from tests.loops import Model, answer, one_call, reviews, thread

SAME = "the last two attempts failed in the same way"
SENT = "attempts were made with these params before"
KEPT = "the last attempt is kept for a person"


def failing(*messages):
    """Make a model that never succeeds; its failures differ where the messages do."""
    left = itertools.cycle(messages)

    def fail(params):
        raise ValueError(next(left))

    return Model(fail)


def counted():
    """Make a model whose every failure has another text."""
    return failing(*(f"failure {n}" for n in range(50)))


MODEL_SAYS = FakeListChatModel(responses=['{"type": "approve"}'])


@pytest.mark.parametrize("model", [failing("no"), counted()], ids=["same failure", "other ones"])
@pytest.mark.parametrize(
    ("reviewer", "calls"),
    [
        (lambda review: approve(), [0, 0]),
        (lambda review: edit(n=0), [0, 0]),
        (lambda review: {"type": "edit", "params": {}}, [0, 0]),
        (model_reviewer(MODEL_SAYS), [0, 0]),
        (lambda review: edit(n=1), [0, 1, 1]),
    ],
)
def test_a_reviewer_sends_the_same_at_most_once_more(form, mode, model, reviewer, calls):
    """Then a person is asked, reads what was proposed, and has attempts left for every decision."""
    model.calls.clear()
    reviewer = mode.colour(reviewer) if type(reviewer).__name__ == "function" else reviewer
    graph = one_call(form, mode, model, InMemorySaver(), reviewer=reviewer)
    mode.invoke(graph, {"params": {"n": 0}}, thread())

    assert [params["n"] for params in model.calls] in (calls, calls[:2])
    (review,) = reviews(mode, graph, thread())
    allowed = review.value["review_configs"][0]["allowed_decisions"]
    assert {"approve", "edit"} <= {*allowed}
    if form == "node" and "agent" in review.value["note"]:
        assert SAME in review.value["note"] or SENT in review.value["note"]


def test_reviewers_that_alternate_between_two_edits_end_at_a_person():
    """Not only the last params count, but all that the ledger has."""
    model, between = counted(), itertools.cycle((edit(n=1), edit(n=0)))
    graph = one_call("node", None, model, InMemorySaver(), reviewer=lambda review: next(between))
    graph.invoke({"params": {"n": 0}}, thread())
    assert [params["n"] for params in model.calls] == [0, 1, 0, 1]


@pytest.mark.parametrize("review", [True, False])
def test_a_hook_never_goes_back_to_params_that_were_sent(form, mode, review):
    """Params of an attempt before the last one are no change either."""
    model = counted()

    def toggle(error, attempt, params):
        return {"n": 1 - params["n"]}

    graph = one_call(
        form, mode, model, InMemorySaver(), mode.colour(toggle), auto_retries=9, review=review
    )
    try:
        mode.invoke(graph, {"params": {"n": 0}}, thread())
    except AttemptsExhausted:
        assert not review
    assert [params["n"] for params in model.calls] == [0, 1]
    for asked in reviews(mode, graph, thread()):
        assert SENT in asked.value["note"]


def test_two_equal_failures_of_an_agents_decisions_go_to_a_person():
    """New params each time do not help an agent that gets nowhere."""
    model, numbers = failing("no"), itertools.count(1)
    graph = one_call(
        "node", None, model, InMemorySaver(), reviewer=lambda review: edit(n=next(numbers))
    )
    graph.invoke({"params": {"n": 0}}, thread())
    assert [params["n"] for params in model.calls] == [0, 1]
    (review,) = pending_reviews(graph, thread())
    assert SAME in review.value["note"]


def test_an_agent_is_asked_after_hooks_got_stuck_and_may_decide_once():
    """Two equal failures of hooks end the hooks; a reviewer may still know better."""
    model = Model(lambda params: '{"n": 7}' if params["n"] == 7 else "no")

    def hook(error, attempt, params):
        return {"n": params["n"] + 1}

    graph = one_call(
        "node", None, model, InMemorySaver(), hook, auto_retries=5, reviewer=lambda _: edit(n=7)
    )
    assert graph.invoke({"params": {"n": 0}}, thread())["output"] == {"n": 7}
    assert [params["n"] for params in model.calls] == [0, 1, 7]


def test_one_attempt_is_always_kept_for_a_person(form, mode):
    """Neither hooks nor reviewers make the last one; whoever the person is can still call again."""
    numbers = itertools.count(1)

    def up(*_):
        return {"n": next(numbers)}

    for by in ({"on_retry": mode.colour(up)}, {"reviewer": mode.colour(lambda _: edit(**up()))}):
        model = counted()
        graph = one_call(
            form, mode, model, InMemorySaver(), by.pop("on_retry", None),
            auto_retries=9, max_attempts=4, **by,
        )  # fmt: skip
        mode.invoke(graph, {"params": {"n": 0}}, thread())
        assert len(model.calls) == 3
        (review,) = reviews(mode, graph, thread())
        assert KEPT in review.value["note"]
        answer(mode, graph, thread(), edit(n=99))
        assert len(model.calls) == 4


def test_where_nobody_may_be_asked_every_attempt_is_used():
    """Nothing is kept for a person who is never asked."""
    model = counted()

    def up(error, attempt, params):
        return {"n": params["n"] + 1}

    with pytest.raises(AttemptsExhausted):
        retry_llm_call(model, {"n": 0}, up, max_attempts=4, auto_retries=9, review=False)
    assert len(model.calls) == 4


def test_a_step_of_escalation_is_made_after_equal_failures_but_not_with_the_last_attempt():
    """A larger model is other means; the attempt for the person stays kept."""
    model = failing("no")
    steps = escalate({1: {"n": 1}, 2: {"n": 2}, 3: {"n": 3}})
    graph = one_call("node", None, model, InMemorySaver(), steps, auto_retries=9, max_attempts=4)
    graph.invoke({"params": {"n": 0}}, thread())
    assert [params["n"] for params in model.calls] == [0, 1, 2]


def test_what_cannot_hold_is_not_offered_to_a_reviewer(mode):
    """At the kept attempt it may still respond; that it would have called again is not lost."""
    offered = []

    def decide(review):
        offered.append(review.value["review_configs"][0]["allowed_decisions"])
        return respond({"n": 5})

    model = failing("no")
    graph = one_call(
        "node", mode, model, InMemorySaver(), max_attempts=2, reviewer=mode.colour(decide)
    )
    assert mode.invoke(graph, {"params": {"n": 0}}, thread())["output"] == {"n": 5}
    assert offered == [["reject", "respond"]]
    assert len(model.calls) == 1


def test_comments_of_an_agent_are_held_to_the_same_rule():
    """The same words make the same params."""
    model = Model(lambda params: '{"n": 1}')
    graph = one_call(
        "node", None, model, InMemorySaver(), review="always",
        reviewer=lambda review: comment("Look again."),
    )  # fmt: skip
    graph.invoke({"params": {"prompt": "How many?"}}, thread())
    assert len(model.calls) == 3
    (review,) = pending_reviews(graph, thread())
    assert SENT in review.value["note"]


def test_an_expired_reviews_default_is_no_endless_retry(mode):
    """It calls once more; when that fails in the same way and nobody answers, the call ends."""
    model = failing("no")
    graph = one_call(
        "node", mode, model, InMemorySaver(), expires_after=0.001, default_decision=approve()
    )
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    for _ in range(5):
        mode.call(expiry, "expire_reviews", graph)
    assert len(model.calls) == 2
    assert reviews(mode, graph, thread()) == []


def test_a_proposal_that_is_not_applied_is_logged(caplog):
    """At WARNING, with the review, the author, the proposal and the reason, redacted."""
    secret = edit(n="many for Ada")
    graph = one_call(
        "node", None, failing("no"), InMemorySaver(), reviewer=lambda _: secret,
        redact=lambda text: text.replace("Ada", "NAME"),
    )  # fmt: skip
    with caplog.at_level(logging.WARNING, "graph_retry"):
        graph.invoke({"params": {"n": 0}}, thread())
    (told,) = [r.getMessage() for r in caplog.records if "did not decide" in r.getMessage()]
    assert "agent:reviewer proposed" in told
    assert "many for NAME" in told
    assert "expects a number" in told


RECORDS = st.lists(
    st.tuples(st.sampled_from(["caller", "hook:a", "agent:b", "system", "human"]), st.booleans()),
    min_size=1,
    max_size=8,
)


@given(RECORDS, st.sampled_from(["hook:a", "feedback", "agent:b", "system"]), st.integers(0, 3),
       st.integers(1, 9), st.booleans())  # fmt: skip
def test_no_automatic_author_gets_round_the_rule(made, author, sent, most, person):
    """Whatever came before: no third time, no call past the limit, none of the person's attempt."""
    attempts = [
        {"number": n, "author": by, "failure": {"message": "a" if same else str(n)}, "issues": []}
        for n, (by, same) in enumerate(made, start=1)
    ]
    why = why_no_call(attempts, author, sent=sent, max_attempts=most, person=person)
    if why is None:
        assert sent <= (author.startswith(("agent", "system")))
        assert len(made) < most - person
