"""The index of open reviews, by which those that wait are found among many finished threads.

No saver can list the threads that wait. So every question is noted, before it is asked, in a thread
of the checkpointer that has nothing else in it; the note is ended when the thread has gone on. A
note too many costs a look at its thread, and one too few would hide a review: so whoever reads the
index asks the thread, and in doubt a note stays.

A saver deletes whole threads alone. So notes stand on numbered shelves, a thread each: now and then
a new shelf is begun, the open notes are copied to it, and the old one is deleted with the ended
ones. Whoever has written a note looks whether its shelf is still the newest, and else writes again.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, cast
from weakref import WeakSet

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, Checkpoint, empty_checkpoint

from graph_retry._awaiting import sync_or_async
from graph_retry._json import digest
from graph_retry._langgraph.checkpoints import (
    list_checkpoints,
    newest_checkpoint,
    read_checkpoint,
    waits_for,
)
from graph_retry._state import LOOP

INDEX = "graph-retry:open-reviews"
"""The thread that tells the newest shelf, each of which is a thread of this name, `/` and a number.

Where it is deleted, the next listing reads all threads and writes the index anew.
"""

_DATABASES = ("langgraph.checkpoint.sqlite", "langgraph.checkpoint.postgres")
"""Modules of the savers that list a thread without reading the others, newest first."""

_STATUS, _NOTE = "graph_retry_status", "graph_retry_note"
_COVERAGE = "coverage"
"""The namespace of what tells whether the index covers threads that were there before it."""

_SHELF, _OLDER = "shelf", "older"
"""The namespace of what tells the newest shelf, and there the key of one that is being copied."""

MOST_COPIED = 300
"""Open notes that are copied to a new shelf at most: beside more of them ended ones cost little."""

_FEW = 100
"""Checkpoints looked at to tell whether a database is new."""

_seen: WeakSet[BaseCheckpointSaver[Any]] = WeakSet()


@dataclass(frozen=True, kw_only=True)
class Note:
    """Where a question was asked, which one, and when (ISO 8601 in UTC)."""

    thread_id: str
    namespace: str
    review_id: str
    asked_at: str

    @property
    def key(self) -> str:
        """The checkpoint that is the note; sorted by when it was asked."""
        return note_key(self.asked_at, self.review_id, self.thread_id)


def note_key(asked_at: str | None, review_id: str, thread_id: str | None) -> str:
    """Return the key of a review's note; by it the reviews of a database are in order.

    A copied thread asks the same as its original, and at the same time.
    """
    return f"{asked_at or ''}/{review_id}/{digest(str(thread_id))}"


def keeps_index(saver: BaseCheckpointSaver[Any]) -> bool:
    """Tell whether a saver has an index: it is a database's own, and not a server's."""
    modules = [kind.__module__.removesuffix(".aio") for kind in type(saver).__mro__]
    return any(module in _DATABASES for module in modules)


async def begin_index(saver: BaseCheckpointSaver[Any] | None) -> None:
    """Note at a process's first call whether its database has calls that the index may lack."""
    if saver is None or saver in _seen or not keeps_index(saver):
        return
    _seen.add(saver)
    if await newest_checkpoint(saver, INDEX, _COVERAGE) is None:
        first = await list_checkpoints(saver, None, limit=_FEW)
        calls = [saved for saved in first if LOOP in saved.checkpoint["channel_values"]]
        await cover(saver, all_threads=len(first) < _FEW and not calls)


async def covers_all(saver: BaseCheckpointSaver[Any]) -> bool:
    """Tell whether every review that waits has a note."""
    saved = await newest_checkpoint(saver, INDEX, _COVERAGE)
    return saved is not None and cast("Any", saved.metadata).get(_STATUS) == "all"


async def cover(saver: BaseCheckpointSaver[Any], *, all_threads: bool) -> None:
    """Write down whether every review that waits has a note."""
    await _write(saver, _place(_COVERAGE), _COVERAGE, {_STATUS: "all" if all_threads else "new"})


async def note_asked(saver: BaseCheckpointSaver[Any], note: Note) -> None:
    """Note a question that is asked, or asked again: then perhaps by another run of its call."""
    if not keeps_index(saver):
        return
    written, newest = -1, (await _shelves(saver))[0]
    while written != newest:
        await _write_open(saver, newest, note)
        written, newest = newest, (await _shelves(saver))[0]


async def end_note(saver: BaseCheckpointSaver[Any], note: Note) -> None:
    """End a note; the question is never asked again, or else is noted again."""
    newest, _ = await _shelves(saver)
    await _write(saver, _shelf(newest), note.key, {_STATUS: "ended"})


async def end_answered(saver: BaseCheckpointSaver[Any] | None, note: Note) -> None:
    """End the note of a review that was answered, once its thread has gone on."""
    if saver is None or not keeps_index(saver):
        return
    call = await newest_checkpoint(saver, note.thread_id, note.namespace)
    if call is None or not waits_for(call, note.review_id):
        await end_note(saver, note)


async def open_notes(saver: BaseCheckpointSaver[Any], before: str | None, limit: int) -> list[Note]:
    """List the notes of questions that may wait, the last asked first, older than key `before`."""
    after: Any = None if before is None else {"configurable": {"checkpoint_id": before}}
    newest, older = await _shelves(saver)
    notes: dict[str, Note] = {}
    for number in (newest,) if older is None else (newest, older):
        only: Any = {"filter": {_STATUS: "open"}, "before": after, "limit": limit}
        for saved in await list_checkpoints(saver, _shelf(number), **only):
            note = Note(**cast("Any", saved.metadata)[_NOTE])
            notes.setdefault(note.key, note)
    return [notes[key] for key in sorted(notes, reverse=True)][:limit]


async def begin_shelf(saver: BaseCheckpointSaver[Any]) -> None:
    """Copy the open notes to a new shelf and delete the old one; one process at a time may.

    What stops on the way is taken up by the next one: until then both shelves are read.
    """
    newest, older = await _shelves(saver)
    if len(await open_notes(saver, None, MOST_COPIED + 1)) > MOST_COPIED:
        return
    if older is None:
        newest, older = newest + 1, newest
        await _write(saver, _place(_SHELF), _SHELF, {_SHELF: newest, _OLDER: older})
    for note in await open_notes(saver, None, 2 * MOST_COPIED):
        await _write_open(saver, newest, note)
    thread = _shelf(older).get("configurable", {})["thread_id"]
    await sync_or_async(saver.delete_thread, saver.adelete_thread, thread)
    await _write(saver, _place(_SHELF), _SHELF, {_SHELF: newest, _OLDER: None})


async def _shelves(saver: BaseCheckpointSaver[Any]) -> tuple[int, int | None]:
    """Return the number of the newest shelf, and of one that is being copied to it."""
    saved = await newest_checkpoint(saver, INDEX, _SHELF)
    told: Any = {} if saved is None else saved.metadata
    return told.get(_SHELF, 0), told.get(_OLDER)


def _shelf(number: int) -> RunnableConfig:
    return {"configurable": {"thread_id": f"{INDEX}/{number}", "checkpoint_ns": ""}}


def _place(namespace: str) -> RunnableConfig:
    return {"configurable": {"thread_id": INDEX, "checkpoint_ns": namespace}}


async def _write_open(saver: BaseCheckpointSaver[Any], shelf: int, note: Note) -> None:
    place = _shelf(shelf).get("configurable", {})
    saved = await read_checkpoint(saver, {"configurable": {**place, "checkpoint_id": note.key}})
    noted = {_STATUS: "open", _NOTE: asdict(note)}
    if saved is None or any(saved.metadata.get(key) != value for key, value in noted.items()):
        await _write(saver, _shelf(shelf), note.key, noted)


async def _write(
    saver: BaseCheckpointSaver[Any], place: RunnableConfig, key: str, metadata: dict[str, Any]
) -> None:
    """Put a checkpoint without state, or another one in its stead."""
    checkpoint: Checkpoint = {**empty_checkpoint(), "id": key}
    await sync_or_async(saver.put, saver.aput, place, checkpoint, cast("Any", metadata), {})
