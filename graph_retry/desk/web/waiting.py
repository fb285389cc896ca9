"""Keep the open reviews of a source as short rows in memory, because reading all threads is slow.

A look is one reading of the source, which updates the rows.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from heapq import nlargest
from itertools import islice, starmap
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig

from graph_retry import PendingReview
from graph_retry.desk.following import Running
from graph_retry.desk.newest import Newest
from graph_retry.desk.web.rows import (
    COMPARED,
    Row,
    question_of,
    row_of,
    subject_of,
    telling,
    thread_key,
)
from graph_retry.desk.web.safety import Access
from graph_retry.ledger import Ledger
from graph_retry.plugins import one_line
from graph_retry.threads import (
    Inbox,
    OpenReview,
    aattempts_of,
    aevery_ledger,
    attempts_of,
    every_ledger,
)

PAGE = 100
"""Number of reviews that are read at a time."""

LISTED = 500
"""Number of rows of the table of open reviews that are listed at a time."""

AGAIN = 25
"""Number of known reviews that a look reads again, the longest unread first."""

FRESH_S = 1.0
"""Minimum seconds between two looks."""

FIRST_S = 2.0
"""Seconds that a page waits for the first look. The look then continues in the background."""

NEWS_S = 0.25
"""Seconds that a page waits for a later look."""

LINKED = 48
"""Maximum number of characters of a subject in a link to its review."""

OVER = 1_000
"""Number of newest closed reviews, and of answered threads, that are remembered for people."""

T = TypeVar("T")


class Waiting:
    """The open reviews of a source. `rows` has them by key, those read longest ago first.

    touched: The threads that were answered here, and that the history has not read since.
    version: A number that grows whenever a row comes or goes.
    is_whole: Whether every review was read once.
    progress: The progress of the first look, as a text.

    The first look reads all reviews, the newest first. A later look at a database lists the newest
    rows in the table of open reviews, and the next part of the older rows. Then it reads the
    threads of new rows. So it takes the same time for any number of reviews. A look at a server, or
    at a storage without this table, reads all reviews. The pause after a look is as long as the
    look. The page of one review always reads the review's thread.

    Args:
        source: The source, as in `list_reviews`.
        config: The config, as in `list_reviews`.
    """

    def __init__(self, source: Any, config: RunnableConfig | None = None) -> None:
        self.inbox = Inbox(source, config)
        self.rows: dict[str, Row] = {}
        self.version, self.is_whole, self.progress = 0, False, ""
        self.touched = Newest[str, None](OVER)
        self._noted: dict[str, OpenReview] = {}
        self._listed_to: str | None = None
        self._over = Newest[str, Row](OVER)
        self._is_sync: bool | None = None
        self._looking: asyncio.Task[None] | None = None
        self._look_at = 0.0

    def alike(self, key: str, access: Access) -> list[Row]:
        """List a review and similar reviews that are not deferred; empty for an unknown review."""
        first = self.rows.get(key)
        rows = [row for row in self.rows.values() if first and row.alike == first.alike]
        rows = [row for row in rows if row is first or not row.is_put_off]
        return sorted(access.seen(rows), key=lambda row: row is not first)

    def about(self, review: PendingReview) -> str:
        """Return a review's subject in the list, or the name of its call."""
        row, rows = self.rows.get(review.key), [*self.rows.values()]  # Which the loop changes.
        others = (each for each in rows if each.review.function_name == review.function_name)
        told = subject_of(row, telling(islice(others, COMPARED))) if row else review.subject
        return one_line(told or "", LINKED) or review.function_name

    def named(self, review: PendingReview) -> str:
        """Return the text of a link to a review: its subject and attempt."""
        again = f", attempt {review.attempt}" if review.attempt > 1 else ""
        return f"{self.about(review)}{again}"

    def in_thread(self, thread: str) -> list[Row]:
        """List the known open reviews of a thread, by the thread's key in addresses."""
        return [row for row in self.rows.values() if row.thread == thread]

    async def refresh(self) -> None:
        """Start a look, unless the last look is recent. Wait for it only a short time."""
        if self._looking is None or (self._looking.done() and time.monotonic() >= self._look_at):
            self._looking = asyncio.create_task(self._look())
        await asyncio.wait({self._looking}, timeout=NEWS_S if self.is_whole else FIRST_S)
        if self._looking.done():
            self._looking.result()

    async def find(self, key: str, access: Access) -> list[PendingReview]:
        """Read the open reviews of a review's thread. A closed review gives an empty list."""
        await self.refresh()
        while not (key in self.rows or key in self._noted or self.is_whole):
            await self.refresh()
        row = self.rows.get(key)
        first = [row.review] if row else await self._read_one(key)
        found = await self.of_thread(first[0]) if first else []
        if first and key not in (one.key for one in found):
            # LangGraph shows some questions only after the earlier ones are answered.
            found += await self._read_one(key)
        seen = sorted(access.seen(found), key=lambda review: review.key != key)
        if key not in (one.key for one in found):
            self.drop(key)
        return seen if seen and seen[0].key == key else []

    async def asked_again(self, key: str, access: Access) -> PendingReview | None:
        """Return the open review with the same question as a closed review, or None.

        If a review was deferred or assigned, or its answer was refused, a new review asks the same
        question.
        """
        before = self._over.get(key)
        if before is None or not access.sees(before.review):
            return None
        thread = await self.of_thread(before.review)
        return next((review for review in thread if question_of(review) == before.question), None)

    def closed(self, key: str, access: Access) -> PendingReview | None:
        """Return a closed review without its long fields; None if it is no longer remembered."""
        before = self._over.get(key)
        return before.review if before is not None and access.sees(before.review) else None

    async def of_thread(self, review: PendingReview) -> list[PendingReview]:
        """Read a thread's open reviews. Without a graph, return only the given review."""
        if review.graph is None:
            return await self._read_one(review.key)
        found = await self.drive(self.inbox.in_thread, review)
        await self._take(found)
        return found

    async def _read_one(self, key: str) -> list[PendingReview]:
        """Read one review with its whole history. For a closed review, return an empty list."""
        if key in self._noted:
            found = await self._read_noted([key])
        else:
            listed = await self._all() if key in self.rows else []
            found = [review for review in listed if review.key == key]
        return await self.drive(self.inbox.whole, found)

    async def answer(
        self, review: PendingReview, answers: Mapping[str, Any], context: Any, running: Running
    ) -> None:
        """Resume a thread with answers by review id. Without answers, continue the thread."""
        graph, config = review.graph, review.config
        if self.inbox.is_remote:
            await self.drive(self.inbox.answer, review, answers or None, context)
            return
        is_sync = await self.only_sync()
        await running.run(graph, config, answers or None, context, in_thread=is_sync)

    async def stop(self, review: PendingReview, running: Running) -> None:
        """Stop a run: locally after its current step, on a server at once."""
        running.control.request_drain("stopped on the page")
        if self.inbox.is_remote:
            async with running.cancelling:
                running.is_cancelled = await self.drive(self.inbox.stop, review)

    async def ledgers(self, thread_id: str | None) -> list[Ledger]:
        """Read the ledgers of a thread."""
        rows = self.in_thread(thread_key(thread_id))
        source, threads = self.inbox.source, [str(thread_id)]
        if rows and self.inbox.is_remote:  # The review knows which of the server's graphs it is of.
            where = rows[0].review.graph, rows[0].review.config
            if await self.only_sync():
                return await asyncio.to_thread(attempts_of, *where)
            return await aattempts_of(*where)
        if await self.only_sync():
            return await asyncio.to_thread(lambda: [*every_ledger(source, threads=threads)])
        return [ledger async for ledger in aevery_ledger(source, threads=threads)]

    def answered_here(self, thread_id: str | None) -> None:
        """Remember that this page answered a thread, and notify open pages."""
        self.touched[str(thread_id)] = None
        self.version += 1

    def drop(self, key: str) -> None:
        """Move a review from the open reviews to the closed reviews."""
        self._noted.pop(key, None)
        if (row := self.rows.pop(key, None)) is not None:
            self.version += 1
            self._over[key] = row

    async def _take(self, reviews: Collection[PendingReview]) -> None:
        earlier = dict[tuple[str, str], Row]()
        if any(review.attempt > 1 for review in reviews):
            known = [*self._over.values(), *self.rows.values()]
            earlier = {(row.thread, row.question[0]): row for row in known}
        calls = [(thread_key(review.thread_id), review.namespace) for review in reviews]
        made = zip(reviews, map(earlier.get, calls), strict=True)
        for row in await asyncio.to_thread(lambda: list(starmap(row_of, made))):
            self.version += self.rows.pop(row.key, None) is None
            self.rows[row.key] = row

    async def _look(self) -> None:
        began = time.monotonic()
        if not await self._list():
            found = [] if self.is_whole else await self._all(PAGE)
            await self._take(found)  # People see the newest reviews while the others are read.
            await self._take(found := await self._all())
            self._drop_all_but({review.key for review in found}, [*self.rows])
        else:
            while new := self._unread():
                await self._read_part(new)
                self.progress = f"{len(self.rows):,} of {len(self._noted):,} reviews are read."
            await self._read_part(list(islice(self.rows, AGAIN)))
        took = time.monotonic() - began if self.is_whole else 0.0
        self.version += not self.is_whole
        self.is_whole, self._look_at = True, time.monotonic() + max(FRESH_S, took)

    def _unread(self) -> list[str]:
        """Return the newest rows of the table whose reviews have not been read."""
        new = self._noted.keys() - self.rows.keys()
        return nlargest(PAGE, new, key=lambda key: self._noted[key].place)

    async def _filled(self) -> bool:
        """Wait until the table of open reviews covers all threads. Meanwhile, show its reviews.

        Returns:
            Whether there is a table.
        """

        def tell(read: int, threads: int) -> None:
            self.progress = f"{read:,} of {threads:,} threads are read."

        listing = self.drive(self.inbox.page, None, 0, tell)
        filling = asyncio.ensure_future(listing)
        while not (await asyncio.wait({filling}, timeout=FRESH_S))[0]:
            await self._list_part(None)
            await self._read_part(self._unread())
            self.version += 1  # Open pages tell how far it is.
        return filling.result() is not None

    async def _list(self) -> bool:
        """List the newest rows of the table of open reviews, and the next part of the older rows.

        Each call lists a next part of the older rows, and begins again after the last part. The
        first look lists all parts.

        Returns:
            Whether there is a table.
        """
        if not await self._filled():
            return False
        end = await self._list_part(None)
        before = self._listed_to or end
        while before is not None:
            before = await self._list_part(before)
            if self.is_whole:
                break
        self._listed_to = before
        return True

    async def _list_part(self, before: str | None) -> str | None:
        """List one part of the table of open reviews. Drop known reviews that this part lacks.

        Returns:
            The place of the next part; None after the last part.
        """
        listed = await self.drive(self.inbox.page, before, LISTED, None)
        rows, end = listed or ([], None)
        part = {row.key: row for row in rows}
        covered = [
            key
            for key, row in self._noted.items()
            if (end or "") <= row.place and (before is None or row.place < before)
        ]
        self._drop_all_but(part, covered)
        self._noted.update(part)
        return end

    async def _read_part(self, keys: Iterable[str]) -> None:
        """Read some reviews of the table, and drop the closed ones."""
        found = await self._read_noted(keys)
        self._drop_all_but({review.key for review in found}, keys)
        await self._take(found)

    def _drop_all_but(self, known: Collection[str], keys: Iterable[str]) -> None:
        for key in keys:
            if key not in known:
                self.drop(key)

    async def _read_noted(self, keys: Iterable[str]) -> list[PendingReview]:
        rows = [self._noted[key] for key in keys if key in self._noted]
        return await self.drive(self.inbox.read, rows)

    async def _all(self, limit: int | None = None) -> list[PendingReview]:
        return await self.drive(self.inbox.reviews, limit)

    async def only_sync(self) -> bool:
        """Say whether the source has only sync methods."""
        if self._is_sync is None:
            self._is_sync = await _is_sync_only(self.inbox)
        return self._is_sync

    async def drive(self, method: Callable[..., T], *args: Any) -> T:
        """Call a method of the inbox. Use an OS thread if the source has only sync methods."""
        if await self.only_sync():
            return await asyncio.to_thread(method, *args)
        made: T = await getattr(self.inbox, f"a{method.__name__}")(*args)
        return made


async def _is_sync_only(inbox: Inbox) -> bool:
    """Say whether a source has only sync methods, such as `SqliteSaver` and sync clients."""
    saver = inbox.saver
    if saver is None:
        return not inspect.iscoroutinefunction(inbox.source.threads.search)
    try:
        await saver.aget_tuple({"configurable": {"thread_id": "graph-retry:web"}})
    except NotImplementedError:
        return True
    return False
