"""Bytes a thread of failing attempts takes, beside a plain loop that appends to a list.

Every attempt changes one word of the params and fails; a person edits. Large are either the params
or what the model returns. The plain loop is what is written by hand: one node that keeps params,
output and error of each attempt in an `operator.add` list.
Run: `python -m bench.storage`
"""

import operator
import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Annotated, Any

import psycopg
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from bench.markdown import table
from graph_retry import create_retry_node, edit, resume
from tests.postgres_server import running_server

LOADS = {
    "params 100 kB": (100_000, 0),
    "output 2 kB": (0, 2_000),
    "output 100 kB": (0, 100_000),
}
"""Characters of the params and of each output."""


class State(TypedDict, total=False):
    """State of both loops."""

    params: dict[str, Any]
    output: Any
    status: str
    attempts: list[Any]
    tries: Annotated[list[Any], operator.add]


def text(seed: int, size: int) -> str:
    """Make a text that is like no other and can hardly be compressed."""
    return random.Random(seed).randbytes(size // 2).hex()


class Model:
    """Returns a text that is never a number."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __call__(self, params: dict[str, Any]) -> str:
        """Return one, an other one for each attempt."""
        return f"try {params['word']} is no good {text(params['word'], self.size)}"


def ours(saver: Any, attempts: int, config: Any, load: tuple[int, int]) -> None:
    """Fail with the retry node."""
    builder = StateGraph(State)
    node = create_retry_node(Model(load[1]), dict, output=int, max_attempts=99)
    builder.add_node("ask", node)
    builder.add_edge(START, "ask")
    graph = builder.compile(checkpointer=saver)
    graph.invoke({"params": {"document": text(0, load[0]), "word": 0}}, config)
    for number in range(1, attempts):
        resume(graph, config, edit(word=number))


def plain(saver: Any, attempts: int, config: Any, load: tuple[int, int]) -> None:
    """Fail with a node that loops by hand."""
    model = Model(load[1])

    def ask(state: State) -> State:
        output = model(state["params"])
        try:
            return {"output": int(output)}
        except ValueError as error:
            failed = {"params": state["params"], "output": output, "error": str(error)[:100]}
            return {"tries": [failed]}

    def review(state: State) -> State:
        return {"params": {**state["params"], **interrupt(state["tries"][-1]["error"])}}

    builder = StateGraph(State)
    builder.add_node("ask", ask)
    builder.add_node("review", review)
    builder.add_edge(START, "ask")
    builder.add_conditional_edges("ask", lambda state: END if "output" in state else "review")
    builder.add_edge("review", "ask")
    graph = builder.compile(checkpointer=saver)
    graph.invoke({"params": {"document": text(0, load[0]), "word": 0}}, config)
    for number in range(1, attempts):
        graph.invoke(Command(resume={"word": number}), config)


@contextmanager
def sqlite(folder: Path) -> Iterator[tuple[Any, Any]]:
    """Yield a saver and a function that measures its file."""
    path = folder / "bench.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:

        def size() -> int:
            saver.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # or up to 4 MB are in the log
            return path.stat().st_size

        yield saver, size


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


def measured(store: Any, loop: Any, attempts: int, load: tuple[int, int]) -> int:
    """Return the bytes one thread adds to an empty store."""
    with store as (saver, size):
        if hasattr(saver, "setup"):
            saver.setup()
        empty = size()
        loop(saver, attempts, {"configurable": {"thread_id": "1"}}, load)
        return int(size() - empty)


def main() -> None:
    """Print a row for each load, store and loop."""
    rows: list[list[str]] = []
    with running_server() as dsn:
        number = count()
        for name, load in LOADS.items():
            for loop in (ours, plain):
                for kind in ("SQLite", "PostgreSQL"):
                    found: list[int] = []
                    for attempts in (10, 40):
                        with tempfile.TemporaryDirectory() as folder:
                            database = f"bench_{next(number)}"
                            at: Any = sqlite(Path(folder))
                            at = at if kind == "SQLite" else postgres(dsn, database)
                            found.append(measured(at, loop, attempts, load))
                    few, many = found
                    by = "graph-retry" if loop is ours else "a list in state, by hand"
                    sizes = [f"{few / 1e6:.2f} MB", f"{many / 1e6:.2f} MB"]
                    rows.append([f"{name}, {kind}, {by}", *sizes, f"{many / few:.2f}"])
    print(table(["", "10 attempts", "40 attempts", "ratio"], rows))


if __name__ == "__main__":
    main()
