"""An answer, a sweep, a listing or a rewind that is cancelled at any moment blocks nobody."""

import asyncio
import itertools
import threading
import types
from contextlib import AsyncExitStack

import pytest
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from graph_retry import StaleDecision, aresume, edit
from graph_retry._core.langgraph.storage.lock import ThreadLock
from graph_retry._core.langgraph.storage.stores import store_of
from graph_retry.threads import aattempts_of, aexpire_reviews, alist_reviews, arewind
from tests.loops import Model, one_call, thread

_WAIT = 10.0
"""The most seconds that whoever comes next waits: a lock that stays would last for ever."""


@types.coroutine
def suspended(steps, number):
    """Run a coroutine, and cancel its task at its suspension of that number, counted from 1."""
    try:
        sent = steps.send(None)
        for count in itertools.count(1):
            if count == number:
                asyncio.current_task().cancel()
            try:
                received = yield sent
            except BaseException as error:  # noqa: BLE001 - handed on
                sent = steps.throw(error)
            else:
                sent = steps.send(received)
    except StopIteration as stop:
        return stop.value


async def is_cancelled(steps, number, kept):
    """Run a coroutine that is cancelled at a suspension; return whether it had got there.

    The error keeps the frames of the coroutine. A lock must not stay until they are collected.
    """

    async def run():
        await suspended(steps, number)

    try:
        await asyncio.create_task(run())
    except asyncio.CancelledError as error:
        kept.append(error)
        return True
    return False


@pytest.fixture(params=["sqlite", "postgres"])
def saver_again(request, mode, tmp_path):
    """Return a function that opens the storage once more, as another process would."""
    if request.param == "sqlite":
        kind, place = AsyncSqliteSaver, str(tmp_path / "checkpoints.sqlite")
    else:
        kind, place = AsyncPostgresSaver, request.getfixturevalue("postgres_database")
    with mode.opened(AsyncExitStack()) as stack:
        yield lambda: mode.run(lambda: stack.enter_async_context(kind.from_conn_string(place)))


def answering(graph, config):
    return aresume(graph, config, edit(n=2))


def sweeping(graph, _config):
    return aexpire_reviews(graph)


def listing(graph, _config):
    return alist_reviews(graph)


async def going_back(graph, config):
    (ledger,) = await aattempts_of(graph, config)
    return await arewind(graph, config, ledger, attempt=1, params={"n": 2})


async def finished(graph, config):
    """Bring a thread to its end, as somebody does who comes next; return its output."""
    while (state := await graph.aget_state(config)).next:
        shown = [each for each in state.interrupts if each.value["review_id"]]
        answers = {each.value["review_id"]: edit(n=2) for each in shown}
        try:
            await aresume(graph, config, answers=answers or None, wait=_WAIT)
        except StaleDecision:  # It was answered before the cancellation.
            await aresume(graph, config, wait=_WAIT)
    return state.values["output"]


@pytest.mark.parametrize("mode", ["async"], indirect=True)
@pytest.mark.parametrize("offset", range(4))
@pytest.mark.parametrize("verb", [answering, sweeping, listing, going_back])
@pytest.mark.slow
def test_a_cancelled_verb_keeps_no_lock(verb, offset, form, mode, saver_again):
    """Cancelled at each of its suspensions; another connection then finishes the thread."""
    model, kept = Model(goal=2), []
    options = {"expires_after": 1e-9, "default_decision": edit(n=2)}
    mine, other = (
        one_call(form, mode, model, saver_again(), **(options if verb is sweeping else {}))
        for _ in range(2)
    )

    async def one(number):
        config = thread(f"at {number}")
        await mine.ainvoke({"params": {"n": 0}}, config)
        if verb is going_back:
            await aresume(mine, config, edit(n=3))
        is_cut = await is_cancelled(verb(mine, config), number, kept)
        assert await finished(other, config) in ({"n": 2}, {"n": 3})
        return is_cut

    mode.run(lambda: alist_reviews(other))  # The first listing reads every thread.
    numbers = itertools.count(1 + offset, 4)
    cut = list(itertools.takewhile(lambda number: mode.run(lambda: one(number)), numbers))
    assert len(cut) >= 1


@pytest.mark.parametrize("mode", ["async"], indirect=True)
def test_a_lock_that_comes_after_the_cancellation_is_freed(mode, saver_again, monkeypatch):
    """The worker thread of the cancelled answer gets the lock, which nobody waits for any more."""
    begun, may_go_on = threading.Event(), threading.Event()
    saver, other = saver_again(), saver_again()
    lock, made = ThreadLock(saver, "1"), mode.run(lambda: store_of(saver).lock("1"))
    made.release()
    kind, tries = type(made), type(made).try_acquire

    def slow(own):
        begun.set()
        may_go_on.wait(_WAIT)
        return tries(own)

    async def cancelled_meanwhile():
        with monkeypatch.context() as patch, lock:
            patch.setattr(kind, "try_acquire", slow)
            trying = asyncio.create_task(lock.try_acquire())
            await asyncio.to_thread(begun.wait, _WAIT)
            trying.cancel()
            await asyncio.wait([trying])
        may_go_on.set()
        with ThreadLock(other, "1") as free:
            async with asyncio.timeout(_WAIT):
                while not await free.try_acquire():  # noqa: ASYNC110
                    await asyncio.sleep(0)
        return trying.cancelled()

    assert mode.run(cancelled_meanwhile)
