"""List the reviews that wait in a checkpointer, by its table of open reviews or by a full scan."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

from graph_retry._core.ground.functions.informing import informing
from graph_retry._core.langgraph.checkpoints import (
    list_checkpoints,
    namespace_of,
    place_of,
    thread_id_of,
    unread,
    values_of,
    without_state,
)
from graph_retry._core.langgraph.open_reviews import (
    Row,
    delete,
    has_table,
    insert_known,
    is_over,
    open_rows,
)
from graph_retry._core.langgraph.shown import namespace_in
from graph_retry._core.state.position import loop_of
from graph_retry._core.threads.reviews import (
    PendingReview,
    newest_first,
    review_of,
    row_of_review,
)
from graph_retry._core.threads.saved.graphs import may_make, on_thread, shows
from graph_retry._core.threads.saved.reading import read_newest
from graph_retry._core.threads.saved.view import ThreadView

_PAGE = 100
"""The most rows of the table that are read at a time."""

_SCANNED = 500
"""Checkpoints that a full scan reads at a time."""


async def list_saved_reviews(
    saver: BaseCheckpointSaver[Any],
    graph: Any,
    base: RunnableConfig,
    *,
    before: str | None,
    limit: int | None,
    answered: bool,
) -> list[PendingReview]:
    """List the open reviews in a checkpointer (only those of `graph`, if given), newest first.

    If `before` is given, only reviews that were asked before the review with that key are listed.
    With `answered`, the list includes reviews whose answers are saved and not applied yet.
    """
    finder = Finder(saver, graph, base, answered)
    if not await is_table_filled(saver):
        return newest_first(await finder.read_all(), before, limit)
    reviews: list[PendingReview] = []
    # A short list reads a few threads. Rows of other graphs, and of closed reviews, need more.
    size = _PAGE if limit is None else min(limit, _PAGE)
    while limit is None or len(reviews) < limit:
        rows = await open_rows(saver, before, size) or []
        reviews += await finder.read_noted(rows)
        if len(rows) < size:
            break
        before, size = rows[-1].place, min(2 * size, _PAGE)
    return newest_first(reviews, None, limit)


async def is_table_filled(saver: BaseCheckpointSaver[Any]) -> bool:
    """Return whether a saver has its table of open reviews; the first listing fills the table."""
    if has_table(saver):
        with informing("the table of open reviews, without which a list reads all threads,"):
            if await open_rows(saver, None, 0) is None:
                found = await Finder(saver, None, {}, answered=True).read_all()
                await insert_known(saver, list(map(row_of_review, found)))
            return True
    return False


def _keep(thread: ThreadView, saved: CheckpointTuple) -> None:
    """Add a checkpoint if it is the newest of its namespace; drop the state of a call that ended.

    The states of all ended calls together would need too much memory.
    """
    namespace = namespace_of(saved)
    if namespace not in thread.newest:
        may_wait = not namespace or loop_of(values_of(saved))["review"] is not None
        thread.add(saved if may_wait else without_state(saved))


@dataclass(frozen=True)
class Finder:
    """Finds the open reviews of one graph in a checkpointer, or of every graph if `graph` is None.

    With `answered`, it also finds reviews whose answers are saved and not applied yet.
    """

    saver: BaseCheckpointSaver[Any]
    graph: Any
    base: RunnableConfig
    answered: bool = False

    async def read_all(self) -> list[PendingReview]:
        """Scan all threads in pages of checkpoints, so that only one page is in memory."""
        ordered = has_table(self.saver)  # Savers with a table of reviews sort threads by id.
        threads: defaultdict[str, ThreadView] = defaultdict(ThreadView)
        size, before, last = _SCANNED, None, ""
        while True:
            # A saver that sorts by nothing is read at once, and need not know the two options.
            part: dict[str, Any] = {"before": before, "limit": size} if ordered else {}
            page = await list_checkpoints(self.saver, None, **part)
            page.sort(key=lambda saved: saved.checkpoint["id"], reverse=True)
            for saved in page:
                _keep(threads[thread_id_of(saved)], saved)
            if not ordered or len(page) < size:
                break
            # A copied thread has the same checkpoint ids as its original. A page may end between
            # two equal ids. Therefore the next page starts with the last id of this page.
            size = 2 * size if page[-1].checkpoint["id"] == last else size
            last = page[-1].checkpoint["id"]
            before = cast("RunnableConfig", {"configurable": {"checkpoint_id": f"{last}~"}})
        reviews: list[PendingReview] = []
        for thread_id, thread in threads.items():
            for interrupt, value, _ in thread.questions:
                place = place_of(thread_id, namespace_in(value))
                # Only LangGraph knows whose question it is if its call is not in this thread.
                if namespace_in(value) not in thread.newest and (
                    await shows(self.graph, on_thread(self.base, thread_id), interrupt.id)
                ):
                    thread.add(unread(place))
            reviews += self._wanted(self._shown(thread_id, thread))
        return reviews

    async def read_noted(self, rows: Sequence[Row]) -> list[PendingReview]:
        """Read the open reviews of some rows; delete the rows whose reviews are closed."""
        by_thread: defaultdict[str, list[Row]] = defaultdict(list)
        for row in rows:
            if self.is_ours(row.namespace):
                by_thread[row.thread_id].append(row)
        reviews: list[PendingReview] = []
        for thread_id, known in by_thread.items():
            try:
                thread = await read_newest(
                    self.saver, thread_id, {"", *(row.namespace for row in known)}
                )
                shown = self._shown(thread_id, thread)
            except Exception as error:
                error.add_note(f"This came of reading thread {thread_id!r}, to list its reviews.")
                raise
            reviews += self._wanted(shown)
            # An answered review keeps its row until the call continues, so that a sweep finds it.
            ids = {review.review_id for review in shown}
            for row in known:
                call = thread.newest.get(row.namespace)
                if row.review_id not in ids and is_over(row, thread.root, call):
                    await delete(self.saver, row)
        return reviews

    def is_ours(self, namespace: str) -> bool:
        """Return whether a call belongs to the graph; every call does if there is no graph."""
        return self.graph is None or may_make(self.graph, namespace)

    def _shown(self, thread_id: str, thread: ThreadView) -> list[PendingReview]:
        config = on_thread(self.base, thread_id)
        return [
            review_of(asked, self.graph, config)
            for asked in thread.asked()
            if (asked.is_open or asked.unapplied is not None)
            and (self.is_ours(asked.namespace) or not asked.is_saved)
        ]

    def _wanted(self, shown: list[PendingReview]) -> list[PendingReview]:
        return [review for review in shown if self.answered or review.unapplied is None]
