"""What a call costs over a hand-written subgraph, in ratios from one run.

The yardstick is a two-node subgraph that keeps its call in one step and its check in another, as
a careful user would write it, and saves each before the next (`durability="sync"`). All run a call
that succeeds at once, sync and async, on two checkpointers and on none.
Run: `python -m bench.overhead`
"""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel
from typing_extensions import TypedDict

from bench.markdown import table
from graph_retry import aretry_llm_call, create_retry_node, retry_llm_call

ROUNDS = 200


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


def call(state: State) -> State:
    """Make the call from a function."""
    return {"output": retry_llm_call(ask, state["params"], output=Person)}


async def acall(state: State) -> State:
    """Make the call from an async function."""
    return {"output": await aretry_llm_call(ask, state["params"], output=Person)}


def compare(
    title: str, saver: Any, run: Callable[[Any, Any], None], function: Any
) -> list[list[str]]:
    """Run the three graphs in turn and return a row of medians and ratios for each."""
    graphs = {
        "by hand": around(by_hand(), saver),
        "node": around(create_retry_node(ask, dict, output=Person), saver),
        "function": around(function, saver),
    }
    times: dict[str, list[float]] = {name: [] for name in graphs}
    for turn in range(ROUNDS):
        for name, graph in graphs.items():
            config = {"configurable": {"thread_id": f"{title} {name} {turn}"}}
            started = time.perf_counter()
            run(graph, config)
            times[name].append((time.perf_counter() - started) * 1000)
    base = statistics.median(times["by hand"])
    medians = {name: statistics.median(values) for name, values in times.items()}
    return [
        [f"{title}, {name}", f"{median:.2f} ms", f"{median / base:.2f}"]
        for name, median in medians.items()
    ]


def main() -> None:
    """Print a row for each storage, mode and form."""
    rows: list[list[str]] = []
    given = {"params": {"prompt": "x"}}

    def options(graph: Any) -> dict[str, Any]:
        return {"durability": "sync"} if graph.checkpointer else {}

    def run(graph: Any, config: Any) -> None:
        graph.invoke(given, config, **options(graph))

    with tempfile.TemporaryDirectory() as folder, asyncio.Runner() as runner:

        def arun(graph: Any, config: Any) -> None:
            runner.run(graph.ainvoke(given, config, **options(graph)))

        file = str(Path(folder) / "bench.sqlite")
        for title, saver in (("memory", InMemorySaver()), ("no checkpointer", None)):
            rows += compare(title, saver, run, call)
            rows += compare(f"{title}, async", saver, arun, acall)
        with SqliteSaver.from_conn_string(file) as sqlite:
            rows += compare("SQLite", sqlite, run, call)
    print(table(["a call that succeeds at once", "median", "ratio"], rows))


if __name__ == "__main__":
    main()
