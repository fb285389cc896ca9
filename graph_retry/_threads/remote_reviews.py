"""The reviews that wait on a LangGraph server, asked for through `langgraph_sdk`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import chain
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.pregel.remote import RemoteGraph

from graph_retry._awaiting import call, is_async
from graph_retry._review.shown import parts_of
from graph_retry._threads.config import on_thread
from graph_retry._threads.remote_runs import http_status
from graph_retry._threads.reviews import Waiting, find_reviews, intervention

_PAGE = 100
"""Threads asked for at a time."""

_FIELDS = ("thread_id", "metadata", "interrupts")  # and not what the thread's graph keeps

WaitingT = TypeVar("WaitingT", bound=Waiting)


async def list_remote_reviews(
    client: Any, base: RunnableConfig, kind: type[WaitingT]
) -> list[WaitingT]:
    """List the reviews of all threads that wait, or failed beside a review that still waits."""
    waiting: dict[str, WaitingT] = {}
    search = client.threads.search
    for status in ("interrupted", "error"):
        offset = 0
        while True:
            page: list[Any] = await call(
                partial(search, status=status, select=_FIELDS, limit=_PAGE, offset=offset)
            )
            for thread in page:
                graph, config = _place(client, base, thread)
                if status == "error":  # only its state tells what it asks, and what is answered
                    reviews = await _still_asked(graph, config, kind)
                else:
                    reviews = list(_asked(thread, graph, config, kind))
                waiting |= {review.interrupt_id: review for review in reviews}
            offset += _PAGE
            if len(page) < _PAGE:
                break
    return list(waiting.values())


def _place(client: Any, base: RunnableConfig, thread: Any) -> tuple[RemoteGraph, RunnableConfig]:
    """Return a thread's graph, with the assistant that ran it, and its config."""
    twin: Any = {"client" if is_async(client.threads.search) else "sync_client": client}
    metadata = thread["metadata"]
    graph_id = metadata["graph_id"]
    graph = RemoteGraph(metadata.get("assistant_id") or graph_id, name=graph_id, **twin)
    return graph, on_thread(base, thread["thread_id"])


async def _still_asked(
    graph: RemoteGraph, config: RunnableConfig, kind: type[WaitingT]
) -> list[WaitingT]:
    try:
        return await find_reviews(graph, config, kind)
    except Exception as error:
        if http_status(error) != 404:
            raise
        return []  # the server knows the graph no more, so nobody can answer


def _asked(
    thread: Any, graph: RemoteGraph, config: RunnableConfig, kind: type[WaitingT]
) -> Iterator[WaitingT]:
    for question in chain.from_iterable(thread["interrupts"].values()):
        value = intervention(question["value"])
        if value is not None:
            parts = parts_of(value, [], thread["thread_id"])
            yield kind(interrupt_id=question["id"], graph=graph, config=config, **parts)
