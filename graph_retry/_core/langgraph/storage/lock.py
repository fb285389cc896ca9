"""The lock on a thread, which `resume` holds until the graph stops again.

A run that asks a person also locks its thread until the run ends. An answer that arrives meanwhile
waits. Otherwise it would run nodes again that are still running.

Within a process, the lock is a mutex. The lock of the storage (`Store.lock`) keeps other processes
out. If the holder dies, the operating system or the database releases the lock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, Self
from weakref import WeakValueDictionary, finalize

from graph_retry._core.ground.functions.awaiting import acquired
from graph_retry._core.ground.functions.informing import informing
from graph_retry._core.langgraph.storage.stores import store_of

_mutexes: WeakValueDictionary[tuple[int, str], Any] = WeakValueDictionary()
"""The mutexes of this process, by storage and thread."""

_asking: WeakValueDictionary[tuple[int, str], AskingRun] = WeakValueDictionary()
"""The runs of this process that lock their thread because they ask a person."""


class AskingRun:
    """A run that locks its thread until the run ends, or until none of its tasks runs."""

    def __init__(self, lock: ThreadLock, is_idle: Callable[[], bool]) -> None:
        self._lock, self.is_idle = lock, is_idle

    def end(self) -> None:
        """Release the lock; a second call changes nothing."""
        with informing("the release of the lock that a run held while it asked"):
            self._lock.release()


async def hold_while_asking(
    saver: Any, thread_id: str, is_idle: Callable[[], bool]
) -> AskingRun | None:
    """Lock a thread for the run that asks a person; return None if the thread is locked already.

    `is_idle` returns whether all tasks of the run have stopped. An answer can then be applied, even
    if the run never ends because the reader of its stream has left.
    """
    with ExitStack() as unless_held:
        lock = unless_held.enter_context(ThreadLock(saver, thread_id))
        if not await lock.try_acquire():
            return None
        unless_held.pop_all()
    run = _asking[lock.key] = AskingRun(lock, is_idle)
    # If the reader of a run's stream has dropped the stream, the run never ends.
    finalize(run, lock.release).atexit = False
    return run


class ThreadLock:
    """A lock on one thread in one checkpointer. Only its holder may continue the thread."""

    def __init__(self, saver: Any, thread_id: str) -> None:
        self._store, self._thread_id = store_of(saver), thread_id
        self.key = id(self._store.identity), thread_id
        self._mutex: Any = _mutexes.setdefault(self.key, threading.Lock())
        self._outside: Any = None
        self._held = ExitStack()

    def __enter__(self) -> Self:
        """Return the lock. If it is acquired, the end of the `with` block releases it."""
        return self

    def __exit__(self, *raised: object) -> None:
        self.release()

    async def try_acquire(self) -> bool:
        """Try once to acquire the lock; return whether it succeeded.

        For PostgreSQL, this opens a separate connection, which stays open until `release`.
        """
        asking = _asking.get(self.key)
        if asking is not None and asking.is_idle():
            asking.end()
        if not self._mutex.acquire(blocking=False):
            return False
        # If the outside lock is refused or raises an error, the end of the block frees the mutex.
        with ExitStack() as taken:
            taken.callback(self._mutex.release)
            if self._outside is None:
                self._outside = await self._store.lock(self._thread_id)
            if self._outside is not None and not await self._acquired_outside():
                return False
            self._held = taken.pop_all()
        return True

    async def _acquired_outside(self) -> bool:
        # Meanwhile the outside lock belongs to the thread that tries it. If this run is cancelled,
        # that thread releases the lock, because no other thread may close a connection in use.
        outside, self._outside = self._outside, None

        def acquire() -> bool:
            with ExitStack() as on_error:
                on_error.callback(outside.release)
                is_held: bool = outside.try_acquire()
                on_error.pop_all()
            return is_held

        is_held = await acquired(acquire, lambda _: outside.release())
        self._outside = outside
        return is_held

    def release(self) -> None:
        """Release the lock, so that another holder can acquire it, and close its connection."""
        with self._held:
            if self._outside is not None:
                self._outside.release()


def pauses() -> Iterator[float]:
    """Yield the seconds to wait between tries: 0.005 at first, then doubled, at most 0.5."""
    pause = 0.005
    while True:
        yield pause
        pause = min(2 * pause, 0.5)
