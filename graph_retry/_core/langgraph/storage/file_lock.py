"""Lock a thread against other processes by an empty file beside a database file."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from hashlib import blake2s
from pathlib import Path
from typing import Any

from graph_retry.lossless._ground import as_repr

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
"""The advice for a lock file that cannot be made, by the `errno` of the error."""


class ThreadFileLock:
    """Locks a thread by an empty file in a folder beside the database. The file stays there.

    The folder and the files get the database's group and permissions, because every user of the
    database must be able to lock.
    """

    def __init__(self, database: str, thread_id: str) -> None:
        self._database, self._folder = Path(database), Path(f"{database}.locks")
        # The name is a hash, because a thread id may have characters that no file name can have.
        name = blake2s(thread_id.encode(), digest_size=16).hexdigest()
        self._path = self._folder / f"{name}.lock"
        self._lock: Any = None
        self._what = (
            f"thread {as_repr(thread_id)} cannot be locked by the file {as_repr(str(self._path))}"
        )

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
            # A soft lock, for file systems without locks, would outlive the death of its holder.
            self._lock = FileLock(self._path, mode=mode, thread_local=False, fallback_to_soft=False)
        with suppress(Timeout):
            self._lock.acquire(blocking=False)
        return bool(self._lock.is_locked)

    def _make_folder(self) -> None:
        if self._folder.is_symlink():  # Whoever made the link would choose the place of all locks.
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
