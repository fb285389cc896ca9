"""First answer wins: of several answers to one review exactly one is applied (I4)."""

import asyncio
import errno
import threading
from contextlib import ExitStack

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from psycopg_pool import ConnectionPool

from graph_retry import StaleDecision, aresume, edit, pending_reviews, respond, resume
from graph_retry._core.ground.functions.awaiting import run_sync
from graph_retry._core.langgraph.storage.lock import ThreadLock
from tests.loops import Model, one_call, thread


@pytest.fixture(params=["memory", "sqlite", "postgres", "postgres-pool"])
def two_savers(request):
    """Two ways to one storage, as two processes have them; in memory there is only one."""
    with ExitStack() as stack:
        if request.param == "memory":
            saver = InMemorySaver()
            yield saver, saver
            return
        if request.param == "sqlite":
            place = request.getfixturevalue("sqlite_database")
            opened = [SqliteSaver.from_conn_string(place) for _ in "12"]
            yield tuple(stack.enter_context(each) for each in opened)
            return
        dsn = request.getfixturevalue("postgres_database")
        if request.param == "postgres":
            opened = [PostgresSaver.from_conn_string(dsn) for _ in "12"]
            yield tuple(stack.enter_context(each) for each in opened)
            return
        # One connection in the pool: a lock that took it would leave none for the graph.
        pools = [
            ConnectionPool(dsn, min_size=1, max_size=1, kwargs={"autocommit": True}, open=True)
            for _ in "12"
        ]
        yield tuple(PostgresSaver(stack.enter_context(pool)) for pool in pools)


class SlowModel(Model):
    """Holds its second call until the test lets it go."""

    def __init__(self, **options):
        super().__init__(**options)
        self.called, self.go_on = threading.Event(), threading.Event()

    def __call__(self, params):
        if params["n"] > 0:
            self.called.set()
            assert self.go_on.wait(30)
        return super().__call__(params)


def answering(graph, given, results, **options):
    """Answer in a thread of its own; its result or error is appended to `results`."""

    def answer():
        try:
            results.append(resume(graph, thread(), given, **options))
        except (StaleDecision, TimeoutError) as error:
            results.append(error)

    started = threading.Thread(target=answer)
    started.start()
    return started


def test_the_first_answer_is_applied_and_the_other_is_told_who_was_first(form, two_savers):
    """While Ada's answer is being applied, Bob's is refused with her name and the time."""
    model, results = SlowModel(), []
    one, other = (one_call(form, None, model, saver) for saver in two_savers)
    one.invoke({"params": {"n": 0}}, thread())
    (review,) = pending_reviews(other, thread())

    ada = answering(one, {**edit(n=1), "by": "ada"}, results)
    assert model.called.wait(30)
    if form == "node":  # her answer is written down before it is applied
        with pytest.raises(StaleDecision, match=r"human:ada answered it at 2\d{3}-"):
            review.answer(edit(n=5))
    model.go_on.set()
    ada.join()
    with pytest.raises(StaleDecision, match=r"human:ada answered it at 2\d{3}-"):
        review.answer(edit(n=5))
    with pytest.raises(StaleDecision, match=r"human:ada answered it at 2\d{3}-"):
        resume(other, thread(), edit(n=5))
    assert [result["output"] for result in results] == [{"n": 1}]
    assert model.calls == [{"n": 0}, {"n": 1}]


def test_a_double_click_does_not_answer_the_next_question(form, two_savers):
    """An answer that names no review counts for the one that was open when it was given."""
    model, results = SlowModel(goal=3), []
    one, other = (one_call(form, None, model, saver) for saver in two_savers)
    one.invoke({"params": {"n": 0}}, thread())

    first = answering(one, edit(n=1), results)
    assert model.called.wait(30)
    second = answering(other, edit(n=1), results)
    second.join()  # refused while the first is being applied: its review is closed
    model.go_on.set()
    first.join()

    assert sorted(type(result).__name__ for result in results) == ["StaleDecision", "dict"]
    assert model.calls == [{"n": 0}, {"n": 1}]
    (review,) = pending_reviews(one, thread())
    assert (review.attempt, review.problem) == (2, None)


def test_waiting_for_a_busy_thread_ends(two_savers):
    """Somebody who only wants to run the thread on does not wait for ever."""
    model, results = SlowModel(), []
    one, other = (one_call("node", None, model, saver) for saver in two_savers)
    one.invoke({"params": {"n": 0}}, thread())
    ada = answering(one, edit(n=1), results)
    assert model.called.wait(30)
    with pytest.raises(TimeoutError, match=r"`wait` = 0\.01 s"):
        resume(other, thread(), wait=0.01)
    model.go_on.set()
    ada.join()
    assert resume(other, thread())["output"] == {"n": 1}
    assert model.calls == [{"n": 0}, {"n": 1}]


@pytest.mark.parametrize("storage", ["sqlite", "postgres"])
def test_async_answers_wait_without_blocking_the_loop(storage, tmp_path, request):
    """Of five answers on one event loop, each through a saver of its own, one is applied."""
    if storage == "sqlite":
        saver_class, place = AsyncSqliteSaver, str(tmp_path / "db.sqlite")
    else:
        saver_class, place = AsyncPostgresSaver, request.getfixturevalue("postgres_database")
    calls = []

    async def model(params):
        calls.append(params["n"])
        await asyncio.sleep(0)
        return "no" if params["n"] == 0 else '{"n": 1}'

    async def race():
        async with saver_class.from_conn_string(place) as saver:
            await one_call("node", None, model, saver).ainvoke({"params": {"n": 0}}, thread())

        async def answer(number):
            async with saver_class.from_conn_string(place) as saver:
                graph = one_call("node", None, model, saver)
                return await aresume(graph, thread(), {**edit(n=number), "by": f"p{number}"})

        return await asyncio.gather(*map(answer, range(1, 6)), return_exceptions=True)

    results = asyncio.run(race())
    assert sorted(type(result).__name__ for result in results) == ["StaleDecision"] * 4 + ["dict"]
    assert len(calls) == 2


def test_a_lock_is_free_again_after_an_error(two_savers):
    """Whatever ends a run, the next answer gets its turn."""

    def model(params):
        if params["n"] == 1:
            raise KeyboardInterrupt
        return f'{{"n": {params["n"]}}}' if params["n"] else "no"

    one, other = (one_call("node", None, model, saver) for saver in two_savers)
    one.invoke({"params": {"n": 0}}, thread())
    with pytest.raises(KeyboardInterrupt):
        resume(one, thread(), edit(n=1))
    with pytest.raises(KeyboardInterrupt):
        resume(other, thread(), wait=5)


def test_an_answered_call_that_was_cut_off_is_told_how_it_continues(form):
    """Who sends the decision again after a crash learns that it is kept, and what runs it on."""
    crashes = [KeyboardInterrupt]

    def model(params):
        if params["n"] and crashes:
            raise crashes.pop()
        return f'{{"n": {params["n"]}}}' if params["n"] else "no"

    graph = one_call(form, None, model, InMemorySaver())
    graph.invoke({"params": {"n": 0}}, thread())
    with pytest.raises(KeyboardInterrupt):
        resume(graph, thread(), {**edit(n=1), "by": "ada"})
    on = r"human:ada answered it at 2.*: if nobody runs it, `resume\(graph, config\)` without a dec"
    with pytest.raises(StaleDecision, match=on):
        resume(graph, thread(), edit(n=1))
    assert resume(graph, thread())["output"] == {"n": 1}
    with pytest.raises(StaleDecision) as ended:
        resume(graph, thread(), edit(n=1))
    assert "continues" not in str(ended.value)


@pytest.mark.parametrize(
    ("graph", "config", "needle"),
    [
        (None, thread(), "give the graph"),
        (one_call("node", None, Model(), InMemorySaver()), {}, "thread_id"),
    ],
)
def test_an_answer_without_an_address_is_refused(graph, config, needle):
    """No graph or no thread: said at once, in words."""
    with pytest.raises(ValueError, match=needle):
        resume(graph, config, respond({"n": 1}))


@pytest.mark.parametrize(
    ("error", "what"),
    [
        (PermissionError(errno.EACCES, "denied"), "same access"),
        (OSError(errno.EROFS, "read only"), "mounted to be written"),
        (OSError(errno.ENOLCK, "none"), "file system has locks"),
        (NotImplementedError("no flock"), "file system has locks"),
        (OSError(errno.EIO, "broken"), "see to the disk"),
        (IsADirectoryError(errno.EISDIR, "a folder"), "move away"),
    ],
)
def test_a_lock_that_cannot_be_had_is_told_with_its_file(tmp_path, monkeypatch, error, what):
    """One sentence: the thread, the file, the reason, and what to do; nothing is written."""
    with SqliteSaver.from_conn_string(str(tmp_path / "db.sqlite")) as saver:
        model = Model()
        graph = one_call("node", None, model, saver)
        graph.invoke({"params": {"n": 0}}, thread())

        def refuse(*args, **kwargs):
            raise error

        with monkeypatch.context() as patched:
            patched.setattr("filelock.FileLock.acquire", refuse)
            with pytest.raises(OSError, match=f"thread '1' .*db.sqlite.locks/.*{what}"):
                resume(graph, thread(), edit(n=1))
        assert (len(model.calls), len(pending_reviews(graph, thread()))) == (1, 1)
        assert resume(graph, thread(), edit(n=1))["output"] == {"n": 1}


def test_a_file_in_the_way_of_the_locks_is_told(tmp_path):
    """Where the folder should be stands something else."""
    with SqliteSaver.from_conn_string(str(tmp_path / "db.sqlite")) as saver:
        graph = one_call("node", None, Model(), saver)
        (tmp_path / "db.sqlite.locks").write_text("mine")
        graph.invoke({"params": {"n": 0}}, thread())  # The question is asked even so.
        with pytest.raises(FileExistsError, match=r"db.sqlite.locks.*move away what stands there"):
            resume(graph, thread(), edit(n=1))


@pytest.mark.parametrize("mode", [0o600, 0o660, 0o666])
def test_other_users_of_a_database_can_lock_its_threads(tmp_path, mode):
    """Folder and files are open to whom the database is open to, whatever the umask."""
    path = tmp_path / "db.sqlite"
    path.touch()
    path.chmod(mode)
    with SqliteSaver.from_conn_string(str(path)) as saver:
        graph = one_call("node", None, Model(), saver)
        graph.invoke({"params": {"n": 0}}, thread())
        resume(graph, thread(), edit(n=1))
    folder = tmp_path / "db.sqlite.locks"
    # Once in some hundred answers the inbox's index is locked and tidied, too.
    assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {mode}
    assert folder.stat().st_mode & 0o777 == mode | (mode & 0o444) >> 2


def test_schemas_of_one_database_do_not_lock_each_other_out(postgres_database):
    """Two tenants with equal thread ids; within a schema one lock is still one lock."""
    with ExitStack() as stack:
        locks = []
        for schema in ("public", "tenant", "tenant"):
            dsn = f"{postgres_database}&options=-csearch_path%3D{schema}"
            saver = stack.enter_context(PostgresSaver.from_conn_string(dsn))
            saver.conn.execute("CREATE SCHEMA IF NOT EXISTS tenant")
            locks.append(ThreadLock(saver, "1"))
        try:
            assert [run_sync(lock.try_acquire()) for lock in locks] == [True, True, False]
        finally:
            for lock in locks:
                lock.release()
