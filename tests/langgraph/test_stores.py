"""One suite for each storage: ours, and one that somebody else adds."""

import sqlite3
from contextlib import ExitStack, closing, contextmanager

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from psycopg_pool import ConnectionPool

from graph_retry import ReplayMismatch, edit, pending_reviews, resume
from graph_retry._core.ground.functions.awaiting import run_sync
from graph_retry._core.langgraph.storage import stores
from graph_retry._core.langgraph.storage.stores import store_of
from graph_retry.testing import acheck_store, check_store
from graph_retry.threads import OpenReview, Store, add_store, list_reviews
from tests.loops import Model, one_call, thread


def test_each_storage_of_langgraph_passes(mode, checkpointer):
    """Memory, SQLite and PostgreSQL, sync and async."""
    check = acheck_store if mode.is_async else check_store
    result = check(checkpointer)
    if mode.is_async:
        mode.run(lambda: result)


def test_two_processes_lock_each_other_out(tmp_path, postgres_database):
    """Two savers stand for them; a pool of one connection that is taken suffices for a lock."""
    with ExitStack() as stack:
        path = str(tmp_path / "shared.sqlite")
        savers = [stack.enter_context(SqliteSaver.from_conn_string(path)) for _ in range(2)]
        savers[0].setup()
        check_store(*savers)
        pool = stack.enter_context(
            ConnectionPool(postgres_database, kwargs={"autocommit": True}, min_size=1, max_size=1)
        )
        saver = stack.enter_context(PostgresSaver.from_conn_string(postgres_database))
        check_store(PostgresSaver(pool), saver)


class Relayed(BaseCheckpointSaver):
    """A saver of somebody else, with the methods that a saver must have."""

    def __init__(self):
        super().__init__()
        self.storage = self._kept = InMemorySaver()

    def get_tuple(self, config):
        return self._kept.get_tuple(config)

    def list(self, config, **options):
        return self._kept.list(config, **options)

    def put(self, *given):
        return self._kept.put(*given)

    def put_writes(self, *given):
        return self._kept.put_writes(*given)


def test_an_unknown_storage_passes_and_serves_a_review():
    """It has no lock between processes and keeps no open reviews: an inbox reads all threads."""
    saver = Relayed()
    assert type(store_of(saver)) is Store
    check_store(saver)
    graph = one_call("function", None, Model(goal=1), saver)
    graph.invoke({"params": {"n": 0}}, thread("1"))
    assert [review.thread_id for review in list_reviews(saver) if review.thread_id == "1"] == ["1"]
    assert resume(graph, thread("1"), edit(n=1))["output"] == {"n": 1}


class ListsSimply(Relayed):
    """Its `list` has the signature of an earlier LangGraph."""

    def list(self, config, *, before=None, limit=None):
        return self._kept.list(config, before=before, limit=limit)


class ListsTooMuch(Relayed):
    """Its `list` ignores `filter` and `before`, as that of a Redis saver does."""

    def list(self, config, *, filter=None, before=None, limit=None):
        return self._kept.list(config, limit=limit)


class ListsFew(Relayed):
    """Its `list` stops early if nobody gives it a limit, as that of a Redis saver does."""

    def list(self, config, *, filter=None, before=None, limit=None):
        return self._kept.list(config, filter=filter, before=before, limit=limit or 3)


class ListsOneThread(Relayed):
    """Its `list` needs a thread, as that of a DynamoDB saver does."""

    def list(self, config, **options):
        if config is None:
            raise ValueError("it must contain thread_id")
        return self._kept.list(config, **options)


@pytest.mark.parametrize("kind", [ListsSimply, ListsTooMuch, ListsFew, ListsOneThread])
def test_what_a_list_of_savers_does_not_know_is_done_here(kind, caplog):
    """No review is hidden, and none is told to be ended that is not."""
    saver = kind()
    graph = one_call("function", None, Model(goal=3), saver)
    for name in "12":
        graph.invoke({"params": {"n": 0}}, thread(name))
        resume(graph, thread(name), edit(n=1))
    assert "was ended" not in caplog.text
    assert len(run_sync(store_of(saver).namespaces("1", "ask"))) == 1
    if kind is ListsOneThread:
        with pytest.raises(NotImplementedError, match="does not list the checkpoints of all thr"):
            list_reviews(graph)
        return
    check_store(kind())
    assert [review.thread_id for review in list_reviews(graph)] == ["2", "1"]
    graph.invoke({"params": {"n": 0}}, thread("1"))
    assert caplog.text.count("was ended") == 1


class Mixes(Relayed):
    """It returns the writes of earlier checkpoints, too, as a shallow saver of Redis does."""

    def get_tuple(self, config):
        newest = super().get_tuple(config)
        place = {"configurable": {**config["configurable"], "checkpoint_id": None}}
        writes = [write for saved in self.list(place) for write in saved.pending_writes]
        return newest and newest._replace(pending_writes=writes)


def test_a_saver_that_mixes_writes_is_refused_by_name():
    """Its old answers look like those to the open review, which must not be hidden."""
    with pytest.raises(AssertionError, match="with its own writes only"):
        check_store(Mixes())
    model, saver = Model(goal=1), Mixes()
    graph = one_call("function", None, model, saver)
    graph.invoke({"params": {"n": 0}}, thread())
    with pytest.raises(ReplayMismatch, match="returns the writes of earlier checkpoints"):
        pending_reviews(graph, thread())
    with pytest.raises(ReplayMismatch, match="returns the writes of earlier checkpoints"):
        resume(graph, thread(), edit(n=1))
    assert model.calls == [{"n": 0}]


class Listed(Store):
    """The storage of `Relayed`, by somebody who adds what it can do better."""

    savers = __name__
    keeps_reviews = True

    @property
    def identity(self):
        return self.saver.storage

    async def open(self, review: OpenReview):
        self._rows[review[:2]] = review

    async def close(self, review):
        if self._rows.get(review[:2], review).review_id == review.review_id:
            self._rows.pop(review[:2], None)

    async def is_filled(self):
        return getattr(self.identity, "is_filled", False)

    async def set_filled(self):
        self.identity.is_filled = True

    async def fill(self, reviews):
        for review in reviews:
            self._rows.setdefault(review[:2], review)

    async def open_reviews(self, before, limit):
        rows = sorted(self._rows.values(), key=lambda row: row.place, reverse=True)
        return [row for row in rows if not before or row.place < before][:limit]

    async def open_in(self, thread_id):
        return {row for row in self._rows.values() if row.thread_id == thread_id}

    @property
    def _rows(self):
        return vars(self.identity).setdefault("rows", {})


@contextmanager
def added(kind):
    """Know a storage of one's own, for a while."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stores, "_STORES", [*stores._STORES])
        add_store(kind)
        yield


def test_a_storage_of_ones_own_passes_and_its_inbox_reads_only_what_waits():
    """A class with five methods, made known by one call."""
    saver = Relayed()
    with added(Listed):
        check_store(Relayed())
        graph = one_call("function", None, Model(goal=1), saver)
        for name in "12":
            graph.invoke({"params": {"n": 0}}, thread(name))
        assert len(list_reviews(graph)) == 2
        resume(graph, thread("1"), edit(n=1))
        assert [review.thread_id for review in list_reviews(graph)] == ["2"]
        assert [row.thread_id for row in saver.storage.rows.values()] == ["2"]


@pytest.mark.parametrize(
    ("method", "wrong", "said"),
    [
        ("is_saved", True, "does not know another place"),
        ("namespaces", [], "lists those of the thread"),
        ("is_filled", True, "waits for `set_filled`"),
        ("threads", ["a", "b"], "ran last first"),
        ("open_reviews", [], "`fill` keeps what is there"),
        ("open_in", set(), "replaces a call's earlier question"),
    ],
)
def test_a_storage_that_does_not_keep_a_promise_is_told_which(method, wrong, said):
    """The suite can fail."""

    async def lies(*_given):
        return wrong

    kind = type("Lies", (Listed,), {method: lies})
    with added(kind), pytest.raises(AssertionError, match=said):
        check_store(Relayed())


def test_a_lock_that_keeps_nobody_out_is_found():
    """Two savers of one database that is in memory have no lock; a false one is told."""

    class Free:
        def try_acquire(self):
            return True

        def release(self):
            pass

    class Loose(Listed):
        async def lock(self, _thread_id):
            return Free()

    saver = Relayed()
    with added(Loose), pytest.raises(AssertionError, match="keeps others out"):
        check_store(saver, saver)


def test_a_subclass_of_a_saver_has_its_storage():
    """A user's own class over SQLite locks and lists as SQLite does."""

    class Own(SqliteSaver):
        pass

    with closing(sqlite3.connect(":memory:", check_same_thread=False)) as connection:
        assert type(store_of(Own(connection))) is stores.SqliteStore
