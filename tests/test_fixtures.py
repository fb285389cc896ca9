"""The shared fixtures do what the other tests rely on."""

import asyncio
import itertools
import socket
from enum import Enum
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from tests.parts import PARTS, Rows, covering, in_part


class State(TypedDict):
    words: list[str]


def asking_graph(mode, checkpointer) -> Any:
    def ask(state: State) -> State:
        return {"words": [*state["words"], interrupt("which word?")]}

    builder = StateGraph(State)
    builder.add_node("ask", mode.colour(ask))
    builder.add_edge(START, "ask")
    builder.add_edge("ask", END)
    return builder.compile(checkpointer=checkpointer)


def test_a_thread_pauses_and_resumes_on_every_storage(mode, checkpointer):
    """One test body covers sync and async on memory, SQLite and PostgreSQL."""
    graph = asking_graph(mode, checkpointer)
    config = {"configurable": {"thread_id": "one"}}

    mode.invoke(graph, {"words": ["a"]}, config)
    assert mode.call(graph, "get_state", config).next == ("ask",)
    result = mode.invoke(graph, Command(resume="b"), config)

    assert result == {"words": ["a", "b"]}
    assert len(mode.call(graph, "get_state_history", config)) == 3


def test_each_test_starts_with_an_empty_storage(mode, checkpointer):
    """What another test stored under the same thread id is not there."""
    graph = asking_graph(mode, checkpointer)
    snapshot = mode.call(graph, "get_state", {"configurable": {"thread_id": "one"}})
    assert snapshot.values == {}


def test_streams_come_back_as_lists(mode):
    """A stream is collected, whichever kind it is."""
    builder = StateGraph(State)
    builder.add_node("double", mode.colour(lambda state: {"words": state["words"] * 2}))
    builder.add_edge(START, "double")
    chunks = mode.call(builder.compile(), "stream", {"words": ["a"]})
    assert chunks == [{"double": {"words": ["a", "a"]}}]


def test_only_the_async_mode_has_an_event_loop(mode):
    """A sync caller is tested as in a script, with no loop running."""
    seen: list[bool] = []

    def look(state: State) -> State:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            seen.append(False)
        else:
            seen.append(True)
        return state

    builder = StateGraph(State)
    builder.add_node("look", mode.colour(look))
    builder.add_edge(START, "look")
    mode.invoke(builder.compile(), {"words": []})
    assert seen == [mode.is_async]


def test_the_database_is_one_of_its_own(postgres_database, postgres_dsn):
    """A test may change its database as it likes: the server's others stay as they were."""
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute("CREATE TABLE mine (x int)")
        tables = {row[0] for row in connection.execute("SELECT tablename FROM pg_tables")}
    assert {"mine", "checkpoints", "checkpoint_writes"} <= tables
    with psycopg.connect(postgres_dsn) as connection:
        assert not connection.execute("SELECT 1 FROM pg_tables WHERE tablename='mine'").fetchall()


@pytest.mark.parametrize("address", [("192.0.2.1", 80), ("2001:db8::1", 80)])
def test_a_remote_connection_is_refused(address):
    """No test reaches the network: the attempt itself is an error."""
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    with socket.socket(family) as client, pytest.raises(AssertionError, match="only loopback"):
        client.connect(address)


class Tone(Enum):
    """A class that no checkpointer was told of."""

    WARM = "warm"


def test_checkpoints_are_read_strictly():
    """A class comes back only where it was allowed to; `make test` runs a few tests without."""
    serde = JsonPlusSerializer()
    assert serde.loads_typed(serde.dumps_typed({"tone": Tone.WARM})) == {"tone": "warm"}


SIZES = [(2, 2, 3), (2, 2, 2, 3), (21, 2, 2), (3,), (2, 7), (1,)]


@pytest.mark.parametrize("sizes", SIZES)
def test_every_row_is_in_a_chosen_case(sizes):
    """No row is left out, and no more cases are chosen than the longest table has rows."""
    tables = [[(table, row) for row in range(size)] for table, size in enumerate(sizes)]
    cases = [Rows(frozenset(case)) for case in itertools.product(*tables)]
    for chosen in covering({"test_one": cases, "test_other": cases}).values():
        rows = {row for number in chosen for row in cases[number].own}
        assert rows == {row for table in tables for row in table}
        assert len({*chosen}) == len(chosen) == max(sizes)


@pytest.mark.parametrize("number", [1, 2, 5])
def test_a_file_holds_each_row_of_its_fixtures(number):
    """Its tests share them: one case is enough for a test, and six for the storages and modes."""
    kinds = [*itertools.product(("sync", "async"), ("memory", "sqlite", "postgres"))]
    cases = [Rows(frozenset(), frozenset(kind)) for kind in kinds]
    chosen = covering({f"test_{test}": cases for test in range(number)})
    held = [row for numbers in chosen.values() for each in numbers for row in cases[each].shared]
    assert {*held} == {"sync", "async", "memory", "sqlite", "postgres"}
    assert sum(map(len, chosen.values())) == max(3, number)


def test_other_rows_meet_in_another_test():
    """Over many tests every two rows of two tables meet."""
    product = itertools.product(("node", "function"), ("sync", "async"))
    cases = [Rows(frozenset(case)) for case in product]
    chosen = covering({f"test_{number}": cases for number in range(20)})
    assert {*map(tuple, chosen.values())} == {(0, 3), (1, 2)}


class Case:
    """What `in_part` reads of a collected case."""

    def __init__(self, mark, params):
        self.nodeid = f"tests/test_it.py::test_{mark}[{params}]"
        self.callspec = SimpleNamespace(params=params)
        self.get_closest_marker = {mark: True}.get
        self.iter_markers = lambda _: ()


def test_the_parts_have_every_case_and_only_the_drawn_ones_twice():
    """What `make test` leaves out is in another part, and nothing is left out of all."""
    product = [dict(enumerate(case)) for case in itertools.product("nf", "sa", "123")]
    items = {mark: {Case(mark, case) for case in product} for mark in ("none", "drawn", *PARTS[1:])}
    every = [item for cases in items.values() for item in cases]
    short, slow, long = (in_part(part, every) for part in PARTS)

    assert short | slow | long == {*every}
    assert short & long == short & items["drawn"]
    assert slow == items["slow"] - long
    assert slow
    assert items["drawn"] | items["long"] <= long
    shared = {(name, row) for item in short for name, row in item.callspec.params.items()}
    assert shared == {(name, row) for case in product for name, row in case.items()}
    assert not short & (items["long"] | items["slow"])
