"""Loops to test with: scripted models that count their calls, and graphs of both forms."""

import operator
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send
from typing_extensions import TypedDict

import graph_retry
from graph_retry import (
    AnswerRefused,
    aretry_llm_call,
    create_retry_node,
    gather_calls,
    retry_llm_call,
)


class State(TypedDict, total=False):
    """A parent's state with the node form's default keys."""

    params: Any
    output: Any
    status: str
    attempts: list[Any]


class Fanned(TypedDict, total=False):
    """A parent's state for several calls side by side."""

    item: int
    params: Any
    results: Annotated[list[Any], operator.add]


class Model:
    """A model that answers by its params and remembers every call.

    The default one fails until `n` has reached `goal`.
    """

    def __init__(self, answer: Callable[[Any], Any] | None = None, *, goal: int = 1) -> None:
        self.calls: list[Any] = []
        self._answer = answer or self._count_up
        self._goal = goal

    def __call__(self, params: Any) -> Any:
        self.calls.append(params)
        return self._answer(params)

    def _count_up(self, params: Any) -> str:
        if params["n"] < self._goal:
            message = f"{params['n']} is too small"
            raise ValueError(message)
        return f'{{"n": {params["n"]}}}'


def thread(name: str = "1") -> dict[str, Any]:
    """Return a config for one thread."""
    return {"configurable": {"thread_id": name}}


def one_call(
    form: str, mode: Any, model: Any, saver: Any, hooks: Any = None, **options: Any
) -> Any:
    """Compile a graph that makes one call in the given form; its state has `output`."""
    output = options.pop("output", dict[str, int])
    llm_call = mode.colour(model) if mode and isinstance(model, Model) else model
    options.setdefault("name", "count")
    builder = StateGraph(State)
    if form == "node":
        node: Any = create_retry_node(llm_call, dict, hooks, output=output, **options)
    elif mode and mode.is_async:

        async def node(state: State) -> State:
            call = aretry_llm_call(llm_call, state["params"], hooks, output=output, **options)
            return {"output": await call}
    else:

        def node(state: State) -> State:
            call = retry_llm_call(llm_call, state["params"], hooks, output=output, **options)
            return {"output": call}

    builder.add_node("ask", node)
    builder.add_edge(START, "ask")
    builder.add_edge("ask", END)
    return builder.compile(checkpointer=saver)


def fan_out(
    form: str, mode: Any, model: Any, saver: Any, *, width: int, calls: int = 1, **more: Any
) -> Any:
    """Compile a graph of `Send` branches; each makes `calls` calls (node form: one)."""
    llm_call = mode.colour(model)
    options: Any = {"output": dict[str, int], "name": "count", **more}
    builder = StateGraph(Fanned)
    if form == "node":

        class Branch(Fanned, total=False):
            out: Any

        class Results(TypedDict):
            results: list[Any]

        inner = StateGraph(Branch, output_schema=Results)
        inner.add_node("ask", create_retry_node(llm_call, dict, **options, keys={"output": "out"}))
        inner.add_node("hand", lambda state: {"results": [state["out"]]})
        inner.add_edge(START, "ask")
        inner.add_edge("ask", "hand")
        node: Any = inner.compile()
    elif mode.is_async:

        async def node(state: Fanned) -> Fanned:
            results = [
                await aretry_llm_call(llm_call, state["params"], **options) for _ in range(calls)
            ]
            return {"results": results[-1:]}
    else:

        def node(state: Fanned) -> Fanned:
            results = [retry_llm_call(llm_call, state["params"], **options) for _ in range(calls)]
            return {"results": results[-1:]}

    def spread(state: Fanned) -> list[Send]:
        return [Send("ask", {"params": {"n": 0, "item": item}}) for item in range(width)]

    builder.add_node("ask", node)
    builder.add_conditional_edges(START, spread, ["ask"])
    return builder.compile(checkpointer=saver)


def gathered(model: Any, saver: Any, width: int, gather: Any = gather_calls) -> Any:
    """Compile a graph whose one async node makes several calls at once."""

    async def node(state: Fanned) -> Fanned:
        calls = [
            aretry_llm_call(model, {"n": 0, "item": item}, output=dict[str, int], name="count")
            for item in range(width)
        ]
        return {"results": list(await gather(*calls))}

    builder = StateGraph(Fanned)
    builder.add_node("ask", node)
    builder.add_edge(START, "ask")
    return builder.compile(checkpointer=saver)


def reviews(mode: Any, graph: Any, config: Any) -> list[graph_retry.PendingReview]:
    """List the open reviews in the mode's way."""
    return mode.call(graph_retry, "pending_reviews", graph, config)


def refused(mode: Any, graph: Any, config: Any, *args: Any, **kwargs: Any) -> AnswerRefused:
    """Resume with an answer that is asked again; returns what tells so."""
    with pytest.raises(AnswerRefused) as caught:
        answer(mode, graph, config, *args, **kwargs)
    return caught.value


def answer(mode: Any, graph: Any, config: Any, *args: Any, **kwargs: Any) -> Any:
    """Resume in the mode's way."""
    return mode.call(graph_retry, "resume", graph, config, *args, **kwargs)
