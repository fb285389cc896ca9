"""The index of open reviews: what waits is found without reading what is finished."""

import sqlite3
from collections import Counter
from contextlib import closing, suppress
from datetime import timedelta

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from graph_retry import create_retry_node, edit, inbox, resume
from graph_retry._awaiting import run_async, run_sync
from graph_retry._langgraph import open_reviews
from graph_retry._langgraph.open_reviews import INDEX, Note, begin_shelf, note_asked, open_notes
from graph_retry._threads import saved_reviews
from tests.loops import Model, answer, fan_out, one_call, thread


class Counted(SqliteSaver):
    """Counts the checkpoints that are read of each thread."""

    def __init__(self, connection):
        super().__init__(connection)
        self.read = Counter()

    def _count(self, saved):
        if saved is not None:
            self.read[saved.config["configurable"]["thread_id"]] += 1
        return saved

    def get_tuple(self, config):
        return self._count(super().get_tuple(config))

    def list(self, config, **options):
        return map(self._count, super().list(config, **options))


@pytest.fixture
def saver():
    with closing(sqlite3.connect(":memory:", check_same_thread=False)) as connection:
        yield Counted(connection)


def notes(mode, saver):
    """List the notes that are open."""
    if mode is None or not mode.is_async:
        return run_sync(open_notes(saver, None, 10))
    return mode.run(lambda: run_async(open_notes(saver, None, 10)))


def listed(mode, source, **options):
    found = mode.call(inbox, "list_reviews", source, **options)
    return [review.thread_id for review in found]


def threads_read(saver, source, **options):
    """Count the checkpoints that listing reads, by thread, those of the index left out."""
    saver.read.clear()
    inbox.list_reviews(source, **options)
    return {name: count for name, count in saver.read.items() if not name.startswith(INDEX)}


def test_finished_threads_are_not_read_and_a_limit_reads_no_more_than_it_needs(saver):
    """Two checkpoints of each thread that waits: where it stands, and where its call does."""
    graph = one_call("node", None, Model(), saver)
    for number in range(6):
        graph.invoke({"params": {"n": number % 2}}, thread(str(number)))
    resume(graph, thread("0"), edit(n=1))
    assert threads_read(saver, graph) == {"2": 2, "4": 2}
    assert threads_read(saver, saver) == {"2": 2, "4": 2}


def test_a_limit_reads_no_more_threads_than_a_page(saver, monkeypatch):
    """The newest are read, and nothing of the older ones."""
    monkeypatch.setattr(saved_reviews, "_PAGE", 2)
    graph = one_call("node", None, Model(), saver)
    for number in range(6):
        graph.invoke({"params": {"n": 0}}, thread(str(number)))
    assert threads_read(saver, graph, limit=1) == {"5": 2, "4": 2}


def test_what_waits_is_listed_page_by_page(mode, checkpointer):
    """`before` takes the last review of the page before; no review is listed twice or left out."""
    graph = one_call("node", mode, Model(), checkpointer)
    for number in range(5):
        mode.invoke(graph, {"params": {"n": 0}}, thread(str(number)))
    pages, last = [], None
    while page := mode.call(inbox, "list_reviews", graph, limit=2, before=last):
        pages.append([review.thread_id for review in page])
        last = page[-1]
    assert pages == [["4", "3"], ["2", "1"], ["0"]]


def test_threads_from_before_the_index_are_read_once(mode, checkpointer):
    """Without an index the next listing reads all threads and writes it; so do copies of ids."""
    graph = fan_out("node", mode, Model(), checkpointer, width=2)
    for name in "ab":
        mode.invoke(graph, {}, thread(name))
    answer(mode, graph, thread("a"), answers=_first(mode, graph))
    mode.call(checkpointer, "delete_thread", INDEX)
    assert listed(mode, graph) == ["b", "b", "a"]
    assert listed(mode, checkpointer) == ["b", "b", "a"]


def _first(mode, graph):
    review = mode.call(graph, "get_state", thread("a")).interrupts[0]
    return {review.id: edit(n=1)}


def test_many_checkpoints_with_one_id_are_read_to_their_end(saver, monkeypatch):
    """Threads that were copied share ids: a page full of one id is read as a longer one."""
    monkeypatch.setattr(saved_reviews, "_SCANNED", 3)
    graph = one_call("node", None, Model(), saver)
    graph.invoke({"params": {"n": 0}}, thread("waits"))
    twin = empty_checkpoint()
    for number in range(20):
        saver.put({"configurable": {"thread_id": str(number), "checkpoint_ns": ""}}, twin, {}, {})
    saver.delete_thread(INDEX)
    (review,) = inbox.list_reviews(graph)
    assert review.thread_id == "waits"


def test_a_thread_that_cannot_be_read_is_named(saver):
    """It stops the listing, lest a review be hidden: so whoever looks has to know which it is."""
    graph = one_call("node", None, Model(), saver)
    for name in ("whole", "damaged"):
        graph.invoke({"params": {"n": 0}}, thread(name))
    saver.conn.execute("UPDATE checkpoints SET checkpoint = x'00' WHERE thread_id = 'damaged'")
    with pytest.raises(TypeError) as caught:
        inbox.list_reviews(graph)
    assert "reading thread 'damaged'" in caught.value.__notes__[0]
    saver.delete_thread("damaged")
    assert [review.thread_id for review in inbox.list_reviews(graph)] == ["whole"]


def copied(saver, name, copy):
    """Save a thread once more, as another one, with all that its checkpoints say."""
    for saved in reversed(list(saver.list(thread(name)))):
        parent = (saved.parent_config or {}).get("configurable", {}).get("checkpoint_id")
        place = {**saved.config["configurable"], "thread_id": copy, "checkpoint_id": parent}
        versions = saved.checkpoint["channel_versions"]
        new = saver.put({"configurable": place}, saved.checkpoint, saved.metadata, versions)
        for task, channel, value in saved.pending_writes:
            saver.put_writes(new, [(channel, value)], task)


@pytest.mark.parametrize("storage", ["memory", "sqlite"])
def test_copies_of_a_thread_that_waits_are_reviews_of_their_own(form, saver, storage):
    """They ask the same at the same time; none hides another, on one page or on two."""
    saver = saver if storage == "sqlite" else InMemorySaver()
    graph = one_call(form, None, Model(), saver)
    graph.invoke({"params": {"n": 0}}, thread("original"))
    copied(saver, "original", "copy")
    saver.delete_thread(INDEX)
    both = inbox.list_reviews(graph)
    assert {review.thread_id for review in both} == {"original", "copy"}
    first = inbox.list_reviews(graph, limit=1)
    assert first + inbox.list_reviews(graph, limit=1, before=first[0]) == both
    assert both[0].answer(edit(n=1))["output"] == {"n": 1}
    assert inbox.list_reviews(graph) == both[1:]


def test_the_note_of_a_review_ends_with_it(form, mode, checkpointer):
    """Answered by `resume` at once."""
    graph = one_call(form, mode, Model(goal=2), checkpointer)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    answer(mode, graph, thread(), edit(n=1))
    assert len(notes(mode, checkpointer)) == (0 if isinstance(checkpointer, InMemorySaver) else 1)
    answer(mode, graph, thread(), edit(n=2))
    assert notes(mode, checkpointer) == []


@pytest.mark.parametrize("end", ["answer", "start anew", "delete"])
def test_a_note_that_another_client_left_ends_when_its_thread_rests(saver, monkeypatch, end):
    """LangGraph's own answer, a new run or a deletion ends no note: the inbox does, in time."""
    graph = one_call("node", None, Model(), saver)
    for name in "12":
        graph.invoke({"params": {"n": 0}}, thread(name))
    if end == "answer":
        graph.invoke(Command(resume=edit(n=1)), thread("1"))
    elif end == "start anew":
        graph.invoke({"params": {"n": 1}}, thread("1"))
    else:
        saver.delete_thread("1")
    assert [review.thread_id for review in inbox.list_reviews(graph)] == ["2"]
    assert len(notes(None, saver)) == 2, "a thread that just moved may be about to ask"
    monkeypatch.setattr(saved_reviews, "_REST", timedelta(0))
    assert [review.thread_id for review in inbox.list_reviews(graph)] == ["2"]
    assert len(notes(None, saver)) == 1


def test_a_retry_node_that_is_the_outermost_graph_is_listed(mode, checkpointer):
    """Its call has no namespace of its own."""
    node = create_retry_node(mode.colour(Model()), dict, output=dict[str, int])
    graph = node.copy(update={"checkpointer": checkpointer})
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    assert listed(mode, graph) == listed(mode, checkpointer) == ["1"]
    answer(mode, graph, thread(), edit(n=1))
    assert listed(mode, graph) == []


def test_ended_notes_are_left_behind_and_open_ones_are_not(mode, checkpointer, monkeypatch):
    """After every answer here: the shelf has what waits, and the old ones are gone."""
    monkeypatch.setattr(saved_reviews, "_TIDIED", 1)
    graph = one_call("node", mode, Model(), checkpointer)
    for name in "abc":
        mode.invoke(graph, {"params": {"n": 0}}, thread(name))
    for name in "ab":
        answer(mode, graph, thread(name), edit(n=1))
    assert listed(mode, graph) == ["c"]
    third = 0 if isinstance(checkpointer, InMemorySaver) else 1  # which keeps no index
    assert [len(shelf(mode, checkpointer, number)) for number in range(4)] == [0, 0, third, 0]


def shelf(mode, saver, number):
    return mode.call(saver, "list", {"configurable": {"thread_id": f"{INDEX}/{number}"}})


@pytest.mark.parametrize("stopped_after", range(8))
def test_a_question_asked_while_a_shelf_is_begun_is_in_the_index(saver, monkeypatch, stopped_after):
    """Asked after each write of the copying, whether that goes on or dies there."""
    old, new = (
        Note(thread_id=name, namespace="ask:1", review_id=name, asked_at=f"2026-11-2{name}")
        for name in "12"
    )
    run_sync(note_asked(saver, old))
    writes, write = [], open_reviews._write

    class DiedError(Exception):
        """The process ends."""

    async def stopping(*args):
        await write(*args)
        writes.append(args)
        if len(writes) == stopped_after:
            monkeypatch.setattr(open_reviews, "_write", write)
            await note_asked(saver, new)
            raise DiedError

    monkeypatch.setattr(open_reviews, "_write", stopping)
    with suppress(DiedError):
        run_sync(begin_shelf(saver))
    monkeypatch.setattr(open_reviews, "_write", write)
    known = [old, *([new] if len(writes) == stopped_after and stopped_after else [])]
    for _ in range(2):
        assert run_sync(open_notes(saver, None, 10)) == known[::-1]
        run_sync(begin_shelf(saver))


def test_a_note_on_a_shelf_that_was_just_left_is_written_again(saver, monkeypatch):
    """Between its look at the newest shelf and its note another one was begun."""
    note = Note(thread_id="1", namespace="ask:1", review_id="r", asked_at="2026-11-22")
    write_open = open_reviews._write_open

    async def late(*args):
        monkeypatch.setattr(open_reviews, "_write_open", write_open)
        await begin_shelf(saver)
        await write_open(*args)

    monkeypatch.setattr(open_reviews, "_write_open", late)
    run_sync(note_asked(saver, note))
    assert run_sync(open_notes(saver, None, 10)) == [note]
