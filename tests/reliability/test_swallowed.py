"""Code around a call that catches LangGraph's pause is told so: at once, and after the fact."""

import gc
from contextlib import nullcontext

import pytest
import tenacity
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphBubbleUp
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

import graph_retry.threads.swallowed
from graph_retry import aretry_llm_call, edit, gather_calls, retry_llm_call
from graph_retry.errors import PauseSwallowed
from graph_retry.flow import adrive, drive
from tests.loops import Model, State, answer, reviews, thread

CAUGHT = r"pause of `count`.* was caught by code around it.*`except GraphBubbleUp: raise`"


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


async def goes_on(call):
    """Take the pause for the failure of one of three items."""
    return [await swallows(call) for _ in range(3)]


tries_again = tenacity.retry(stop=tenacity.stop_after_attempt(3), reraise=True)(passes)


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


def graph_of(*nodes, side_by_side=False, saver=None):
    """Compile a graph of these nodes, one after the other or side by side."""
    builder, before = StateGraph(State), START
    for place, node in enumerate(nodes):
        builder.add_node(f"step{place}", node)
        builder.add_edge(before, f"step{place}")
        before = before if side_by_side else f"step{place}"
    return builder.compile(checkpointer=saver)


def left_behind(mode, graph):
    """Return the calls that wait although the thread went on."""
    flow = graph_retry.threads.swallowed.swallowed_calls(graph, thread())
    return mode.run(lambda: adrive(flow)) if mode.is_async else drive(flow)


@pytest.mark.parametrize("around", [swallows, goes_on])
def test_a_swallowed_pause_is_warned_about_where_it_happens(mode, around):
    """The warning names the call and the way out; the run ends as if all were well."""
    model = Model(goal=1)
    graph = graph_of(node_of(mode, model, around), saver=InMemorySaver())
    gc.disable()  # what is told must not depend on when garbage is collected
    try:
        with pytest.warns(RuntimeWarning, match=CAUGHT) as caught:
            state = mode.invoke(graph, {"params": {"n": 0}}, thread())
    finally:
        gc.enable()

    assert state["output"] in ("lost", ["lost"] * 3)
    assert len(model.calls) == 1, "no later call is made once a pause is lost"
    assert [warning.filename for warning in caught] == [__file__]
    (left,) = left_behind(mode, graph)
    assert (left.title, len(left.attempts)) == ("count in step0", 1)
    assert reviews(mode, graph, thread()) == []


@pytest.mark.parametrize("around", [falls_back, tries_again])
def test_the_next_call_after_a_swallowed_pause_is_refused(mode, around):
    """The error says why; with the code mended the thread asks its question and goes on exactly."""
    model, saver = Model(goal=1), InMemorySaver()
    broken = graph_of(node_of(mode, model, around), saver=saver)
    warned = pytest.warns(RuntimeWarning, match=CAUGHT) if around is tries_again else nullcontext()
    with warned, pytest.raises(PauseSwallowed, match=rf"`count` was reached although the {CAUGHT}"):
        mode.invoke(broken, {"params": {"n": 0}}, thread())
    assert left_behind(mode, broken) == [], "the node has failed: nothing went past it"

    graph = graph_of(node_of(mode, model, is_careful), saver=saver)
    mode.invoke(graph, None, thread())
    (review,) = reviews(mode, graph, thread())
    assert answer(mode, graph, thread(), edit(n=1))["output"] == {"n": 1}
    assert (review.attempt, len(model.calls)) == (1, 2)


@pytest.mark.parametrize("around", [passes, is_careful])
def test_code_that_lets_the_pause_through_hears_nothing(mode, checkpointer, around):
    """No warning, no error, nothing left behind: paused, answered and finished."""
    model = Model(goal=1)
    graph = graph_of(node_of(mode, model, around), saver=checkpointer)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    gc.collect()
    assert left_behind(mode, graph) == []
    assert answer(mode, graph, thread(), edit(n=1))["output"] == {"n": 1}
    assert left_behind(mode, graph) == []


@pytest.mark.parametrize("mode", ["async"], indirect=True)
def test_a_swallowed_pause_of_gathered_calls_is_told(mode):
    """The merged pause of `gather_calls` is watched as one; each call's own is no false alarm."""

    async def node(state):
        calls = [aretry_llm_call(Model(), {"n": 0}, output=int, name="count") for _ in range(3)]
        try:
            await gather_calls(*calls)
        except Exception:  # noqa: BLE001 - the mistake this is about
            return {"output": "lost"}

    graph = graph_of(node, saver=InMemorySaver())
    with pytest.warns(RuntimeWarning, match="pause of `gather_calls`") as caught:
        mode.invoke(graph, {"params": {"n": 0}}, thread())
    assert len(caught) == 1
    assert len(left_behind(mode, graph)) == 3


def waits(state):
    """Pause for something else."""
    interrupt("?")


@pytest.mark.parametrize("shape", ["done", "moved", "beside", "nested", "nested and moved"])
def test_a_review_left_behind_is_found_in_storage(mode, checkpointer, shape):
    """Is the thread done, waiting elsewhere or deep inside: what it left behind is known."""
    swallowing = node_of(mode, Model(goal=1), swallows)
    nodes = [swallowing] if shape in ("done", "nested") else [swallowing, waits]
    inner = graph_of(*nodes, side_by_side=shape == "beside", saver=checkpointer)
    if shape.startswith("nested"):
        inner = graph_of(graph_of(*nodes), saver=checkpointer)
    with pytest.warns(RuntimeWarning, match=CAUGHT):
        mode.invoke(inner, {"params": {"n": 0}}, thread())
    assert len(left_behind(mode, inner)) == 1


@pytest.mark.parametrize("how", ["new input", "skipped"])
def test_a_review_abandoned_on_purpose_is_not_called_swallowed(mode, how):
    """A new input, or a state edit that skips the node, is somebody's decision."""
    model = Model(goal=1)
    graph = graph_of(node_of(mode, model, passes), waits, saver=InMemorySaver())
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    if how == "new input":
        mode.invoke(graph, {"params": {"n": 1}}, thread())
    else:
        mode.call(graph, "update_state", thread(), {"output": None}, as_node="step0")
        mode.invoke(graph, None, thread())
    assert left_behind(mode, graph) == []
