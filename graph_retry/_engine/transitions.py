"""The rules of the loop, as pure functions of data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from graph_retry._review.decision import CALLING_AGAIN
from graph_retry.records import Attempt

Automatic = Literal["retry", "ask", "give_up"]
Reviewed = bool | Literal["always"]
"""Which attempts a person may be asked about: none, failed ones, or valid outputs as well."""


def after_failure(
    *, changed: bool, stopped: bool, automatic: int, auto_retries: int, review: bool
) -> Automatic:
    """Decide what follows a failed attempt.

    A retry needs changed params, an allowance left and nothing that stops automation; otherwise a
    reviewer is asked, or the call gives up where nobody may be asked.

    Example:
        >>> rules = dict(stopped=False, auto_retries=1, review=True)
        >>> after_failure(changed=True, automatic=0, **rules)
        'retry'
        >>> after_failure(changed=True, automatic=1, **rules)
        'ask'
    """
    if changed and not stopped and automatic < auto_retries:
        return "retry"
    return "ask" if review else "give_up"


def after_success(*, review: Reviewed) -> Literal["ask", "end"]:
    """Decide what follows a valid output: it ends the call, or a reviewer sees it first.

    Example:
        >>> after_success(review=True), after_success(review="always")
        ('end', 'ask')
    """
    return "ask" if review == "always" else "end"


def goes_on(last: Attempt) -> bool:
    """Tell whether a further attempt may follow a ledger with this last one.

    Example:
        >>> goes_on({"status": "succeeded", "decision": None})
        False
        >>> goes_on({"status": "succeeded", "decision": {"type": "comment"}})
        True
    """
    decided = last["decision"] and last["decision"]["type"]
    if last["status"] == "failed":
        return decided is None or decided in CALLING_AGAIN
    return decided in ("edit", "comment")


def no_progress(attempts: Sequence[Attempt]) -> bool:
    """Tell whether the last two attempts failed in the same way, message and issues included."""
    last = [
        (attempt["failure"], [(issue["path"], issue["message"]) for issue in attempt["issues"]])
        for attempt in attempts[-2:]
    ]
    return len(last) == 2 and last[0] == last[1]


FOLLOWERS: dict[str, tuple[str, ...]] = {
    "call": ("repair", "validate", "revise", "review", "end", "give_up"),
    "repair": ("validate",),
    "validate": ("revise", "review", "end"),
    "revise": ("call", "review", "end", "give_up"),
    "review": ("call", "review", "end", "give_up"),
}
"""Which steps may follow which; the graph is drawn from it."""
