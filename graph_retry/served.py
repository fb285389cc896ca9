"""The reviews that wait on a LangGraph server, asked for through `langgraph_sdk`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.pregel.remote import RemoteGraph

from graph_retry.flow import Flow, Run, is_async
from graph_retry.review.shown import parts_of
from graph_retry.waiting import Waiting, intervention

_PAGE = 100
"""Threads asked for at a time."""

WaitingT = TypeVar("WaitingT", bound=Waiting)


def served_reviews(client: Any, kind: type[WaitingT]) -> Flow[list[WaitingT]]:
    """List the reviews of all threads that wait, or failed beside a review that still waits."""
    found: list[WaitingT] = []
    for status in ("interrupted", "error"):
        offset = 0
        while True:
            page: list[Any] = yield Run(
                partial(client.threads.search, status=status, limit=_PAGE, offset=offset)
            )
            for thread in page:
                questions = list(_questions(thread["interrupts"].values()))
                if not questions:  # what a thread in `error` asks is told by its state alone
                    state = yield Run(partial(client.threads.get_state, thread["thread_id"]))
                    questions = list(_questions([each["interrupts"] for each in state["tasks"]]))
                found += [_review(client, thread, *question, kind) for question in questions]
            offset += _PAGE
            if len(page) < _PAGE:
                break
    return found


def _questions(interrupts: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    for each in (question for task in interrupts for question in task):
        value = intervention(each["value"])
        if value is not None:
            yield each["id"], value


def _review(
    client: Any, thread: Any, interrupt_id: str, value: dict[str, Any], kind: type[WaitingT]
) -> WaitingT:
    twin = "client" if is_async(client.threads.search) else "sync_client"
    graph: Any = RemoteGraph(thread["metadata"]["graph_id"], **{twin: client})
    config: RunnableConfig = {"configurable": {"thread_id": thread["thread_id"]}}
    parts = parts_of(value, [], thread["thread_id"])
    return kind(interrupt_id=interrupt_id, graph=graph, config=config, **parts)
