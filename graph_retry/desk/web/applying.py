"""Apply posted answers in the background. If a browser sends a form twice, it is applied once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from langgraph.errors import GraphBubbleUp, GraphDrained

from graph_retry import PendingReview
from graph_retry.desk.following import Live, Running
from graph_retry.desk.texts import said
from graph_retry.desk.web.posted import UNDER_WAY, NotAllowedError
from graph_retry.desk.web.rows import bytes_in, is_put_off, short
from graph_retry.desk.web.safety import Access
from graph_retry.desk.web.waiting import Waiting
from graph_retry.errors import AnswerRefused, StaleDecision
from graph_retry.plugins import error_text
from graph_retry.records import Issue
from graph_retry.reviews import DECISIONS
from graph_retry.threads import is_rejection

KEPT = 1_000
"""Number of sent forms whose outcomes are kept."""

KEPT_BYTES = 20_000_000
"""Maximum bytes of memory of all kept outcomes. Above this, the oldest outcomes are forgotten."""

SOON_S = 1.5
"""Seconds that a page waits for outcomes before it shows that the run takes longer."""

HELD_S = 10.0
"""Seconds in which a person can take back an answer, because only this process has it."""

NAMED = 200
"""Maximum characters of a form's name. The page's own names have 22 characters."""

AT_ONCE = 4
"""Number of LangGraph threads that one form resumes at the same time."""


@dataclass
class Outcome:
    """The outcome of an answer, for the page.

    tone: `good`, `bad`, or `plain` if the answer came too late.
    problem: Why an answer was refused. The page then shows the form with the typed values.
    issues: The issues of the new output. The page shows them instead of `text`.
    not_applied: The number of answers that were refused or came too late.
    is_stopped: Whether the run was stopped. The person can continue it.
    is_put_off: Whether the reviewer deferred or assigned the review.
    following: The thread's open reviews now, without deferred and assigned ones.
    about_own: If not None, users who may not see all calls get this text in place of the others.
    """

    title: str
    text: str = ""
    tone: str = "good"
    output: str = ""
    problem: str = ""
    issues: Sequence[Issue] = ()
    not_applied: int = 0
    is_put_off: bool = False
    is_stopped: bool = False
    following: list[PendingReview] = field(default_factory=list[PendingReview])
    about_own: str | None = None

    def seen_by(self, access: Access) -> Outcome:
        """Return the outcome without the texts about calls that the user may not see."""
        if self.about_own is None or not access.is_limited:
            return self
        if self.problem:
            return replace(self, problem=self.about_own)
        return replace(self, text=self.about_own)


@dataclass
class Run:
    """The answers to reviews of one thread. Only the short fields of the reviews are kept.

    decisions: Decisions by review id. Without decisions, a stopped thread is continued.
    told: The outcome; None while the thread runs.
    by: The name of the sender.
    name: The name of the form.
    asked: The keys of the reviews, by the namespace of their calls.
    """

    reviews: list[PendingReview]
    decisions: dict[str, Any]
    told: Outcome | None = None
    asked: dict[str, str] = field(default_factory=dict[str, str])
    began: str = field(default_factory=lambda: datetime.now(UTC).isoformat())
    by: str = ""
    name: str = ""
    running: Running = field(default_factory=Running)

    def __post_init__(self) -> None:
        self.asked = self.asked or {one.namespace: one.key for one in self.reviews}
        self.reviews = list(map(short, self.reviews))

    def live(self, access: Access) -> list[Live]:
        """List the running attempts, for a user who may see all calls of a thread."""
        return [] if access.is_limited else list(self.running.live.values())


STOPPED = Outcome(
    "The run is stopped.",
    "Nothing is lost: your answer and each finished attempt are saved.",
    "plain",
    is_stopped=True,
)
NOT_BEGUN = Outcome("Not sent: you stopped it before.", tone="plain", not_applied=1)


@dataclass(frozen=True)
class Missed:
    """A review whose answer was not applied, because the review was closed or changed meanwhile.

    why: Who closed the review, or what changed.
    review: The review; None if it is no longer remembered.
    typed: The person's input for this review.
    now: The key of the open review that replaced it, or "".
    """

    why: str
    review: PendingReview | None = None
    typed: Sequence[str] = ()
    now: str = ""


@dataclass
class Sent:
    """A posted form, with one run for each thread. `posted` has the form's fields.

    missed: The reviews whose answers are in no run.
    goes_at, go: The runs begin at this time, or when the event `go` is set.
    size: The bytes of memory of the outcome, when it is known.
    """

    runs: list[Run]
    posted: Sequence[tuple[str, str]] = ()
    missed: Sequence[Missed] = ()
    task: asyncio.Future[Any] | None = None
    goes_at: float = field(default_factory=lambda: time.monotonic() + HELD_S)
    go: asyncio.Event = field(default_factory=asyncio.Event)
    size: int = 0

    @property
    def held_s(self) -> float:
        """The seconds in which the answers can still be taken back."""
        return 0.0 if self.go.is_set() else max(0.0, self.goes_at - time.monotonic())

    def shorten(self) -> None:
        """Keep only the data of the outcome page, and the form of answers that were not applied."""
        if not self.missed and not any(run.told and run.told.not_applied for run in self.runs):
            self.posted = ()
        self.missed = [
            replace(each, review=each.review and short(each.review)) for each in self.missed
        ]
        for run in self.runs:
            run.running = Running()
            run.decisions = dict.fromkeys(run.decisions)
            if run.told:
                run.told.following = list(map(short, run.told.following))
        self.size = bytes_in([self.runs, self.posted, self.missed])

    async def wait(self, seconds: float) -> bool:
        """Wait up to some seconds for the outcomes. Return whether all are known."""
        if self.task is not None:
            await asyncio.wait({self.task}, timeout=seconds)
            if self.task.done():
                self.task.result()
        return all(run.told for run in self.runs)


class Runs:
    """Applies the answers of each form once.

    Each rendered form has a random name. After a double click or a reload, a browser sends the same
    name again. A form with a known name is not applied again.
    """

    def __init__(self, waiting: Waiting, context: Any = None) -> None:
        self._waiting, self._context = waiting, context
        self._sent: dict[str, Sent] = {}

    def get(self, name: str) -> Sent | None:
        """Return the posted form with this name, or None."""
        return self._sent.get(name)

    def repeated(self, name: str, user: str | None) -> Sent | None:
        """Return the form with this name if its user has sent it before, or None.

        Raises:
            NotAllowedError: If the form has no name, or has the name of a different user's form. If
                too many answers of the user still wait to be applied.
        """
        sent = self.get(name)
        is_others = sent is not None and any(run.by != (user or "") for run in sent.runs)
        if is_others or not 0 < len(name) <= NAMED:
            raise NotAllowedError(400, "This form is incomplete: open the review again.")
        if sent is None:
            UNDER_WAY.check(1 + sum(run.by == (user or "") for run in self._under_way()))
        return sent

    @property
    def running(self) -> dict[str, Run]:
        """The runs that apply answers now, by the keys of their reviews."""
        return {key: run for run in self._under_way() for key in run.asked.values()}

    def _under_way(self) -> Iterator[Run]:
        return (run for sent in self._sent.values() for run in sent.runs if not run.told)

    def start(self, name: str, sent: Sent) -> None:
        """Start to apply the answers of a form, for a few threads at a time."""
        self._sent[name] = sent
        for run in sent.runs:
            run.name = name
        gate = asyncio.Semaphore(AT_ONCE)

        async def in_turn(run: Run) -> None:
            async with gate:
                run.told = replace(NOT_BEGUN) if run.running.is_stopping else await self._apply(run)
                for review in run.reviews[:1]:
                    self._waiting.answered_here(review.thread_id)

        async def all_of_them() -> None:
            with suppress(TimeoutError):
                await asyncio.wait_for(sent.go.wait(), sent.held_s)
            sent.go.set()
            await asyncio.gather(*map(in_turn, sent.runs))
            sent.shorten()
            self._forget()

        sent.task = asyncio.ensure_future(all_of_them())

    def take_back(self, name: str) -> Sent | None:
        """Take back a form whose answers are still held. Return None if they were sent already."""
        sent = self._sent.get(name)
        if sent is None or sent.task is None or sent.go.is_set():
            return None
        sent.task.cancel()
        return self._sent.pop(name)

    async def stop(self, sent: Sent) -> None:
        """Stop the runs of a form. The current steps end, and no new step begins.

        Raises:
            NotAllowedError: If a run on a server was continued without an answer, because the
                server knows a run only by its answer.
        """
        if self._waiting.inbox.is_remote and not all(run.decisions for run in sent.runs):
            raise NotAllowedError(409, "This cannot be stopped here: cancel the run on its server.")
        for run in sent.runs:
            if not run.told:
                await self._waiting.stop(run.reviews[0], run.running)

    def go_on(self, sent: Sent, name: str) -> None:
        """Continue the stopped threads of a form, under the form name `name`."""
        stopped = [run for run in sent.runs if run.told and run.told.is_stopped]
        if stopped and name not in self._sent:
            again = [Run(run.reviews, {}, by=run.by, asked={**run.asked}) for run in stopped]
            self.start(name, Sent(again, goes_at=0.0))

    def left(self, user: str | None) -> list[Run]:
        """List a user's refused, late and stopped runs, the newest first."""
        return [
            run
            for sent in reversed(self._sent.values())
            for run in sent.runs
            if run.told and (run.told.not_applied or run.told.is_stopped) and run.by == (user or "")
            if f"{run.name}+" not in self._sent
        ]

    def _forget(self) -> None:
        done = [name for name, sent in self._sent.items() if all(run.told for run in sent.runs)]
        held = sum(sent.size for sent in self._sent.values())
        for name in done[:-1]:
            if len(self._sent) <= KEPT and held <= KEPT_BYTES:
                break
            held -= self._sent.pop(name).size

    async def _apply(self, run: Run) -> Outcome:
        """Resume the thread with the answers. Return the outcome, even if it is an error."""
        try:
            await self._waiting.answer(run.reviews[0], run.decisions, self._context, run.running)
        except GraphDrained:
            return await self._look(run, replace(STOPPED))
        except AnswerRefused as refused:
            own = "Your answer was not applied."
            outcome = Outcome("", tone="bad", problem=refused.message, about_own=own)
            outcome.not_applied = len(refused.reasons)
            return await self._look(run, outcome)
        except StaleDecision as stale:
            which = "Your answer" if len(run.reviews) == 1 else "At least one of your answers"
            outcome = Outcome(f"{which} was not applied.", stale.message, "plain")
            outcome.about_own = "Somebody else has answered it, or it expired."
            outcome.not_applied = len(run.decisions)
            return await self._look(run, outcome)
        except GraphBubbleUp:
            raise
        except Exception as error:  # noqa: BLE001 - of the graph, the database or the server
            if run.running.is_stopping:  # A server tells a stopped run as an error.
                return await self._look(run, replace(STOPPED))
            if not is_rejection(error, run.decisions.values()):
                text = f"{type(error).__name__}: {error_text(error, 2_000)}"
                outcome = Outcome("The graph stopped with an error after your answer.", text, "bad")
                outcome.about_own = f"{type(error).__name__}: ask the person who runs this page."
                return await self._look(run, outcome)
        async with run.running.cancelling:
            stopped = replace(STOPPED) if run.running.is_cancelled else None
        return await self._look(run, stopped or await self._told(run))

    async def _look(self, run: Run, outcome: Outcome) -> Outcome:
        """Add the thread's open reviews to the outcome, and forget its closed reviews."""
        try:
            outcome.following = await self._waiting.of_thread(run.reviews[0])
        except Exception as error:  # noqa: BLE001 - the known outcome must be shown in any case
            unread = "The thread's open reviews cannot be read"
            outcome.about_own = f"{outcome.about_own or outcome.text} {unread}."
            outcome.text += f" {unread}: {error_text(error, 300)}."
            return outcome
        open_keys = {review.key for review in outcome.following}
        for review in run.reviews:
            if review.key not in open_keys:
                self._waiting.drop(review.key)
        now = {review.namespace for review in outcome.following}
        if outcome.problem and now.isdisjoint(run.asked):
            # Somebody else has answered the review meanwhile.
            lost = outcome.not_applied
            closed = Outcome("This review is closed.", outcome.problem, "plain", not_applied=lost)
            closed.about_own = outcome.about_own
            return closed
        words = {made["type"] for made in run.decisions.values()}
        stays_open = all(DECISIONS[word].waits for word in words)
        # The same question is open again, but its reviewer has just put it off.
        outcome.is_put_off = bool(words) and stays_open and not outcome.problem
        outcome.following = [
            each
            for each in outcome.following
            if not (is_put_off(each) or (outcome.is_put_off and each.namespace in run.asked))
        ]
        return outcome

    async def _told(self, run: Run) -> Outcome:
        """Describe the outcome of an applied answer."""
        if len(run.reviews) > 1:
            return Outcome(f"{len(run.decisions)} answers are applied.")
        decision = next(iter(run.decisions.values()), {"type": ""})
        word = decision["type"]
        review = run.reviews[0]
        if word and (done := DECISIONS[word].done):
            title, text = done
            return Outcome(title.format(**decision), text)
        if review.failure is None and word == "approve":
            return Outcome("The output is used.", "The call was not made again.")
        ledgers = await self._waiting.ledgers(review.thread_id)
        ledger = next((each for each in ledgers if each.namespace in run.asked), None)
        if ledger is None or not ledger.attempts:
            return Outcome("Your answer is applied.")
        last = ledger.attempts[-1]
        if failure := last["failure"]:
            title = f"The call was made again, and attempt {last['number']} failed, too."
            text = f"{failure['type']}: {failure['message']}"
            issues = last["issues"] if failure["kind"] == "invalid_schema" else ()
            return Outcome(title, text, "bad", issues=issues)
        title = "The call was made again, and its output is valid."
        if review.redacted:
            return Outcome(title, "The output is not shown: this call redacts its texts.")
        return Outcome(title, output=said(ledger.value_at(last["number"])))
