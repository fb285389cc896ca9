"""Odd surroundings: no checkpointer, a small recursion limit, state of other versions."""

import subprocess
import sys

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError

from graph_retry import InterventionRequired, edit
from graph_retry._core.params.patch import Encoded
from graph_retry._core.state.attempts import open_attempt
from graph_retry._core.state.position import fresh_loop, fresh_review
from graph_retry.errors import ReplayMismatch, StaleDecision
from tests.loops import Model, answer, one_call, reviews, thread


@pytest.mark.parametrize("saver", [None, False])
def test_where_nothing_is_saved_nobody_is_asked(form, mode, saver):
    """The one call that was made is told about, with the way out; a success needs no storage."""
    model = Model(goal=1)
    graph = one_call(form, mode, model, saver)
    with pytest.raises(InterventionRequired, match="give the graph or agent one") as caught:
        mode.invoke(graph, {"params": {"n": 0}}, thread())
    assert caught.value.attempts[0]["failure"]["message"] == "0 is too small"
    assert mode.invoke(graph, {"params": {"n": 1}}, thread())["output"] == {"n": 1}
    assert [params["n"] for params in model.calls] == [0, 1]


def bump(error, attempt, params):
    """Count on."""
    return {"n": params["n"] + 1}


def test_a_small_recursion_limit_stops_the_node_form_and_is_continued_exactly(mode):
    """25 steps are too few for 21 automatic attempts: an error, and `invoke(None)` goes on."""
    model = Model(goal=20)
    options = {"max_attempts": 30, "auto_retries": 30}
    graph = one_call("node", mode, model, InMemorySaver(), bump, **options)
    config = {**thread(), "recursion_limit": 25}
    with pytest.raises(GraphRecursionError, match="Recursion limit of 25"):
        mode.invoke(graph, {"params": {"n": 0}}, config)
    assert 5 < len(model.calls) < 21
    assert mode.invoke(graph, None, config)["output"] == {"n": 20}
    assert [params["n"] for params in model.calls] == list(range(21))


@pytest.mark.parametrize(
    ("form", "asked"),
    [("node", "person"), ("function", "person"), ("function", "hook")],
    indirect=["form"],
)
def test_a_small_recursion_limit_is_no_limit_elsewhere(form, mode, asked):
    """The function form has its own budget of steps, and each answer starts a new one."""
    model = Model(goal=12)
    hooks, auto_retries = (bump, 30) if asked == "hook" else (None, 0)
    options = {"max_attempts": 30, "auto_retries": auto_retries}
    graph = one_call(form, mode, model, InMemorySaver(), hooks, **options)
    config = {**thread(), "recursion_limit": 25}
    state = mode.invoke(graph, {"params": {"n": 0}}, config)
    while open_ := reviews(mode, graph, config):
        state = answer(mode, graph, config, edit(n=open_[0].params["n"] + 1))
    assert state["output"] == {"n": 12}
    assert [params["n"] for params in model.calls] == list(range(13))


class SkewedSaver(InMemorySaver):
    """Storage that gives back a call's state as another version of the library had written it."""

    skew = None

    def with_allowlist(self, _):
        return self  # a clone, as strict msgpack makes one, would not be skewed later

    def get_tuple(self, config):
        saved = super().get_tuple(config)
        if saved and self.skew and "retry_loop" in saved.checkpoint["channel_values"]:
            self.skew(saved.checkpoint["channel_values"])
        return saved


def answered(form, mode, skew):
    """Pause a thread, skew what was saved, answer; return the output and the calls made."""
    model, saver = Model(goal=1), SkewedSaver()
    graph = one_call(form, mode, model, saver)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    saver.skew = skew
    assert len(reviews(mode, graph, thread())) in (0, 1)
    state = answer(mode, graph, thread(), edit(n=1))
    return state["output"], [params["n"] for params in model.calls]


def without(place, key):
    """Return a skew that drops a key of the loop, of its review or of each attempt."""

    def skew(values):
        review = values["retry_loop"].get("review") or {}
        holders = {
            "loop": [values["retry_loop"]],
            "review": [review],
            "attempt": values["attempts"],
        }
        for holder in holders[place]:
            holder.pop(key, None)

    return skew


NO_LEDGER = ("number", "status", "params_patch", "failure")
KNOWN = {"name": "", "author": "", "reason": "", "idempotency_key": ""}
RECORD = open_attempt([], Encoded({}, {}), labels={}, **KNOWN)
OLDER = [
    *(("loop", key) for key in fresh_loop() if key not in ("next", "review")),
    *(("review", key) for key in fresh_review("") if key != "review_id"),
    *(("attempt", key) for key in RECORD if key not in NO_LEDGER),
]


def test_state_of_an_older_version_is_gone_on_with(form, mode):
    """What a version did not record yet is blank: the answer is applied and nothing repeated."""
    assert len(OLDER) > 25
    for place, key in OLDER:
        got = answered(form, mode, without(place, key))
        assert got == ({"n": 1}, [0, 1]), f"without {key} of the {place}"


def test_what_a_newer_version_added_is_left_alone(form, mode):
    """Unknown keys anywhere do no harm."""

    def skew(values):
        values["retry_loop"] |= {"later": {"x": 1}}
        values["retry_loop"]["review"] and values["retry_loop"]["review"].update(later=1)
        values["attempts"] = [{**attempt, "later": [1]} for attempt in values["attempts"]]
        values["retry_later"] = 1

    assert answered(form, mode, skew) == ({"n": 1}, [0, 1])


@pytest.mark.parametrize(
    ("skew", "error", "message"),
    [
        (
            lambda values: values["attempts"][0].update(schema_version=99),
            ReplayMismatch,
            "schema version 99 .* upgrade graph-retry",
        ),
        (without("attempt", "params_patch"), ReplayMismatch, "record 1 .* no `params_patch`"),
        (without("attempt", "number"), ReplayMismatch, "record 1 .* no `number`"),
        (without("attempt", "failure"), ValueError, "with nothing to ask; state was edited"),
        (without("loop", "review"), StaleDecision, "no open review"),
    ],
)
def test_state_that_cannot_be_read_is_refused_in_so_many_words(form, mode, skew, error, message):
    """A newer ledger and broken state are named; no model is called."""
    with pytest.raises(error, match=message):
        answered(form, mode, skew)


FIRST_CALLS = """
import sys, threading
from graph_retry import retry_llm_call

def call():
    together.wait()
    outputs.append(retry_llm_call(lambda params: "1", "one", output=int))

sys.setswitchinterval(1e-6)
together, outputs = threading.Barrier(8), []
threads = [threading.Thread(target=call) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert outputs == [1] * 8
"""


@pytest.mark.slow
def test_the_first_calls_of_a_program_may_be_made_in_several_threads_at_once():
    """What is built at the first use is built by one of them: pydantic 2.11 does not see to it."""
    subprocess.run([sys.executable, "-c", FIRST_CALLS], check=True, timeout=120)
