"""List the open reviews on a LangGraph server, through `langgraph_sdk`."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from itertools import count
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from langchain_core.runnables import RunnableConfig
from langgraph.pregel.remote import RemoteGraph
from langgraph.types import Interrupt
from langgraph_sdk.client import LangGraphClient, SyncLangGraphClient

from graph_retry._core.ground.functions.calling import call, is_async
from graph_retry._core.langgraph.open_questions import interventions, namespace_in, value_in
from graph_retry._core.review.review_record import parts_of
from graph_retry._core.threads.reviews import PendingReview, newest_first, open_reviews
from graph_retry._core.threads.saved.graphs import get_state, is_addressable, on_thread
from graph_retry._core.threads.server.runs import http_status, listed_questions

_PAGE = 100
"""Number of threads in one page of a search."""

_IDLE_PAGE = 1_000
"""Number of threads in one page of the first search for idle threads, which are mostly finished."""

_ALL_IDLE_AGAIN_S = 600.0
"""Seconds after which all idle threads are searched again, even unchanged threads."""

_CLOCKS = timedelta(seconds=10)
"""Maximum difference between the clocks of a server's processes."""

_FRESH_S = 1.0
"""Maximum seconds from a run's last question to the end of the run.

A later change of a thread means that a later run was cancelled. The thread may then show answered
questions.
"""

_FIELDS = (  # The state of the threads is not requested.
    *("thread_id", "metadata", "status", "updated_at", "state_updated_at", "interrupts"),
)

T = TypeVar("T")


@dataclass(frozen=True)
class _IdleThreads:
    """The idle threads with open questions that were found through a client.

    A server sets the status of a thread to `idle` if a run is cancelled before it begins, even if
    the thread waits for a person. Finished threads have the same status. But a cancellation changes
    the thread's `updated_at`. So most searches read only the idle threads that have changed. From
    time to time, a search reads all idle threads.
    """

    all_read_at: float
    last_change: str = ""
    asking: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def known_until(self) -> str:
        """The time after which a changed thread must be read again; "" before the first search."""
        last = self.last_change
        return (datetime.fromisoformat(last) - _CLOCKS).isoformat() if last else ""


_known_idle: WeakKeyDictionary[Any, _IdleThreads] = WeakKeyDictionary()


async def list_remote_reviews(
    client: Any,
    base: RunnableConfig,
    *,
    before: str | None,
    limit: int | None,
) -> list[PendingReview]:
    """List the open reviews of all threads on a server, newest first, whatever their status.

    The threads are read in the order of their last save, newest first. A question is never newer
    than the last save of its thread. So reading stops when `limit` reviews are found, and every
    unread thread was saved before the oldest of these reviews was asked.
    """
    waiting: dict[tuple[str, str], PendingReview] = {}

    async def add(thread: Any) -> None:
        reviews = await _reviews_of(client, base, thread)
        waiting.update({(thread["thread_id"], each.interrupt_id): each for each in reviews})

    def wanted_since() -> str:
        """Return when the oldest wanted review was asked; "" while `limit` is not reached."""
        newest = newest_first([*waiting.values()], before, limit)
        return (newest[-1].asked_at or "") if newest and len(newest) == limit else ""

    for status in ("busy", "interrupted", "error"):
        search = _search(client, status, "state_updated_at", _PAGE)
        for offset in count(0, _PAGE):
            page: list[Any] = await call(partial(search, offset=offset))
            for thread in page:
                await add(thread)
            if len(page) < _PAGE or _saved_at(page[-1]) < wanted_since():
                break
    for thread in await _asking_idle(client, wanted_since()):
        if _saved_at(thread) >= wanted_since():
            await add(thread)
    return newest_first([*waiting.values()], before, limit)


async def places_on(client: Any) -> list[tuple[RemoteGraph, RunnableConfig]]:
    """List the threads on which a graph has run, oldest first, each with its graph and config."""
    places: list[tuple[RemoteGraph, RunnableConfig]] = []
    fields, order = ("thread_id", "metadata"), {"sort_by": "created_at", "sort_order": "asc"}
    search = partial(client.threads.search, select=fields, limit=_IDLE_PAGE, **order)
    for offset in count(0, _IDLE_PAGE):
        page: list[Any] = await call(partial(search, offset=offset))
        places += [_place(client, {}, thread) for thread in page if _has_run(thread)]
        if len(page) < _IDLE_PAGE:
            break
    return places


async def _asking_idle(client: Any, since: str) -> list[Any]:
    """List the idle threads that show a question. Threads unchanged since `since` may be missing.

    The pages overlap, because a thread that begins to run leaves the list, and all later threads
    move up by one.
    """
    now = time.monotonic()
    is_kept = isinstance(client, LangGraphClient | SyncLangGraphClient)
    known = _known_idle.get(client) if is_kept else None
    if known is None or now - known.all_read_at >= _ALL_IDLE_AGAIN_S:
        known = _IdleThreads(now)
    asking, last_change = dict(known.asking), known.last_change
    size = _PAGE if known.known_until else _IDLE_PAGE
    search = _search(client, "idle", "updated_at", size)
    for offset in count(0, size - size // 10):
        page: list[Any] = await call(partial(search, offset=offset))
        for thread in page:
            last_change = max(last_change, thread["updated_at"])
            asking.pop(thread["thread_id"], None)
            if listed_questions(thread):
                asking[thread["thread_id"]] = thread
        if len(page) < size or page[-1]["updated_at"] < known.known_until:
            if is_kept:
                _known_idle[client] = _IdleThreads(known.all_read_at, last_change, asking)
            break
        if page[-1]["updated_at"] < since:
            break
    return list(asking.values())


def _search(client: Any, status: str, by: str, size: int) -> Callable[..., Any]:
    """Return a search for threads with a status, sorted by the time `by`, newest first."""
    order = {"sort_by": by, "sort_order": "desc"}
    return partial(client.threads.search, status=status, select=_FIELDS, limit=size, **order)


def _saved_at(thread: Any) -> str:
    """Return the time when a thread was last saved, or changed if that time is missing."""
    return str(thread.get("state_updated_at") or thread["updated_at"])


async def _reviews_of(client: Any, base: RunnableConfig, thread: Any) -> list[PendingReview]:
    """List the open reviews of a thread. Read its state if the server's list may be outdated."""
    status: str = thread["status"]
    read = partial(value_in, at=_saved_at(thread))
    listed = listed_questions(thread)
    asked = [value for _, value in interventions(listed, read)]
    if not _has_run(thread) or (status in ("interrupted", "idle") and not asked):
        return []
    graph, config = _place(client, base, thread)
    if status != "interrupted" or not _is_fresh(thread, asked):
        return await _if_served(open_reviews(graph, config), [])
    shown: Sequence[Interrupt] = listed
    if any("|" in namespace_in(value) for value in asked):
        # The server may list only the last of several questions in one task.
        state = await _if_served(get_state(graph, config), None)
        shown = state.interrupts if state else shown
    where: dict[str, Any] = {"graph": graph, "config": config}
    return [
        PendingReview(interrupt_id=each.id, **where, **parts_of(value, [], thread["thread_id"]))
        for each, value in interventions(shown, read)
    ]


def _is_fresh(thread: Any, asked: list[dict[str, Any]]) -> bool:
    """Return whether the thread's last run is the run that asked its last question."""
    last = max(value.get("asked_at") or "" for value in asked)
    ended = datetime.fromisoformat(str(thread["updated_at"]))
    return bool(last) and ended <= datetime.fromisoformat(last) + timedelta(seconds=_FRESH_S)


def _has_run(thread: Any) -> bool:
    """Return whether a graph has run on a thread.

    The thread's metadata names the graph. A user can also write metadata, so only ids that are safe
    in a URL count.
    """
    metadata: dict[str, Any] = thread.get("metadata") or {}
    ids = [str(metadata[key]) for key in ("graph_id", "assistant_id") if metadata.get(key)]
    return "graph_id" in metadata and all(map(is_addressable, ids))


def _place(client: Any, base: RunnableConfig, thread: Any) -> tuple[RemoteGraph, RunnableConfig]:
    """Return the config of a thread, and its graph by the assistant that ran the thread."""
    twin: Any = {"client" if is_async(client.threads.search) else "sync_client": client}
    metadata = thread["metadata"]
    graph_id = metadata["graph_id"]
    graph = RemoteGraph(metadata.get("assistant_id") or graph_id, name=graph_id, **twin)
    return graph, on_thread(base, thread["thread_id"])


async def _if_served(reading: Awaitable[T], otherwise: T) -> T:
    """Return the result of `reading`; `otherwise` if the server no longer has the graph (404)."""
    try:
        return await reading
    except Exception as error:
        if http_status(error) != 404:
            raise
        return otherwise
