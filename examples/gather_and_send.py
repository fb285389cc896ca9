"""Several calls at once: in one async node, and as `Send` branches. Answer them in any order."""

import asyncio
import operator
from typing import Annotated, Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Send
from typing_extensions import TypedDict

from graph_retry import (
    apending_reviews,
    aresume,
    aretry_llm_call,
    edit,
    gather_calls,
    pending_reviews,
    resume,
    retry_llm_call,
)

calls: list[str] = []


class State(TypedDict):
    """The graph's state; `numbers` collects what the branches find."""

    page: str
    numbers: Annotated[list[int], operator.add]


def ask(params: dict[str, Any]) -> str:
    """Stand in for a model that reads page a well and the others only when asked to look twice."""
    calls.append(params["page"])
    return "7" if params["page"] == "a" or params.get("care") else "seven or so"


async def read_all(state: State) -> dict[str, Any]:
    """Read three pages at once; all open questions are shown together."""
    reads = [aretry_llm_call(ask, {"page": page}, output=int, name=page) for page in state["page"]]
    return {"numbers": await gather_calls(*reads)}


def read_one(state: State) -> dict[str, Any]:
    """Read one page, in a branch of its own."""
    return {"numbers": [retry_llm_call(ask, {"page": state["page"]}, output=int, name="read")]}


def spread(state: State) -> list[Send]:
    """Start a branch for each page."""
    return [Send("read", {"page": page}) for page in state["page"]]


async def gathered() -> None:
    """Pause once with two questions and answer both together."""
    builder = StateGraph(State).add_node("read", read_all).add_edge(START, "read")
    graph: Any = builder.compile(checkpointer=InMemorySaver())
    await graph.ainvoke({"page": "abc"}, config)
    reviews = await apending_reviews(graph, config)
    print("gather asks for:", sorted(review.function_name for review in reviews))
    answers = {review.review_id: edit(care=True) for review in reviews}
    state = await aresume(graph, config, answers=answers)
    print("gather:", state["numbers"], "calls:", len(calls))


config: Any = {"configurable": {"thread_id": "1"}}
asyncio.run(gathered())
# expect: gather asks for: ['b', 'c']
# expect: gather: [7, 7, 7] calls: 5

calls.clear()
builder = StateGraph(State).add_node("read", read_one)
builder.add_conditional_edges(START, spread)
graph: Any = builder.compile(checkpointer=InMemorySaver())
graph.invoke({"page": "abc"}, config)
while reviews := pending_reviews(graph, config):
    resume(graph, config, answers={reviews[-1].review_id: edit(care=True)})
print("Send:", graph.get_state(config).values["numbers"], "calls:", len(calls))
# expect: Send: [7, 7, 7] calls: 5
