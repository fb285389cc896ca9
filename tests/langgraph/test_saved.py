"""What the package relies on in saved threads, and LangGraph does not document."""

import sqlite3
from contextlib import closing
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.types import INTERRUPT, RESUME
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.config import get_config
from langgraph.func import entrypoint, task
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from graph_retry._core.ground.functions.awaiting import run_async, run_sync
from graph_retry._core.langgraph.storage.checkpoints import NO_TASK
from graph_retry._core.langgraph.storage.stores import store_of
from graph_retry._core.state.namespaces import Part, call_namespace_of, outermost, parts_of
from tests.loops import thread


class Told(TypedDict, total=False):
    """What a node has seen, and what it was told."""

    seen: list[str]
    told: str | None


def nested(saver, seen):
    """Compile a graph in a graph; its node notes its config, pauses, and is run on."""

    def ask(_):
        seen.append(get_config())
        return {"said": interrupt("?")}

    inner = StateGraph(dict).add_node("ask", ask).set_entry_point("ask").compile()
    outer = StateGraph(dict).add_node("outer", inner).set_entry_point("outer")
    return outer.compile(checkpointer=saver)


@pytest.fixture
def waiting():
    """Return the saver of a nested graph that waits, its graph, and the config of its node."""
    saver, seen = InMemorySaver(), []
    graph = nested(saver, seen)
    graph.invoke({}, thread())
    return saver, graph, seen[0]


def test_a_namespace_names_nodes_and_tasks(waiting):
    """Parts are parted by `|`, and each is a node and the UUID of its task."""
    _, graph, config = waiting
    namespace = config["configurable"]["checkpoint_ns"]
    parts = parts_of(namespace)
    assert [part.name for part in parts] == ["outer", "ask"]
    assert all(part.is_task for part in parts)
    (shown,) = graph.get_state(thread()).tasks
    assert outermost(namespace) == Part(shown.name, shown.id)


def test_several_graphs_of_one_task_are_told_apart_by_numbers():
    """A part that is a number is no node."""
    saver, seen = InMemorySaver(), []
    inner = StateGraph(dict).add_node("look", lambda _: seen.append(get_config()) or {})
    inner = inner.set_entry_point("look").compile()
    twice = StateGraph(dict).add_node("twice", lambda _: [inner.invoke({}) for _ in "ab"] and {})
    twice.set_entry_point("twice").compile(checkpointer=saver).invoke({}, thread())
    names = [[p.name for p in parts_of(each["configurable"]["checkpoint_ns"])] for each in seen]
    assert names == [["twice", "look"]] * 2
    assert len({each["configurable"]["checkpoint_ns"].rpartition("|")[0] for each in seen}) == 2


def test_the_metadata_of_a_step_tells_its_place(waiting):
    """A call is known again after a fork by the path of the task that made it."""
    _, _, config = waiting
    assert config["metadata"]["langgraph_path"]
    assert config["metadata"]["langgraph_step"] == 1


def test_a_checkpoint_inside_names_the_checkpoint_of_the_outermost_graph(waiting):
    """By `parents` a call is known to belong to a step that its thread has left."""
    saver, _, _ = waiting
    checkpoints = list(saver.list(thread()))
    root = next(each for each in checkpoints if not each.config["configurable"]["checkpoint_ns"])
    (inside, *_) = [each for each in checkpoints if each.config["configurable"]["checkpoint_ns"]]
    assert inside.metadata["parents"][""] == root.checkpoint["id"]


def test_a_later_checkpoint_has_a_larger_id(waiting):
    """What came first is told by ids, and by no clock."""
    saver, graph, _ = waiting
    before = saver.get_tuple(thread()).checkpoint["id"]
    graph.invoke(Command(resume="yes"), thread())
    assert saver.get_tuple(thread()).checkpoint["id"] > before


def test_questions_are_writes_of_the_outermost_task(waiting):
    """The task is the one that the question's namespace begins with."""
    saver, graph, config = waiting
    writes = saver.get_tuple(thread()).pending_writes
    ((task_id, questions),) = [
        (who, value) for who, channel, value in writes if channel == INTERRUPT
    ]
    assert task_id == outermost(config["configurable"]["checkpoint_ns"]).id
    assert [question.value for question in questions] == ["?"]
    assert [question.id for question in questions] == [
        question.id for question in graph.get_state(thread()).interrupts
    ]


def test_a_question_in_a_task_of_an_entrypoint_is_written_by_both_tasks():
    """Only the one written by the outermost task is shown, and can be answered."""

    @task
    def ask(number):
        return interrupt(number)

    @entrypoint(checkpointer=InMemorySaver())
    def flow(_):
        asked = [ask(number) for number in range(2)]
        return [each.result() for each in asked]

    flow.invoke("", thread())
    writes = flow.checkpointer.get_tuple(thread()).pending_writes
    by_task = [
        (who, [each.value for each in value])
        for who, channel, value in writes
        if channel == INTERRUPT
    ]
    (shown,) = flow.get_state(thread()).tasks
    assert [value for who, value in by_task if who == shown.id] == [[0]]
    assert sorted(value for who, value in by_task if who != shown.id) == [[0], [1]]


def test_a_write_for_no_task_is_state_of_the_next_run(mode, checkpointer):
    """An answer is written so, also inside a graph; of two the first one counts."""

    def wait(state):
        return {"seen": [*state["seen"], state.get("told") or interrupt("?")], "told": None}

    inner = StateGraph(Told).add_node("wait", wait).set_entry_point("wait").compile()
    graph = StateGraph(Told).add_node("outer", inner).set_entry_point("outer")
    graph = graph.compile(checkpointer=checkpointer)
    mode.invoke(graph, {"seen": []}, thread())
    (paused,) = mode.call(graph, "get_state", thread(), subgraphs=True).tasks
    saved = mode.call(checkpointer, "get_tuple", paused.state.config)
    for told in ("first", "second"):
        written = [("told", told)]
        mode.call(checkpointer, "put_writes", saved.config, written, NO_TASK)
    assert mode.invoke(graph, None, thread())["seen"] == ["first"]


def test_an_answer_stays_written_until_its_step_has_ended():
    """So it may come to a question that nobody has seen: `shown` looks at RESUME."""
    saver, seen = InMemorySaver(), []

    def ask(_):
        first = interrupt("first")
        seen.append(saver.get_tuple(thread()).pending_writes)
        interrupt("second")
        return {"said": first}

    graph = StateGraph(dict).add_node("ask", ask).set_entry_point("ask")
    graph = graph.compile(checkpointer=saver)
    graph.invoke({}, thread())
    graph.invoke(Command(resume="yes"), thread())
    after = [(channel, value) for _, channel, value in saver.get_tuple(thread()).pending_writes]
    assert any(channel == RESUME for channel, _ in after)


@pytest.mark.parametrize("command", [{"update": {"n": 1}}, {"update": {"n": 1}, "resume": "yes"}])
def test_the_count_of_writes_for_no_task_is_a_number_that_none_has(mode, checkpointer, command):
    """A command's update takes numbers there, and an answer leaves its own out."""

    def ask(_):
        return {"told": [interrupt("first"), interrupt("second")]}

    class Noted(TypedDict, total=False):
        n: int
        told: Any
        late: str

    builder = StateGraph(Noted).add_node("ask", ask).set_entry_point("ask")
    graph = builder.compile(checkpointer=checkpointer)
    mode.invoke(graph, {"n": 0}, thread())
    mode.invoke(graph, Command(**command), thread())
    saved = mode.call(checkpointer, "get_tuple", thread())
    taken = [write for write in saved.pending_writes if write[0] == NO_TASK]
    assert len(taken) == len(command)
    writes = [*[(RESUME, None)] * len(taken), ("late", "kept")]
    mode.call(checkpointer, "put_writes", saved.config, writes, NO_TASK)

    after = mode.invoke(graph, None, thread())

    assert (after["n"], after["late"]) == (1, "kept")


def test_a_thread_goes_on_from_its_newest_checkpoint_copied_as_the_newest():
    """`__copy__` is the node in whose name a fork repeats a checkpoint."""
    saver = InMemorySaver()
    graph = nested(saver, [])
    graph.invoke({}, thread())
    old = graph.get_state(thread())
    graph.invoke(Command(resume="yes"), thread())
    graph.update_state(old.config, None, as_node="__copy__")
    new = graph.get_state(thread())
    assert new.next == old.next
    assert new.config != old.config


def test_a_call_of_a_function_keeps_the_namespace_it_is_given():
    """With a counter that says 0 LangGraph adds no number to it."""
    namespace = call_namespace_of("ask:1", "a|b", "9ae2")
    assert [part.name for part in parts_of(namespace)] == ["ask", "a%7Cb"]
    assert not parts_of(namespace)[-1].is_task


def test_a_saver_is_asked_in_its_own_database(mode, checkpointer):
    """Each of LangGraph's savers has the connection, the lock and the loop that are used here."""
    if isinstance(checkpointer, InMemorySaver):
        return
    store = store_of(checkpointer)

    async def ask():
        await store.query("CREATE TABLE tried (n TEXT)")
        await store.query("INSERT INTO tried VALUES (%s)", "a%s?")
        return await store.query("SELECT n FROM tried WHERE n = %s", "a%s?")

    found = mode.run(lambda: run_async(ask())) if mode.is_async else run_sync(ask())
    assert list(map(tuple, found)) == [("a%s?",)]


def test_a_database_in_memory_has_no_name():
    """Its threads have no lock file."""
    with closing(sqlite3.connect(":memory:", check_same_thread=False)) as connection:
        rows = run_sync(store_of(SqliteSaver(connection)).query("PRAGMA database_list"))
    assert [tuple(row)[1:] for row in rows] == [("main", "")]


@pytest.mark.parametrize("as_node", ["ask", None])
def test_an_update_of_a_subgraph_is_made_by_its_own_method_and_may_be_a_command(as_node):
    """A graph that overrides `bulk_update_state` says where its edited state continues."""
    calls = []

    class Routed(CompiledStateGraph):
        def bulk_update_state(self, config, supersteps):
            ((update,),) = supersteps
            calls.append((update.as_node, update.values))
            command = Command(update=update.values, goto="after")
            return super().bulk_update_state(config, [[update._replace(values=command)]])

    inner = (
        StateGraph(Told)
        .add_node("ask", lambda _: {"seen": ["asked"]}, destinations=("wait", "after"))
        .add_node("wait", lambda _: {"told": interrupt("?")})
        .add_node("after", lambda state: {"told": f"after {state['seen']}"})
        .set_entry_point("ask")
        .add_edge("ask", "wait")
    )
    routed = Routed(**vars(inner.compile()))
    outer = StateGraph(Told).add_node("outer", routed).set_entry_point("outer")
    graph = outer.compile(checkpointer=InMemorySaver())
    graph.invoke({}, thread())
    (shown,) = graph.get_state(thread(), subgraphs=True).tasks
    graph.update_state(shown.state.config, {"seen": ["edited"]}, as_node=as_node)
    assert calls == [(as_node, {"seen": ["edited"]})]
    assert "after" in graph.get_state(thread(), subgraphs=True).tasks[0].state.next
