"""The records of open reviews, as lists of reviews hold them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig

from graph_retry._attempts import records_in
from graph_retry._langgraph.checkpoints import values_of
from graph_retry._langgraph.kept import whole
from graph_retry._langgraph.shown import namespace_in
from graph_retry._redact import shown_record
from graph_retry._review.review import Review, parts_of
from graph_retry._threads.config import check_thread, thread_of
from graph_retry._threads.graphs import check_compiled
from graph_retry._threads.reading import open_questions, reader_of
from graph_retry._threads.view import Asked


@dataclass(frozen=True, kw_only=True)
class Waiting(Review):
    """An open review, with the place where it waits.

    `graph` is None if the review was listed from a checkpointer without a graph. `unapplied`
    is an answer that is saved, but that no run has applied yet; an open review has none.
    """

    interrupt_id: str
    graph: Any = field(repr=False)
    config: RunnableConfig = field(repr=False)
    unapplied: dict[str, Any] | None = field(default=None, repr=False)

    @property
    def namespace(self) -> str:
        """The namespace of the call's state."""
        return namespace_in(self.value)


WaitingT = TypeVar("WaitingT", bound=Waiting)


async def open_reviews(graph: Any, config: RunnableConfig, kind: type[WaitingT]) -> list[WaitingT]:
    """Return a thread's open reviews. Long records in their histories may still be shortened."""
    check_compiled(graph)
    check_thread(graph, config)
    questions = await open_questions(graph, config)
    return [review_of(asked, graph, config, kind) for asked in questions]


async def whole_reviews(source: Any, reviews: Sequence[WaitingT]) -> list[WaitingT]:
    """Return reviews with whole records in their histories, where checkpoints can be read."""
    made: list[WaitingT] = []
    for review in reviews:
        where = source if review.graph is None else review.graph
        read = reader_of(where, review.thread_id, review.namespace)
        history = list(map(shown_record, await whole(review.history, read)))
        made.append(replace(review, history=history))
    return made


def review_of(asked: Asked, graph: Any, config: RunnableConfig, kind: type[WaitingT]) -> WaitingT:
    """Return the record of a question that a thread shows."""
    history = records_in(values_of(asked.call))
    where: dict[str, Any] = {"graph": graph, "config": config}
    parts = parts_of(asked.value, history, thread_of(config))
    return kind(interrupt_id=asked.interrupt_id, unapplied=asked.unapplied, **where, **parts)
