"""The past calls of all threads, for the history page: a short row of each call is in memory."""

from __future__ import annotations

import asyncio
import re
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from graph_retry._attempts import tokens_of
from graph_retry._params.patch import changes
from graph_retry.history import aevery_ledger, every_ledger
from graph_retry.ledger import Ledger
from graph_retry.records import Attempt
from graph_retry.web.rows import thread_key
from graph_retry.web.safety import Access
from graph_retry.web.waiting import Waiting

DAYS = 30
"""Number of days that a plot shows."""

MOST = 50_000
"""Maximum number of calls in memory. The figures then cover only the calls that were read first."""

_NUMBERS = re.compile(r"/\d+(?=/|$)")


@dataclass(frozen=True, slots=True)
class PastCall:
    """One call; `waited` are people's response times in seconds, `changed` the changed places."""

    name: str
    thread: str
    started_at: str
    labels: dict[str, str]
    outcome: str
    attempts: int
    tokens: int | None
    waited: tuple[float, ...]
    changed: tuple[str, ...]

    @property
    def has_output(self) -> bool:
        """Whether the call ended with an output, of the model or a person."""
        return self.outcome in ("succeeded", "responded", "overruled")


def past_call(ledger: Ledger) -> PastCall | None:
    """Make the row of a call; None if its ledger no longer has any record."""
    known = [each for each in ledger.attempts if each["kept_in"] is None]
    if not known:
        return None
    counts = [tokens_of(each)["total_tokens"] for each in known]
    counted = [count for count in counts if count is not None]
    waits = [_waited(each) for each in known]
    return PastCall(
        name=ledger.title or "a call without a name",
        thread=ledger.thread,
        started_at=known[0]["started_at"],
        labels=dict(known[-1].get("labels") or {}),
        outcome=ledger.outcome,
        attempts=len(ledger.attempts),
        tokens=sum(counted) if counted else None,
        waited=tuple(wait for wait in waits if wait is not None),
        changed=tuple(_changed(ledger, known)),
    )


def _waited(attempt: Attempt) -> float | None:
    """Return the seconds between the end of an attempt and a person's decision about it."""
    decision = attempt["decision"]
    if decision is None or not str(decision.get("author", "")).startswith("human"):
        return None
    asked = datetime.fromisoformat(attempt["started_at"]) + timedelta(seconds=attempt["duration_s"])
    return max(0.0, (datetime.fromisoformat(decision["at"]) - asked).total_seconds())


def _changed(ledger: Ledger, attempts: Iterable[Attempt]) -> Iterator[str]:
    """Yield the places that people changed in params and outputs.

    All items of a list count as the same place, so that their changes are counted together.
    """
    for each in attempts:
        decision = each["decision"] or {}
        if not str(decision.get("author", "")).startswith("human"):
            continue
        number = each["number"]
        try:
            if decision["type"] == "edit":
                pairs = changes(ledger.params_at(number), ledger.params_at(number + 1))
            elif decision["type"] == "respond" and "output" in decision:
                before, after = ledger.value_at(number), decision["output"]
                pairs = changes({"output": before}, {"output": after})
            else:
                continue
            yield from {_NUMBERS.sub("/*", place) for place, _, _ in pairs}
        except ValueError:  # The checkpoint with these params was deleted.
            continue


@dataclass(frozen=True)
class Figures:
    """The figures of some calls with the same name; unknown figures are None.

    `success` is in percent of the ended calls. `wait` is the median time in seconds that a call
    waited for a person.
    """

    attempts: int
    success: float | None
    tokens: int | None
    wait: float | None


@dataclass(frozen=True)
class CallFigures:
    """The figures of all calls with one name: in total, and by day with the oldest day first."""

    name: str
    calls: int
    total: Figures
    days: list[Figures]


class Past:
    """The past calls of a source. They are read at the first view, and again on request.

    Args:
        waiting: The open reviews, which know the source.
    """

    def __init__(self, waiting: Waiting) -> None:
        self.read_at: datetime | None = None
        self.problem = ""
        self._waiting = waiting
        self._calls: list[PastCall] = []
        self._threads: dict[str, str] = {}
        self._reading: asyncio.Task[None] | None = None

    @property
    def is_reading(self) -> bool:
        """Whether a task is reading the threads."""
        return self._reading is not None and not self._reading.done()

    def read(self) -> None:
        """Start to read all threads, unless a task is already reading them."""
        if not self.is_reading:
            self._reading = asyncio.create_task(self._read())

    async def started(self) -> None:
        """Start the first reading if necessary, and wait up to a second for its result."""
        if self._reading is None:
            self.read()
        if self._reading is not None:
            await asyncio.wait({self._reading}, timeout=1.0)

    def calls(self, access: Access) -> list[PastCall]:
        """List the calls that the user may see."""
        labels = access.labels.items()
        return [each for each in self._calls if labels <= each.labels.items()]

    def know(self, thread_id: str) -> str:
        """Remember a thread, and return its key in addresses."""
        key = thread_key(thread_id)
        self._threads[key] = thread_id
        return key

    def thread(self, key: str) -> str | None:
        """Return the id of the thread with a key; None if it is unknown."""
        rows = self._waiting.rows.of_thread(key)
        return self._threads.get(key) or (rows[0].review.thread_id if rows else None)

    async def _read(self) -> None:
        self.problem, fresh = "", list[PastCall]()
        if not self._calls:
            self._calls = fresh  # The page shows the figures while they are being read.
        try:
            async for ledger in self._ledgers():
                if len(fresh) >= MOST:
                    break
                if (call := past_call(ledger)) is not None:
                    fresh.append(call)
                    self.know(call.thread)
        except Exception as error:  # noqa: BLE001 - the page shows any error
            self.problem = f"{type(error).__name__}: {error}"[:500]
        self._calls, self.read_at = fresh, datetime.now(UTC)

    async def _ledgers(self) -> AsyncIterator[Ledger]:
        if not await self._waiting.is_for_sync():
            async for ledger in aevery_ledger(self._waiting.source):
                yield ledger
            return
        ledgers = iter(every_ledger(self._waiting.source))
        while (one := await asyncio.to_thread(next, ledgers, None)) is not None:
            yield one


def sum_up(calls: Sequence[PastCall]) -> Figures:
    """Compute the figures of some calls."""
    ended = [call for call in calls if call.outcome not in ("waiting", "open")]
    tokens = [call.tokens for call in calls if call.tokens is not None]
    waits = sorted(wait for call in calls for wait in call.waited)
    return Figures(
        attempts=sum(call.attempts for call in calls),
        success=100 * sum(call.has_output for call in ended) / len(ended) if ended else None,
        tokens=sum(tokens) if tokens else None,
        wait=waits[len(waits) // 2] if waits else None,
    )


def figures_of(calls: Iterable[PastCall], today: date) -> list[CallFigures]:
    """Compute the figures of calls by name; the name with the most attempts comes first."""
    named: dict[str, list[PastCall]] = defaultdict(list)
    daily: dict[tuple[str, str], list[PastCall]] = defaultdict(list)
    for call in calls:
        named[call.name].append(call)
        daily[call.name, call.started_at[:10]].append(call)
    days = [(today - timedelta(days=before)).isoformat() for before in range(DAYS - 1, -1, -1)]
    made = [
        CallFigures(
            name, len(own), sum_up(own), [sum_up(daily.get((name, day), ())) for day in days]
        )
        for name, own in named.items()
    ]
    return sorted(made, key=lambda each: each.total.attempts, reverse=True)


def changed_most(calls: Iterable[PastCall]) -> list[tuple[str, str, int]]:
    """Count people's changes by call and place, with the most frequent first."""
    counts = Counter((call.name, place) for call in calls for place in call.changed)
    return [(name, place, number) for (name, place), number in counts.most_common(15)]
