"""The table of open reviews: what waits is found without reading what is finished."""

import asyncio
import sqlite3
from collections import Counter
from contextlib import closing

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.types import INTERRUPT
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.func import entrypoint, task
from langgraph.types import Command

from graph_retry import aretry_llm_call, create_retry_node, edit, resume, retry_llm_call
from graph_retry._core.ground.functions.awaiting import run_async, run_sync
from graph_retry._core.langgraph.storage.stores import store_of
from graph_retry._core.threads import inbox
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


TABLE = "graph_retry_open_reviews"


def asked(mode, saver, sql):
    """Run a statement in the saver's database."""
    if mode is None or not mode.is_async:
        return run_sync(store_of(saver).query(sql))
    return mode.run(lambda: run_async(store_of(saver).query(sql)))


def rows(mode, saver):
    """List the threads that have a row of a call that waits."""
    if isinstance(saver, InMemorySaver):
        return []
    found = asked(mode, saver, f"SELECT thread_id FROM {TABLE} WHERE place > '' ORDER BY place")
    return [name for (name,) in found]


def forget(mode, saver):
    """Do what the documentation says to have all threads read again."""
    if not isinstance(saver, InMemorySaver):
        asked(mode, saver, f"DELETE FROM {TABLE}")


def listed(mode, source, **options):
    found = mode.call(inbox, "list_reviews", source, **options)
    return [review.thread_id for review in found]


def threads_read(saver, source, **options):
    """Count the checkpoints that a listing reads, by thread, once all threads were read."""
    inbox.list_reviews(saver)
    saver.read.clear()
    inbox.list_reviews(source, **options)
    return dict(saver.read)


def test_finished_threads_are_not_read_and_a_limit_reads_no_more_than_it_needs(saver):
    """Two checkpoints of each thread that waits: where it stands, and where its call does."""
    graph = one_call("node", None, Model(), saver)
    for number in range(6):
        graph.invoke({"params": {"n": number % 2}}, thread(str(number)))
    resume(graph, thread("0"), edit(n=1))
    assert threads_read(saver, graph) == {"2": 2, "4": 2}
    assert threads_read(saver, saver) == {"2": 2, "4": 2}


def test_a_limit_reads_no_more_threads_than_it_lists(saver):
    """The newest are read, and nothing of the older ones."""
    graph = one_call("node", None, Model(), saver)
    for number in range(6):
        graph.invoke({"params": {"n": 0}}, thread(str(number)))
    assert threads_read(saver, graph, limit=1) == {"5": 2}


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


def test_threads_from_before_the_table_are_read_once(mode, checkpointer):
    """Where the table is empty the next listing reads all threads, calls of one node included."""
    graph = fan_out("node", mode, Model(), checkpointer, width=2)
    for name in "ab":
        mode.invoke(graph, {}, thread(name))
    answer(mode, graph, thread("a"), answers=_first(mode, graph))
    forget(mode, checkpointer)
    assert listed(mode, graph) == ["b", "b", "a"]
    assert listed(mode, checkpointer) == ["b", "b", "a"]


def _first(mode, graph):
    review = mode.call(graph, "get_state", thread("a")).interrupts[0]
    return {review.id: edit(n=1)}


def test_threads_with_one_checkpoint_id_are_all_read(saver):
    """Threads that were copied share ids."""
    graph = one_call("node", None, Model(), saver)
    graph.invoke({"params": {"n": 0}}, thread("waits"))
    twin = empty_checkpoint()
    for number in range(20):
        saver.put({"configurable": {"thread_id": str(number), "checkpoint_ns": ""}}, twin, {}, {})
    forget(None, saver)
    (review,) = inbox.list_reviews(graph)
    assert review.thread_id == "waits"


def test_a_thread_that_cannot_be_read_is_named(saver):
    """It stops the listing, lest a review be hidden: so whoever looks has to know which it is."""
    graph = one_call("node", None, Model(), saver)
    for name in ("whole", "damaged"):
        graph.invoke({"params": {"n": 0}}, thread(name))
    assert len(inbox.list_reviews(graph)) == 2
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
        for task_id, channel, value in saved.pending_writes:
            saver.put_writes(new, [(channel, value)], task_id)


@pytest.mark.parametrize("storage", ["memory", "sqlite"])
def test_copies_of_a_thread_that_waits_are_reviews_of_their_own(form, saver, storage):
    """They ask the same at the same time; none hides another, on one page or on two."""
    saver = saver if storage == "sqlite" else InMemorySaver()
    graph = one_call(form, None, Model(), saver)
    graph.invoke({"params": {"n": 0}}, thread("original"))
    copied(saver, "original", "copy")
    forget(None, saver)
    both = inbox.list_reviews(graph)
    assert {review.thread_id for review in both} == {"original", "copy"}
    first = inbox.list_reviews(graph, limit=1)
    assert first + inbox.list_reviews(graph, limit=1, before=first[0]) == both
    assert both[0].answer(edit(n=1))["output"] == {"n": 1}
    assert inbox.list_reviews(graph) == both[1:]


@pytest.mark.parametrize("by", ["resume", "command"])
def test_the_row_of_a_call_ends_with_its_review(form, mode, checkpointer, by):
    """Whoever answers: an answer that is asked about again leaves one row, the last one none."""
    graph = one_call(form, mode, Model(goal=2), checkpointer)
    kept = [] if isinstance(checkpointer, InMemorySaver) else ["1"]

    def answered(n):
        if by == "resume":
            answer(mode, graph, thread(), edit(n=n))
        else:
            mode.invoke(graph, Command(resume=edit(n=n)), thread())
        return rows(mode, checkpointer)

    mode.invoke(graph, {"params": {"n": 0}}, thread())
    assert rows(mode, checkpointer) == kept
    assert answered(1) == kept
    assert answered(2) == []


@pytest.mark.parametrize("end", ["start anew", "delete"])
def test_a_row_of_what_is_over_ends_at_the_next_listing(form, saver, end):
    """A new run or a deletion of the thread deletes no row: the inbox does, at once."""
    graph = one_call(form, None, Model(), saver)
    for name in "12":
        graph.invoke({"params": {"n": 0}}, thread(name))
    if end == "start anew":
        graph.invoke({"params": {"n": 1}}, thread("1"))
    else:
        saver.delete_thread("1")
    assert rows(None, saver) == ["1", "2"]
    assert [review.thread_id for review in inbox.list_reviews(graph)] == ["2"]
    assert rows(None, saver) == ["2"]


def test_a_listing_while_a_question_is_asked_does_not_hide_it(form, saver):
    """Between the row of a call and the pause of its thread the row is left alone."""
    seen = []

    class Listing(Counted):
        """Lists what waits just before the thread is saved as waiting."""

        def put_writes(self, config, writes, task_id, task_path=""):
            if any(channel == INTERRUPT for channel, _ in writes):
                seen.append(len(inbox.list_reviews(saver)))
            super().put_writes(config, writes, task_id, task_path)

    graph = one_call(form, None, Model(), Listing(saver.conn))
    graph.invoke({"params": {"n": 0}}, thread())
    assert seen
    assert [review.thread_id for review in inbox.list_reviews(graph)] == ["1"]


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_no_durability_of_the_graph_hides_a_review(form, mode, checkpointer, durability):
    """The row is there however seldom the graph around the call is saved, and goes with it."""
    graph = one_call(form, mode, Model(), checkpointer)
    mode.invoke(graph, {"params": {"n": 0}}, thread(), durability=durability)
    assert listed(mode, graph) == listed(mode, checkpointer) == ["1"]
    mode.invoke(graph, Command(resume=edit(n=1)), thread(), durability=durability)
    assert listed(mode, graph) == rows(mode, checkpointer) == []


def test_a_retry_node_that_is_the_outermost_graph_is_listed(mode, checkpointer):
    """Its call has no namespace of its own."""
    node = create_retry_node(mode.colour(Model()), dict, output=dict[str, int])
    graph = node.copy(update={"checkpointer": checkpointer})
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    assert listed(mode, graph) == listed(mode, checkpointer) == ["1"]
    answer(mode, graph, thread(), edit(n=1))
    assert listed(mode, graph) == []


def test_a_review_that_cannot_be_answered_yet_is_not_listed(mode, checkpointer):
    """Of parallel tasks of an entrypoint the first one asks; the next one when it was answered."""

    def one(number):
        return retry_llm_call(lambda given: given, f"{number} apples", output=int)

    async def aone(number):
        return await aretry_llm_call(lambda given: given, f"{number} apples", output=int)

    asked = task(aone if mode.is_async else one)

    def flow(_):
        return [each.result() for each in [asked(1), asked(2)]]

    async def aflow(_):
        return await asyncio.gather(asked(1), asked(2))

    graph = entrypoint(checkpointer=checkpointer)(aflow if mode.is_async else flow)
    mode.invoke(graph, "", thread())
    answered = 0
    while found := mode.call(inbox, "list_reviews", graph):
        (review,) = found
        result = answer(mode, graph, thread(), answers={review.review_id: edit(value="3")})
        answered += 1
    assert (answered, result) == (2, [3, 3])
