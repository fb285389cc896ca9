"""The rules of the loop, as pure functions of data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from graph_retry._review.decisions import ROWS
from graph_retry.records import Attempt

Automatic = Literal["retry", "ask", "give_up"]
Reviewed = bool | Literal["always"]
"""Which attempts a person may be asked about: none, failed ones, or valid outputs as well."""


def after_failure(
    *, changed: bool, stopped: bool, automatic: int, auto_retries: int, review: bool
) -> Automatic:
    """Choose the step after a failed attempt.

    A retry needs changed params and a remaining automatic attempt, and nothing may have stopped
    automation. Otherwise a reviewer is asked. If nobody may be asked, the call gives up.

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


def why_no_call(
    attempts: Sequence[Attempt],
    author: str,
    *,
    sent: int,
    max_attempts: int,
    person: bool,
    spent: str | None = None,
    new_means: bool = False,
) -> str | None:
    """Say why no automatic author may send the next params, if none may: no blind retry (I2).

    The rule is the same for a hook, feedback, a reviewer and the default of an expired review. It
    binds no person.

    Args:
        attempts: The ledger so far.
        author: Who wants to send, as the ledger names authors.
        sent: How many of these attempts were made with the same params. Hooks never send params
            again. A reviewer may decide to, once: the failure may have been an accident.
        max_attempts: Attempts at most. The last one is a person's.
        person: Whether a person may be asked. Where nobody may, every attempt can be used, and
            changed params may also be tried after two equal failures.
        spent: Which budget or allowance is used up, if one is.
        new_means: Whether a hook goes over to other means, such as a larger model: that is tried
            after two equal failures.

    Example:
        >>> failed = {"number": 1, "author": "caller", "failure": {"type": "E"}, "issues": []}
        >>> again = {**failed, "number": 2, "author": "agent:approver"}
        >>> rules = dict(max_attempts=10, person=True)
        >>> why_no_call([failed], "agent:approver", sent=1, **rules)
        >>> why_no_call([failed, again], "agent:approver", sent=0, **rules)
        'the last two attempts failed in the same way'
        >>> why_no_call([failed], "hook:echo", sent=1, **rules)
        'attempts were made with these params before'
    """
    number, decides = attempts[-1]["number"], _decides(author)
    if number >= max_attempts:
        return "the only attempt is used" if number == 1 else f"all {number} attempts are used"
    # If hooks make no progress, a reviewer agent may still decide once.
    is_stuck = not decides or _decides(attempts[-1]["author"])
    if person and is_stuck and not new_means and no_progress(attempts):
        return "the last two attempts failed in the same way"
    if sent > (1 if decides else 0):
        return "attempts were made with these params before"
    is_last = person and number == max_attempts - 1
    return spent or ("the last attempt is kept for a person" if is_last else None)


def _decides(author: str) -> bool:
    """Return whether an author is an automatic reviewer or an expired review, and not a hook."""
    return author.partition(":")[0] in ("agent", "system")


def after_success(*, review: Reviewed) -> Literal["ask", "end"]:
    """Choose the step after a valid output: the end of the call, or a review.

    Example:
        >>> after_success(review=True), after_success(review="always")
        ('end', 'ask')
    """
    return "ask" if review == "always" else "end"


def goes_on(last: Attempt) -> bool:
    """Return whether another attempt may follow this last one.

    Example:
        >>> goes_on({"status": "succeeded", "decision": None})
        False
        >>> goes_on({"status": "succeeded", "decision": {"type": "comment"}})
        True
    """
    if last["decision"] is None:
        return last["status"] == "failed"
    return ROWS[last["decision"]["type"]].calls[last["status"] == "succeeded"]


def no_progress(attempts: Sequence[Attempt]) -> bool:
    """Return whether the last two attempts failed alike, message and issues included."""
    last = [
        (attempt["failure"], [(issue["path"], issue["message"]) for issue in attempt["issues"]])
        for attempt in attempts[-2:]
    ]
    return len(last) == 2 and last[0] == last[1] and last[0][0] is not None


FOLLOWERS: dict[str, tuple[str, ...]] = {
    "call": ("repair", "validate", "revise", "review", "end", "give_up"),
    "repair": ("validate",),
    "validate": ("revise", "review", "end"),
    "revise": ("call", "review", "end", "give_up"),
    "review": ("call", "review", "end", "give_up"),
}
"""Which steps may follow which; the graph is drawn from it."""
