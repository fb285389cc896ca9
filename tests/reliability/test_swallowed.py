"""Code around a call that catches LangGraph's pause is told so at its next call."""

import asyncio
import contextvars
import re

import pytest
import tenacity
from langchain.agents import create_agent
from langchain.agents.middleware import wrap_model_call, wrap_tool_call
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphBubbleUp
from langgraph.graph import START, StateGraph

from graph_retry import aretry_llm_call, edit, gather_calls, retry_llm_call
from graph_retry.agents import RetryMiddleware
from graph_retry.errors import PauseSwallowed
from tests.agents.scripted import ScriptedChat, asking, weather_of
from tests.loops import Model, State, answer, reviews, thread

CAUGHT = (
    r"`count` waits for a person: user code caught its pause.*, or a `finally:` made.*"
    r"`except GraphBubbleUp: raise`"
)

ENDED = (
    r"a node around `count` ended with a result although the call waits for a person.*"
    r"`gather_calls`"
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


def in_copies(around):
    """Return the same code, each of whose calls is made in a copy of the context, as a hook's."""

    async def copied(call):
        async def one():
            if asyncio.iscoroutine(made := contextvars.copy_context().run(call)):
                try:
                    running = asyncio.create_task(made)
                except RuntimeError:  # Without an event loop, the call never suspends.
                    return await made
                return await running
            return made

        return await around(one)

    return copied


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
    """Code that catches the refusals as well makes no further call, and the run ends with one."""
    model = Model(goal=1)
    graph = graph_of(node_of(mode, model, goes_on), InMemorySaver())
    with pytest.raises(PauseSwallowed, match=ENDED):
        mode.invoke(graph, {"params": {"n": 0}}, thread())
    assert mode.call(graph, "get_state", thread()).values["output"] == ["lost"] * 3
    assert len(model.calls) == 1
    told = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert [bool(re.search(CAUGHT, each)) for each in told] == [True, True, False]
    assert re.search(ENDED, told[-1])


@pytest.mark.parametrize("around", [falls_back, tries_again, ends_with_a_call])
def test_the_next_call_after_a_swallowed_pause_is_refused(mode, around):
    """The error says why; with the code mended the thread asks its question and goes on exactly."""
    model, saver = Model(goal=1), InMemorySaver()
    broken = graph_of(node_of(mode, model, around), saver)
    with pytest.raises(PauseSwallowed, match=rf"`count` was called although {CAUGHT}"):
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

    async def fails(params):
        raise ValueError(params)

    async def node(state):
        calls = [aretry_llm_call(fails, {"n": 0}, output=int, name="count") for _ in range(3)]
        try:
            await gather_calls(*calls)
        except Exception:  # noqa: BLE001 - the mistake this is about
            return {"output": await aretry_llm_call(fails, {"n": 0}, output=int, name="later")}

    graph = graph_of(node, InMemorySaver())
    with pytest.raises(PauseSwallowed, match=r"`later` was called although `gather_calls`"):
        mode.invoke(graph, {"params": {"n": 0}}, thread())


@pytest.mark.parametrize("around", [falls_back, tries_again, ends_with_a_call])
def test_an_equal_call_in_a_copied_context_is_refused(mode, around):
    """As a retry in a middleware hook makes it: once, and never paid again."""
    model = Model(goal=1)
    graph = graph_of(node_of(mode, model, in_copies(around)), InMemorySaver())
    with pytest.raises(PauseSwallowed, match="`count` was called although"):
        mode.invoke(graph, {"params": {"n": 0}}, thread())
    assert len(model.calls) == 1


def around_graph(mode, model, _around):
    """Return a node that runs a graph with the call, and takes the graph's pause for a failure."""
    graph = graph_of(node_of(mode, model, passes), None)

    def node(state):
        try:
            return graph.invoke(state)
        except Exception:  # noqa: BLE001 - the mistake this is about
            return {"output": "lost"}

    async def anode(state):
        try:
            return await graph.ainvoke(state)
        except Exception:  # noqa: BLE001 - the mistake this is about
            return {"output": "lost"}

    return anode if mode.is_async else node


@pytest.mark.parametrize("stream_mode", [None, "updates"])
@pytest.mark.parametrize("place", [node_of, around_graph])
def test_a_pause_that_no_call_follows_is_told_when_the_run_ends(mode, stream_mode, place):
    """By `invoke` and by the end of a stream; the state is saved as the node returned it."""
    graph = graph_of(place(mode, Model(goal=1), in_copies(swallows)), InMemorySaver())
    verb, how = ("invoke", {}) if stream_mode is None else ("stream", {"stream_mode": stream_mode})
    with pytest.raises(PauseSwallowed, match=ENDED):
        mode.call(graph, verb, {"params": {"n": 0}}, thread(), **how)
    assert mode.call(graph, "get_state", thread()).values["output"] == "lost"


def test_a_pause_is_told_before_the_next_node_pays(mode):
    """The first call of a later node raises, before its model is called."""
    first, second = Model(goal=1), Model(goal=0)
    builder = StateGraph(State)
    builder.add_node("one", node_of(mode, first, in_copies(swallows)))
    builder.add_node("two", node_of(mode, second, passes))
    graph = builder.add_edge(START, "one").add_edge("one", "two").compile(InMemorySaver())
    with pytest.raises(PauseSwallowed, match=ENDED):
        mode.invoke(graph, {"params": {"n": 0}}, thread())
    assert (len(first.calls), second.calls) == (1, [])


def test_a_run_that_fails_keeps_its_own_error(mode, caplog):
    """The swallowed pause is in the log."""

    def fails(state):
        raise LookupError("mine")

    builder = StateGraph(State).add_node("one", node_of(mode, Model(goal=1), in_copies(swallows)))
    builder.add_node("two", fails).add_edge(START, "one").add_edge("one", "two")
    with pytest.raises(LookupError, match="mine"):
        mode.invoke(builder.compile(InMemorySaver()), {"params": {"n": 0}}, thread())
    assert re.search(ENDED, caplog.text)


def test_a_node_that_fails_beside_a_pause_hears_nothing(mode, caplog):
    """An error of the user's own, raised instead of the pause, ends the run by itself."""

    async def raises(call):
        try:
            return await call()
        except Exception as error:
            raise LookupError("mine") from error

    graph = graph_of(node_of(mode, Model(goal=1), raises), InMemorySaver())
    with pytest.raises(LookupError, match="mine"):
        mode.invoke(graph, {"params": {"n": 0}}, thread())
    assert "caught" not in caplog.text


@pytest.mark.parametrize("mode", ["async"], indirect=True)
@pytest.mark.parametrize("params", [[0, 0, 0], [0, -1, -2]])
def test_calls_that_wait_for_each_other_swallow_nothing(mode, params):
    """With a semaphore, a call begins after another has paused; every one is asked and answered."""
    model = Model(goal=1)

    async def node(state):
        one_by_one = asyncio.Semaphore(1)

        async def call(n):
            async with one_by_one:
                return await aretry_llm_call(
                    mode.colour(model), {"n": n}, output=dict[str, int], name="count"
                )

        return {"output": await gather_calls(*map(call, params))}

    graph = graph_of(node, InMemorySaver())
    mode.invoke(graph, {"params": {}}, thread())
    while shown := reviews(mode, graph, thread()):
        answer(mode, graph, thread(), answers={each.review_id: edit(n=1) for each in shown})
    assert mode.call(graph, "get_state", thread()).values["output"] == [{"n": 1}] * 3
    assert len(model.calls) == 6


@wrap_tool_call
def catches_tools(request, handler):
    """Answer for a tool that fails, as LangChain's documentation shows it."""
    try:
        return handler(request)
    except Exception as error:  # noqa: BLE001 - the mistake this is about
        return ToolMessage(f"error: {error}"[:50], tool_call_id=request.tool_call["id"])


@wrap_tool_call
def retries_tools(request, handler):
    """Try a tool three times, and raise its last error."""
    for is_last in (False, False, True):
        try:
            return handler(request)
        except Exception:
            if is_last:
                raise
    return None


@wrap_model_call
def catches_models(request, handler):
    """Answer for a model that fails."""
    try:
        return handler(request)
    except Exception:  # noqa: BLE001 - the mistake this is about
        return AIMessage("sorry")


@wrap_model_call
def retries_models(request, handler):
    """Ask a model three times, and raise its last error."""
    for is_last in (False, False, True):
        try:
            return handler(request)
        except Exception:
            if is_last:
                raise
    return None


@pytest.mark.parametrize("around", [catches_tools, retries_tools, catches_models, retries_models])
def test_a_middleware_that_catches_a_pause_is_told(around):
    """LangChain runs its hooks in copies of the context. Nothing is called twice."""
    made, is_tool = [], around in (catches_tools, retries_tools)

    def weather(city: str) -> str:
        """Tell the weather."""
        made.append(city)
        raise ValueError("no weather today")

    def says(messages):
        if not is_tool:
            made.append("model")
            raise ValueError("the model is down")
        return "done" if isinstance(messages[-1], ToolMessage) else asking(weather_of("Rome"))

    middleware = [around, RetryMiddleware(tools=True)]
    saver = InMemorySaver()
    agent = create_agent(
        ScriptedChat(answer=says), [weather], middleware=middleware, checkpointer=saver
    )
    with pytest.raises(PauseSwallowed, match="caught"):
        agent.invoke({"messages": [("user", "How is it?")]}, thread())
    assert len(made) == 1
