"""The past calls of all threads, for the history page. Memory holds a short row of each call."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import islice

from graph_retry.data import corrections_in
from graph_retry.desk.newest import Newest
from graph_retry.desk.web.rows import (
    REMARK,
    SEARCHED,
    any_item,
    model_of,
    named_by,
    texts_in,
    texts_of,
    thread_key,
)
from graph_retry.desk.web.safety import Access
from graph_retry.desk.web.waiting import Waiting
from graph_retry.ledger import Ledger, params_in, tokens_of
from graph_retry.plugins import changes, error_text, known_sum
from graph_retry.records import PEOPLE, Attempt, author_role
from graph_retry.threads import aevery_ledger, every_ledger

DAYS = 30
"""Number of days that a plot shows."""

MOST = 50_000
"""Maximum calls in memory. If there are more, the figures cover only the first calls."""

CHANGED = 100
"""Maximum number of changed places of a call that are counted."""


@dataclass(frozen=True, slots=True)
class Decided:
    """One decision about an attempt: its author, type, time and result.

    who: The author; "" if the review expired.
    worked: Whether the decision led to an output; None if unknown.
    was_valid: Whether the decision was about a valid output.
    """

    at: str
    who: str
    word: str
    attempt: int
    told: str
    worked: bool | None
    was_valid: bool
    name: str
    thread: str
    subject: str
    texts: tuple[tuple[str, str], ...]
    searched: str


@dataclass(frozen=True, slots=True)
class PastCall:
    """One call. `call` is its name in reviews.

    `waited` has people's response times in seconds, and `changed` the places that they changed.
    """

    name: str
    thread: str
    started_at: str
    labels: dict[str, str]
    outcome: str
    has_output: bool
    attempts: int
    tokens: int | None
    waited: tuple[float, ...]
    changed: tuple[str, ...]
    decided: tuple[Decided, ...]
    model: str
    call: str


def _past_calls(ledgers: Iterable[Ledger]) -> list[PastCall]:
    return [call for call in map(past_call, ledgers) if call is not None]


def past_call(ledger: Ledger) -> PastCall | None:
    """Make the row of a call; None if its ledger has no record any more."""
    known = [each for each in ledger.attempts if each["kept_in"] is None]
    if not known:
        return None
    return PastCall(
        name=ledger.title or "a call without a name",
        thread=ledger.thread,
        started_at=known[0]["started_at"],
        labels=dict(known[-1].get("labels") or {}),
        outcome=ledger.outcome,
        has_output=ledger.has_output,
        attempts=len(ledger.attempts),
        tokens=known_sum(tokens_of(each)["total_tokens"] for each in known),
        waited=tuple(_waited(each) for each in known if _is_by_person(each)),
        changed=tuple(islice(_changed(ledger), CHANGED)),
        decided=tuple(_decided(ledger)),
        model=model_of(params_in(ledger, known[-1]["number"])),
        call=ledger.name,
    )


_ENDED = {
    "succeeded": "The output is used.",
    "responded": "The output that they wrote is used.",
    "overruled": "The output is used although it is invalid.",
    "cancelled": "The call is stopped.",
}


def _decided(ledger: Ledger) -> Iterator[Decided]:
    """Yield the decisions about a call, by people or by expiry."""
    texts: tuple[tuple[str, str], ...] | None = None
    following = [*ledger.attempts[1:], None]
    for attempt, after in zip(ledger.attempts, following, strict=True):
        decision = attempt["decision"]
        if decision is None or author_role(decision["author"]) not in ("human", "system"):
            continue
        if texts is None:
            texts = named_by(texts_in(params_in(ledger, attempt["number"])))
        worked: bool | None
        if after is None:
            told, worked = _ENDED.get(ledger.outcome, ""), ledger.outcome in _ENDED or None
        elif after["status"] == "running":
            told, worked = f"Attempt {after['number']} is running.", None
        else:
            worked = after["failure"] is None
            told = f"Attempt {after['number']} " + ("is valid." if worked else "failed, too.")
        name, subject = ledger.name, attempt.get("subject", "")
        role, _, who = decision["author"].partition(":")
        who = "" if role == "system" else who or "somebody"
        labels = attempt.get("labels") or {}
        labelled = [*texts_of(labels), labels.get(REMARK, "")]
        said = (name, ledger.thread, subject, who, decision["type"], *labelled)
        yield Decided(
            decision["at"], who, decision["type"], attempt["number"], told, worked,
            attempt["failure"] is None, name, ledger.thread, subject, texts,
            "\n".join((*said, *(text for _, text in texts))).casefold(),
        )  # fmt: skip


def _is_by_person(attempt: Attempt) -> bool:
    decision = attempt["decision"]
    return decision is not None and author_role(decision["author"]) == "human"


def _waited(attempt: Attempt) -> float:
    """Return the seconds between the end of an attempt and the decision about this attempt."""
    asked = datetime.fromisoformat(attempt["started_at"]) + timedelta(seconds=attempt["duration_s"])
    decided = datetime.fromisoformat((attempt["decision"] or {})["at"])
    return max(0.0, (decided - asked).total_seconds())


def _changed(ledger: Ledger) -> Iterator[str]:
    """Yield the places that people changed in params and outputs."""
    for row in corrections_in(ledger):
        before, after = {
            "edited": (row["params"], row["revised"]),
            "supplied": ({"output": row["output"]}, {"output": row["value"]}),
        }.get(row["how"], (None, None))
        if row["role"] in PEOPLE and before is not None and after is not None:
            yield from {any_item(place[:SEARCHED]) for place, _, _ in changes(before, after)}


@dataclass(frozen=True)
class Figures:
    """The figures of some calls with the same name. Unknown figures are None.

    `success` is the percentage of ended calls with an output. `wait` is the median time that a call
    waited for a person, in seconds.
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
        waiting: The open reviews, with their source.
    """

    def __init__(self, waiting: Waiting) -> None:
        self.read_at: datetime | None = None
        self.problem = ""
        self._waiting = waiting
        self._calls: list[PastCall] = []
        self._threads = Newest[str, str](MOST)
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
        if not self.is_reading:
            await self._read_again()

    async def _read_again(self) -> None:
        """Read the threads that this page has answered since the last reading."""
        touched = [*self._waiting.touched]
        self._waiting.touched.clear()
        for thread in touched:
            fresh = await asyncio.to_thread(_past_calls, await self._waiting.ledgers(thread))
            others = [call for call in self._calls if call.thread != thread]
            self._calls = [*others, *fresh][-MOST:]
            self.know(thread)

    def calls(self, access: Access) -> list[PastCall]:
        """List the calls that the user may see."""
        return [each for each in self._calls if access.has(each.labels)]

    def know(self, thread_id: str) -> None:
        """Remember a thread, so that `thread` finds it by its key in URLs."""
        self._threads[thread_key(thread_id)] = thread_id

    def thread(self, key: str) -> str | None:
        """Return the id of the thread with this key; None if unknown."""
        rows = self._waiting.in_thread(key)
        return self._threads.get(key) or (rows[0].review.thread_id if rows else None)

    async def _read(self) -> None:
        self.problem, fresh = "", list[PastCall]()
        if not self._calls:
            self._calls = fresh  # The page shows the figures while they are being read.
        try:
            async for ledger in self._ledgers():
                if len(fresh) >= MOST:
                    break
                made = await asyncio.to_thread(_past_calls, [ledger])
                fresh += made
                for call in made:
                    self.know(call.thread)
        except Exception as error:  # noqa: BLE001 - the page shows any error
            self.problem = f"{type(error).__name__}: {error_text(error)}"
        self._calls, self.read_at = fresh, datetime.now(UTC)

    async def _ledgers(self) -> AsyncIterator[Ledger]:
        source = self._waiting.inbox.source
        if await self._waiting.only_sync():
            ledgers = every_ledger(source)
            while (ledger := await asyncio.to_thread(next, ledgers, None)) is not None:
                yield ledger
        else:
            async for ledger in aevery_ledger(source):
                yield ledger


def sum_up(calls: Sequence[PastCall]) -> Figures:
    """Compute the figures of some calls."""
    ended = [call for call in calls if call.outcome not in ("waiting", "open")]
    waits = sorted(wait for call in calls for wait in call.waited)
    return Figures(
        attempts=sum(call.attempts for call in calls),
        success=100 * sum(call.has_output for call in ended) / len(ended) if ended else None,
        tokens=known_sum(call.tokens for call in calls),
        wait=waits[len(waits) // 2] if waits else None,
    )


def figures_of(calls: Iterable[PastCall], today: date) -> list[CallFigures]:
    """Compute the figures of calls by name. The name with the most attempts comes first."""
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
