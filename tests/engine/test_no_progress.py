"""The no-progress stop: the same failure twice in a row ends automation, and says so."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.checkpoint.memory import InMemorySaver

from graph_retry import edit
from graph_retry._core.state.transitions import no_progress
from tests.loops import Model, answer, one_call, reviews, thread


def bump(error, attempt, params):
    """Change something that does not help."""
    return {**params, "n": params["n"] + 1}


@pytest.mark.parametrize(
    ("texts", "calls"),
    [
        (["no", "no", "no", "no"], 2),
        (['{"a": "x"}', '{"b": "x"}', '{"b": "x"}', "no"], 3),
        (['{"a": "x"}', '{"b": "x"}', '{"a": "x"}', '{"b": "x"}'], 4),
        (['{"a": "x"}', "no", '{"a": "x"}', "no"], 4),
    ],
)
def test_the_same_failure_twice_in_a_row_asks_a_person(form, mode, texts, calls):
    """Different failures are progress of a kind; going round in a circle ends at the allowance."""
    left = list(texts)
    model = Model(lambda params: left.pop(0))
    graph = one_call(form, mode, model, InMemorySaver(), mode.colour(bump), auto_retries=3)
    mode.invoke(graph, {"params": {"n": 0}}, thread())

    assert len(model.calls) == calls
    (review,) = reviews(mode, graph, thread())
    same = "the last two attempts failed in the same way"
    assert (same in review.value["note"]) == (calls < 4)
    assert review.suggested_params == {"n": calls}, "what the hook would do next is still shown"


def test_a_person_may_go_on_all_the_same(form, mode):
    """An edit starts a new attempt; if it fails the same way, the person is asked again."""
    model = Model(lambda params: '{"n": 1}' if params["n"] > 40 else "no")
    graph = one_call(form, mode, model, InMemorySaver(), mode.colour(bump), auto_retries=9)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    answer(mode, graph, thread(), edit(n=10))
    assert len(model.calls) == 3
    assert answer(mode, graph, thread(), edit(n=41))["output"] == {"n": 1}


def test_without_a_person_the_allowance_is_used_up(mode):
    """With `review=False` there is nobody to stop for: a model may still come round."""
    model = Model(lambda params: "no")
    options = {"auto_retries": 9, "review": False}
    graph = one_call("node", mode, model, InMemorySaver(), mode.colour(bump), **options)
    state = mode.invoke(graph, {"params": {"n": 0}}, thread())
    assert (state["status"], len(model.calls)) == ("exhausted", 10)


ATTEMPTS = st.builds(
    lambda kind, message, path: {
        "failure": {"kind": kind, "type": "E", "message": message},
        "issues": [{"path": path, "message": message}] if path else [],
    },
    st.sampled_from(["transient", "invalid_schema"]), st.sampled_from("xy"),
    st.sampled_from(["", "/a", "/b"]),
)  # fmt: skip


@given(st.lists(ATTEMPTS, max_size=5))
def test_only_the_last_two_count(attempts):
    """The rule looks at kind, type, message and issues of two attempts, and at nothing before."""
    same = len(attempts) > 1 and attempts[-1] == attempts[-2]
    assert no_progress(attempts) is same
