"""Code around a call that catches LangGraph's pause is told so at its next call."""

import re

import pytest
import tenacity
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphBubbleUp
from langgraph.graph import START, StateGraph

from graph_retry import aretry_llm_call, edit, gather_calls, retry_llm_call
from graph_retry.errors import PauseSwallowed
from tests.loops import Model, State, answer, reviews, thread

CAUGHT = (
    r"pause of `count`.* was caught by code around it.* or is passing a `finally:`.*"
    r"`except GraphBubbleUp: raise`"
)


async def passes(call):
    """Do nothing about errors."""
    return await call()


async def is_careful(call):
    """Let the pause through and catch the rest."""
    try:
        return await call()
    except GraphBubbleUp:
        raise
    except Exception:  # noqa: BLE001 - the mistake this is about
        return "lost"


async def swallows(call):
    """Take the pause for a failure."""
    try:
        return await call()
    except Exception:  # noqa: BLE001 - the mistake this is about
        return "lost"


async def falls_back(call):
    """Take the pause for a failure, and make another call instead."""
    try:
        return await call()
    except Exception:  # noqa: BLE001 - the mistake this is about
        return await call()


async def ends_with_a_call(call):
    """Make another call while the pause is on its way out."""
    try:
        return await call()
    finally:
        await call()


async def goes_on(call):
    """Take the pause for the failure of one of three items."""
    return [await swallows(call) for _ in range(3)]


async def at_once(_seconds):
    """Wait no time: without a running loop tenacity cannot tell how to wait."""


_tries = tenacity.retry(stop=tenacity.stop_after_attempt(3), reraise=True, sleep=at_once)
tries_again = _tries(passes)


def node_of(mode, model, around):
    """Return a node that makes a call inside some code of the user's, in the mode's way."""
    options = {"output": dict[str, int], "name": "count"}

    async def node(state):
        async def call():
            if mode.is_async:
                return await aretry_llm_call(mode.colour(model), state["params"], **options)
            return retry_llm_call(model, state["params"], **options)

        return {"output": await around(call)}

    def sync_node(state):
        running = node(state)
        while True:
            try:
                running.send(None)
            except StopIteration as stop:
                return stop.value

    return node if mode.is_async else sync_node


def graph_of(node, saver):
    """Compile a graph of one node."""
    return StateGraph(State).add_node("step", node).add_edge(START, "step").compile(saver)


def test_no_later_call_is_made_once_a_pause_is_lost(mode, caplog):
    """Code that catches the refusals as well makes no further call, and the log tells each one."""
    model = Model(goal=1)
    graph = graph_of(node_of(mode, model, goes_on), InMemorySaver())
    assert mode.invoke(graph, {"params": {"n": 0}}, thread())["output"] == ["lost"] * 3
    assert len(model.calls) == 1
    told = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert [bool(re.search(CAUGHT, each)) for each in told] == [True, True]


@pytest.mark.parametrize("around", [falls_back, tries_again, ends_with_a_call])
def test_the_next_call_after_a_swallowed_pause_is_refused(mode, around):
    """The error says why; with the code mended the thread asks its question and goes on exactly."""
    model, saver = Model(goal=1), InMemorySaver()
    broken = graph_of(node_of(mode, model, around), saver)
    with pytest.raises(PauseSwallowed, match=rf"`count` was reached although the {CAUGHT}"):
        mode.invoke(broken, {"params": {"n": 0}}, thread())

    graph = graph_of(node_of(mode, model, is_careful), saver)
    mode.invoke(graph, None, thread())
    (review,) = reviews(mode, graph, thread())
    assert answer(mode, graph, thread(), edit(n=1))["output"] == {"n": 1}
    assert (review.attempt, len(model.calls)) == (1, 2)


@pytest.mark.parametrize("around", [passes, is_careful])
def test_code_that_lets_the_pause_through_hears_nothing(mode, checkpointer, around):
    """Paused, answered and finished."""
    graph = graph_of(node_of(mode, Model(goal=1), around), checkpointer)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    assert answer(mode, graph, thread(), edit(n=1))["output"] == {"n": 1}


@pytest.mark.parametrize("mode", ["async"], indirect=True)
def test_a_swallowed_pause_of_gathered_calls_is_told(mode):
    """The merged pause of `gather_calls` is noticed as one; each call's own is no false alarm."""

    async def node(state):
        calls = [aretry_llm_call(Model(), {"n": 0}, output=int, name="count") for _ in range(3)]
        try:
            await gather_calls(*calls)
        except Exception:  # noqa: BLE001 - the mistake this is about
            return {"output": await aretry_llm_call(Model(), {"n": 0}, output=int, name="later")}

    graph = graph_of(node, InMemorySaver())
    with pytest.raises(PauseSwallowed, match=r"`later` was reached.* pause of `gather_calls`"):
        mode.invoke(graph, {"params": {"n": 0}}, thread())
