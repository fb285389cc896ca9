"""Where the function form may be called, and what an `llm_call` may look like."""

import asyncio
import functools

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolCall
from langchain_core.tools import tool
from langgraph.func import entrypoint, task
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from graph_retry import (
    AttemptContext,
    InterventionRequired,
    aretry_llm_call,
    create_retry_node,
    edit,
    retry_llm_call,
)
from tests.loops import Model, State, answer, one_call, reviews, thread


def test_outside_a_graph_only_the_automatic_path_runs():
    """A success needs no graph; a need for a person raises with the ledger."""
    model = Model(goal=2)

    def bump(error, attempt, params):
        return {"n": params["n"] + 1}

    done = retry_llm_call(model, {"n": 0}, bump, output=dict[str, int], auto_retries=2)
    assert (done, len(model.calls)) == ({"n": 2}, 3)

    with pytest.raises(InterventionRequired, match="checkpointer") as caught:
        retry_llm_call(model, {"n": 0}, output=dict[str, int])
    assert caught.value.attempts[0]["failure"]["message"] == "0 is too small"


def test_a_graph_without_checkpointer_says_so_instead_of_asking(form, mode):
    """A pause nobody can resume is refused before it happens (I9)."""
    graph = one_call(form, mode, Model(goal=1), None)
    with pytest.raises(InterventionRequired, match="give the graph or agent one"):
        mode.invoke(graph, {"params": {"n": 0}})


def _calling(mode, model):
    if mode.is_async:

        async def call(n):
            return await aretry_llm_call(mode.colour(model), {"n": n}, output=dict[str, int])
    else:

        def call(n):
            return retry_llm_call(model, {"n": n}, output=dict[str, int])

    return call


@pytest.mark.parametrize("in_task", [False, True])
def test_in_an_entrypoint_and_in_a_task(mode, checkpointer, in_task):
    """The functional API pauses and resumes like a graph, inside a task too."""
    model = Model(goal=1)
    call = _calling(mode, model)
    inner = task(call) if in_task else call

    if mode.is_async:

        @entrypoint(checkpointer=checkpointer)
        async def flow(n):
            return await inner(n)
    else:

        @entrypoint(checkpointer=checkpointer)
        def flow(n):
            result = inner(n)
            return result.result() if in_task else result

    mode.invoke(flow, 0, thread())
    (review,) = reviews(mode, flow, thread())
    assert answer(mode, flow, thread(), edit(n=1)) == {"n": 1}
    assert review.attempt == 1
    assert len(model.calls) == 2


def test_in_a_tool(mode, checkpointer):
    """A tool may call a model and pause; its answer becomes the tool message."""
    model = Model(goal=1)
    call = _calling(mode, model)
    if mode.is_async:

        @tool
        async def count(n: int) -> str:
            """Count."""
            return str(await call(n))
    else:

        @tool
        def count(n: int) -> str:
            """Count."""
            return str(call(n))

    builder = StateGraph(MessagesState)
    builder.add_node("tools", ToolNode([count]))
    builder.add_edge(START, "tools")
    graph = builder.compile(checkpointer=checkpointer)
    ask = AIMessage("", tool_calls=[ToolCall(name="count", args={"n": 0}, id="1")])

    mode.invoke(graph, {"messages": [HumanMessage("count"), ask]}, thread())
    state = answer(mode, graph, thread(), edit(n=1))

    assert state["messages"][-1].content == "{'n': 1}"
    assert len(model.calls) == 2


def test_two_calls_in_one_node_each_run_exactly_once(mode, checkpointer):
    """Finished calls keep their results while later ones in the same node are reviewed."""
    first, second = Model(goal=1), Model(goal=2)

    if mode.is_async:

        async def node(state):
            one = await _calling(mode, first)(0)
            return {"output": [one, await _calling(mode, second)(0)]}
    else:

        def node(state):
            return {"output": [_calling(mode, first)(0), _calling(mode, second)(0)]}

    builder = StateGraph(State)
    builder.add_node("both", node)
    builder.add_edge(START, "both")
    graph = builder.compile(checkpointer=checkpointer)

    mode.invoke(graph, {"params": None}, thread())
    for n in (1, 1, 2):
        state = answer(mode, graph, thread(), edit(n=n))

    assert state["output"] == [{"n": 1}, {"n": 2}]
    assert (len(first.calls), len(second.calls)) == (2, 3)


def test_the_context_tells_attempt_and_a_stable_key(mode):
    """An `llm_call` with a second argument `context` learns its attempt."""
    seen = []

    def call(params, context: AttemptContext):
        seen.append(context)
        return "1" if params["n"] else "no"

    def bump(error, attempt, params):
        return {"n": 1}

    result = retry_llm_call(call, {"n": 0}, bump, output=int, auto_retries=1)

    assert result == 1
    assert [context.attempt for context in seen] == [1, 2]
    assert len({context.idempotency_key for context in seen}) == 2


def test_an_async_call_under_a_sync_run_is_refused():
    """The error names the function and the way out."""

    async def slow(params):
        return "1"

    with pytest.raises(TypeError, match=r"slow.*aretry_llm_call"):
        retry_llm_call(slow, {"n": 0})


def test_a_sync_call_works_under_ainvoke_and_a_lambda_may_return_a_coroutine():
    """Async runs take sync functions, and functions that only turn out to be async."""

    async def slow(params):
        return "1"

    assert asyncio.run(aretry_llm_call(lambda params: "2", {}, output=int)) == 2
    assert asyncio.run(aretry_llm_call(lambda params: slow({**params}), {}, output=int)) == 1
    assert asyncio.run(aretry_llm_call(functools.partial(slow), {}, output=int)) == 1


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (42, "must be a function"),
        (lambda a, b: None, "needs `b`"),
        (lambda a, *, key: None, "needs `key`"),
    ],
)
def test_a_call_that_cannot_be_called_is_refused_early(call, error):
    """What nobody will pass is named before anything runs."""
    with pytest.raises(TypeError, match=error):
        create_retry_node(call, dict)
