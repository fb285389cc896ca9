"""Answer the reviews of a thread, and print the results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from graph_retry._review.answers import Decision
from graph_retry._wording import counted
from graph_retry.answering import PendingReview
from graph_retry.cli.answering.decide import Draft, UnreadableError, completed, from_line, ways
from graph_retry.cli.exits import ExitCode, Stop
from graph_retry.cli.screen import Screen
from graph_retry.cli.show import show_review
from graph_retry.cli.source import Source
from graph_retry.errors import AnswerRefused, StaleDecision


@dataclass(frozen=True)
class Answers:
    """Takes answers to the reviews of one thread, in the name of `by`."""

    source: Source
    screen: Screen
    thread_id: str
    by: str | None

    def give(self, review_id: str | None, decide: Callable[[dict[str, Any]], Decision]) -> ExitCode:
        """Answer one review with what `decide` makes of the params it shows.

        Raises:
            Stop: If nothing waits, or more than one review and none is named.
            StaleDecision: If the named review waits no longer.
        """
        reviews = self._open(review_id)
        if review_id is not None and not reviews:
            self._send(review_id, decide({}))  # raises, and says who answered it
        if len(reviews) > 1:
            raise Stop(ExitCode.USAGE, f"name one with `--review`: {_listed(reviews)}.")
        if not reviews:
            raise self._nothing()
        return self._answer(reviews[0], decide(reviews[0].shown))

    def ask(self, review_id: str | None) -> ExitCode:
        """Ask the person at the terminal about all open reviews, or about one call's.

        Raises:
            Stop: If nothing waits.
        """
        reviews = self._open(review_id)
        if not reviews:
            raise self._nothing()
        calls = {_call(review) for review in reviews}
        code, done, shown, draft = ExitCode.DONE, set[str](), ("", 0), Draft()
        while reviews:
            review = reviews[0]
            if shown != (shown := (_call(review), review.attempt)):
                show_review(self.screen, review)
                self.screen.say(ways(review.allowed_decisions, review))
                draft = Draft()
            if decision := self._typed(review, draft):
                code = self._answer(review, decision)
                if code and draft.text:
                    again = f"edit {draft.path}".strip()
                    self.screen.say(f"Type {again} to continue with your text.")
            done.add(review.review_id)  # a server may keep showing it
            reviews = [
                review
                for review in self._open()
                if review.review_id not in done and (review_id is None or _call(review) in calls)
            ]
        return code

    def go_on(self) -> None:
        """Continue the thread without an answer, and print the result.

        Raises:
            Stop: If nothing of it is left to run.
        """
        if not self.source.is_unfinished(self.thread_id):
            raise Stop(ExitCode.NOTHING, f"thread {self.thread_id!r} has no step left to run.")
        self.source.go_on(self.thread_id)
        if reviews := self._open():
            self.screen.say(f"It waits for an answer: {_listed(reviews)}.")
        elif standing := self.source.standing(self.thread_id):
            self.screen.say(standing)
        else:
            self.screen.say("Finished.", "good")

    def _open(self, review_id: str | None = None) -> list[PendingReview]:
        reviews = self.source.reviews(self.thread_id)
        named = [review for review in reviews if review_id == review.review_id]
        return named or [one for one in reviews if one.review_id.startswith(review_id or "")]

    def _typed(self, review: PendingReview, draft: Draft) -> Decision | None:
        """Return a typed decision, or None if the person skips this review."""
        while True:
            try:
                line = completed(input("answer> ").strip(), review.allowed_decisions)
                if line == "skip":
                    return None
                if line == "help":
                    self.screen.say(ways(review.allowed_decisions, review))
                elif line:
                    return from_line(line, review.shown, draft)
            except UnreadableError as problem:
                self.screen.say(f"Not understood: {problem}", "bad")

    def _answer(self, review: PendingReview, decision: Decision) -> ExitCode:
        """Answer one review and print the result."""
        try:
            result = self._send(review.review_id, decision)
        except AnswerRefused as refused:
            self.screen.say(f"Not applied: {refused.message}", "bad")
            if refused.review_ids and not self.screen.has_person:
                ids = ", ".join(refused.review_ids)
                self.screen.say(f"It is asked again as review {ids}.")
            return ExitCode.ASKED_AGAIN
        others = [other for other in self._open() if other.review_id != review.review_id]
        again = next((other for other in others if _call(other) == _call(review)), None)
        if again:
            if again.attempt != review.attempt:
                self._tell_attempt(again.attempt, again.error)
            self.screen.say(f"It waits for an answer as review {again.review_id}.")
        elif decision["type"] == "reject":
            self.screen.say("Cancelled.", "good")
        elif decision["type"] == "respond":
            self.screen.say("Finished with the output you gave.", "good")
        elif decision["type"] == "accept":
            self.screen.say("Finished with the output as it is, flagged as overruled.", "good")
        else:
            self._show_end(review, result)
        if more := len(others) - bool(again):
            self.screen.say(f"{more} more on this thread: {_listed(others)}.")
        elif not again and (other := self.source.other_question(self.thread_id)):
            self.screen.say(f"The thread waits for {other}.")
        return ExitCode.DONE

    def _send(self, review_id: str, decision: Decision) -> Any:
        signed: Any = {**decision, "channel": "terminal"} | ({"by": self.by} if self.by else {})
        return self.source.answer(self.thread_id, {review_id: signed})

    def _tell_attempt(self, number: int, error: str) -> None:
        if error:
            self.screen.say(f"Attempt {number} failed, too: {error}", "bad")
        else:
            self.screen.say(f"The output of attempt {number} is valid.", "good")

    def _show_end(self, review: PendingReview, result: Any) -> None:
        """Write the call's output, or the graph's where the call's own state is out of sight."""
        ledgers = self.source.ledgers(self.thread_id)
        ledger = next((ledger for ledger in ledgers if ledger.namespace == _call(review)), None)
        last = ledger.attempts[-1] if ledger else None
        if ledger and last and ledger.outcome == "waiting":
            failure = last["failure"]
            self._tell_attempt(
                last["number"], f"{failure['type']}: {failure['message']}" if failure else ""
            )
            self.screen.say("It is asked about once what else waits on this thread is answered.")
            return
        if review.value.get("redacted"):
            self.screen.say(
                "Finished. The output is not shown: this call redacts its texts.", "good"
            )
            return
        if ledger and last:
            result = ledger.value_at(last["number"])
        self.screen.say("Finished:", "good")
        self.screen.json(result)

    def _nothing(self) -> Stop:
        why = f"nothing waits on thread {self.thread_id!r}. {self.source.standing(self.thread_id)}"
        return Stop(ExitCode.NOTHING, why.rstrip())


def walk(source: Source, screen: Screen, by: str | None) -> ExitCode:
    """Ask the person at the terminal about every thread of the inbox, new ones included.

    Raises:
        Stop: If nothing waits.
    """
    code, seen = ExitCode.DONE, set[str]()
    while threads := [*dict.fromkeys(review.thread_id or "" for review in source.inbox())]:
        new = [thread for thread in threads if thread not in seen]
        if not new:
            screen.say(f"{counted(len(threads), 'thread stays', 'threads stay')} open.", "quiet")
            return code
        for thread_id in new:
            seen.add(thread_id)
            try:
                code = Answers(source, screen, thread_id, by).ask(None) or code
            except (StaleDecision, Stop) as closed:
                screen.say(closed.message, "bad")
    if not seen:
        raise Stop(ExitCode.NOTHING, "nothing waits.")
    screen.say("Nothing waits any more.", "good")
    return code


def _call(review: PendingReview) -> str:
    return review.namespace


def _listed(reviews: Sequence[PendingReview]) -> str:
    return ", ".join(
        f"{review.review_id} ({review.function_name}, attempt {review.attempt})"
        for review in reviews
    )
