"""What `on_retry` hooks may do, and when a person is asked after all."""

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from graph_retry import AttemptsExhausted, approve, edit
from tests.loops import Model, answer, one_call, refused, reviews, thread


def bump(error, attempt, params):
    """Raise `n` by one."""
    return {**params, "n": params["n"] + 1}


def leave(error, attempt, params):
    """Change nothing."""


def test_a_hook_is_applied_at_most_auto_retries_times_before_a_review(form, mode):
    """Two automatic retries, then a person sees what the hook would do next."""
    model = Model(goal=9)
    graph = one_call(form, mode, model, InMemorySaver(), mode.colour(bump), auto_retries=2)

    mode.invoke(graph, {"params": {"n": 0}}, thread())

    assert [params["n"] for params in model.calls] == [0, 1, 2]
    (review,) = reviews(mode, graph, thread())
    assert review.attempt == 3
    assert review.suggested_params == {"n": 3}


def test_without_auto_retries_a_hook_only_suggests(form, mode):
    """With `auto_retries=0` the hook's params are shown, and approving uses them."""
    model = Model(goal=1)
    graph = one_call(form, mode, model, InMemorySaver(), mode.colour(bump))

    mode.invoke(graph, {"params": {"n": 0}}, thread())
    (review,) = reviews(mode, graph, thread())
    assert (review.params, review.suggested_params) == ({"n": 0}, {"n": 1})

    state = answer(mode, graph, thread(), approve())
    assert state["output"] == {"n": 1}
    assert len(model.calls) == 2


def test_nothing_changed_means_a_review_and_no_blind_retry(form, mode):
    """A hook that leaves the params alone costs no call, however many retries are allowed (I2)."""
    same = mode.colour(lambda error, attempt, params: dict(params))
    model = Model(goal=1)
    hooks = [mode.colour(leave), same]
    graph = one_call(form, mode, model, InMemorySaver(), hooks, auto_retries=5)

    mode.invoke(graph, {"params": {"n": 0}}, thread())

    assert len(model.calls) == 1
    assert len(reviews(mode, graph, thread())) == 1


def test_the_first_hook_that_changes_something_has_it(form, mode):
    """Hooks are alternatives, tried in order."""
    jump = mode.colour(lambda error, attempt, params: {"n": 5})
    model = Model(goal=5)
    hooks = [mode.colour(leave), jump, mode.colour(bump)]
    graph = one_call(form, mode, model, InMemorySaver(), hooks, auto_retries=1)

    state = mode.invoke(graph, {"params": {"n": 0}}, thread())

    assert state["output"] == {"n": 5}
    assert [params["n"] for params in model.calls] == [0, 5]


def test_the_allowance_is_renewed_by_a_person(form, mode):
    """After an edit automation may try again as often as before."""
    model = Model(goal=12)
    graph = one_call(form, mode, model, InMemorySaver(), mode.colour(bump), auto_retries=1)

    mode.invoke(graph, {"params": {"n": 0}}, thread())
    state = answer(mode, graph, thread(), edit(n=11))

    assert [params["n"] for params in model.calls] == [0, 1, 11, 12]
    assert state["output"] == {"n": 12}


def test_a_hook_receives_error_attempt_and_a_copy_of_params(form, mode):
    """The error is data of the failure; its text is the original's."""
    seen = []

    def look(error, attempt, params):
        seen.append((str(error), error.kind, error.type, attempt, params, len(error.attempts)))

    graph = one_call(form, mode, Model(goal=1), InMemorySaver(), mode.colour(look))
    mode.invoke(graph, {"params": {"n": 0}}, thread())

    assert seen == [("0 is too small", "rejected_input", "ValueError", 1, {"n": 0}, 1)]


def test_a_hooks_own_exception_passes_and_the_call_is_not_repeated(form, mode, checkpointer):
    """After the hook is mended `invoke(None)` goes on from the finished call."""
    model, seen, broken = Model(goal=1), [], [True]

    def first(error, attempt, params):
        seen.append("first")

    def second(error, attempt, params):
        if broken:
            message = "typo in the hook"
            raise KeyError(message)
        return {"n": 1}

    hooks = [mode.colour(first), mode.colour(second)]
    graph = one_call(form, mode, model, checkpointer, hooks, auto_retries=1)
    with pytest.raises(KeyError, match="typo in the hook"):
        mode.invoke(graph, {"params": {"n": 0}}, thread())

    broken.clear()
    state = mode.invoke(graph, None, thread())

    assert state["output"] == {"n": 1}
    assert len(model.calls) == 2
    assert seen == ["first"]


@pytest.mark.parametrize("wrong", [42, "text", [1], object()])
def test_a_hook_of_the_wrong_mind_is_named(form, mode, wrong):
    """Params of a wrong type are refused naming the hook that returned them."""

    def muddle(error, attempt, params):
        return wrong

    graph = one_call(form, mode, Model(goal=1), InMemorySaver(), mode.colour(muddle))
    with pytest.raises((TypeError, ValueError), match="muddle"):
        mode.invoke(graph, {"params": {"n": 0}}, thread())


def test_a_hook_that_edits_in_place_is_named(form, mode):
    """A hook that mutates its copy would lose its change: it is told so by name (I3)."""

    def scribble(error, attempt, params):
        params["n"] = 7

    graph = one_call(form, mode, Model(goal=1), InMemorySaver(), mode.colour(scribble))
    with pytest.raises(TypeError, match="scribble"):
        mode.invoke(graph, {"params": {"n": 0}}, thread())


def test_review_false_never_asks(mode):
    """Automation alone ends with the ledger in hand: an error, or a status in the node form."""
    model = Model(goal=9)
    options = {"auto_retries": 2, "review": False}
    graph = one_call("function", mode, model, InMemorySaver(), mode.colour(bump), **options)
    with pytest.raises(AttemptsExhausted) as caught:
        mode.invoke(graph, {"params": {"n": 0}}, thread())
    assert [attempt["number"] for attempt in caught.value.attempts] == [1, 2, 3]

    graph = one_call("node", mode, model, InMemorySaver(), mode.colour(bump), **options)
    state = mode.invoke(graph, {"params": {"n": 0}}, thread())
    assert (state["status"], len(state["attempts"])) == ("exhausted", 3)

    raising = {**options, "on_cancel": "raise"}
    graph = one_call("node", mode, model, InMemorySaver(), mode.colour(bump), **raising)
    with pytest.raises(AttemptsExhausted):
        mode.invoke(graph, {"params": {"n": 0}}, thread())


def test_the_last_review_offers_no_retry(form, mode):
    """At `max_attempts` only the output can be supplied or the call rejected."""
    model = Model(goal=9)
    graph = one_call(form, mode, model, InMemorySaver(), max_attempts=2)

    mode.invoke(graph, {"params": {"n": 0}}, thread())
    answer(mode, graph, thread(), edit(n=1))
    (review,) = reviews(mode, graph, thread())
    again = refused(mode, graph, thread(), approve())
    state = answer(mode, graph, thread(), {"type": "respond", "output": {"n": 9}})

    assert review.value["review_configs"][0]["allowed_decisions"] == ["reject", "respond"]
    assert "respond" in again.message
    assert state["output"] == {"n": 9}
    assert len(model.calls) == 2
