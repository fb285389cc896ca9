"""Answer reviews of a thread, and tell what became of each answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from langgraph.pregel.remote import RemoteException

from graph_retry._review.decision import Decision
from graph_retry.answering import PendingReview
from graph_retry.cli.decide import UnreadableError, from_line, ways
from graph_retry.cli.exits import ExitCode, Stop
from graph_retry.cli.place import Place
from graph_retry.cli.screen import Screen
from graph_retry.cli.show import show_review
from graph_retry.errors import CallCancelled


@dataclass(frozen=True)
class Answers:
    """Takes answers to the reviews of one thread, in the name of `by`."""

    place: Place
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
            self._send(review_id, decide({}))  # the refusal says who answered it
        if len(reviews) > 1:
            raise Stop(ExitCode.USAGE, f"name one with `--review`: {_listed(reviews)}.")
        if not reviews:
            raise self._nothing()
        return self._answer(reviews[0], decide(_shown(reviews[0])))

    def ask(self, review_id: str | None) -> ExitCode:
        """Ask whoever sits there about each open review, or one call's, until none is left.

        Raises:
            Stop: If nothing waits.
        """
        reviews = self._open(review_id)
        if not reviews:
            raise self._nothing()
        calls = {_call(each) for each in reviews}
        code, answered, shown = ExitCode.DONE, set[str](), ("", 0)
        while reviews:
            review = reviews[0]
            if shown != (shown := (_call(review), review.attempt)):
                show_review(self.screen, review)
                self.screen.say(ways(review.value["review_configs"][0]["allowed_decisions"]))
            code = self._answer(review, self._typed(review))
            answered.add(review.review_id)  # a server shows some for ever
            found = [each for each in self._open() if each.review_id not in answered]
            reviews = [each for each in found if review_id is None or _call(each) in calls]
        return code

    def _open(self, review_id: str | None = None) -> list[PendingReview]:
        found = self.place.reviews(self.thread_id)
        return [each for each in found if review_id in (None, each.review_id)]

    def _typed(self, review: PendingReview) -> Decision:
        while True:
            try:
                if line := input("answer> ").strip():
                    return from_line(line, _shown(review))
            except UnreadableError as problem:
                self.screen.say(f"Not understood: {problem}", "bad")

    def _answer(self, review: PendingReview, decision: Decision) -> ExitCode:
        """Answer one review and tell what followed."""
        result: Any = None
        try:
            result = self._send(review.review_id, decision)
        except (CallCancelled, RemoteException) as error:
            # A graph may let a rejected call's error through; a server tells its name only.
            if decision["type"] != "reject" or CallCancelled.__name__ not in repr(error):
                raise
        reviews = [each for each in self._open() if each.review_id != review.review_id]
        again = next((each for each in reviews if _call(each) == _call(review)), None)
        if again and again.attempt == review.attempt:
            self.screen.say(f"Not applied: {again.problem}", "bad")
            return ExitCode.ASKED_AGAIN
        if again:
            self.screen.say(f"Attempt {again.attempt} failed, too: {again.error}", "bad")
            self.screen.say(f"It waits for an answer as review {again.review_id}.")
        elif decision["type"] == "reject":
            self.screen.say("Cancelled.", "good")
        elif decision["type"] == "respond":
            self.screen.say("Finished with the output you gave.", "good")
        else:
            self.screen.say("Finished:", "good")
            self.screen.say(self._output(review, result))
        if more := len(reviews) - bool(again):
            self.screen.say(f"{more} more on this thread: {_listed(reviews)}.")
        return ExitCode.DONE

    def _send(self, review_id: str, decision: Decision) -> Any:
        signed: Any = {**decision, "channel": "terminal"} | ({"by": self.by} if self.by else {})
        return self.place.answer(self.thread_id, review_id, signed)

    def _output(self, review: PendingReview, result: Any) -> str:
        """Write the call's output, or the graph's where the call's own state is out of sight."""
        for ledger in self.place.ledgers(self.thread_id):
            if ledger.namespace == _call(review):
                result = ledger.value_at(ledger.attempts[-1]["number"])
        return json.dumps(result, indent=2, ensure_ascii=False, default=str)

    def _nothing(self) -> Stop:
        return Stop(ExitCode.NOTHING, f"nothing waits on thread {self.thread_id!r}.")


def _call(review: PendingReview) -> str:
    return str(review.value["checkpoint_ns"])


def _shown(review: PendingReview) -> dict[str, Any]:
    return review.params if review.suggested_params is None else review.suggested_params


def _listed(reviews: Sequence[PendingReview]) -> str:
    return ", ".join(
        f"{each.review_id} ({each.function_name}, attempt {each.attempt})" for each in reviews
    )
