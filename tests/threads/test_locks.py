"""Who shares a thread's lock: users of one database file, and databases of one server."""

import os
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path

from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver

from graph_retry._awaiting import run_sync
from graph_retry._threads.lock import ThreadLock

ADA, BOB = 60_001, 60_002
"""Ids of two users who need not have accounts."""


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
