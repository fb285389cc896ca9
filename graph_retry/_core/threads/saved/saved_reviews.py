"""List the open reviews in a checkpointer, by its table of reviews or by reading all threads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any
from weakref import WeakKeyDictionary

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

from graph_retry._core.ground.functions.informing import informing
from graph_retry._core.langgraph.open_questions import namespace_in
from graph_retry._core.langgraph.storage.checkpoints import (
    OpenReview,
    is_over,
    list_checkpoints,
    namespace_of,
    newest_checkpoint,
    place_of,
    thread_id_of,
    unread,
    values_of,
    without_state,
)
from graph_retry._core.langgraph.storage.stores import store_of
from graph_retry._core.state.namespaces import is_of_other
from graph_retry._core.state.position import loop_of
from graph_retry._core.threads.reviews import (
    PendingReview,
    entry_of,
    newest_first,
    review_of,
)
from graph_retry._core.threads.saved.graphs import (
    is_local,
    may_make,
    on_thread,
    saver_of,
    shows,
)
from graph_retry._core.threads.saved.thread_state import add_others, read_newest
from graph_retry._core.threads.saved.view import ThreadView
from graph_retry.lossless._ground import as_repr

_PAGE = 100
"""Maximum rows of the table of open reviews that are read at a time."""


async def list_saved_reviews(
    saver: BaseCheckpointSaver[Any],
    graph: Any,
    base: RunnableConfig,
    *,
    before: str | None,
    limit: int | None,
    answered: bool,
) -> list[PendingReview]:
    """List the open reviews in a checkpointer, newest first; only those of `graph`, if given.

    `before` is the key of a review, and only older reviews are listed. With `answered`, the list
    includes reviews whose answer is saved but not applied.
    """
    finder = Finder(saver, graph, base, answered)
    if not await is_table_filled(saver):
        return newest_first(await finder.read_all(), before, limit)
    if before is None:
        await note_others(saver)
    reviews: list[PendingReview] = []
    # A short list reads a few threads. Rows of other graphs, and of closed reviews, need more.
    size = _PAGE if limit is None else min(limit, _PAGE)
    while limit is None or len(reviews) < limit:
        rows = await store_of(saver).open_reviews(before, size)
        reviews += await finder.read_noted(rows)
        if len(rows) < size:
            break
        before, size = rows[-1].place, min(2 * size, _PAGE)
    return newest_first(reviews, None, limit)


def to_nobody(_read: int, _threads: int) -> None:
    """Ignore the progress of filling the table of open reviews."""


async def is_table_filled(
    saver: BaseCheckpointSaver[Any], tell: Callable[[int, int], Any] = to_nobody
) -> bool:
    """Return whether a checkpointer has a table of open reviews, and fill the table if it is new.

    Filling the table reads each thread once. The thread that ran last comes first. The callback
    `tell` gets the number of threads read so far and of all threads.
    """
    store = store_of(saver)
    if store.keeps_reviews:
        with informing("the table of open reviews, without which a list reads all threads,"):
            if not await store.is_filled():
                finder = Finder(saver, None, {}, answered=True)
                threads = await store.threads()
                for number, thread_id in enumerate(threads, 1):
                    found = await finder.read_thread(thread_id)
                    await store.fill(map(entry_of, found))
                    tell(number, len(threads))
                await store.set_filled()
            return True
    return False


_without_review: WeakKeyDictionary[Any, set[tuple[str, ...]]] = WeakKeyDictionary()
"""The pauses without a review, such as a plain `interrupt()`, which later lists skip."""


async def note_others(saver: BaseCheckpointSaver[Any]) -> None:
    """Add the open questions of other libraries to the table. Those libraries add no rows."""
    store, finder = store_of(saver), Finder(saver, None, {}, answered=True)
    known, listed = _without_review.setdefault(saver, set()), await store.pauses()
    known.intersection_update(listed)
    for pause in listed:
        if pause not in known:
            found = await finder.read_thread(pause[0])
            await store.fill(map(entry_of, found))
            if not found:
                known.add(pause)


def _keep(thread: ThreadView, saved: CheckpointTuple) -> None:
    """Add a checkpoint to the view of a thread if it is the newest one of its namespace.

    The state of a call without an open review is left out, because the states of all ended calls
    would need too much memory.
    """
    namespace = namespace_of(saved)
    if namespace not in thread.newest:
        may_wait = not namespace or loop_of(values_of(saved))["review"] is not None
        thread.add(saved if may_wait else without_state(saved))


@dataclass(frozen=True)
class Finder:
    """A search for the open reviews in a checkpointer, of `graph` only, or of all graphs if None.

    With `answered`, the search also finds reviews whose answer is saved but not applied.
    """

    saver: BaseCheckpointSaver[Any]
    graph: Any
    base: RunnableConfig
    answered: bool = False

    async def read_all(self) -> list[PendingReview]:
        """Read all checkpoints, for a checkpointer that cannot list threads; return the reviews."""
        threads: defaultdict[str, ThreadView] = defaultdict(ThreadView)
        for saved in await list_checkpoints(self.saver, None):
            _keep(threads[thread_id_of(saved)], saved)
        for thread_id, thread in threads.items():
            # A saver of Redis lists the outermost graph's checkpoints under another namespace.
            root = None if thread.root else await newest_checkpoint(self.saver, thread_id, "")
            if root is not None:
                _keep(thread, root)
        found = [await self._asked_in(*each) for each in threads.items()]
        return list(chain.from_iterable(found))

    async def read_thread(self, thread_id: str) -> list[PendingReview]:
        """Read the newest checkpoints of a thread, one for each namespace; return the reviews."""
        thread = ThreadView()
        for namespace in await store_of(self.saver).namespaces(thread_id, ""):
            if (saved := await newest_checkpoint(self.saver, thread_id, namespace)) is not None:
                _keep(thread, saved)
        return await self._asked_in(thread_id, thread)

    async def _asked_in(self, thread_id: str, thread: ThreadView) -> list[PendingReview]:
        config = on_thread(self.base, thread_id)
        for interrupt, value, _ in thread.questions:
            namespace = namespace_in(value)
            # If the question's call is not in this thread, only LangGraph knows who asks.
            is_known = namespace in thread.newest or is_of_other(namespace)
            if not is_known and await shows(self.graph, config, interrupt.id):
                thread.add(unread(place_of(thread_id, namespace)))
        return self._wanted(await self._shown(thread_id, thread))

    async def read_noted(self, rows: Sequence[OpenReview]) -> list[PendingReview]:
        """Read the open reviews of some rows of the table. Delete the rows of closed reviews."""
        by_thread: defaultdict[str, list[OpenReview]] = defaultdict(list)
        for row in rows:
            if self.is_ours(row.namespace):
                by_thread[row.thread_id].append(row)
        reviews: list[PendingReview] = []
        for thread_id, known in by_thread.items():
            try:
                places = {row.namespace for row in known if not is_of_other(row.namespace)}
                thread = await read_newest(self.saver, thread_id, {"", *places})
                shown = await self._shown(thread_id, thread)
            except Exception as error:
                error.add_note(
                    f"This came of reading thread {as_repr(thread_id)}, to list its reviews."
                )
                raise
            reviews += self._wanted(shown)
            # An answered review keeps its row until the call continues, so that a sweep finds it.
            ids = {review.review_id for review in shown}
            # A different graph may have asked a question that this graph does not show.
            others = (value for _, value, _ in thread.questions if is_of_other(namespace_in(value)))
            ids |= {value["review_id"] for value in others}
            for row in known:
                call = thread.newest.get(row.namespace)
                if row.review_id not in ids and is_over(row, thread.root, call):
                    await store_of(self.saver).close(row)
        return reviews

    def is_ours(self, namespace: str) -> bool:
        """Return whether the graph may have made a call; True for every call if `graph` is None."""
        return self.graph is None or is_of_other(namespace) or may_make(self.graph, namespace)

    async def _shown(self, thread_id: str, thread: ThreadView) -> list[PendingReview]:
        config = on_thread(self.base, thread_id)
        places = {asked.id: namespace_in(value) for asked, value, _ in thread.questions}
        others = {name: place for name, place in places.items() if is_of_other(place)}
        await add_others(thread, self.graph, config, others)
        return [
            review_of(asked, self.graph, config)
            for asked in thread.asked()
            if (asked.is_open or asked.unapplied is not None)
            and (self.is_ours(asked.namespace) or not asked.is_saved)
        ]

    def _wanted(self, shown: list[PendingReview]) -> list[PendingReview]:
        return [review for review in shown if self.answered or review.unapplied is None]


async def noted_reviews(
    source: Any,
    before: str | None,
    limit: int,
    config: RunnableConfig | None = None,
    fill: Callable[[int, int], Any] | None = None,
) -> tuple[list[OpenReview], str | None] | None:
    """List one page of the table of open reviews; None if the checkpointer has no table.

    `fill` is a callback that gets the number of threads read so far and of all threads. If it is
    given, a new table is filled first.

    Returns:
        The rows that belong to the source, newest first, and the value of `before` for the next
        page. This value is None after the last page.
    """
    saver = saver_of(source)
    if saver is None:
        return None
    store = store_of(saver)
    if not (await is_table_filled(saver, fill) if fill else store.keeps_reviews):
        return None
    if not limit:  # Only the existence of the table matters here.
        return [], None
    if before is None:
        await note_others(saver)
    rows = await store.open_reviews(before, limit)
    last = rows[-1].place if rows and len(rows) == limit else None
    graph = source if is_local(source) else None
    finder = Finder(saver, graph, config or {})
    return [row for row in rows if finder.is_ours(row.namespace)], last


async def read_noted(
    source: Any, rows: Sequence[OpenReview], config: RunnableConfig | None = None
) -> list[PendingReview]:
    """Read the reviews of some rows of the table, and delete the rows of closed reviews."""
    saver, graph = saver_of(source), source if is_local(source) else None
    if saver is None:
        return []
    return await Finder(saver, graph, config or {}).read_noted(rows)
