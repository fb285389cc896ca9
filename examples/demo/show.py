"""A review and a ledger, as a person sees them."""

import json
from collections.abc import Sequence
from typing import Any

from examples.demo.screen import Screen
from graph_retry import Attempt, PendingReview


def show_review(screen: Screen, review: PendingReview) -> None:
    """Show what failed, what is known about it, and what would be tried next."""
    kind = review.failure["type"]
    screen.title(f"{review.function_name} failed (attempt {review.attempt}): {kind}")
    if review.issues and review.failure["kind"] == "invalid_schema":
        screen.say("What is wrong with the output:", "bad")
        screen.table(
            ("field", "problem", "received"),
            [(issue["path"], issue["message"], issue["received"] or "") for issue in review.issues],
        )
    else:
        screen.say(review.error, "bad")
    if review.value["raw_output"] is not None:
        screen.say("The model wrote:")
        screen.say(f"  {review.value['raw_output']}", "quiet")
    screen.say("Its params:")
    screen.table(
        ("field", "value"), [(name, _text(value)) for name, value in review.params.items()]
    )
    if review.diff:
        told = "Suggested for the next attempt:" if review.suggested_params else "Changed before:"
        screen.say(told, "good" if review.suggested_params else "plain")
        screen.table(
            ("field", "before", "after"),
            [
                (change["path"], _text(change["before"]), _text(change["after"]))
                for change in review.diff
            ],
        )


def show_ledger(screen: Screen, attempts: Sequence[Attempt]) -> None:
    """Show every attempt: who changed what for it, and how it ended."""
    screen.title("Ledger")
    rows = [
        (
            str(attempt["number"]),
            attempt["status"],
            _changes(attempt),
            attempt["author"],
            _failure(attempt),
            (attempt["decision"] or {}).get("type", ""),
        )
        for attempt in attempts
    ]
    screen.table(("attempt", "status", "what changed", "author", "failure", "decision"), rows)
    for attempt in attempts:
        if attempt["repairs"]:
            kinds = ", ".join(repair["kind"] for repair in attempt["repairs"])
            screen.say(f"Repaired in attempt {attempt['number']}: {kinds}.", "quiet")


def _changes(attempt: Attempt) -> str:
    if attempt["number"] == 1:
        return "(the first params)"
    changes = [
        f"{change['path']} = {_text(change.get('value'), 60)}" for change in attempt["params_patch"]
    ]
    return "\n".join(changes) or "(nothing)"


def _failure(attempt: Attempt) -> str:
    failure = attempt["failure"]
    if failure is None:
        return ""
    if failure["kind"] == "invalid_schema":
        wrong = ", ".join(issue["path"] or "(whole value)" for issue in attempt["issues"])
        return f"{failure['type']}: {wrong}"
    return f"{failure['type']}: {failure['message'][:200]}"


def _text(value: Any, limit: int = 400) -> str:
    """Write a value; of a long one the end, which is where a prompt was changed."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= limit else f"…{text[1 - limit :]}"
