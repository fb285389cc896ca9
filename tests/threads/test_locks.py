"""Who shares a thread's lock: users of one database file, and databases of one server."""

import errno
import fcntl
import json
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from hashlib import blake2s
from pathlib import Path

import filelock  # noqa: F401 (loaded now, because the users of a test cannot read its files)
import pytest
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver

from graph_retry._core.ground.functions.awaiting import run_sync
from graph_retry._core.langgraph.storage.lock import ThreadLock
from tests.dev_server import ROOT
from tests.threads.answer_as_user import BOB, answered, ask

ADA = 60_001
"""The id of another user who need not have an account."""


@contextmanager
def acting_as(user):
    """Let the system treat this process as another user's, as only root may."""
    if os.geteuid() != 0:
        yield
        return
    group = os.getegid()
    os.setegid(user)
    os.seteuid(user)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(group)


def lock_of(saver):
    """Return the lock of a thread."""
    return ThreadLock(saver, "shared")


def test_two_users_of_a_database_lock_each_other_out():
    """Both can lock with the file that one of them made; run by root they are two users indeed."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        Path(name).chmod(0o777)  # pytest's own folders are for one user
        path = Path(name, "db.sqlite")
        path.touch()
        path.chmod(0o666)
        locks = {}
        for user in (ADA, BOB):
            with acting_as(user):
                saver = stack.enter_context(SqliteSaver.from_conn_string(str(path)))
                saver.setup()
                locks[user] = lock_of(saver)

        def is_acquired(user):
            with acting_as(user):
                return run_sync(locks[user].try_acquire())

        assert [is_acquired(user) for user in (ADA, BOB)] == [True, False]
        locks[ADA].release()
        assert [is_acquired(user) for user in (BOB, ADA)] == [True, False]
        locks[BOB].release()
        made_by = Path(f"{path}.locks").stat().st_uid
        assert made_by == (ADA if os.geteuid() == 0 else os.geteuid())


@pytest.mark.slow
def test_another_user_answers_or_is_told_what_to_do():
    """Where that user may not lock, one sentence says why, and the review still waits."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        paths = [folder / f"{kind}.sqlite" for kind in ("open", "folder", "file")]
        locks = [Path(f"{path}.locks") for path in paths]
        for path in paths:
            path.touch()
            path.chmod(0o666)
            ask(str(path))
        for made in locks[1].iterdir():
            made.unlink()
        locks[1].chmod(0o555)
        lock_file = locks[2] / f"{blake2s(b'1', digest_size=16).hexdigest()}.lock"
        lock_file.chmod(0o444)

        told = subprocess.run(
            [sys.executable, "-m", "tests.threads.answer_as_user", *map(str, paths)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        output, *refused = json.loads(told.stdout)
        assert output == {"n": 1}
        for lock, said in zip((locks[1] / lock_file.name, lock_file), refused, strict=True):
            assert "\n" not in said
            assert (
                f"thread '1' cannot be locked by the file {str(lock)!r} (Permission denied)" in said
            )
            assert said.endswith(
                "so nothing was written: give this user the same access to that folder and its "
                "files as to the database"
            )
        locks[1].chmod(0o777)
        lock_file.chmod(0o666)
        assert [answered(str(path)) for path in paths[1:]] == [{"n": 1}] * 2


@pytest.mark.parametrize("is_left_over", [False, True])
def test_a_file_system_without_locks_is_told(tmp_path, monkeypatch, is_left_over):
    """Nobody waits for a lock that cannot be, nor for a file that stays there."""

    def fail(descriptor, operation):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    with SqliteSaver.from_conn_string(str(tmp_path / "db.sqlite")) as saver:
        before, lock = lock_of(saver), lock_of(saver)
        if is_left_over:
            assert run_sync(before.try_acquire())
            before.release()
        with monkeypatch.context() as patch:
            patch.setattr(fcntl, "flock", fail)
            with pytest.raises(OSError, match=r"'shared' cannot be locked.*file system has locks"):
                run_sync(lock.try_acquire())


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.ENOLCK, "keep the database on a disk whose file system has locks"),
        (errno.ESTALE, "keep the database on a disk whose file system has locks"),
        (errno.EMFILE, "raise the limit of open files"),
        (errno.ENOSPC, "make room on that disk"),
        (errno.EIO, "see to the disk"),
    ],
)
def test_a_lock_file_that_cannot_be_opened_is_told(tmp_path, monkeypatch, number, advice):
    """The path, the system's reason and what to do."""

    def fail(path, flags, mode=0o777):
        raise OSError(number, os.strerror(number))

    with SqliteSaver.from_conn_string(str(tmp_path / "db.sqlite")) as saver:
        lock = lock_of(saver)
        with monkeypatch.context() as patch:
            patch.setattr(os, "open", fail)
            with pytest.raises(OSError, match=rf"{os.strerror(number)}.*{advice}"):
                run_sync(lock.try_acquire())
        assert run_sync(lock.try_acquire())
        lock.release()


def test_a_database_that_was_moved_is_told(tmp_path):
    """Its connection still works, but nobody else would see a lock beside the old path."""
    path = tmp_path / "db.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        saver.setup()
        path.rename(tmp_path / "elsewhere.sqlite")
        with pytest.raises(FileNotFoundError, match="open the database again where it is now"):
            run_sync(lock_of(saver).try_acquire())


def test_databases_of_one_server_do_not_lock_each_other_out(postgres_dsn, postgres_database):
    """PostgreSQL keeps its advisory locks by database: equal keys are two locks."""
    with ExitStack() as stack:
        dsns = (postgres_dsn, postgres_database, postgres_database)
        savers = [stack.enter_context(PostgresSaver.from_conn_string(dsn)) for dsn in dsns]
        locks = [lock_of(saver) for saver in savers]
        try:
            assert [run_sync(lock.try_acquire()) for lock in locks] == [True, True, False]
        finally:
            for lock in locks:
                lock.release()
