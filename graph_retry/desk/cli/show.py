"""Write reviews and ledgers for a person, as tables and texts."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from graph_retry import PendingReview
from graph_retry.desk.cli.screen import Rows, Screen
from graph_retry.desk.texts import doubts_of, spoken
from graph_retry.ledger import Ledger, tokens_of
from graph_retry.plugins import as_text, excerpt, in_words, since
from graph_retry.records import Attempt, Failure, Issue
from graph_retry.reviews import output_read

INBOX = ("thread", "function", "review", "params", "attempt", "age", "expires", "error")
_ATTEMPTS = ("attempt", "author", "reason", "params", "outcome", "answer", "tokens", "time")


def inbox_rows(reviews: Sequence[PendingReview]) -> Rows:
    """Write each review as a row with the columns `INBOX`.

    After a fan-out, one thread may have several reviews of the same function. Their rows also show
    the review ids, and the params in which these reviews differ.
    """
    alike: dict[tuple[str | None, str], list[PendingReview]] = defaultdict(list)
    for review in reviews:
        alike[review.thread_id, review.function_name].append(review)
    return [
        (
            *(review.thread_id or "", review.function_name),
            *_marks(review, alike[review.thread_id, review.function_name]),
            *(str(review.attempt), _since(review.asked_at), _until(review.expires_at)),
            _brief(review.failure, review.issues),
        )
        for review in reviews
    ]


def _marks(review: PendingReview, alike: Sequence[PendingReview]) -> tuple[str, str]:
    if len(alike) == 1:
        return "", ""
    fields = [
        f"{name}={_text(value, 60)}"
        for name, value in review.params.items()
        if any(other.params.get(name, ...) != value for other in alike)
    ]
    return review.review_id[:8], " ".join(fields)


def as_json(review: PendingReview) -> str:
    """Write a review as one line of ASCII JSON, because other characters may control a terminal."""
    return json.dumps(review.to_json())


def show_review(screen: Screen, review: PendingReview) -> None:
    """Show one review: the failure or the valid output, the params, and the suggested change."""
    screen.title(review.headline)
    asked = f"thread {review.thread_id}, review {review.review_id}, asked {_since(review.asked_at)}"
    expires = f", expires {_until(review.expires_at)}" if review.expires_at else ""
    deferred = f", deferred until {review.deferred_until}" if review.deferred_until else ""
    screen.say(f"{asked} ago{expires}{deferred}", "quiet")
    if review.labels:
        screen.say(", ".join(f"{name}: {text}" for name, text in review.labels.items()), "quiet")
    if review.problem:
        screen.say(f"The last answer was not applied: {review.problem}", "bad")
    if review.value["note"]:
        screen.say(review.value["note"], "quiet")
    if review.failure is None:
        screen.say("The output is valid, and waits for approval:", "good")
        screen.quote(_text(review.output))
    elif review.issues and review.failure["kind"] == "invalid_schema":
        screen.say("What is wrong with the output:", "bad")
        show_issues(screen, review.issues, output_read(review))
    else:
        screen.say(review.error, "bad")
    if review.raw_output is not None and review.failure is not None:
        screen.say("The model wrote:")
        screen.quote(review.raw_output, "quiet")
    if doubts := doubts_of(review):
        screen.say("Look here first:", "bad")
        told = [(place(path, review.output), ", ".join(whys)) for path, whys in doubts.items()]
        screen.table(("field", "doubt"), told)
    for heading, text in review.quoted:
        if doubts and text == review.doubts:
            continue
        screen.say(f"{heading}:")
        screen.quote(excerpt(text, 400), "quiet")
    screen.say("Its params:")
    screen.table(
        ("field", "value"), [(name, _text(value)) for name, value in review.params.items()]
    )
    for number, params in enumerate(review.alternatives, start=1):
        screen.say(f"Alternative {number}: {_text(params)}")
    if review.diff:
        what = "Suggested for the next attempt:" if review.suggested_params else "Changed before:"
        screen.say(what, "good" if review.suggested_params else "plain")
        changes = [
            (
                place(change["path"], review.params),
                _text(change["before"]),
                _text(change["after"]),
            )
            for change in review.diff
        ]
        screen.table(("field", "before", "after"), changes)


def show_issues(screen: Screen, issues: Sequence[Issue], within: Any) -> None:
    """Show the issues of a value as a table, with the place of each issue."""
    rows = [
        (place(issue["path"], within), issue["message"], issue["received"] or "")
        for issue in issues
    ]
    screen.table(("field", "problem", "received"), rows)


def place(path: str, within: Any) -> str:
    """Name a place as the page does, and add its form for a typed change if this differs."""
    said = spoken(path, within)
    return said if path in ("", f"/{said}") else f"{said} ({path})"


def show_ledger(screen: Screen, ledger: Ledger) -> None:
    """Show every attempt of a call, with its author, changes, outcome and cost."""
    fork = "" if ledger.current else ", replaced by a fork"
    screen.title(f"Attempts of {ledger.title or 'a call'}{fork}")
    rows = [
        (
            str(attempt["number"]),
            "" if attempt["kept_in"] else attempt["author"],
            attempt["reason"] or "",
            _changes(ledger, attempt["number"]),
            _outcome(attempt),
            _decision(attempt),
            _tokens(attempt),
            "" if attempt["kept_in"] else f"{attempt['duration_s']:.1f} s",
        )
        for attempt in ledger.attempts
    ]
    screen.table(_ATTEMPTS, rows)


def _changes(ledger: Ledger, number: int) -> str:
    if number == ledger.attempts[0]["number"]:
        return "(first)"
    try:
        changes = ledger.params_diff(number)
    except ValueError:  # A checkpoint with the old or the new params was deleted.
        return "(not kept)"
    return "\n".join(
        f"{spoken(change['path'])}: {_text(change['before'], 100)} → {_text(change['after'], 100)}"
        for change in changes
    )


def _outcome(attempt: Attempt) -> str:
    failure = attempt["failure"]
    ended = _brief(failure, attempt["issues"]) if failure else attempt["status"]
    repairs = ", ".join(dict.fromkeys(repair["kind"] for repair in attempt["repairs"]))
    return f"{ended} (repaired: {repairs})" if repairs else ended


def _brief(failure: Failure | None, issues: Sequence[Issue]) -> str:
    if failure is None:
        return "awaits approval"
    wrong = ", ".join(spoken(issue["path"]) for issue in issues)
    why = wrong if failure["kind"] == "invalid_schema" else " ".join(failure["message"].split())
    return f"{failure['type']}: {excerpt(why, 200)}"


def _decision(attempt: Attempt) -> str:
    decision = attempt["decision"] or {}
    if not decision:
        return ""
    channel = f" ({decision['channel']})" if decision.get("channel") else ""
    return f"{decision['type']} by {decision.get('by') or decision['author']}{channel}"


def _tokens(attempt: Attempt) -> str:
    total = tokens_of(attempt)["total_tokens"]
    return "" if total is None else f"{total:,}"


def _since(moment: str | None) -> str:
    return "" if moment is None else in_words(since(moment))


def _until(moment: str | None) -> str:
    if moment is None:
        return ""
    return f"in {in_words(-since(moment))}" if since(moment) < 0 else "expired"


def _text(value: Any, limit: int = 2_000) -> str:
    return excerpt(as_text(value), limit)
