"""The lock on a thread, which `resume` holds until the graph stops again.

A run that asks a person, and that nobody else has locked, locks its thread as well, until it ends.
An answer that comes meanwhile waits: it would run the nodes again that still run.

Within a process, the lock is a mutex. A second lock keeps other processes out: a file lock beside
a SQLite database, or an advisory lock in PostgreSQL. If the holder dies, the operating system or
the database releases this second lock.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import partial
from hashlib import blake2s
from pathlib import Path
from typing import Any, Self
from weakref import WeakValueDictionary, finalize

from graph_retry._core.ground.functions.awaiting import acquired
from graph_retry._core.ground.functions.informing import informing
from graph_retry._core.langgraph.storage import connect, query, shared_storage, storage_of

LOCK_NAME = "graph_retry:"
"""The prefix of an advisory lock's name. PostgreSQL's key is `hashtextextended(name, 0)`."""

_mutexes: WeakValueDictionary[tuple[int, str], Any] = WeakValueDictionary()
"""The mutexes of this process, by storage and thread. One disappears with its last `ThreadLock`."""

_IN_THE_WAY = "move away what stands there, which is not a lock of graph-retry"
_DENIED = "give this user the same access to that folder and its files as to the database"
_NO_LOCKS = "keep the database on a disk whose file system has locks (a network share may not)"
_NO_DESCRIPTORS = "raise the limit of open files (`ulimit -n`), or find what leaves them open"

_LOCK_TROUBLE = {
    **dict.fromkeys((errno.EACCES, errno.EPERM), _DENIED),
    errno.EROFS: "answer where this file system is mounted to be written, too",
    **dict.fromkeys((errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.ESTALE), _NO_LOCKS),
    **dict.fromkeys((errno.EMFILE, errno.ENFILE), _NO_DESCRIPTORS),
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "make room on that disk"),
    errno.ENOENT: "open the database again where it is now: what was opened was moved or deleted",
    **dict.fromkeys((errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ELOOP), _IN_THE_WAY),
}
"""The advice to a user if a lock file cannot be made, by error number."""

_asking: WeakValueDictionary[tuple[int, str], AskingRun] = WeakValueDictionary()
"""The runs of this process that hold the lock of their thread because they ask a person."""


class AskingRun:
    """A run that holds the lock of its thread until it ends, or until none of its tasks runs."""

    def __init__(self, lock: ThreadLock, is_idle: Callable[[], bool]) -> None:
        self._lock, self.is_idle = lock, is_idle

    def end(self) -> None:
        """Release the lock; a second call changes nothing."""
        with informing("the release of the lock that a run held while it asked"):
            self._lock.release()


async def hold_while_asking(
    saver: Any, thread_id: str, is_idle: Callable[[], bool]
) -> AskingRun | None:
    """Lock a thread for the run that asks; None if it is locked, as by the `resume` that runs it.

    `is_idle` tells whether no task of the run works any more. The reader of a stream may leave a
    run at that point, and answer before the run has ended.
    """
    with ExitStack() as unless_held:
        lock = unless_held.enter_context(ThreadLock(saver, thread_id))
        if not await lock.try_acquire():
            return None
        unless_held.pop_all()
    run = _asking[lock.key] = AskingRun(lock, is_idle)
    # A run whose reader has dropped its stream never ends.
    finalize(run, lock.release).atexit = False
    return run


class ThreadLock:
    """A lock on one thread in one checkpointer. Only its holder may continue the thread."""

    def __init__(self, saver: Any, thread_id: str) -> None:
        self._saver, self._thread_id = saver, thread_id
        self.key = id(shared_storage(saver)), thread_id
        self._mutex: Any = _mutexes.setdefault(self.key, threading.Lock())
        self._outside: Any = None
        self._held = ExitStack()

    def __enter__(self) -> Self:
        """Return the lock. The end of the block releases an acquired lock."""
        return self

    def __exit__(self, *raised: object) -> None:
        """Release the lock."""
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
                self._outside = await _outside_lock(self._saver, self._thread_id)
            if self._outside is not None and not await self._acquired_outside():
                return False
            self._held = taken.pop_all()
        return True

    async def _acquired_outside(self) -> bool:
        # Meanwhile the outside lock belongs to the thread that tries it. If this run is cancelled,
        # that thread releases it: a connection must not be closed while another thread uses it.
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


class _FileLock:
    """A lock by an empty file per thread, in a folder beside the database. The files stay there.

    The folder and the files get the database's group and permissions, because every user of the
    database must be able to lock.
    """

    def __init__(self, database: str, thread_id: str) -> None:
        self._database, self._folder = Path(database), Path(f"{database}.locks")
        # The name is a hash, because a thread id may have characters that no file name can have.
        name = blake2s(thread_id.encode(), digest_size=16).hexdigest()
        self._path = self._folder / f"{name}.lock"
        self._lock: Any = None
        self._what = f"thread {thread_id!r} cannot be locked by the file {str(self._path)!r}"

    def try_acquire(self) -> bool:
        try:
            self._make_folder()
            return self._acquired()
        except (OSError, NotImplementedError) as error:
            number = getattr(error, "errno", None) or errno.ENOSYS
            why = os.strerror(number)
            how = _LOCK_TROUBLE.get(number, "see to the disk")
            raise OSError(number, f"{self._what} ({why}), so nothing was written: {how}") from error

    def _acquired(self) -> bool:
        from filelock import FileLock, Timeout  # noqa: PLC0415 (only where SQLite is used)

        if self._lock is None:
            mode = self._database.stat().st_mode & 0o666
            # A soft lock, made where a file system has no locks, outlives the death of its holder.
            self._lock = FileLock(self._path, mode=mode, thread_local=False, fallback_to_soft=False)
        with suppress(Timeout):
            self._lock.acquire(blocking=False)
        return bool(self._lock.is_locked)

    def _make_folder(self) -> None:
        if self._folder.is_symlink():  # Its maker would choose where all locks are created.
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(self._folder))
        if self._folder.is_dir():
            return
        self._folder.mkdir(exist_ok=True)
        owned = self._database.stat()
        with suppress(OSError):  # Another user's process may have created the folder first.
            if hasattr(os, "chown"):
                os.chown(self._folder, -1, owned.st_gid)
            # Each user who can read the database can enter the folder. Each user who can write the
            # database can take the lock.
            self._folder.chmod(owned.st_mode & 0o666 | (owned.st_mode & 0o444) >> 2)

    def release(self) -> None:
        if self._lock is not None:
            self._lock.release()


class _AdvisoryLock:
    """A lock by PostgreSQL's advisory lock on a number.

    The lock holds a separate connection, because a pool may have no free one. The name includes
    any schema except `public`, because advisory locks belong to the whole database.
    """

    def __init__(self, connection: Any, thread_id: str) -> None:
        self._connection, self._thread_id = connection, thread_id

    def try_acquire(self) -> bool:
        schema = "coalesce(nullif(current_schema(), 'public') || '/', '')"
        query = f"SELECT pg_try_advisory_lock(hashtextextended(%s || {schema} || %s, 0))"
        named = (LOCK_NAME, self._thread_id)
        return bool(self._connection.execute(query, named).fetchone()[0])

    def release(self) -> None:
        self._connection.close()


async def _outside_lock(saver: Any, thread_id: str) -> Any:
    """Return the lock that excludes other processes; None if none of them can use this storage."""
    storage = storage_of(saver)
    if storage == "sqlite":
        files = await query(saver, "PRAGMA database_list")
        database = next((path for _, name, path in files if name == "main"), "")
        return _FileLock(database, thread_id) if database else None
    if storage == "postgres":
        connection = await acquired(partial(connect, saver), lambda made: made.close())
        return _AdvisoryLock(connection, thread_id)
    return None
