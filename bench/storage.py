"""Bytes a thread of failing attempts takes, beside a plain loop that appends to a list.

Every attempt changes one word of 100 kB of params and fails; a person edits. The plain loop is what
is written by hand: one node that keeps `(params, error)` of each attempt in an `operator.add` list.
Run: `python bench/storage.py`
"""

import operator
import random
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import psycopg
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

sys.path.insert(0, str(Path(__file__).parent.parent))
from graph_retry import create_retry_node, edit, resume
from tests.postgres_server import running_server

DOCUMENT = random.Random(0).randbytes(50_000).hex()


class State(TypedDict, total=False):
    """State of both loops."""

    params: dict[str, Any]
    output: Any
    status: str
    attempts: list[Any]
    tries: Annotated[list[Any], operator.add]


def fail(params: dict[str, Any]) -> str:
    """Fail as long as anybody tries."""
    raise ValueError(f"try {params['word']} is no good")


def ours(saver: Any, attempts: int, config: Any) -> None:
    """Fail with the retry node."""
    builder = StateGraph(State)
    builder.add_node("ask", create_retry_node(fail, dict, output=int, max_attempts=99))
    builder.add_edge(START, "ask")
    graph = builder.compile(checkpointer=saver)
    graph.invoke({"params": {"document": DOCUMENT, "word": 0}}, config)
    for number in range(1, attempts):
        resume(graph, config, edit(word=number))


def plain(saver: Any, attempts: int, config: Any) -> None:
    """Fail with a node that loops by hand."""

    def ask(state: State) -> State:
        try:
            return {"output": fail(state["params"])}
        except ValueError as error:
            return {"tries": [{"params": state["params"], "error": str(error)}]}

    def review(state: State) -> State:
        return {"params": {**state["params"], **interrupt(state["tries"][-1]["error"])}}

    builder = StateGraph(State)
    builder.add_node("ask", ask)
    builder.add_node("review", review)
    builder.add_edge(START, "ask")
    builder.add_conditional_edges("ask", lambda state: END if "output" in state else "review")
    builder.add_edge("review", "ask")
    graph = builder.compile(checkpointer=saver)
    graph.invoke({"params": {"document": DOCUMENT, "word": 0}}, config)
    for number in range(1, attempts):
        graph.invoke(Command(resume={"word": number}), config)


@contextmanager
def sqlite(folder: Path) -> Iterator[tuple[Any, Any]]:
    """Yield a saver and a function that measures its file."""
    path = folder / "bench.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        yield saver, lambda: sum(each.stat().st_size for each in folder.iterdir())


@contextmanager
def postgres(dsn: str, name: str) -> Iterator[tuple[Any, Any]]:
    """Yield a saver and a function that measures its tables, indexes included."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    url = dsn.replace("/postgres?", f"/{name}?")
    with PostgresSaver.from_conn_string(url) as saver:
        saver.setup()
        tables = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")

        def size() -> int:
            with psycopg.connect(url) as connection:
                sizes = [
                    connection.execute("SELECT pg_total_relation_size(%s)", (table,)).fetchone()
                    for table in tables
                ]
            return sum(int(found[0]) for found in sizes if found)

        yield saver, size


def measured(store: Any, loop: Any, attempts: int) -> int:
    """Return the bytes one thread adds to an empty store."""
    with store as (saver, size):
        if hasattr(saver, "setup"):
            saver.setup()
        empty = size()
        loop(saver, attempts, {"configurable": {"thread_id": "1"}})
        return int(size() - empty)


def main() -> None:
    """Print a line for each store and loop."""
    with running_server() as dsn:
        for loop in (ours, plain):
            for kind in ("sqlite", "postgres"):
                found: list[int] = []
                for attempts in (10, 40):
                    with tempfile.TemporaryDirectory() as folder:
                        name = f"{loop.__name__}_{attempts}"
                        at = sqlite(Path(folder)) if kind == "sqlite" else postgres(dsn, name)
                        found.append(measured(at, loop, attempts))
                ten, forty = (each / 1e6 for each in found)
                name = "retry node" if loop is ours else "operator.add loop"
                print(f"{kind:9} {name:18} {ten:7.2f} MB {forty:7.2f} MB  ratio {forty / ten:5.2f}")


if __name__ == "__main__":
    main()
