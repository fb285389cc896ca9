"""The open reviews of a source as short rows in memory, so that a page need not read all threads.

A look is one reading of the source, which brings the rows up to date. It runs in a task of its own.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable, Container, Coroutine, Iterable, Mapping
from functools import partial
from heapq import nlargest
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from langchain_core.runnables import RunnableConfig

from graph_retry._awaiting import run_async, run_sync
from graph_retry._langgraph.open_reviews import Row as TableRow
from graph_retry._langgraph.shown import namespace_in
from graph_retry._threads.config import check_placeless
from graph_retry._threads.graphs import is_remote, saver_of
from graph_retry._threads.resuming import resuming
from graph_retry._threads.reviews import open_reviews, whole_reviews
from graph_retry.answering import PendingReview
from graph_retry.history import ledgers_in, thread_ledgers
from graph_retry.inbox import find_all, noted_reviews, read_noted
from graph_retry.ledger import Ledger
from graph_retry.notifications import address_key, key_of
from graph_retry.web.rows import Row, Rows, row_of, thread_key
from graph_retry.web.safety import Access

PAGE = 100
"""Number of reviews that are read at a time."""

LISTED = 500
"""Number of rows of the table of open reviews that are listed at a time."""

AGAIN = 25
"""Number of known reviews that each look reads again, those with the oldest reading first."""

FRESH_S = 1.0
"""Seconds after a look in which no new look begins."""

FIRST_S = 2.0
"""Seconds that a page waits for the first look, which continues in the background."""

NEWS_S = 0.25
"""Seconds that a page waits for a later look."""

OVER = 1_000
"""Number of closed reviews that are remembered, for people who still have them on their screen."""

T = TypeVar("T")


class _Page(NamedTuple):
    """A page of the table: its end (None for the last page), and whether a row was known before."""

    end: str | None
    has_known: bool


class Waiting:
    """The open reviews of a source, as short rows.

    The first look reads everything, the newest reviews first. A later look at a database costs the
    same, however many reviews wait. It lists the newest rows in the table of open reviews and a
    further part of the older ones, in turn. Then it reads the threads of new rows. A look at a
    server, or at a storage without this table, always reads everything. The pause before the next
    look is as long as this look took. The page of one review always reads its thread.

    Args:
        source: The source, as in `list_reviews`.
        config: The config, as in `list_reviews`.
    """

    def __init__(self, source: Any, config: RunnableConfig | None = None) -> None:
        self.is_whole = False
        self.source, self._base = source, check_placeless(config)
        self.rows = Rows()
        self._noted: dict[str, TableRow] = {}
        self._listed_to: str | None = None
        self._over: dict[str, PendingReview] = {}
        self._is_sync: bool | None = None
        self._looking: asyncio.Task[None] | None = None
        self._look_at = 0.0

    @property
    def can_answer(self) -> bool:
        """Whether the source can resume threads. A checkpointer alone cannot."""
        return saver_of(self.source) is not self.source

    def alike(self, key: str, access: Access) -> list[Row]:
        """List the reviews that are like one review, which comes first; none if it is unknown."""
        return [row for row in self.rows.alike(key) if access.sees(row.review)]

    def in_thread(self, thread: str, access: Access) -> list[Row]:
        """List the known open reviews of a thread, by the thread's key in addresses."""
        return [row for row in self.rows.of_thread(thread) if access.sees(row.review)]

    async def refresh(self) -> None:
        """Look at the source, unless the last look is recent. Do not wait for a long look."""
        if self._looking is None or (self._looking.done() and time.monotonic() >= self._look_at):
            self._looking = asyncio.create_task(self._look())
        await asyncio.wait({self._looking}, timeout=NEWS_S if self.is_whole else FIRST_S)
        if self._looking.done():
            self._looking.result()

    async def find(self, key: str, access: Access) -> list[PendingReview]:
        """Return a review as it is now, then others of its thread; nothing if it is closed."""
        found = await self._find(key)
        seen = [review for review in found if access.sees(review)]
        return seen if seen and key_of(seen[0]) == key else []

    async def asked_again(
        self, key: str, access: Access
    ) -> tuple[PendingReview, PendingReview] | None:
        """Return a closed review and the open review that asks the same question, or None.

        A question about the same attempt is asked again, as a new review, after somebody deferred
        or assigned the first one, and after an answer was refused.
        """
        before = self._over.get(key)
        if before is None or not access.sees(before):
            return None
        place = (namespace_in(before.value), before.attempt)
        for review in await self.of_thread(before):
            if (namespace_in(review.value), review.attempt) == place:
                return before, review
        return None

    async def _find(self, key: str) -> list[PendingReview]:
        await self.refresh()
        while not (key in self.rows.by_key or key in self._noted or self.is_whole):
            await self.refresh()
        row = self.rows.by_key.get(key)
        first = [row.review] if row else await self._read_one(key)
        if not first:
            return []
        found = await self.of_thread(first[0])
        if key not in {key_of(review) for review in found}:
            # LangGraph shows some questions only after the earlier ones are answered.
            found += await self._read_one(key)
        if key not in {key_of(review) for review in found}:
            self.drop(key)
            return []
        return sorted(found, key=lambda review: key_of(review) != key)

    async def of_thread(self, row: PendingReview) -> list[PendingReview]:
        """Read a thread's open reviews; from a checkpointer alone, only the given review."""
        if row.graph is None:
            return await self._read_one(key_of(row))
        shown = await self._drive(open_reviews, row.graph, row.config, PendingReview)
        found = await self._drive(whole_reviews, row.graph, shown)
        self._take(found)
        return found

    async def _read_one(self, key: str) -> list[PendingReview]:
        """Read one review with its whole history; nothing if it is closed."""
        if key in self._noted:
            found = await self._read_noted([key])
        elif key in self.rows.by_key:
            found = [review for review in await self._all() if key_of(review) == key]
        else:
            return []
        return await self._drive(whole_reviews, self.source, found)

    async def answer(self, row: PendingReview, answers: Mapping[str, Any], context: Any) -> Any:
        """Resume a thread with answers by review id."""
        run = partial(resuming, context=context)
        return await self._drive(run, row.graph, row.config, None, answers)

    async def ledgers(self, thread_id: str | None) -> list[Ledger]:
        """Read the ledgers of a thread."""
        rows = self.rows.of_thread(thread_key(thread_id))
        if rows and is_remote(rows[0].review.graph):
            return await self._drive(thread_ledgers, rows[0].review.graph, rows[0].review.config)
        return await self._drive(_ledgers_of, self.source, str(thread_id))

    def drop(self, key: str) -> None:
        """Move a review from the open ones to the closed ones."""
        self._noted.pop(key, None)
        if (row := self.rows.pop(key)) is not None:
            self._over[key] = row.review
            if len(self._over) > OVER:
                self._over.pop(next(iter(self._over)))

    def _take(self, reviews: list[PendingReview]) -> None:
        for review in reviews:
            self.rows.put(row_of(review))

    async def _look(self) -> None:
        began, tried = time.monotonic(), set[str]()
        while await self._list_newest():
            new = [key for key in self._noted if not (key in self.rows.by_key or key in tried)]
            if not new:
                await self._list_older()
                await self._read_part(list(islice(self.rows.by_key, AGAIN)))
                break
            part = nlargest(PAGE, new, key=lambda key: self._noted[key].place)
            await self._read_part(part)
            tried.update(part)
        else:
            await self._look_at_all()
        took = time.monotonic() - began if self.is_whole else 0.0
        self.rows.version += not self.is_whole
        self.is_whole, self._look_at = True, time.monotonic() + max(FRESH_S, took)

    async def _list_newest(self) -> bool:
        """List the rows of the table down to a known one; return False if there is no table."""
        page = await self._list(None)
        while page and page.end and not page.has_known:
            page = await self._list(page.end)
        if page and self._listed_to is None:
            self._listed_to = page.end
        return page is not None

    async def _list_older(self) -> None:
        """List the next part of the older rows; after the last part, begin again."""
        if self._listed_to is not None:
            page = await self._list(self._listed_to)
            self._listed_to = page and page.end

    async def _list(self, before: str | None) -> _Page | None:
        """List a page of the table, and drop the known reviews that are no longer in this page."""
        listed = await self._drive(noted_reviews, self.source, before, LISTED, self._base)
        if listed is None:
            return None
        rows, end = listed
        page = {address_key(row.thread_id, row.review_id): row for row in rows}
        has_known = any(key in self._noted for key in page)
        for key, row in [*self._noted.items()]:
            is_covered = (end or "") <= row.place and (before is None or row.place < before)
            if is_covered and key not in page:
                self.drop(key)
        self._noted.update(page)
        return _Page(end, has_known)

    async def _read_part(self, keys: list[str]) -> None:
        """Read some reviews of the table, and drop those that are closed."""
        found = await self._read_noted(keys)
        shown = {key_of(review) for review in found}
        for key in keys:
            if key not in shown:
                self.drop(key)
        self._take(found)

    async def _look_at_all(self) -> None:
        if not self.is_whole:
            self._take(await self._all(limit=PAGE))  # One page is shown until all rows are read.
        found = await self._all()
        self._drop_all_but({key_of(review) for review in found})
        self._take(found)

    def _drop_all_but(self, known: Container[str]) -> None:
        for key in [key for key in self.rows.by_key if key not in known]:
            self.drop(key)

    async def _read_noted(self, keys: Iterable[str]) -> list[PendingReview]:
        rows = [self._noted[key] for key in keys if key in self._noted]
        return await self._drive(read_noted, self.source, rows, self._base)

    async def _all(self, limit: int | None = None) -> list[PendingReview]:
        return await self._drive(find_all, self.source, limit, None, self._base)

    async def _drive(self, flow: Callable[..., Coroutine[Any, Any, T]], *args: Any) -> T:
        """Run a coroutine of this package, in a thread if the source has only sync methods."""
        if await self.is_for_sync():
            return await asyncio.to_thread(lambda: run_sync(flow(*args)))
        return await run_async(flow(*args))

    async def is_for_sync(self) -> bool:
        """Return whether the source has only sync methods."""
        if self._is_sync is None:
            self._is_sync = await _is_sync_only(self.source)
        return self._is_sync


async def _ledgers_of(source: Any, thread_id: str) -> list[Ledger]:
    return [ledger async for ledger in ledgers_in(source, [thread_id])]


async def _is_sync_only(source: Any) -> bool:
    """Return whether a source has only sync methods, as `SqliteSaver` and sync clients do."""
    saver = saver_of(source)
    if saver is None:
        return not inspect.iscoroutinefunction(source.threads.search)
    try:
        await saver.aget_tuple({"configurable": {"thread_id": "graph-retry:web"}})
    except NotImplementedError:
        return True
    return False
