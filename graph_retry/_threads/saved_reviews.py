"""The reviews that wait in a checkpointer, found by their table or by reading all its threads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.types import Interrupt

from graph_retry._attempts import records_in
from graph_retry._langgraph.checkpoints import (
    list_checkpoints,
    newest_checkpoint,
    waits_for,
)
from graph_retry._langgraph.open_reviews import (
    Row,
    delete,
    has_table,
    insert_known,
    is_over,
    open_rows,
    row_of,
)
from graph_retry._langgraph.shown import interrupts_shown
from graph_retry._namespaces import outermost
from graph_retry._review.review import parts_of
from graph_retry._run.running import RetryGraph
from graph_retry._state import LOOP, loop_of
from graph_retry._threads.config import on_thread
from graph_retry._threads.reviews import Waiting, WaitingT, intervention, namespace_in

_PAGE = 100
"""Calls that wait, read at a time."""

_SCANNED = 500
"""Number of checkpoints read at a time without a table."""


async def list_saved_reviews(
    saver: BaseCheckpointSaver[Any],
    graph: Any,
    base: RunnableConfig,
    kind: type[WaitingT],
    *,
    before: str | None,
    limit: int | None,
) -> list[WaitingT]:
    """List what waits in a checkpointer, or what of a graph waits there, the last asked first.

    `before` is the key of a review: those asked before it are listed.
    """
    finder = Finder(saver, graph, base, kind)
    if not has_table(saver):
        return newest_first(await finder.read_all(), before, limit)
    if await open_rows(saver, None, 0) is None:
        found = await Finder(saver, None, base, kind).read_all()
        await insert_known(saver, list(map(_row, found)))
    reviews: list[WaitingT] = []
    while limit is None or len(reviews) < limit:
        rows = await open_rows(saver, before, _PAGE) or []
        reviews += await finder.read_noted(rows)
        if len(rows) < _PAGE:
            break
        before = rows[-1].place
    return newest_first(reviews, None, limit)


def newest_first(
    reviews: Sequence[WaitingT], before: str | None, limit: int | None
) -> list[WaitingT]:
    """Return a page of the reviews asked before the one with this key, newest first."""
    by_key = {key_of(review): review for review in reviews}
    older = [key for key in sorted(by_key, reverse=True) if before is None or key < before]
    return [by_key[key] for key in older[:limit]]


def key_of(review: Waiting) -> str:
    """Return the key that orders a review among all that wait."""
    return _row(review).place


def _row(review: Waiting) -> Row:
    """Return what is written down of a review that waits."""
    return row_of(review.thread_id, review.namespace, review.review_id, review.asked_at)


@dataclass
class _Thread:
    """Facts from the checkpoints of one thread, read from the newest to the oldest.

    Questions stand beside the newest checkpoint of the outermost graph; whether one is still open
    is told by the newest checkpoint of its call.
    """

    root: CheckpointTuple | None = None
    """The newest checkpoint of the outermost graph."""
    questions: dict[str, Interrupt] = field(default_factory=dict[str, Interrupt])
    """The questions by review."""
    calls: dict[str, CheckpointTuple] = field(default_factory=dict[str, CheckpointTuple])
    """The newest checkpoint of each call that waits by its own state."""
    read_calls: set[str] = field(default_factory=set[str])
    """The calls whose newest checkpoint was read."""

    def read(self, saved: CheckpointTuple) -> None:
        """Take in the next checkpoint; one that was read before changes nothing."""
        namespace = str(saved.config.get("configurable", {}).get("checkpoint_ns", ""))
        if not namespace and self.root is None:
            self._read_questions(saved)
        if namespace not in self.read_calls:
            self.read_calls.add(namespace)
            values = saved.checkpoint["channel_values"]
            if LOOP in values and loop_of(values)["review"] is not None:
                self.calls[namespace] = saved

    def _read_questions(self, saved: CheckpointTuple) -> None:
        self.root = saved
        ours = [asked for asked in interrupts_shown(saved) if intervention(asked.value)]
        self.questions = {question.value["review_id"]: question for question in ours}

    def waiting(self) -> Iterator[tuple[Interrupt, dict[str, Any]]]:
        """Yield the questions that are open, each with the state of its call."""
        for review_id, question in self.questions.items():
            values = self._open_call(namespace_in(question.value), review_id)
            if values is not None:
                yield question, values

    def _open_call(self, namespace: str, review_id: str) -> dict[str, Any] | None:
        call = self.calls.get(namespace)
        return call.checkpoint["channel_values"] if call and waits_for(call, review_id) else None

    def is_over(self, row: Row) -> bool:
        """Return whether a hidden review can never be shown again."""
        return is_over(row, self.root, self.calls.get(row.namespace))


@dataclass(frozen=True)
class Finder(Generic[WaitingT]):
    """Finds the reviews of a checkpointer that wait for the answers of one graph, or of any."""

    saver: BaseCheckpointSaver[Any]
    graph: Any
    base: RunnableConfig
    kind: type[WaitingT]

    async def read_all(self) -> list[WaitingT]:
        """Read every thread, page after page, so that no more than one is in memory at a time."""
        ordered = has_table(self.saver)  # by id, over all threads
        threads: defaultdict[str, _Thread] = defaultdict(_Thread)
        size, before, last = _SCANNED, None, ""
        while True:
            page = await list_checkpoints(
                self.saver, None, before=before, limit=size if ordered else None
            )
            page.sort(key=lambda saved: saved.checkpoint["id"], reverse=True)
            for saved in page:
                threads[str(saved.config.get("configurable", {})["thread_id"])].read(saved)
            if not ordered or len(page) < size:
                break
            # Copied checkpoints share an id: reading the last one again finds its twin.
            size = 2 * size if page[-1].checkpoint["id"] == last else size
            last = page[-1].checkpoint["id"]
            before = cast("RunnableConfig", {"configurable": {"checkpoint_id": f"{last}~"}})
        reviews: list[WaitingT] = []
        for thread_id, thread in threads.items():
            reviews += await self._waiting(thread_id, thread)
        return reviews

    async def read_noted(self, rows: Sequence[Row]) -> list[WaitingT]:
        """Read the threads of some calls, and take away the rows of reviews that are over."""
        by_thread: defaultdict[str, list[Row]] = defaultdict(list)
        for row in rows:
            if self._is_ours(row.namespace):
                by_thread[row.thread_id].append(row)
        reviews: list[WaitingT] = []
        for thread_id, known in by_thread.items():
            try:
                thread = await self._thread(thread_id, {row.namespace for row in known})
                waiting = await self._waiting(thread_id, thread)
            except Exception as error:
                error.add_note(f"This came of reading thread {thread_id!r}, to list its reviews.")
                raise
            reviews += waiting
            shown = {review.review_id for review in waiting}
            for row in known:
                if row.review_id not in shown and thread.is_over(row):
                    await delete(self.saver, row)
        return reviews

    async def _thread(self, thread_id: str, namespaces: set[str]) -> _Thread:
        thread = _Thread()
        for namespace in {"", *namespaces}:
            call = await newest_checkpoint(self.saver, thread_id, namespace)
            if call is not None:
                thread.read(call)
        return thread

    def _is_ours(self, namespace: str) -> bool:
        if self.graph is None or not namespace:
            return self.graph is None or isinstance(self.graph, RetryGraph)
        return outermost(namespace).name in self.graph.nodes

    async def _waiting(self, thread_id: str, thread: _Thread) -> list[WaitingT]:
        config = on_thread(self.base, thread_id)
        reviews: list[WaitingT] = []
        for question, values in thread.waiting():
            value = question.value
            if self._is_ours(namespace_in(value)):
                parts = parts_of(value, records_in(values), thread_id)
                where: Any = {"graph": self.graph, "config": config}
                reviews.append(self.kind(interrupt_id=question.id, **where, **parts))
        return reviews
