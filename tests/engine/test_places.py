"""Where the function form may be called, and the usage patterns of `llm_call`."""

import asyncio
import functools

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolCall
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from pydantic import BaseModel

from graph_retry import (
    AttemptContext,
    InterventionRequired,
    approve,
    aretry_llm_call,
    create_retry_node,
    edit,
    pending_reviews,
    resume,
    retry_llm_call,
)
from tests.loops import Model, State, answer, one_call, reviews, thread


class Image(BaseModel):
    """Everything about an image somebody might want to change."""

    prompt: str
    model: str = "imagen-3.0"
    seed: int = 12345


class Studio:
    """An SDK client with a method to call."""

    def __init__(self):
        self.seen = []

    def generate(self, params):
        """Refuse the small model."""
        self.seen.append(params)
        if params.model == "imagen-3.0":
            message = "Resource exhausted"
            raise RuntimeError(message)
        return f"{params.prompt} by {params.model}"


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
    with pytest.raises(InterventionRequired, match="compile the graph with one"):
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


def test_pattern_closure_without_params():
    """With `None` params there is nothing to edit: retry, respond or cancel."""
    tries = []

    def call():
        tries.append(1)
        if len(tries) == 1:
            message = "hiccup"
            raise ConnectionError(message)
        return "done"

    builder = StateGraph(State)
    builder.add_node("ask", lambda state: {"output": retry_llm_call(call, None)})
    builder.add_edge(START, "ask")
    graph = builder.compile(checkpointer=InMemorySaver())
    graph.invoke({"params": None}, thread())

    resume(graph, thread(), edit(anything=1))
    (review,) = pending_reviews(graph, thread())
    assert review.problem
    assert resume(graph, thread(), approve())["output"] == "done"


def test_pattern_bound_method(mode):
    """A bound method works and has a readable name."""
    studio = Studio()
    builder = StateGraph(State)
    builder.add_node("draw", create_retry_node(studio.generate, Image))
    builder.add_edge(START, "draw")
    graph = builder.compile(checkpointer=InMemorySaver())

    mode.invoke(graph, {"params": {"prompt": "a cat"}}, thread())
    (review,) = reviews(mode, graph, thread())
    state = answer(mode, graph, thread(), edit(model="imagen-4.0"))

    assert review.function_name == "Studio.generate"
    assert state["output"] == "a cat by imagen-4.0"


def test_pattern_thin_lambda_exposing_one_value(mode):
    """A bare value is shown as `value` and can be edited as one."""
    builder = StateGraph(State)
    prefix = "captured"

    def shout(prompt):
        if "please" not in prompt:
            message = "say please"
            raise ValueError(message)
        return f"{prefix}: {prompt}"

    node = create_retry_node(lambda prompt: shout(prompt + "!"), str, name="shout")
    builder.add_node("ask", node)
    builder.add_edge(START, "ask")
    graph = builder.compile(checkpointer=InMemorySaver())

    mode.invoke(graph, {"params": "draw"}, thread())
    (review,) = reviews(mode, graph, thread())
    assert review.params == {"value": "draw"}
    state = answer(mode, graph, thread(), edit(value="draw please"))
    assert state["output"] == "captured: draw please!"


def test_pattern_explicit_params_object(mode):
    """The recommended form, with the model switch of a hook."""
    studio = Studio()

    def switch(error, attempt, params):
        if "Resource exhausted" in str(error):
            return params.model_copy(update={"model": "imagen-4.0"})
        return None

    builder = StateGraph(State)
    node = create_retry_node(studio.generate, Image, switch, auto_retries=1)
    builder.add_node("draw", node)
    builder.add_edge(START, "draw")
    graph = builder.compile(checkpointer=InMemorySaver())

    state = mode.invoke(graph, {"params": {"prompt": "a cat"}}, thread())

    assert state["output"] == "a cat by imagen-4.0"
    assert [params.model for params in studio.seen] == ["imagen-3.0", "imagen-4.0"]
    assert state["attempts"][1]["author"] == "hook:switch"


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
