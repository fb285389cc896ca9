"""The reviews that wait on a LangGraph server, asked for through `langgraph_sdk`."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from itertools import count
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from langchain_core.runnables import RunnableConfig
from langgraph.pregel.remote import RemoteGraph
from langgraph_sdk.client import LangGraphClient, SyncLangGraphClient

from graph_retry._awaiting import call, is_async
from graph_retry._langgraph.shown import intervention, namespace_in
from graph_retry._review.review import parts_of
from graph_retry._threads.graphs import get_state, on_thread
from graph_retry._threads.reviews import PendingReview, newest_first, open_reviews
from graph_retry._threads.server.runs import http_status, listed_questions

_PAGE = 100
"""Threads asked for at a time."""

_IDLE_PAGE = 1_000
"""Idle threads asked for at a time where nothing is known of them: nearly all are finished."""

_ALL_IDLE_AGAIN_S = 600.0
"""Seconds after which a client asks for all idle threads again, whenever they changed."""

_CLOCKS = timedelta(seconds=10)
"""How far the clocks of a server's processes may be apart."""

_FRESH_S = 1.0
"""Seconds a run takes at most to end once its last question is asked.

A thread that was run on later than that may show answered questions: a run was cancelled.
"""

_FIELDS = (  # the list leaves the state out
    *("thread_id", "metadata", "status", "updated_at", "state_updated_at", "interrupts"),
)

T = TypeVar("T")


@dataclass(frozen=True)
class _IdleThreads:
    """A client's knowledge of idle threads: those with questions, and the time of the last change.

    A thread becomes idle although it waits where somebody cancels a run that has not begun. No
    filter tells such a thread from finished ones, but it changes when that happens. So a client
    asks for all idle threads once in a while, and otherwise for those that have changed.
    """

    all_read_at: float
    last_change: str = ""
    asking: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def known_until(self) -> str:
        """Threads that changed after this time have to be read; empty before the first reading."""
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
    """List the reviews of all threads that wait, whatever status the server gives them.

    A thread's questions are never newer than its last save. So if only the newest reviews are
    wanted, threads are read by their last save, newest first, until the rest can only be older.
    """
    waiting: dict[tuple[str, str], PendingReview] = {}

    async def add(thread: Any) -> None:
        reviews = await _reviews_of(client, base, thread)
        waiting.update({(thread["thread_id"], each.interrupt_id): each for each in reviews})

    def wanted_since() -> str:
        """Return the time after which a review must have been asked; at first there is none."""
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
    """List all threads of a server that a graph has run on, the oldest first, with that graph."""
    places: list[tuple[RemoteGraph, RunnableConfig]] = []
    fields, order = ("thread_id", "metadata"), {"sort_by": "created_at", "sort_order": "asc"}
    search = partial(client.threads.search, select=fields, limit=_IDLE_PAGE, **order)
    for offset in count(0, _IDLE_PAGE):
        page: list[Any] = await call(partial(search, offset=offset))
        ran = [thread for thread in page if "graph_id" in (thread["metadata"] or ())]
        places += [_place(client, {}, thread) for thread in ran]
        if len(page) < _IDLE_PAGE:
            break
    return places


async def _asking_idle(client: Any, since: str) -> list[Any]:
    """List the idle threads that show a question. Those unchanged since `since` may be missing.

    Pages overlap, because threads may move from one page to the page before: if another thread
    runs during the listing, it leaves its place, and those behind it move up.
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
    """Return a search for the threads of a status, the last first."""
    order = {"sort_by": by, "sort_order": "desc"}
    return partial(client.threads.search, status=status, select=_FIELDS, limit=size, **order)


def _saved_at(thread: Any) -> str:
    """Return when the state of a thread was last saved, if the server has the time."""
    return str(thread.get("state_updated_at") or thread["updated_at"])


async def _reviews_of(client: Any, base: RunnableConfig, thread: Any) -> list[PendingReview]:
    """List the reviews of a thread, by its state where its questions alone do not tell."""
    status: str = thread["status"]
    questions = listed_questions(thread)
    asked = [value for question in questions if (value := intervention(question["value"]))]
    if "graph_id" not in (thread.get("metadata") or ()) or (
        status in ("interrupted", "idle") and not asked
    ):
        return []
    graph, config = _place(client, base, thread)
    if status != "interrupted" or not _is_fresh(thread, asked):
        return await _if_served(open_reviews(graph, config), [])
    shown: list[tuple[str, Any]] = [(each["id"], each["value"]) for each in questions]
    if any("|" in namespace_in(value) for value in asked):
        # The server may list only the last of several questions in one task.
        state = await _if_served(get_state(graph, config), None)
        shown = [(each.id, each.value) for each in state.interrupts] if state else shown
    where: dict[str, Any] = {"graph": graph, "config": config}
    return [
        PendingReview(
            interrupt_id=interrupt_id, **where, **parts_of(value, [], thread["thread_id"])
        )
        for interrupt_id, value in shown
        if intervention(value)
    ]


def _is_fresh(thread: Any, asked: list[dict[str, Any]]) -> bool:
    """Return whether the run that asked the last question was the last one to end."""
    last = max(value.get("asked_at") or "" for value in asked)
    ended = datetime.fromisoformat(str(thread["updated_at"]))
    return bool(last) and ended <= datetime.fromisoformat(last) + timedelta(seconds=_FRESH_S)


def _place(client: Any, base: RunnableConfig, thread: Any) -> tuple[RemoteGraph, RunnableConfig]:
    """Return a thread's graph, with the assistant that ran it, and its config."""
    twin: Any = {"client" if is_async(client.threads.search) else "sync_client": client}
    metadata = thread["metadata"]
    graph_id = metadata["graph_id"]
    graph = RemoteGraph(metadata.get("assistant_id") or graph_id, name=graph_id, **twin)
    return graph, on_thread(base, thread["thread_id"])


async def _if_served(reading: Awaitable[T], otherwise: T) -> T:
    """Read something of a thread, unless the server knows its graph no more: nobody can answer."""
    try:
        return await reading
    except Exception as error:
        if http_status(error) != 404:
            raise
        return otherwise
