"""What a call costs over a hand-written subgraph and over a `@task`, in ratios from one run.

The yardstick is a two-node subgraph that keeps its call in one step and its check in another, as
a careful user would write it, and saves each before the next (`durability="sync"`). A `@task` in a
node is the least that saves a call; it cannot ask. A plain node with an `error_handler` can ask,
and saves nothing of the call itself. All run a call that succeeds at once, sync and async, on two
checkpointers and on none. The number of Python calls is the same on every machine. The time is
processor time of all threads, which other programs hardly change.
Run: `python -m bench.overhead`
"""

import asyncio
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.errors import NodeError
from langgraph.func import task
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
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


@task
def asked(params: dict[str, Any]) -> str:
    """Ask in a task."""
    return ask(params)


def in_task(state: State) -> State:
    """Let a task save the call, and check it in the node."""
    return {"output": Person.model_validate_json(asked(state["params"]).result()).model_dump()}


async def in_atask(state: State) -> State:
    """Do the same in an async node."""
    return {"output": Person.model_validate_json(await asked(state["params"])).model_dump()}


def plain(state: State) -> State:
    """Call and check in a plain node."""
    return {"output": Person.model_validate_json(ask(state["params"])).model_dump()}


async def aplain(state: State) -> State:
    """Do the same in an async node."""
    return plain(state)


def handle(state: State, error: NodeError) -> Command[Any]:
    """Ask, and go to the node again; a call that succeeds never comes here."""
    answer = interrupt(str(error.error))
    return Command(update={"params": {**state["params"], **answer}}, goto=error.node)


def around(node: Any, saver: Any, handler: Any = None) -> Any:
    """Put a node into a parent with a checkpointer."""
    builder = StateGraph(State)
    builder.add_node("ask", node, error_handler=handler)
    builder.add_edge(START, "ask")
    builder.add_edge("ask", END)
    return builder.compile(checkpointer=saver)


def call(state: State) -> State:
    """Make the call from a function."""
    return {"output": retry_llm_call(ask, state["params"], output=Person)}


async def acall(state: State) -> State:
    """Make the call from an async function."""
    return {"output": await aretry_llm_call(ask, state["params"], output=Person)}


SYNC, ASYNC = (plain, in_task, call), (aplain, in_atask, acall)


def python_calls(run: Callable[[], None]) -> int:
    """Count the Python functions that are called, in every thread that begins meanwhile."""
    calls = count()

    def note(_frame: Any, event: str, _arg: Any) -> None:
        if event == "call":
            next(calls)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return next(calls)


def compare(
    title: str, saver: Any, run: Callable[[Any, Any], None], plain: Any, task: Any, function: Any
) -> list[list[str]]:
    """Run the graphs in turn; return a row for each: calls, median, and ratios to the first."""
    graphs = {
        "by hand": around(by_hand(), saver),
        "a plain node with an `error_handler`": around(plain, saver, handle),
        "a `@task`": around(task, saver),
        "node": around(create_retry_node(ask, dict, output=Person), saver),
        "function": around(function, saver),
    }
    times: dict[str, list[float]] = {name: [] for name in graphs}
    for turn in range(ROUNDS):
        for name, graph in graphs.items():
            config = {"configurable": {"thread_id": f"{title} {name} {turn}"}}
            started = time.process_time()
            run(graph, config)
            times[name].append((time.process_time() - started) * 1000)
    counted = {
        name: python_calls(partial(run, graph, {"configurable": {"thread_id": f"{title} {name}"}}))
        for name, graph in graphs.items()
    }
    medians = {name: statistics.median(values) for name, values in times.items()}
    return [
        [
            f"{title}, {name}",
            f"{counted[name]:,}",
            f"{counted[name] / counted['by hand']:.2f}",
            f"{median:.2f} ms",
            f"{median / medians['by hand']:.2f}",
        ]
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
            rows += compare(title, saver, run, *SYNC)
            rows += compare(f"{title}, async", saver, arun, *ASYNC)
        with SqliteSaver.from_conn_string(file) as sqlite:
            rows += compare("SQLite", sqlite, run, *SYNC)
    print(
        table(
            [
                "a call that succeeds at once",
                "Python calls",
                "ratio",
                "processor time, median",
                "ratio",
            ],
            rows,
        )
    )


if __name__ == "__main__":
    main()
