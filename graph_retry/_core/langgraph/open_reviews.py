"""A table of open reviews, beside the checkpoints, so that a listing reads only waiting threads.

A LangGraph saver cannot list the threads that wait. It lists the checkpoints of one thread or of
all. Therefore, on SQLite and PostgreSQL, each waiting call has a row in this table. The row is
written before the question is asked. It is deleted after the run has ended and the answer is saved.
A superfluous row costs one read of its thread, which deletes the row. A missing row would hide a
review. Therefore a row stays if there is any doubt. (Read in the methods of `BaseCheckpointSaver`.)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple
from weakref import WeakSet

from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

from graph_retry._core.ground.json import digest
from graph_retry._core.langgraph.checkpoints import newest_checkpoint, root_of, waits_for
from graph_retry._core.langgraph.storage import query, storage_of

TABLE = "graph_retry_open_reviews"

_CREATE = f"""
CREATE TABLE IF NOT EXISTS {TABLE} (
    thread_id TEXT NOT NULL, namespace TEXT NOT NULL, review_id TEXT NOT NULL,
    place TEXT COLLATE %s NOT NULL UNIQUE, PRIMARY KEY (thread_id, namespace)
)
"""
_COLLATIONS = {"sqlite": "BINARY", "postgres": '"C"'}
_FIND = {
    "sqlite": "SELECT name FROM sqlite_master WHERE name = %s",
    "postgres": "SELECT relname FROM pg_class WHERE oid = to_regclass(%s)",
}

_INSERT = f"""
INSERT INTO {TABLE} (thread_id, namespace, review_id, place) VALUES (%s, %s, %s, %s)
ON CONFLICT (thread_id, namespace) DO
"""  # noqa: S608 - a constant
_AGAIN = "UPDATE SET review_id = excluded.review_id, place = excluded.place"
_DELETE = f"DELETE FROM {TABLE} WHERE thread_id = %s AND namespace = %s AND review_id = %s"  # noqa: S608
_SELECT = f"SELECT thread_id, namespace, review_id, place FROM {TABLE} "  # noqa: S608
_PAGE = "WHERE place > '' AND (place < %s OR %s = '') ORDER BY place DESC LIMIT "

_ready: WeakSet[BaseCheckpointSaver[Any]] = WeakSet()


class Row(NamedTuple):
    """A call that waits for a person. `place` sorts all such calls by the time of the question."""

    thread_id: str
    namespace: str
    review_id: str
    place: str


ALL = Row("", "", "", "")
"""A marker row: all threads have been read once, including threads older than the table."""


def row_of(thread_id: str | None, namespace: str, review_id: str, asked_at: str | None) -> Row:
    """Return the row of a call that waits."""
    # The digest keeps places unique: a copied thread has the same review id and time.
    place = f"{asked_at or ''}/{review_id}/{digest(str(thread_id), namespace)}"
    return Row(thread_id or "", namespace, review_id, place)


def has_table(saver: object) -> bool:
    """Return whether a saver (on SQLite or PostgreSQL, not shallow) has a table of open reviews."""
    is_shallow = any(kind.__module__.endswith(".shallow") for kind in type(saver).__mro__)
    return storage_of(saver) in _COLLATIONS and not is_shallow


async def make_table(saver: BaseCheckpointSaver[Any]) -> None:
    """Create the table once per process, before any model call, so that an error costs nothing."""
    if saver in _ready:
        return
    if has_table(saver) and not await query(saver, _FIND[storage_of(saver)], TABLE):
        create = _CREATE % _COLLATIONS[storage_of(saver)]
        try:
            await query(saver, create)
        except Exception as error:
            # If another process has just created the table, this failure is not an error.
            if not await query(saver, _FIND[storage_of(saver)], TABLE):
                error.add_note(
                    "graph-retry lists open reviews by a table beside the checkpoints: let this "
                    f"user make tables, or make it once with\n{create}"
                )
                raise
    _ready.add(saver)


async def insert(saver: BaseCheckpointSaver[Any], row: Row) -> None:
    """Write the row of a waiting call; it replaces the row of the call's earlier question."""
    if has_table(saver):
        await make_table(saver)
        await query(saver, _INSERT + _AGAIN, *row)


async def insert_known(saver: BaseCheckpointSaver[Any], rows: Iterable[Row]) -> None:
    """Write rows found by reading all threads. Existing rows are newer, and stay."""
    for row in rows:
        await query(saver, _INSERT + "NOTHING", *row)


async def delete_answered(saver: BaseCheckpointSaver[Any], row: Row) -> None:
    """Delete the row of a review, unless the saved call still waits for its answer."""
    if has_table(saver):
        call = await newest_checkpoint(saver, row.thread_id, row.namespace)
        if call is None or not waits_for(call, row.review_id):
            await delete(saver, row)


async def delete(saver: BaseCheckpointSaver[Any], row: Row) -> None:
    """Delete the row of a review. If its call has asked a new question, that row stays."""
    await query(saver, _DELETE, *row[:3])


async def is_filled(saver: BaseCheckpointSaver[Any]) -> bool:
    """Return whether all threads have been read once, and their rows are in the table."""
    await make_table(saver)
    return bool(await query(saver, _SELECT + "WHERE place = %s", ""))


async def open_rows(saver: BaseCheckpointSaver[Any], before: str | None, limit: int) -> list[Row]:
    """List the calls that may wait, newest question first."""
    await make_table(saver)
    given = (before or "",) * 2
    return [Row(*row) for row in await query(saver, f"{_SELECT}{_PAGE}{limit}", *given)]


async def waiting_in(saver: BaseCheckpointSaver[Any], thread_id: str) -> set[Row]:
    """Return the rows of a thread's calls that may wait, without reading state."""
    await make_table(saver)
    return {Row(*row) for row in await query(saver, _SELECT + "WHERE thread_id = %s", thread_id)}


def is_over(row: Row, root: CheckpointTuple | None, call: CheckpointTuple | None) -> bool:
    """Return whether a review is closed for good, although its thread does not show the review.

    A review is closed if its call has continued, or if the thread has left the step that made the
    call (a new run of that step has a new namespace). Neither holds for a call about to ask.
    """
    if call is None or not waits_for(call, row.review_id):
        return True
    begun_from = root_of(call)
    return bool(begun_from) and root is not None and root.checkpoint["id"] > begun_from
