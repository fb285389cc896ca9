"""Storage that fails, fills up or only reads: the error is told, nothing is lost or repeated."""

import sqlite3
from collections import Counter
from contextlib import closing, contextmanager, suppress

import aiosqlite
import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from graph_retry import AttemptContext, StaleDecision, edit
from graph_retry._core.langgraph.storage.checkpoints import NO_TASK
from graph_retry._core.state.position import ANSWER
from tests.loops import answer, one_call, reviews, thread


class FailingSaver(InMemorySaver):
    """Storage whose n-th write fails; the async methods of this saver call the sync ones."""

    def __init__(self, fails_at):
        super().__init__()
        self.made = 0
        self.fails_at = fails_at
        self.failed = ""

    def with_allowlist(self, _):
        return self  # a clone, as strict msgpack makes one, would count for itself

    def _write(self, kind, config):
        self.made += 1
        if self.made == self.fails_at:
            inner = config["configurable"].get("checkpoint_ns")
            self.failed = f"{kind} {'inside' if inner else 'outside'}"
            raise OSError("the storage is gone")

    def put(self, config, *args):
        self._write("put", config)
        return super().put(config, *args)

    def put_writes(self, config, *args):
        self._write("put_writes", config)
        return super().put_writes(config, *args)


def counted(form, mode, saver, text="", goal=1):
    """Compile a graph of one call, and return with it the list of calls made as `(n, key)`."""
    calls = []

    def model(params, context: AttemptContext):
        calls.append((params["n"], context.idempotency_key))
        return f'{{"n": {params["n"]}}}' if params["n"] >= goal else f"not yet {text}"

    return one_call(form, mode, mode.colour(model), saver), calls


def go_on(mode, graph, durability):
    """Continue a thread as its owner would once the storage works: run on, then answer."""
    if not mode.call(graph, "get_state", thread()).created_at:
        return mode.call(graph, "invoke", {"params": {"n": 0}}, thread(), durability=durability)
    state = answer(mode, graph, thread(), durability=durability)
    if reviews(mode, graph, thread()):
        state = answer(mode, graph, thread(), edit(n=1), durability=durability)
    return state


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.slow
def test_any_write_may_fail(form, mode, durability):
    """Whichever write fails, the thread goes on; at most the call in flight is made once more."""
    for fails_at in range(1, 100):
        saver = FailingSaver(fails_at)
        graph, calls = counted(form, mode, saver)
        told = None
        try:
            mode.call(graph, "invoke", {"params": {"n": 0}}, thread(), durability=durability)
            state = answer(mode, graph, thread(), edit(n=1), durability=durability)
        except Exception as error:  # noqa: BLE001 - the storage's, or what follows from it
            told = error
        if not saver.failed:
            break
        for _ in range(2):
            state = go_on(mode, graph, durability)

        place = f"write {fails_at}, {saver.failed}"
        assert state["output"] == {"n": 1}, place
        repeated = Counter(n for n, _ in calls) - Counter([0, 1])
        # Where the start of the node was never saved, it is another start: only then is the key
        # another one. With `sync` durability no call is made before its place is saved.
        assert len(set(calls)) - 2 <= (saver.failed == "put outside" and durability != "sync"), (
            place
        )
        if durability == "sync":
            assert not repeated, place
            assert told is not None or saver.failed.startswith("put_writes"), place
        assert repeated.total() <= 1, place
    assert fails_at > 5


class TearingSaver(FailingSaver):
    """Storage that saves only a part of what a step of a call writes, and is gone until `back`."""

    back = False

    def put(self, config, *args):
        if self.failed and not self.back:
            raise OSError("the storage is gone")
        return InMemorySaver.put(self, config, *args)

    def put_writes(self, config, writes, *args):
        writes = [*writes]
        if len(writes) > 1 and config["configurable"].get("checkpoint_ns"):
            try:
                self._write("put_writes", config)
            except OSError:
                InMemorySaver.put_writes(self, config, writes[:-1], *args)
                raise
        InMemorySaver.put_writes(self, config, writes, *args)


def torn(kind, form, mode):
    """Yield each thread of which storage saved a step in part, with its place, graph and calls."""
    for fails_at in range(1, 100):
        saver = kind(fails_at)
        graph, calls = counted(form, mode, saver)
        with suppress(OSError, StaleDecision):
            mode.call(graph, "invoke", {"params": {"n": 0}}, thread())
            answer(mode, graph, thread(), edit(n=1))
        if not saver.failed:
            break
        yield fails_at, saver, graph, calls


def test_a_step_that_is_saved_in_part_is_made_again(form, mode):
    """LangGraph takes the part for the whole; savers of DynamoDB and MongoDB save writes singly."""
    for fails_at, saver, graph, calls in torn(TearingSaver, form, mode):
        saver.back = True
        for _ in range(2):
            state = go_on(mode, graph, "sync")
        assert state["output"] == {"n": 1}, fails_at
        assert len(set(calls)) == 2, fails_at
        assert len(calls) <= 3, fails_at
    assert fails_at > 5


class TornTwice(TearingSaver):
    """Storage that is back, and is gone once more at the `left`-th write from then on."""

    left = answers = 0

    def _again(self):
        self.left -= self.back
        if self.back and not self.left:
            raise OSError("the storage is gone again")

    def put(self, config, *args):
        self._again()
        return super().put(config, *args)

    def put_writes(self, config, writes, task, *args):
        self._again()
        super().put_writes(config, writes, task, *args)
        self.answers += task == NO_TASK and writes[-1][0] == ANSWER


@pytest.mark.parametrize("left", range(1, 5))
def test_an_answer_survives_the_mending_of_a_step(form, mode, left):
    """The storage is gone again between the writes that mend a step: nobody is asked again."""
    mended = 0
    for fails_at, saver, graph, calls in torn(TornTwice, form, mode):
        if not saver.answers:
            continue
        mended += 1
        saver.back, saver.left = True, left
        with suppress(OSError, StaleDecision):
            answer(mode, graph, thread())
        assert answer(mode, graph, thread())["output"] == {"n": 1}, fails_at
        assert len(set(calls)) == 2, fails_at
    assert mended


@contextmanager
def opened(mode, path, options=""):
    """Open SQLite storage in the mode's way, with URI options such as `?mode=ro`."""
    location = f"file:{path}{options}"
    if mode.is_async:

        async def saver_of(connection):
            return AsyncSqliteSaver(connection)  # it asks for the running loop

        with mode.opened(aiosqlite.connect(location, uri=True)) as connection:
            yield mode.run(lambda: saver_of(connection))
        return
    with closing(sqlite3.connect(location, uri=True, check_same_thread=False)) as connection:
        yield SqliteSaver(connection)


def pragma(mode, saver, text):
    """Set or read a PRAGMA of the storage's connection."""

    async def ask():
        async with saver.conn.execute(f"PRAGMA {text}") as cursor:
            return (await cursor.fetchone())[0]

    return mode.run(ask) if mode.is_async else saver.conn.execute(f"PRAGMA {text}").fetchone()[0]


@pytest.mark.parametrize("room", [0, 40], ids=["for-nothing", "for-the-answer"])
def test_a_full_disk_loses_nothing(form, mode, tmp_path, room):
    """The run fails with SQLite's own error; with room again it goes on where it was."""
    with opened(mode, tmp_path / "thread.sqlite") as saver:
        graph, calls = counted(form, mode, saver, text="x" * 400_000, goal=2)
        mode.invoke(graph, {"params": {"n": 0}}, thread())
        pages = pragma(mode, saver, "page_count")
        pragma(mode, saver, f"max_page_count={pages + room}")
        with pytest.raises(sqlite3.OperationalError, match="database or disk is full"):
            answer(mode, graph, thread(), edit(n=1), durability="sync")

        pragma(mode, saver, f"max_page_count={pages * 100}")
        answer(mode, graph, thread(), durability="sync")
        (review,) = reviews(mode, graph, thread())
        if review.attempt == 1:
            answer(mode, graph, thread(), edit(n=1))
        assert answer(mode, graph, thread(), edit(n=2))["output"] == {"n": 2}

    assert len(set(calls)) == 3
    assert [n for n, _ in calls] in ([0, 1, 2], [0, 1, 1, 2]), "only the call in flight is repeated"


def test_storage_that_only_reads_shows_reviews_and_takes_no_answer(form, mode, tmp_path):
    """The review can be read; answering is an error of SQLite's, and the review stays open."""
    path = tmp_path / "thread.sqlite"
    with opened(mode, path) as saver:
        graph, calls = counted(form, mode, saver)
        mode.invoke(graph, {"params": {"n": 0}}, thread())
    with opened(mode, path, "?mode=ro") as saver:
        graph, calls_read_only = counted(form, mode, saver)
        assert [review.attempt for review in reviews(mode, graph, thread())] == [1]
        with pytest.raises(sqlite3.OperationalError, match="readonly database"):
            answer(mode, graph, thread(), edit(n=1), durability="sync")
    with opened(mode, path) as saver:
        graph, calls_again = counted(form, mode, saver)
        answer(mode, graph, thread())
        assert [review.attempt for review in reviews(mode, graph, thread())] == [1]
        assert answer(mode, graph, thread(), edit(n=1))["output"] == {"n": 1}

    assert [n for n, _ in calls] == [0]
    assert {*calls_read_only} <= {*calls_again}, "a call in flight is repeated with its key"
    assert [n for n, _ in calls_again] == [1]
