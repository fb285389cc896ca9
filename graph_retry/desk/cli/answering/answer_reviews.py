"""Answer the reviews of a thread from the console, and print the results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from graph_retry import PendingReview
from graph_retry.desk.cli.answering.decide import Draft, UnreadableError, completed, from_line, ways
from graph_retry.desk.cli.exits import ExitCode, Stop
from graph_retry.desk.cli.screen import Screen
from graph_retry.desk.cli.show import show_issues, show_review
from graph_retry.desk.cli.source import Source
from graph_retry.errors import AnswerRefused, StaleDecision
from graph_retry.plugins import as_repr, counted
from graph_retry.reviews import DECISIONS, Decision, output_read


@dataclass
class Desk:
    """The dialog of the console: it asks about reviews, and sends answers in the name of `by`."""

    source: Source
    screen: Screen
    by: str | None
    _explained: list[str] = field(default_factory=list[str])

    def walk(self) -> ExitCode:
        """Ask the person at the terminal about every thread of the inbox, including new threads.

        Raises:
            Stop: If no review is open.
        """
        code, seen = ExitCode.DONE, set[str]()
        while threads := list(dict.fromkeys(str(one.thread_id) for one in self.source.inbox())):
            new = [thread for thread in threads if thread not in seen]
            if not new:
                left = counted(len(threads), "thread stays", "threads stay")
                self.screen.say(f"{left} open.", "quiet")
                return code
            for thread_id in new:
                seen.add(thread_id)
                try:
                    code = self.ask(thread_id, None) or code
                except (StaleDecision, Stop) as closed:
                    self.screen.say(closed.message, "bad")
        if not seen:
            raise Stop(ExitCode.NOTHING, "nothing waits.")
        self.screen.say("No review is open any more.", "good")
        return code

    def ask(self, thread_id: str, review_id: str | None) -> ExitCode:
        """Ask the person at the terminal about a thread's open reviews.

        A `review_id` limits the questions to the reviews of its call, including later attempts.

        Raises:
            Stop: If no review of the thread is open. The message says who answered the last review.
        """
        reviews = self._open(thread_id, review_id)
        if not reviews:
            raise self._nothing(thread_id)
        calls = {review.namespace for review in reviews}
        code, done, shown, draft = ExitCode.DONE, set[str](), ("", 0), Draft()
        while reviews:
            review = reviews[0]
            if shown != (shown := (review.namespace, review.attempt)):
                show_review(self.screen, review)
                self._explain(review)
                draft = Draft()
            if decision := self._typed(review, draft):
                code = self._answer(thread_id, review, decision)
                if code and draft.text:
                    again = f"edit {draft.path}".strip()
                    self.screen.say(f"Type {again} to continue with your text.")
            done.add(review.review_id)  # A server may still list an answered review.
            reviews = [
                review
                for review in self.source.reviews(thread_id)
                if review.review_id not in done and (review_id is None or review.namespace in calls)
            ]
        return code

    def give(
        self,
        thread_id: str,
        review_id: str | None,
        decide: Callable[[dict[str, Any], Any], Decision],
    ) -> ExitCode:
        """Answer one review. `decide` makes the decision from the shown params and output.

        Raises:
            Stop: If no review is open, or if several are open and `review_id` is not given.
            StaleDecision: If the named review is no longer open.
        """
        reviews = self._open(thread_id, review_id)
        if len(reviews) > 1:
            raise Stop(ExitCode.USAGE, f"choose one with `--review`: {_listed(reviews)}.")
        if reviews:
            decision = decide(reviews[0].shown, output_read(reviews[0]))
            return self._answer(thread_id, reviews[0], decision)
        if review_id is not None:  # This raises `StaleDecision`, which names the earlier author.
            self.source.answer(thread_id, {review_id: decide({}, None)}, self.by)
        raise self._nothing(thread_id)

    def go_on(self, thread_id: str) -> None:
        """Continue a thread without an answer, and print the result.

        Raises:
            Stop: If the thread has no step left to run.
        """
        if not self.source.standing(thread_id).is_unfinished:
            raise Stop(
                ExitCode.NOTHING, f"thread {as_repr(thread_id)} has ended: no step is left to run."
            )
        with self.screen.working() as tell:
            result = self.source.go_on(thread_id, tell)
        if reviews := self.source.reviews(thread_id):
            self.screen.say(f"It waits for an answer: {_listed(reviews)}.")
        elif standing := self.source.standing(thread_id).told:
            self.screen.say(standing)
        elif not (ledgers := [one for one in self.source.ledgers(thread_id) if one.current]):
            self.screen.say("Finished.", "good")  # Nothing tells whether a call redacts its texts.
        else:
            if len(ledgers) == 1 and ledgers[0].has_output:
                result = ledgers[0].value_at(ledgers[0].attempts[-1]["number"])
            records = chain.from_iterable(one.attempts for one in ledgers)
            self._show_output(result, redacted=any(one.get("redacted") for one in records))

    def _open(self, thread_id: str, review_id: str | None) -> list[PendingReview]:
        """List a thread's open reviews. With `review_id`, only those whose ids begin with it."""
        reviews = self.source.reviews(thread_id)
        named = [review for review in reviews if review_id == review.review_id]
        return named or [one for one in reviews if one.review_id.startswith(review_id or "")]

    def _typed(self, review: PendingReview, draft: Draft) -> Decision | None:
        """Read lines until one is a decision. Return None if the person skips this review."""
        offered = review.allowed_decisions
        while True:
            try:
                line = completed(input("answer> ").strip(), offered)
                word = line.partition(" ")[0]
                if word == "skip":
                    return None
                if word == "help":
                    self._explain(review, anew=True)
                elif line:
                    words = [*offered, "skip", "help"]
                    return from_line(line, review.shown, draft, words, output_read(review))
            except UnreadableError as problem:
                self.screen.say(f"Not understood: {problem}", "bad")

    def _explain(self, review: PendingReview, *, anew: bool = False) -> None:
        """Print the offered decisions. Equal explanations are printed in full only once."""
        offered = review.allowed_decisions
        text = ways(offered, review)
        if anew or text not in self._explained:
            self._explained.append(text)
            self.screen.say(text)
        else:
            self.screen.say(f"{', '.join([*offered, 'skip'])}; ? explains them", "quiet")

    def _answer(self, thread_id: str, review: PendingReview, decision: Decision) -> ExitCode:
        try:
            with self.screen.working() as tell:
                result = self.source.answer(thread_id, {review.review_id: decision}, self.by, tell)
        except AnswerRefused as refused:
            why, *rest = refused.message.splitlines()
            self.screen.say(f"Not applied: {why}", "bad")
            if rest and refused.issues:
                sent = decision.get("output", decision.get("params"))
                show_issues(self.screen, refused.issues, sent)
            elif rest:
                self.screen.say("\n".join(rest), "bad")
            if refused.review_ids and not self.screen.has_person:
                ids = ", ".join(refused.review_ids)
                self.screen.say(f"It is asked again as review {ids}.")
            return ExitCode.ASKED_AGAIN
        reviews = self.source.reviews(thread_id)
        others = [other for other in reviews if other.review_id != review.review_id]
        again = next((other for other in others if other.namespace == review.namespace), None)
        if again:
            if again.attempt != review.attempt:
                self._tell_attempt(again.attempt, again.error)
            until = f", deferred until {again.deferred_until}" if again.deferred_until else ""
            self.screen.say(f"It waits for an answer as review {again.review_id}{until}.")
        elif (row := DECISIONS[decision["type"]]).outcome and row.done:
            self.screen.say(" ".join(row.done).format(**decision), "good")
        else:
            self._show_end(thread_id, review, result)
        if more := [other for other in others if other is not again]:
            self.screen.say(f"{len(more)} more on this thread: {_listed(more)}.")
        elif not again and (other := self.source.standing(thread_id).other):
            self.screen.say(f"The thread waits for {other}.")
        return ExitCode.DONE

    def _tell_attempt(self, number: int, error: str) -> None:
        if error:
            self.screen.say(f"Attempt {number} failed, too: {error}", "bad")
        else:
            self.screen.say(f"The output of attempt {number} is valid.", "good")

    def _show_end(self, thread_id: str, review: PendingReview, result: Any) -> None:
        """Print the call's output, or the graph's state if the call has no ledger."""
        ledgers = self.source.ledgers(thread_id)
        here = [one for one in ledgers if one.current and one.namespace == review.namespace]
        ledger = here[0] if here else None
        if ledger is not None:
            last = ledger.attempts[-1]
            if ledger.outcome == "waiting":
                failure = last["failure"]
                error = f"{failure['type']}: {failure['message']}" if failure else ""
                self._tell_attempt(last["number"], error)
                waits = "Its review opens when the other reviews of this thread are answered."
                return self.screen.say(waits)
            result = ledger.value_at(last["number"])
        return self._show_output(result, redacted=bool(review.value.get("redacted")))

    def _show_output(self, result: Any, *, redacted: bool) -> None:
        if redacted:
            hidden = "Finished. The output is not shown: this call redacts its texts."
            self.screen.say(hidden, "good")
        else:
            self.screen.say("Finished:", "good")
            self.screen.json(result)

    def _nothing(self, thread_id: str) -> Stop:
        by_whom = self.source.closed_by(thread_id)
        why = ": ".join(
            filter(None, (f"no review is open on thread {as_repr(thread_id)}", by_whom))
        )
        code = ExitCode.STALE if by_whom else ExitCode.NOTHING
        return Stop(code, f"{why}. {self.source.standing(thread_id).told}".rstrip())


def _listed(reviews: Sequence[PendingReview]) -> str:
    return ", ".join(
        f"{review.review_id} ({review.function_name}, attempt {review.attempt})"
        for review in reviews
    )
