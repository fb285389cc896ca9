"""What the node form costs over a hand-written subgraph, in ratios from one run.

The yardstick is a two-node subgraph that keeps its call in one step and its check in another, as
a careful user would write it. Both run a call that succeeds at once.
Run: `python bench/overhead.py`
"""

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel
from typing_extensions import TypedDict

from graph_retry import create_retry_node

ROUNDS = 300


class Person(BaseModel):
    """What the call is asked for."""

    name: str
    age: int


class State(TypedDict, total=False):
    """State of the parent and of the hand-written subgraph."""

    params: dict[str, Any]
    raw: Any
    output: Any
    status: str


def ask(params: dict[str, Any]) -> str:
    """Answer at once."""
    assert params["prompt"]
    return '{"name": "Ada", "age": 36}'


def by_hand() -> Any:
    """Compile the yardstick: a call step and a check step."""
    builder = StateGraph(State)
    builder.add_node("call", lambda state: {"raw": ask(state["params"])})
    builder.add_node(
        "check",
        lambda state: {"output": Person.model_validate_json(state["raw"]).model_dump(mode="json")},
    )
    builder.add_edge(START, "call")
    builder.add_edge("call", "check")
    return builder.compile()


def around(node: Any, saver: Any) -> Any:
    """Put a node into a parent with a checkpointer."""
    builder = StateGraph(State)
    builder.add_node("ask", node)
    builder.add_edge(START, "ask")
    builder.add_edge("ask", END)
    return builder.compile(checkpointer=saver)


def milliseconds(graph: Any, thread: str) -> float:
    """Time one run on a fresh thread."""
    started = time.perf_counter()
    graph.invoke({"params": {"prompt": "x"}}, {"configurable": {"thread_id": thread}})
    return (time.perf_counter() - started) * 1000


def compare(title: str, saver: Any) -> None:
    """Run the three graphs in turn and print medians and ratios."""
    graphs = {
        "by hand": around(by_hand(), saver),
        "node": around(create_retry_node(ask, dict), saver),
        "node, output=Person": around(create_retry_node(ask, dict, output=Person), saver),
    }
    times: dict[str, list[float]] = {name: [] for name in graphs}
    for turn in range(ROUNDS):
        for name, graph in graphs.items():
            times[name].append(milliseconds(graph, f"{title} {name} {turn}"))
    base = statistics.median(times["by hand"])
    for name, values in times.items():
        median = statistics.median(values)
        print(f"{title:7} {name:20} {median:6.2f} ms  {median / base:4.2f} x")


if __name__ == "__main__":
    compare("memory", InMemorySaver())
    with (
        tempfile.TemporaryDirectory() as folder,
        SqliteSaver.from_conn_string(str(Path(folder) / "bench.sqlite")) as sqlite,
    ):
        compare("sqlite", sqlite)
