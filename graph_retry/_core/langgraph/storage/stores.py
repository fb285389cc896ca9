"""One class for each kind of storage: memory, SQLite, PostgreSQL, and any other saver.

No other file knows the kinds of savers. For your own storage, register a subclass of `Store` with
`add_store`. A saver without a class of its own needs `get_tuple`, `put` and `put_writes`, and for
inboxes `list`.

LangGraph's savers for SQLite and PostgreSQL have undocumented attributes. `conn` is the connection,
or a pool for PostgreSQL. `lock` guards the connection. The async savers also have `loop`, the event
loop on which they were made. `tests/langgraph/test_saved.py` checks all four savers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, ClassVar, Protocol
from weakref import WeakSet

from langgraph.checkpoint.serde.types import INTERRUPT

from graph_retry._core.ground.functions.arguments import checked
from graph_retry._core.ground.functions.awaiting import acquired, is_sync, to_its_end
from graph_retry._core.langgraph.storage.checkpoints import (
    OpenReview,
    list_checkpoints,
    namespace_of,
    newest_checkpoint,
    place_of,
    read_checkpoint,
    thread_id_of,
    waits_for,
)


class ProcessLock(Protocol):
    """A lock that keeps other processes out, and that ends with the process that holds it."""

    def try_acquire(self) -> bool:
        """Try once, without waiting; return whether the lock is held now."""
        ...

    def release(self) -> None:
        """Release the lock, and close its connection or file. A second call changes nothing."""


class Store:
    """A storage of checkpoints. This base class works with every saver.

    The base class has no table of open reviews, so an inbox reads all threads. It locks a thread
    only within this process. A subclass can override methods to do more. In a sync program, async
    methods may await only what needs no event loop, such as `graph_retry.plugins.sync_or_async`.
    """

    savers: ClassVar[str] = ""
    """The module of the savers that this class is for, or the package of their modules."""
    keeps_reviews: bool = False
    """Whether `open` and the methods below it work, so that a listing reads only open threads."""
    knows_namespaces: bool = False
    """Whether `namespaces` costs little, so that each call may ask for them."""

    ends_with_process: bool = False
    """Whether the storage ends with this process, so that a single write cannot be lost."""

    def __init__(self, saver: Any) -> None:
        self.saver = saver

    @property
    def identity(self) -> Any:
        """The object that identifies the storage, even if LangGraph has cloned the saver."""
        shared = (getattr(self.saver, name, None) for name in ("conn", "storage"))
        return next((owned for owned in shared if owned is not None), self.saver)

    async def lock(self, thread_id: str) -> ProcessLock | None:
        """Return a thread's lock between processes; None if no other process uses the storage."""
        del thread_id
        return None

    async def is_saved(self, thread_id: str, namespace: str, checkpoint_id: str) -> bool:
        """Return whether a checkpoint would survive the death of this process."""
        place = place_of(thread_id, namespace, checkpoint_id)
        return await read_checkpoint(self.saver, place) is not None

    async def namespaces(self, thread_id: str, start: str) -> list[str]:
        """List the namespaces of a thread that begin with `start`."""
        thread: Any = {"configurable": {"thread_id": thread_id}}
        first = await list_checkpoints(self.saver, thread, filter={"source": "input"})
        return [known for known in map(namespace_of, first) if known.startswith(start)]

    async def threads(self) -> list[str]:
        """List all threads, beginning with the thread that ran last."""
        saved = await list_checkpoints(self.saver, None)
        return list(dict.fromkeys(map(thread_id_of, saved)))

    async def prepare(self) -> None:
        """Create the table of open reviews, before any model call is made and could be wasted."""

    async def open(self, review: OpenReview) -> None:
        """Store the entry of a waiting call, in place of the entry of its earlier question."""
        del review

    async def close(self, review: OpenReview) -> None:
        """Delete a review's entry, unless its call has asked a new question."""
        del review

    async def is_filled(self) -> bool:
        """Return whether `set_filled` was ever called, after all threads had been read once."""
        return False

    async def fill(self, reviews: Iterable[OpenReview]) -> None:
        """Store the reviews found by reading threads. Entries that exist are newer, and stay."""
        del reviews

    async def set_filled(self) -> None:
        """Record that the reviews of all threads, even of the oldest ones, are stored."""

    async def open_reviews(self, before: str | None, limit: int) -> list[OpenReview]:
        """List the calls that may wait, greatest `place` first."""
        del before, limit
        return []

    async def open_in(self, thread_id: str) -> set[OpenReview]:
        """Return the calls of a thread that may wait."""
        del thread_id
        return set()

    async def pauses(self) -> list[tuple[str, ...]]:
        """List the pauses (thread, checkpoint, questions) of threads without an open review."""
        return []  # So other libraries' questions are listed only beside a review.

    async def close_answered(self, review: OpenReview) -> None:
        """Delete a review's entry, unless the saved call still waits for the answer."""
        if self.keeps_reviews:
            call = await newest_checkpoint(self.saver, review.thread_id, review.namespace)
            if call is None or not waits_for(call, review.review_id):
                await self.close(review)


class MemoryStore(Store):
    """Stores checkpoints in the memory of this process."""

    savers = "langgraph.checkpoint.memory"
    knows_namespaces = ends_with_process = True

    async def namespaces(self, thread_id: str, start: str) -> list[str]:
        """List the namespaces of a thread that begin with `start`."""
        known: dict[str, Any] = self.saver.storage.get(thread_id, {})
        # If a namespace does not exist, reading it creates an empty one.
        return [each for each, saved in known.items() if saved and each.startswith(start)]


_TABLE = "graph_retry_open_reviews"
_INSERT = f"""
INSERT INTO {_TABLE} (thread_id, namespace, review_id, place) VALUES (%s, %s, %s, %s)
ON CONFLICT (thread_id, namespace) DO
"""  # noqa: S608 - a constant
_SELECT = f"SELECT thread_id, namespace, review_id, place FROM {_TABLE} "  # noqa: S608
_FILLED = OpenReview("", "", "", "")
"""A marker row, which says that all threads were read once, even older threads."""
_prepared: WeakSet[Any] = WeakSet()
"""The savers whose table is known to exist."""


class SqlStore(Store):
    """A database with LangGraph's tables, and with a table of open reviews beside them."""

    knows_namespaces = True
    find_table: ClassVar[str]
    writes: ClassVar[str]
    collation: ClassVar[str]

    def __init__(self, saver: Any) -> None:
        super().__init__(saver)
        # A shallow saver keeps no history of a thread.
        is_shallow = any(kind.__module__.endswith(".shallow") for kind in type(saver).__mro__)
        self.keeps_reviews = not is_shallow

    async def is_saved(self, thread_id: str, namespace: str, checkpoint_id: str) -> bool:
        """Look for the checkpoint's row without reading its state, whose types may need imports."""
        sql = "SELECT 1 FROM checkpoints WHERE thread_id = %s AND checkpoint_ns = %s"
        sql += " AND checkpoint_id = %s"
        return bool(await self.query(sql, thread_id, namespace, checkpoint_id))

    async def namespaces(self, thread_id: str, start: str) -> list[str]:
        """List the namespaces of a thread that begin with `start`."""
        sql = "SELECT DISTINCT checkpoint_ns FROM checkpoints WHERE thread_id = %s"
        sql += " AND substr(checkpoint_ns, 1, length(%s)) = %s"
        return [row[0] for row in await self.query(sql, thread_id, start, start)]

    async def threads(self) -> list[str]:
        """List all threads, without reading state."""
        by_age = "GROUP BY thread_id ORDER BY max(checkpoint_id) DESC"
        return [row[0] for row in await self.query(f"SELECT thread_id FROM checkpoints {by_age}")]  # noqa: S608

    async def prepare(self) -> None:
        """Create the table once per process."""
        if self.saver in _prepared:
            return
        if self.keeps_reviews and not await self.query(self.find_table, _TABLE):
            create = (
                f"\nCREATE TABLE IF NOT EXISTS {_TABLE} (\n"
                "    thread_id TEXT NOT NULL, namespace TEXT NOT NULL, review_id TEXT NOT NULL,\n"
                f"    place TEXT COLLATE {self.collation} NOT NULL UNIQUE,"
                " PRIMARY KEY (thread_id, namespace)\n)\n"
            )
            try:
                await self.query(create)
            except Exception as error:
                # If another process has just created the table, this failure is not an error.
                if not await self.query(self.find_table, _TABLE):
                    error.add_note(
                        "graph-retry lists open reviews by a table beside the checkpoints: let "
                        f"this user make tables, or make it once with\n{create}"
                    )
                    raise
        _prepared.add(self.saver)

    async def open(self, review: OpenReview) -> None:
        """Write the row of a waiting call, in place of the row of its earlier question."""
        if self.keeps_reviews:
            await self.prepare()
            again = "UPDATE SET review_id = excluded.review_id, place = excluded.place"
            await self.query(_INSERT + again, *review)

    async def close(self, review: OpenReview) -> None:
        """Delete the row of a review, unless its call has asked a new question."""
        sql = f"DELETE FROM {_TABLE} WHERE thread_id = %s AND namespace = %s AND review_id = %s"  # noqa: S608
        await self.query(sql, *review[:3])

    async def is_filled(self) -> bool:
        """Look for the marker row."""
        await self.prepare()
        return bool(await self.query(_SELECT + "WHERE place = %s", ""))

    async def fill(self, reviews: Iterable[OpenReview]) -> None:
        """Write rows found by reading threads. Existing rows are newer, and stay."""
        for review in reviews:
            await self.query(_INSERT + "NOTHING", *review)

    async def set_filled(self) -> None:
        """Write the marker row."""
        await self.fill([_FILLED])

    async def open_reviews(self, before: str | None, limit: int) -> list[OpenReview]:
        """List the calls that may wait, newest question first."""
        await self.prepare()
        page = "WHERE place > '' AND (place < %s OR %s = '') ORDER BY place DESC LIMIT "
        rows = await self.query(f"{_SELECT}{page}{limit}", before or "", before or "")
        return [OpenReview(*row) for row in rows]

    async def open_in(self, thread_id: str) -> set[OpenReview]:
        """Return the rows of a thread's calls that may wait, without reading state."""
        await self.prepare()
        rows = await self.query(_SELECT + "WHERE thread_id = %s", thread_id)
        return {OpenReview(*row) for row in rows}

    async def pauses(self) -> list[tuple[str, ...]]:
        """List the pauses of threads without an open review, by the index of checkpoints."""
        newest = "SELECT thread_id, max(checkpoint_id) AS checkpoint_id FROM checkpoints "
        newest += "WHERE checkpoint_ns = '' GROUP BY thread_id"
        sql = f"SELECT thread_id, checkpoint_id, count(*) FROM ({newest}) heads JOIN {self.writes} "  # noqa: S608
        sql += "USING (thread_id, checkpoint_id) WHERE checkpoint_ns = '' AND channel = %s "
        sql += f"AND thread_id NOT IN (SELECT thread_id FROM {_TABLE}) GROUP BY 1, 2"  # noqa: S608
        return [(thread, at, str(asked)) for thread, at, asked in await self.query(sql, INTERRUPT)]

    async def query(self, sql: str, *values: str) -> list[tuple[Any, ...]]:
        """Run one SQL statement in the database and commit; `%s` is the placeholder."""
        loop: asyncio.AbstractEventLoop | None = getattr(self.saver, "loop", None)
        if loop is None:
            return self._query(sql, values)
        if not is_sync():
            return await to_its_end(self._aquery(sql, values))
        with suppress(RuntimeError):  # Outside an event loop, `get_running_loop` raises this.
            if asyncio.get_running_loop() is loop:
                raise asyncio.InvalidStateError(
                    f"Synchronous calls to {type(self.saver).__name__} are not allowed in the OS "
                    "thread of its event loop."
                )
        return asyncio.run_coroutine_threadsafe(self._aquery(sql, values), loop).result()

    def _query(self, sql: str, values: Sequence[str]) -> list[tuple[Any, ...]]:
        raise NotImplementedError

    async def _aquery(self, sql: str, values: Sequence[str]) -> list[tuple[Any, ...]]:
        raise NotImplementedError


class SqliteStore(SqlStore):
    """A SQLite database, with a lock file per thread in a folder beside it."""

    savers = "langgraph.checkpoint.sqlite"
    writes = "writes"
    find_table = "SELECT name FROM sqlite_master WHERE name = %s"
    collation = "BINARY"

    async def lock(self, thread_id: str) -> ProcessLock | None:
        """Return the lock by a file; None for a database in memory, which has no file."""
        files = await self.query("PRAGMA database_list")
        database = next((path for _, name, path in files if name == "main"), "")
        from graph_retry._core.langgraph.storage import file_lock  # noqa: PLC0415 (as psycopg)

        return file_lock.ThreadFileLock(database, thread_id) if database else None

    def _query(self, sql: str, values: Sequence[str]) -> list[tuple[Any, ...]]:
        with self.saver.cursor() as cursor:
            return list(cursor.execute(sql.replace("%s", "?"), values).fetchall())

    async def _aquery(self, sql: str, values: Sequence[str]) -> list[tuple[Any, ...]]:
        await self.saver.setup()
        async with (
            self.saver.lock,
            self.saver.conn.execute(sql.replace("%s", "?"), values) as cursor,
        ):
            rows = await cursor.fetchall()
            await self.saver.conn.commit()
            return list(rows)


class PostgresStore(SqlStore):
    """A PostgreSQL database, with an advisory lock per thread."""

    savers = "langgraph.checkpoint.postgres"
    writes = "checkpoint_writes"
    find_table = "SELECT relname FROM pg_class WHERE oid = to_regclass(%s)"
    collation = '"C"'

    async def lock(self, thread_id: str) -> ProcessLock | None:
        """Return the advisory lock, on a connection of its own."""
        connection = await acquired(self.connect, lambda made: made.close())
        from graph_retry._core.langgraph.storage import advisory_lock  # noqa: PLC0415 (as psycopg)

        return advisory_lock.AdvisoryLock(connection, thread_id)

    def connect(self) -> Any:
        """Open a new connection with the parameters of the saver's connection or pool."""
        from psycopg import Connection  # noqa: PLC0415 (only where PostgreSQL is used)
        from psycopg.rows import tuple_row  # noqa: PLC0415

        conn, own = self.saver.conn, dict[str, Any](autocommit=True, row_factory=tuple_row)
        if hasattr(conn, "info"):
            own["password"] = conn.info.password or None
            return Connection.connect(**{**conn.info.get_parameters(), **own})
        where: Any = conn.conninfo() if callable(conn.conninfo) else conn.conninfo
        how: Any = conn.kwargs() if callable(conn.kwargs) else conn.kwargs or {}
        return Connection.connect(where, **{**how, **own})

    def _query(self, sql: str, values: Sequence[str]) -> list[tuple[Any, ...]]:
        from psycopg.rows import tuple_row  # noqa: PLC0415

        def ask(connection: Any) -> list[tuple[Any, ...]]:
            with connection.cursor(row_factory=tuple_row) as cursor:
                cursor.execute(sql, values)
                return cursor.fetchall() if cursor.description else []

        with self.saver.lock:
            if hasattr(self.saver.conn, "cursor"):  # A pool has no `cursor`.
                return ask(self.saver.conn)
            with self.saver.conn.connection() as connection:
                return ask(connection)

    async def _aquery(self, sql: str, values: Sequence[str]) -> list[tuple[Any, ...]]:
        from psycopg.rows import tuple_row  # noqa: PLC0415

        async def ask(connection: Any) -> list[tuple[Any, ...]]:
            async with connection.cursor(row_factory=tuple_row) as cursor:
                await cursor.execute(sql, values)
                return await cursor.fetchall() if cursor.description else []

        async with self.saver.lock:
            if hasattr(self.saver.conn, "cursor"):  # A pool has no `cursor`.
                return await ask(self.saver.conn)
            async with self.saver.conn.connection() as connection:
                return await ask(connection)


_STORES: list[type[Store]] = [MemoryStore, SqliteStore, PostgresStore]


@checked
def add_store(kind: type[Store]) -> None:
    """Use your own `Store` class for the checkpointer classes in its `savers`; the last one wins.

    Example:
        >>> from graph_retry.threads import Store, add_store
        >>> class FilesStore(Store):
        ...     savers = "my_files.saver"
        ...     knows_namespaces = True
        >>> add_store(FilesStore)
    """
    _STORES.insert(0, kind)


def store_of(saver: Any) -> Store:
    """Return the `Store` for a saver, found by the saver's class or its base classes."""
    for kind in type(saver).__mro__:
        for store in _STORES:
            if f"{kind.__module__}.".startswith(f"{store.savers}."):
                return store(saver)
    return Store(saver)
