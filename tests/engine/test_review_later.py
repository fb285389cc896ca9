"""A job at night collects what failed; people answer in the morning, and nothing is paid twice."""

import json

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from graph_retry import (
    AttemptsExhausted,
    accept,
    edit,
    pending_reviews,
    respond,
    retry_llm_call,
    review_later,
)
from graph_retry.hooks import SharedBudget
from tests.loops import Model, answer, one_call, reviews, thread


def exhausted(model, params, **options):
    """Make a call that may ask nobody, and return the error it ends with."""
    with pytest.raises(AttemptsExhausted) as ended:
        retry_llm_call(model, params, output=dict[str, int], name="count", review=False, **options)
    return ended.value


@pytest.mark.parametrize(
    ("decision", "output", "calls"),
    [(edit(n=1), {"n": 1}, 2), (respond({"n": 9}), {"n": 9}, 1)],
)
def test_an_exhausted_call_is_reviewed_later(mode, decision, output, calls):
    """The review is of the attempt that was made, also after a journey through JSON."""
    model = Model()
    given = json.loads(json.dumps(review_later(exhausted(model, {"n": 0}))))
    graph = one_call("node", mode, model, InMemorySaver())
    mode.invoke(graph, given, thread())
    (review,) = reviews(mode, graph, thread())
    assert (review.attempt, review.params, len(model.calls)) == (1, {"n": 0}, 1)
    assert review.failure["message"] == "0 is too small"
    state = answer(mode, graph, thread(), decision)
    assert (state["output"], state["status"], len(model.calls)) == (output, "succeeded", calls)
    assert "to_review" not in state["attempts"][0]


def test_a_node_that_ended_exhausted_is_reviewed_later(mode):
    """Its own `attempts` are what the next node is given; what is allowed is that node's."""
    model = Model(lambda _: '{"n": "many"}')
    night = one_call("node", mode, model, InMemorySaver(), review=False)
    ended = mode.invoke(night, {"params": {"n": 0}}, thread())
    assert ended["status"] == "exhausted"
    morning = one_call("node", mode, model, InMemorySaver(), allowed_decisions=["accept"])
    mode.invoke(morning, review_later(ended["attempts"]), thread())
    assert reviews(mode, morning, thread())[0].output == {"n": "many"}
    state = answer(mode, morning, thread(), accept())
    assert (state["output"], state["status"], len(model.calls)) == (
        {"n": "many"},
        "overruled",
        1,
    )


def test_one_budget_ends_a_batch_and_its_calls_are_reviewed_without_paying():
    """What was spent at night is counted once, and a call that was never made is shown as such."""
    batch, model = SharedBudget(failures=2), Model()
    errors = [exhausted(model, {"n": 0, "page": page}, budget=batch) for page in range(5)]
    assert len(model.calls) == 2
    graph = one_call("node", None, model, InMemorySaver())
    for page, error in enumerate(errors):
        graph.invoke(review_later(error), thread(str(page)))
    kinds = [pending_reviews(graph, thread(str(page)))[0].failure["type"] for page in range(5)]
    assert kinds == ["ValueError"] * 2 + ["BudgetExceededError"] * 3
    assert len(model.calls) == 2


@pytest.mark.parametrize("attempts", [[], [{"number": 1, "status": "succeeded"}]])
def test_what_did_not_fail_asks_nothing(attempts):
    """There is nothing to show, and the error says so."""
    whole = [{**attempt, "params_patch": None} for attempt in attempts]
    with pytest.raises(ValueError, match="nothing to review"):
        review_later(whole)
