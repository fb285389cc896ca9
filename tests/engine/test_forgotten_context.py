"""A `context=` that is forgotten when an answer is given is named, and costs no attempt."""

from dataclasses import dataclass
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.runtime import get_runtime
from typing_extensions import TypedDict

from graph_retry import aretry_llm_call, create_retry_node, edit, retry_llm_call
from tests.loops import answer, reviews, thread


@dataclass
class Context:
    """The context of a run."""

    user: str


class State(TypedDict, total=False):
    """The state of the graph."""

    params: Any
    output: Any


@pytest.mark.parametrize("called", ["function", "node"])
def test_a_forgotten_context_is_named_and_nothing_is_called(called, mode):
    """The run fails with the argument's name; with the context, the saved answer is applied."""
    asked: list[tuple[str, str]] = []

    def ask(city: str) -> str:
        asked.append((get_runtime(Context).context.user, city))
        if city == "Olso":
            raise ValueError("no such city")
        return city

    def node(state: State) -> Any:
        return {"output": retry_llm_call(ask, state["params"])}

    async def anode(state: State) -> Any:
        return {"output": await aretry_llm_call(ask, state["params"])}

    builder = StateGraph(State, context_schema=Context)
    made = anode if mode.is_async else node
    builder.add_node("n", made if called == "function" else create_retry_node(ask, str))
    builder.add_edge(START, "n")
    graph = builder.compile(checkpointer=InMemorySaver())
    mode.invoke(graph, {"params": "Olso"}, thread(), context=Context("ann"))
    with pytest.raises(TypeError, match=r"`ask` had a `context` in an earlier run.*context="):
        answer(mode, graph, thread(), edit(value="Oslo"))
    assert asked == [("ann", "Olso")]
    assert reviews(mode, graph, thread()) == []
    state = mode.invoke(graph, None, thread(), context=Context("ann"))
    assert state["output"] == "Oslo"
    assert asked == [("ann", "Olso"), ("ann", "Oslo")]
