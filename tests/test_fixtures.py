"""The shared fixtures do what the other tests rely on."""

import asyncio
import socket
from typing import Any

import psycopg
import pytest
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict


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
