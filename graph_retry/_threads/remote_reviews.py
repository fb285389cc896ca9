"""The reviews that wait on a LangGraph server, asked for through `langgraph_sdk`."""

from __future__ import annotations

from collections.abc import Awaitable
from datetime import datetime, timedelta
from functools import partial
from itertools import chain, count
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.pregel.remote import RemoteGraph

from graph_retry._awaiting import call, is_async
from graph_retry._review.shown import parts_of
from graph_retry._threads.config import on_thread
from graph_retry._threads.graphs import get_state
from graph_retry._threads.remote_runs import http_status
from graph_retry._threads.reviews import Waiting, WaitingT, find_reviews, intervention
from graph_retry._threads.saved_reviews import newest_first

_PAGES = {"busy": 100, "interrupted": 100, "error": 100, "idle": 1_000}
"""Threads asked for at a time, by their status.

A thread becomes idle although it waits where somebody cancels a run that has not begun. Of idle
threads nothing is read but their questions, which finished ones do not have.
"""

_FRESH_S = 1.0
"""Seconds a run takes at most to end once its last question is asked.

A thread that was run on later than that may show answered questions: a run was cancelled.
"""

_FIELDS = (  # and not the state
    *("thread_id", "metadata", "status", "updated_at", "state_updated_at", "interrupts"),
)

T = TypeVar("T")


async def list_remote_reviews(
    client: Any,
    base: RunnableConfig,
    kind: type[WaitingT],
    *,
    before: str | None,
    limit: int | None,
) -> list[WaitingT]:
    """List the reviews of all threads that wait, whatever status the server gives them.

    A thread has asked nothing after its state was last saved: so where only the newest reviews are
    wanted, threads are read from the last saved on, until none can have asked later than those.
    """
    waiting: dict[tuple[str, str], WaitingT] = {}
    for status, size in _PAGES.items():
        search = partial(client.threads.search, status=status, select=_FIELDS, limit=size)
        search = partial(search, sort_by="state_updated_at", sort_order="desc")
        for offset in count(0, size):
            page: list[Any] = await call(partial(search, offset=offset))
            for thread in page:
                reviews = await _reviews_of(client, base, thread, kind)
                waiting |= {(thread["thread_id"], each.interrupt_id): each for each in reviews}
            newest = newest_first([*waiting.values()], before, limit)
            if len(page) < size or (len(newest) == limit and _asked_after(newest[-1], page[-1])):
                break
    return newest_first([*waiting.values()], before, limit)


def _asked_after(review: Waiting, thread: Any) -> bool:
    """Tell whether a review was asked after a thread was last saved."""
    return (review.asked_at or "") > str(thread.get("state_updated_at") or "~")


async def _reviews_of(
    client: Any, base: RunnableConfig, thread: Any, kind: type[WaitingT]
) -> list[WaitingT]:
    """List the reviews of a thread, by its state where its questions alone do not tell."""
    status: str = thread["status"]
    by_task: dict[str, list[Any]] = thread.get("interrupts") or {}
    questions = list(chain.from_iterable(by_task.values()))
    asked = [value for question in questions if (value := intervention(question["value"]))]
    if "graph_id" not in (thread.get("metadata") or ()) or (
        status in ("interrupted", "idle") and not asked
    ):
        return []
    graph, config = _place(client, base, thread)
    if status != "interrupted" or not _is_fresh(thread, asked):
        return await _if_served(find_reviews(graph, config, kind), [])
    shown: list[tuple[str, Any]] = [(each["id"], each["value"]) for each in questions]
    if any("|" in value["checkpoint_ns"] for value in asked):
        # Of several questions in one task the server may list the last one only.
        state = await _if_served(get_state(graph, config), None)
        shown = [(each.id, each.value) for each in state.interrupts] if state else shown
    where: dict[str, Any] = {"graph": graph, "config": config}
    return [
        kind(interrupt_id=interrupt_id, **where, **parts_of(value, [], thread["thread_id"]))
        for interrupt_id, value in shown
        if intervention(value)
    ]


def _is_fresh(thread: Any, asked: list[dict[str, Any]]) -> bool:
    """Tell whether the run that asked the last question was the last one to end."""
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
