"""Answers that are being applied: each once, however often its form is sent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from langgraph.errors import GraphBubbleUp
from langgraph.pregel.remote import RemoteException

from graph_retry._langgraph.shown import namespace_in
from graph_retry.answering import PendingReview
from graph_retry.errors import AnswerRefused, CallCancelled, StaleDecision
from graph_retry.notifications import key_of
from graph_retry.web.waiting import Waiting

KEPT = 1_000
"""Number of sent forms whose outcomes are kept."""

SOON_S = 1.5
"""Seconds that a page waits for outcomes, before it says that this takes longer."""

AT_ONCE = 4
"""Threads of one form that run at a time."""

_DONE = {
    "reject": ("The call is stopped.", "It ended without an output."),
    "respond": ("Your output is used.", "It is valid. The model was not called again."),
    "accept": (
        "The output is used as it is.",
        "The history records that it is invalid.",
    ),
    "defer": ("You will be asked later.", "The review comes back to the list by itself."),
    "assign": ("It is given to them.", "The review stays open."),
}


@dataclass
class Outcome:
    """The outcome of an answer.

    `tone` is `good`, `bad` or `plain`. `problem` says why an answer was refused; then the page
    shows `reviews` again with what was typed. `following` are reviews that the thread asks now.
    """

    title: str
    text: str = ""
    tone: str = "good"
    output: str = ""
    problem: str = ""
    following: list[PendingReview] = field(default_factory=list[PendingReview])


@dataclass
class Run:
    """The answers to reviews of one thread: what was posted, and the outcome in the end."""

    reviews: list[PendingReview]
    decisions: dict[str, Any]
    posted: Sequence[tuple[str, str]] = ()
    told: Outcome | None = None


@dataclass
class Sent:
    """A form that was sent: a run for each thread. `stale` answers of it were left out."""

    runs: list[Run]
    stale: int = 0
    task: asyncio.Future[Any] | None = None

    async def wait(self, seconds: float) -> bool:
        """Wait a moment for the outcomes; return whether all are there."""
        if self.task is not None:
            await asyncio.wait({self.task}, timeout=seconds)
            if self.task.done():
                self.task.result()
        return all(run.told for run in self.runs)


class Runs:
    """Applies the answers of each form once.

    The name of a form is drawn when the form is drawn: a double click, a reload, and a second
    press of the button all send the same name.
    """

    def __init__(self, waiting: Waiting, context: Any = None) -> None:
        self._waiting, self._context = waiting, context
        self._sent: dict[str, Sent] = {}

    def get(self, name: str) -> Sent | None:
        """Return a form that was sent, by its name."""
        return self._sent.get(name)

    def start(self, name: str, sent: Sent) -> None:
        """Start to apply the answers of a form, a few threads at a time."""
        self._sent[name] = sent
        for old in list(self._sent)[:-KEPT]:
            if all(run.told for run in self._sent[old].runs):
                del self._sent[old]
        gate = asyncio.Semaphore(AT_ONCE)

        async def in_turn(run: Run) -> None:
            async with gate:
                run.told = await self._apply(run)

        sent.task = asyncio.gather(*map(in_turn, sent.runs))

    async def _apply(self, run: Run) -> Outcome:
        """Answer, continue the thread, and record the outcome, errors included."""
        row, cancelled = run.reviews[0], False
        try:
            await self._waiting.answer(row, run.decisions, self._context)
        except AnswerRefused as refused:
            return await self._look(run, Outcome("", tone="bad", problem=refused.message))
        except StaleDecision as stale:
            outcome = Outcome("Somebody was faster.", stale.message, "plain")
            return await self._look(run, outcome)
        except GraphBubbleUp:
            raise
        except Exception as error:  # noqa: BLE001 - the graph's, the database's, the server's
            cancelled = isinstance(error, CallCancelled) or (
                isinstance(error, RemoteException) and CallCancelled.__name__ in repr(error)
            )
            if not (cancelled and "reject" in _words(run)):
                text = f"{type(error).__name__}: {error}"[:2_000]
                outcome = Outcome("The graph stopped with an error after your answer.", text, "bad")
                return await self._look(run, outcome)
        return await self._look(run, await self._told(run))

    async def _look(self, run: Run, outcome: Outcome) -> Outcome:
        """Add what the thread waits for now, and forget what it does not."""
        try:
            outcome.following = await self._waiting.of_thread(run.reviews[0])
        except Exception as error:  # noqa: BLE001 - the outcome is known: it is told in any case
            outcome.text += f" What the thread waits for now cannot be read: {error!r:.300}."
            return outcome
        open_keys = {key_of(review) for review in outcome.following}
        for review in run.reviews:
            if key_of(review) not in open_keys:
                self._waiting.drop(key_of(review))
        if outcome.problem:
            calls = [namespace_in(review.value) for review in run.reviews]
            again = [review for review in outcome.following if namespace_in(review.value) in calls]
            if not again:  # somebody else answered it meanwhile
                return Outcome("This review is closed.", outcome.problem, "plain", "", "", again)
        return outcome

    async def _told(self, run: Run) -> Outcome:
        """Describe the outcome of an applied answer."""
        if len(run.reviews) > 1:
            return Outcome(f"{len(run.decisions)} answers are applied.")
        (word,) = _words(run)
        review = run.reviews[0]
        if word in _DONE:
            return Outcome(*_DONE[word])
        if review.failure is None and word == "approve":
            return Outcome("The output is used.", "The model was not called again.")
        ledgers = await self._waiting.ledgers(review)
        ledger = next(
            (each for each in ledgers if each.namespace == namespace_in(review.value)), None
        )
        if ledger is None or not ledger.attempts:
            return Outcome("Your answer is applied.")
        last = ledger.attempts[-1]
        if failure := last["failure"]:
            title = f"The model was called again, and attempt {last['number']} failed, too."
            return Outcome(title, f"{failure['type']}: {failure['message']}", "bad")
        title = "The model was called again, and its answer is valid."
        if review.value.get("redacted"):
            return Outcome(title, "The output is not shown: this call redacts its texts.")
        value = ledger.value_at(last["number"])
        text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
        return Outcome(title, output=text)


def _words(run: Run) -> list[str]:
    return [decision["type"] for decision in run.decisions.values()]
