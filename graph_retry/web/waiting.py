"""The open reviews, kept in memory so that a page reads only its own; and the given answers."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig

from graph_retry._awaiting import run_async, run_sync
from graph_retry._threads.graphs import saver_of
from graph_retry._threads.reviews import namespace_in, whole_reviews
from graph_retry.answering import PendingReview, apending_reviews, aresume, pending_reviews, resume
from graph_retry.history import aattempts_of, attempts_of
from graph_retry.inbox import find_all
from graph_retry.ledger import Ledger
from graph_retry.notifications import key_of
from graph_retry.web.rows import Row, row_of
from graph_retry.web.safety import Access

PAGE = 100
"""Reviews read at a time, when all are read."""

TOP = 5
"""Reviews read first when something new is looked for: mostly they are known."""

NEWS = 25
"""Reviews read at a time later on: looking for what is new must not hold up who is reading."""

FRESH_S = 1.0
"""Seconds for which what was read last is taken for what waits."""

FIRST_S = 2.0
"""Seconds that a page waits for the first reading, which goes on behind it."""

NEWS_S = 0.25
"""Seconds that a page waits for what is new."""

OVER = 1_000
"""Reviews remembered after they are over, for those who still have them open."""

T = TypeVar("T")


class Waiting:
    """The open reviews of a source.

    They are read once from the newest to the oldest, and from then on some from the top and some in
    turn: new ones appear at once, and ones that are answered elsewhere go when their turn comes. A
    review that is opened is read anew, whatever is kept here.

    Args:
        source: What `list_reviews` takes.
        config: What `list_reviews` takes as `config`.
    """

    def __init__(self, source: Any, config: RunnableConfig | None = None) -> None:
        self.version = 0
        self.is_whole = False
        self.source, self._config = source, config
        self._rows: dict[str, Row] = {}
        self._over: dict[str, PendingReview] = {}
        self._is_sync: bool | None = None
        self._reading: asyncio.Task[None] | None = None
        self._read_at = 0.0
        self._turning: asyncio.Task[None] | None = None
        self._turn: PendingReview | None = None

    @property
    def can_answer(self) -> bool:
        """Whether threads can be continued from here: a checkpointer alone cannot."""
        return saver_of(self.source) is not self.source

    def shown_to(self, access: Access) -> list[Row]:
        """List the known open reviews that a user may see."""
        if not access.labels:
            return list(self._rows.values())
        return [row for row in self._rows.values() if access.sees(row.review)]

    def alike(self, key: str, access: Access) -> list[Row]:
        """List what waits like a review, which comes first; of a review that is not known, none."""
        first = self._rows.get(key)
        others = [row for row in self.shown_to(access) if first and row.alike == first.alike]
        return sorted(others, key=lambda row: row.key != key)

    async def refresh(self) -> None:
        """Read what is new, unless that was done a moment ago; what takes long goes on behind."""
        if self._reading is None or (
            self._reading.done() and time.monotonic() - self._read_at >= FRESH_S
        ):
            reading = self._read_news() if self.is_whole else self._read_all()
            self._reading = asyncio.create_task(reading)
        await asyncio.wait({self._reading}, timeout=NEWS_S if self.is_whole else FIRST_S)
        if self._reading.done():
            self._reading.result()

    async def find(self, key: str, access: Access) -> list[PendingReview]:
        """Return a review as it is now, and the others of its thread; nothing if it is over."""
        found = await self._find(key)
        seen = [review for review in found if access.sees(review)]
        return seen if seen and key_of(seen[0]) == key else []

    async def asked_again(
        self, key: str, access: Access
    ) -> tuple[PendingReview, PendingReview] | None:
        """Return a review that is over and the one that asks the same, if there is one.

        A question is asked again about the same attempt after it was put off or given to somebody,
        and after an answer to it was refused.
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
        while key not in self._rows and not self.is_whole:
            await self.refresh()
        row = self._rows.get(key)
        if row is None:
            return []
        found = await self.of_thread(row.review)
        if key not in {key_of(review) for review in found}:
            # LangGraph shows some questions only once those before them are answered.
            found += await self._listed(row.review)
        if key not in {key_of(review) for review in found}:
            self.drop(key)
            return []
        return sorted(found, key=lambda review: key_of(review) != key)

    async def of_thread(self, row: PendingReview) -> list[PendingReview]:
        """Read what a thread waits for now; of a checkpointer alone, the one review."""
        if row.graph is not None:
            found: list[PendingReview] = await self._call(
                pending_reviews, apending_reviews, row.graph, row.config
            )
            self._take(found)
            return found
        return await self._listed(row)

    async def _listed(self, row: PendingReview) -> list[PendingReview]:
        page = await self._list(limit=PAGE, before=_just_after(row))
        found = [review for review in page if key_of(review) == key_of(row)]
        return await self._drive(whole_reviews(self.source, found))

    async def answer(self, row: PendingReview, answers: Mapping[str, Any], context: Any) -> Any:
        """Answer reviews of a thread, by their ids, and run it on."""
        return await self._call(
            resume, aresume, row.graph, row.config, answers=answers, context=context
        )

    async def ledgers(self, row: PendingReview) -> list[Ledger]:
        """Read the ledgers of a thread."""
        return await self._call(attempts_of, aattempts_of, row.graph, row.config)

    async def ledgers_of(self, thread_id: str) -> list[Ledger]:
        """Read the ledgers of a thread by its id."""
        rows = (
            row.review.graph for row in self._rows.values() if row.review.thread_id == thread_id
        )
        graph = next(rows, None) or self.source
        config: RunnableConfig = {"configurable": {"thread_id": thread_id}}
        return await self._call(attempts_of, aattempts_of, graph, config)

    def drop(self, key: str) -> None:
        """Forget a review that waits no longer."""
        if (row := self._rows.pop(key, None)) is not None:
            self.version += 1
            self._over[key] = row.review
            if len(self._over) > OVER:
                self._over.pop(next(iter(self._over)))

    def _take(self, reviews: list[PendingReview]) -> None:
        for review in reviews:
            key = key_of(review)
            if key not in self._rows:
                self._rows[key] = row_of(review)
                self.version += 1

    async def _read_all(self) -> None:
        before = None
        while True:
            page = await self._read_page(before, PAGE)
            if len(page) < PAGE:
                break
            before = page[-1]
        self.is_whole, self._read_at = True, time.monotonic()
        self.version += 1

    async def _read_news(self) -> None:
        """Read from the top until something is known; behind it the page whose turn it is."""
        if self._turning is not None:
            await self._turning
        size, before, is_known = TOP, None, False
        while not is_known:
            known = set(self._rows)
            page = await self._read_page(before, size)
            before = page[-1] if len(page) == size else None
            is_known = before is None or any(key_of(review) in known for review in page)
            size = NEWS
        self._read_at = time.monotonic()
        if before is not None:
            self._turning = asyncio.create_task(self._read_turn())

    async def _read_turn(self) -> None:
        page = await self._read_page(self._turn, NEWS)
        self._turn = page[-1] if len(page) == NEWS else None

    async def _read_page(self, before: PendingReview | None, size: int) -> list[PendingReview]:
        """Read the reviews asked before one; forget those that should be among them and are not."""
        page = await self._list(limit=size, before=before)
        until = before.asked_at or "" if before else "~"
        since = (page[-1].asked_at or "") if len(page) == size else ""
        shown = {key_of(review) for review in page}
        for key, row in list(self._rows.items()):
            # Those asked in the same moment as an end of the page may be on the one beside it.
            if since < (row.review.asked_at or "") < until and key not in shown:
                self.drop(key)
        self._take(page)
        return page

    async def _list(self, **page: Any) -> list[PendingReview]:
        return await self._drive(find_all(self.source, config=self._config, **page))

    async def _drive(self, steps: Coroutine[Any, Any, T]) -> T:
        """Run steps that are written once for both kinds of sources."""
        if await self.is_for_sync():
            return await asyncio.to_thread(run_sync, steps)
        return await run_async(steps)

    async def _call(
        self, function: Callable[..., T], twin: Callable[..., Coroutine[Any, Any, T]],
        *args: Any, **options: Any
    ) -> T:  # fmt: skip
        """Call one of a pair: the async one, unless the source is for sync callers only."""
        if await self.is_for_sync():
            return await asyncio.to_thread(function, *args, **options)
        return await twin(*args, **options)

    async def is_for_sync(self) -> bool:
        """Tell whether the source is for sync callers only."""
        if self._is_sync is None:
            self._is_sync = await _is_sync_only(self.source)
        return self._is_sync


def _just_after(row: PendingReview) -> PendingReview:
    """Return a review that would have been asked a moment later, to list from `row` on."""
    moment = datetime.fromisoformat(row.asked_at or "1970-01-01T00:00:00+00:00")
    return replace(row, asked_at=(moment + timedelta(microseconds=1)).isoformat())


async def _is_sync_only(source: Any) -> bool:
    """Return whether a source has sync methods only, as `SqliteSaver` and sync clients do."""
    saver = saver_of(source)
    if saver is None:
        return not inspect.iscoroutinefunction(source.threads.search)
    try:
        await saver.aget_tuple({"configurable": {"thread_id": "graph-retry:web"}})
    except NotImplementedError:
        return True
    return False
