"""The rules of the loop as pure functions: the next step, and who may call the model again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from langgraph.graph import END

from graph_retry._core.review.decisions import ROWS
from graph_retry._core.state.attempts import params_at
from graph_retry._core.state.position import ANSWER, loop_of
from graph_retry.records import Attempt, author_role

Automatic = Literal["retry", "ask", "give_up"]


def after_failure(
    *, changed: bool, stopped: bool, automatic: int, auto_retries: int, review: bool
) -> Automatic:
    """Choose the step after a failed attempt.

    The call retries automatically if its params have changed, automation has not stopped, and
    `auto_retries` allows one more retry. Otherwise, a reviewer is asked if `review` is true. If
    `review` is false, the call gives up.

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
    """Return why an automatic author may not call the model with the next params, or None.

    This rule prevents blind retries by hooks, feedback, automatic reviewers and the default
    decision of an expired review. It does not apply to people.

    Args:
        attempts: The ledger so far.
        author: The author of the next params, as the ledger names authors.
        sent: The number of attempts that were made with the next params. A hook may never repeat
            params. An automatic reviewer may repeat params once, because the failure may have
            happened by chance.
        max_attempts: Maximum number of attempts. The last attempt is reserved for a person.
        person: Whether a person may be asked. Without a person, automation may use all attempts,
            and may try changed params even after two equal failures.
        spent: The budget or limit that is used up, in words; None if nothing is used up.
        new_means: Whether a hook switches to different means, such as a larger model. Such a hook
            may try even after two equal failures.

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
    # If hooks make no progress, an automatic reviewer may still decide once.
    is_stuck = not decides or _decides(attempts[-1]["author"])
    if person and is_stuck and not new_means and no_progress(attempts):
        return "the last two attempts failed in the same way"
    if sent > (1 if decides else 0):
        return "attempts were made with these params before"
    is_last = person and number == max_attempts - 1
    return spent or ("the last attempt is kept for a person" if is_last else None)


def _decides(author: str) -> bool:
    """Return whether an author is an automatic reviewer or a default decision."""
    return author_role(author) in ("agent", "system")


def goes_on(last: Attempt) -> bool:
    """Return whether the call may make another attempt after the attempt `last`.

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
    """Return whether the last two attempts failed with equal failures, messages and issues."""
    last = [
        (attempt["failure"], [(issue["path"], issue["message"]) for issue in attempt["issues"]])
        for attempt in attempts[-2:]
    ]
    return len(last) == 2 and last[0] == last[1] and last[0][0] is not None


def repeated_answer(attempts: Sequence[Attempt]) -> int | None:
    """Return the number of the newest earlier attempt with the last attempt's answer, or None.

    Example:
        >>> said = lambda number, text: {"number": number, "raw": {"text": text}}
        >>> repeated_answer([said(1, "no"), said(2, "none"), said(3, "no")])
        1
    """
    last = attempts[-1]["raw"]
    earlier = (each for each in reversed(attempts[:-1]) if last and each["raw"] == last)
    return next((each["number"] for each in earlier), None)


FOLLOWERS: dict[str, tuple[str, ...]] = {
    "call": ("repair", "validate", "revise", "review", "end", "give_up"),
    "repair": ("validate",),
    "validate": ("revise", "review", "end"),
    "revise": ("call", "review", "end", "give_up"),
    "review": ("call", "review", "end", "give_up"),
}
"""The steps that may follow each step. The subgraph's edges are made from this table."""

WITH_OUTPUT = ("succeeded", "overruled")
"""The statuses of calls that ended with an output."""


def next_step(state: Mapping[str, Any], keys: Mapping[str, str], *, raises: bool) -> str:
    """Return the name of the node that follows in a state.

    If `raises` is set, a call without an output goes to the node `give_up`, which raises the call's
    error.
    """
    following, status = loop_of(state)["next"], state.get(keys["status"])
    if following != "end":
        return following
    return "give_up" if raises and status not in WITH_OUTPUT else END


def next_after_edit(state: Mapping[str, Any], keys: Mapping[str, str], *, raises: bool) -> str:
    """Return the step that follows a state that somebody has edited, for example in Studio.

    If the params were edited while a question was open, the step `call` follows.
    """
    following = next_step(state, keys, raises=raises)
    if following == "review" and state.get(ANSWER) is None:
        asked = params_at(state[keys["attempts"]])
        if asked is not None and state[keys["params"]] != asked.view:
            return "call"
    return following
