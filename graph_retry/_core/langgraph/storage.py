"""Run SQL in the database of a saver, for queries that LangGraph's savers have no method for.

LangGraph's savers for SQLite and PostgreSQL have undocumented attributes. `conn` is the connection,
or a pool for PostgreSQL. `lock` guards its use. The async savers also have `loop`, the event loop
on which they were made. (Read in `langgraph.checkpoint.sqlite` and `langgraph.checkpoint.postgres`;
`tests/langgraph/test_saved.py` checks all four savers.)
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Literal

from langgraph.checkpoint.base import BaseCheckpointSaver

from graph_retry._core.ground.functions.awaiting import is_sync, to_its_end

_SAVERS = "langgraph.checkpoint."

Rows = list[tuple[Any, ...]]


def storage_of(saver: object) -> Literal["memory", "sqlite", "postgres", "other"]:
    """Return where a LangGraph checkpointer, or a subclass of one, stores checkpoints."""
    for kind in type(saver).__mro__:
        storage = kind.__module__.removeprefix(_SAVERS).partition(".")[0]
        if kind.__module__.startswith(_SAVERS) and storage in ("memory", "sqlite", "postgres"):
            return storage  # type: ignore[return-value] # one of them, as the line above says
    return "other"


def shared_storage(saver: Any) -> Any:
    """Return the object that identifies a saver's storage: strict msgpack clones only the saver."""
    shared = (getattr(saver, name, None) for name in ("conn", "storage"))
    return next((owned for owned in shared if owned is not None), saver)


async def query(saver: BaseCheckpointSaver[Any], sql: str, *values: str) -> Rows:
    """Run one SQL statement in a saver's database and commit; `%s` is the placeholder."""
    if storage_of(saver) == "sqlite":
        sql = sql.replace("%s", "?")
    loop: asyncio.AbstractEventLoop | None = getattr(saver, "loop", None)
    if loop is None:
        return _query(saver, sql, values)
    if not is_sync():
        return await to_its_end(_aquery(saver, sql, values))
    with suppress(RuntimeError):  # Outside an event loop, `get_running_loop` raises this.
        if asyncio.get_running_loop() is loop:
            raise asyncio.InvalidStateError(
                f"Synchronous calls to {type(saver).__name__} are only allowed from another thread."
            )
    return asyncio.run_coroutine_threadsafe(_aquery(saver, sql, values), loop).result()


def _query(saver: Any, sql: str, values: Sequence[str]) -> Rows:
    if storage_of(saver) == "sqlite":
        with saver.cursor() as cursor:
            rows: Rows = cursor.execute(sql, values).fetchall()
            return rows
    from psycopg.rows import tuple_row  # noqa: PLC0415 (only where PostgreSQL is used)

    def ask(connection: Any) -> Rows:
        with connection.cursor(row_factory=tuple_row) as cursor:
            cursor.execute(sql, values)
            return cursor.fetchall() if cursor.description else []

    with saver.lock:
        if hasattr(saver.conn, "cursor"):  # A pool has no `cursor`.
            return ask(saver.conn)
        with saver.conn.connection() as connection:
            return ask(connection)


async def _aquery(saver: Any, sql: str, values: Sequence[str]) -> Rows:
    if storage_of(saver) == "sqlite":
        await saver.setup()
        async with saver.lock, saver.conn.execute(sql, values) as cursor:
            rows = await cursor.fetchall()
            await saver.conn.commit()
            return list(rows)
    from psycopg.rows import tuple_row  # noqa: PLC0415

    async def ask(connection: Any) -> Rows:
        async with connection.cursor(row_factory=tuple_row) as cursor:
            await cursor.execute(sql, values)
            return await cursor.fetchall() if cursor.description else []

    async with saver.lock:
        if hasattr(saver.conn, "cursor"):  # A pool has no `cursor`.
            return await ask(saver.conn)
        async with saver.conn.connection() as connection:
            return await ask(connection)


def connect(saver: Any) -> Any:
    """Open a new connection with the parameters of a PostgreSQL saver's connection or pool."""
    from psycopg import Connection  # noqa: PLC0415
    from psycopg.rows import tuple_row  # noqa: PLC0415

    conn, own = saver.conn, dict[str, Any](autocommit=True, row_factory=tuple_row)
    if hasattr(conn, "info"):
        own["password"] = conn.info.password or None
        return Connection.connect(**{**conn.info.get_parameters(), **own})
    where: Any = conn.conninfo() if callable(conn.conninfo) else conn.conninfo
    how: Any = conn.kwargs() if callable(conn.kwargs) else conn.kwargs or {}
    return Connection.connect(where, **{**how, **own})
