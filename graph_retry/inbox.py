"""The inbox: every review that waits, whatever its thread, newest first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.serde.types import INTERRUPT

from graph_retry.answering import PendingReview
from graph_retry.engine.state import LOOP, loop_of
from graph_retry.flow import Ask, Flow, adrive, drive
from graph_retry.ledger import records_in
from graph_retry.review.shown import parts_of
from graph_retry.threads.reading import is_local
from graph_retry.threads.served import served_reviews
from graph_retry.threads.storage import storage_of
from graph_retry.threads.waiting import find_reviews, intervention, is_open

_PAGE = 100
"""Checkpoints read at a time."""


def list_reviews(source: Any, *, limit: int | None = None) -> list[PendingReview]:
    """List the reviews that wait in all threads, the last asked first.

    Args:
        source: A compiled graph, whose checkpointer is searched for its own reviews; or a
            checkpointer, whose reviews can only be looked at; or a client of `langgraph_sdk`,
            which lists every graph's reviews on a server, those of threads in `error` included.
        limit: Reviews to return at most (default: all).

    Example:
        >>> from graph_retry import retry_llm_call
        >>> from langgraph.checkpoint.memory import InMemorySaver
        >>> from langgraph.func import entrypoint
        >>> @entrypoint(checkpointer=InMemorySaver())
        ... def count(prompt):
        ...     return retry_llm_call(lambda given: given, prompt, output=int)
        >>> for name in ("ada", "bob"):
        ...     _ = count.invoke("many", {"configurable": {"thread_id": name}})
        >>> [(review.thread_id, review.attempt) for review in list_reviews(count)]
        [('bob', 1), ('ada', 1)]
    """
    return drive(find_all(source, limit))


async def alist_reviews(source: Any, *, limit: int | None = None) -> list[PendingReview]:
    """Do what `list_reviews` does, from async code."""
    return await adrive(find_all(source, limit))


def find_all(source: Any, limit: int | None = None) -> Flow[list[PendingReview]]:
    """List the reviews of a source, inside a flow.

    Raises:
        TypeError: If `source` is nothing that keeps threads.
    """
    saver: Any = cast("Any", source).checkpointer if is_local(source) else source
    if isinstance(saver, BaseCheckpointSaver):
        graph = source if is_local(source) else None
        return (yield from _Search(cast("Any", saver), graph, limit).run())
    if hasattr(source, "threads") and hasattr(source, "runs"):
        reviews: list[PendingReview] = yield from served_reviews(source, PendingReview)
        return _newest(reviews, limit)
    raise TypeError(
        f"`source` is {type(source).__name__}: pass a compiled graph with a checkpointer, a "
        "checkpointer, or a client that `langgraph_sdk.get_sync_client` (or `get_client`) makes."
    )


def _newest(reviews: list[PendingReview], limit: int | None) -> list[PendingReview]:
    reviews.sort(key=lambda review: review.asked_at or "", reverse=True)
    return reviews[:limit]


class _Pages:
    """A checkpointer's checkpoints of all threads, a page at a time."""

    def __init__(self, saver: BaseCheckpointSaver[Any], size: int | None) -> None:
        self._saver, self._size = saver, size

    def read(self, before: RunnableConfig | None) -> list[CheckpointTuple]:
        """Read the page before a checkpoint."""
        return list(self._saver.list(None, before=before, limit=self._size))

    async def aread(self, before: RunnableConfig | None) -> list[CheckpointTuple]:
        """Read the page before a checkpoint, from async code."""
        return [each async for each in self._saver.alist(None, before=before, limit=self._size)]


class _Search:
    """One pass over a checkpointer, from the newest checkpoint to the oldest.

    What a thread asks stands beside a checkpoint of its outermost graph; whether it is still open
    is told by the newest checkpoint of the call. An `update_state` of the outermost graph hides
    the question from LangGraph: then the checkpoint before it counts.
    """

    def __init__(self, saver: BaseCheckpointSaver[Any], graph: Any, limit: int | None) -> None:
        self._saver, self._graph, self._limit = saver, graph, limit
        self._calls: dict[tuple[str, str], dict[str, Any] | None] = {}
        self._asked: dict[tuple[str, str], Callable[..., PendingReview]] = {}
        self._wanted: dict[str, str | None] = {}
        self._updated: set[str] = set()
        self._found: list[PendingReview] = []

    def run(self) -> Flow[list[PendingReview]]:
        """Read page after page, so that no more than one is held at a time."""
        ordered = storage_of(self._saver) in ("sqlite", "postgres")  # by id, over all threads
        pages = _Pages(self._saver, _PAGE if ordered else None)
        before: RunnableConfig | None = None
        found: list[PendingReview] = []
        while True:
            page: list[CheckpointTuple] = yield Ask(pages, "read", (before,))
            page.sort(key=lambda saved: saved.checkpoint["id"], reverse=True)
            for saved in page:
                self._sort_in(saved)
            found += yield from self._looked_at()
            found = _newest(found, self._limit)
            if not ordered or len(page) < _PAGE:
                return found
            # Copied checkpoints share an id: the last one is read again, lest its twin be missed.
            last = page[-1].checkpoint["id"]
            before = {"configurable": {"checkpoint_id": f"{last}~"}}

    def _looked_at(self) -> Flow[list[PendingReview]]:
        """Take what a page gave, if it waits: an update may have been meant to start anew."""
        sure: list[PendingReview] = []
        for review in self._found:
            if review.hidden and self._graph is not None:
                open_ = yield from find_reviews(self._graph, review.config, PendingReview)
                sure += [each for each in open_ if each.review_id == review.review_id]
            else:
                sure.append(review)
        self._found = []
        return sure

    def _sort_in(self, saved: CheckpointTuple) -> None:
        here = saved.config.get("configurable", {})
        thread_id, namespace = str(here["thread_id"]), str(here.get("checkpoint_ns", ""))
        place, values = (thread_id, namespace), saved.checkpoint["channel_values"]
        if not namespace:
            self._read_questions(thread_id, saved)
        elif place not in self._calls:
            waits = LOOP in values and loop_of(values)["review"] is not None
            self._calls[place] = values if waits else None
            self._match(place)

    def _read_questions(self, thread_id: str, saved: CheckpointTuple) -> None:
        if self._wanted.setdefault(thread_id, saved.checkpoint["id"]) != saved.checkpoint["id"]:
            return
        writes = saved.pending_writes or ()
        questions = [each for write in writes if write[1] == INTERRUPT for each in write[2]]
        hides = saved.metadata.get("source") == "update" and not questions
        parent = saved.parent_config if hides else None
        before = parent and parent.get("configurable", {}).get("checkpoint_id")
        self._wanted[thread_id] = str(before) if before else None
        hidden = thread_id in self._updated
        if hides:
            self._updated.add(thread_id)
        config: RunnableConfig = {"configurable": {"thread_id": thread_id}}
        for question in questions:
            value = intervention(question.value)
            if value is None or not self._is_ours(value["checkpoint_ns"]):
                continue

            def review(
                values: dict[str, Any], value: dict[str, Any] = value, id_: str = question.id
            ) -> PendingReview:
                parts = parts_of(value, records_in(values), thread_id)
                where: Any = {"graph": self._graph, "config": config, "hidden": hidden}
                return PendingReview(interrupt_id=id_, **where, **parts)

            place = (thread_id, value["checkpoint_ns"])
            self._asked[place] = review
            self._match(place)

    def _is_ours(self, namespace: str) -> bool:
        return self._graph is None or namespace.partition(":")[0] in self._graph.nodes

    def _match(self, place: tuple[str, str]) -> None:
        """Put question and state of a call together, once both have been read."""
        values = self._calls.get(place)
        if values is None or place not in self._asked:
            return
        review = self._asked.pop(place)(values)
        self._calls[place] = None
        if is_open(values, review.review_id):
            self._found.append(review)
