"""The decisions of people and agents, the functions that make them, and the reviewers."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Literal, NotRequired, Protocol, cast

from langchain_core.runnables import Runnable
from typing_extensions import TypedDict

from graph_retry._review.review import Review

DecisionType = Literal[
    "approve", "edit", "reject", "respond", "comment", "accept", "defer", "assign"
]


class Decision(TypedDict):
    """The decision of a person or an agent about one review.

    `params` (edit) is partial: it is merged onto what was shown. `message` is the reason (of any
    decision), of a comment what the model is told. `output` (respond) is validated like the
    model's; `changes` and `replace` (respond) change a part of the one that was read. `attempt` and
    `review_id` bind the decision to one question; `decision_id` makes a repeated delivery
    recognisable; `by` names the author and `channel` what it came through (default: told by the
    answer's shape). `until` (defer) is ISO 8601, and `to` (assign) names somebody.
    """

    type: DecisionType
    params: NotRequired[Any]
    message: NotRequired[str | None]
    output: NotRequired[Any]
    choice: NotRequired[int]
    changes: NotRequired[dict[str, Any]]
    replace: NotRequired[dict[str, str]]
    until: NotRequired[str]
    to: NotRequired[str]
    attempt: NotRequired[int]
    review_id: NotRequired[str]
    decision_id: NotRequired[str]
    by: NotRequired[str]
    channel: NotRequired[str]


Answer = Mapping[str, Any] | Sequence[Any] | str | bool | None
"""An answer to a review: a `Decision`, or a client's form of one.

A function, such as `approve` without its parentheses, is none: type checkers say so.
"""


def approve(choice: int | None = None) -> Decision:
    """Call again with the suggested params, or with the same ones if there is no suggestion.

    If a hook gave `Alternatives`, `choice` is the number of the one to take. If a valid output is
    reviewed (the option `review`), the output is taken, and no model is called.

    Example:
        >>> approve()
        {'type': 'approve'}
    """
    return {"type": "approve"} if choice is None else {"type": "approve", "choice": choice}


def edit(params: dict[str, Any] | None = None, /, **changes: Any) -> Decision:
    """Retry with some fields changed; the others stay as they were shown.

    An edit that changes nothing is an approval, and the ledger says `approve`.

    Example:
        >>> edit(temperature=0.0)
        {'type': 'edit', 'params': {'temperature': 0.0}}
    """
    given = cast("object", params)
    if given is not None and not isinstance(given, Mapping):
        raise TypeError(
            f"`edit` takes a dict of what changes, or keywords, not a `{type(given).__name__}`. "
            "Params that are one bare value are edited with `edit(value=…)`."
        )
    return {"type": "edit", "params": {**(params or {}), **changes}}


def reject(reason: str | None = None) -> Decision:
    """Give the call up, with a reason for the record.

    Example:
        >>> reject("the input has no invoice in it")
        {'type': 'reject', 'message': 'the input has no invoice in it'}
    """
    return {"type": "reject", "message": reason}


def respond(
    output: Any = ...,
    *,
    changes: dict[str, Any] | None = None,
    replace: dict[str, str] | None = None,
) -> Decision:
    """Supply the output by hand, or a part of it; the whole is validated like the model's.

    Args:
        output: The whole output.
        changes: Fields to change in the output that was read, valid or not; the others stay. They
            are merged as the fields of an edit are.
        replace: Words to replace in that output's texts, and the words to put there. Each must
            occur once.

    Raises:
        TypeError: If neither a whole nor a part is given, or both are.

    Example:
        >>> respond({"name": "Ada"})
        {'type': 'respond', 'output': {'name': 'Ada'}}
        >>> respond(changes={"age": 36}, replace={"Monday": "Tuesday"})
        {'type': 'respond', 'changes': {'age': 36}, 'replace': {'Monday': 'Tuesday'}}
    """
    decision: Decision = {"type": "respond"}
    if changes is not None:
        decision["changes"] = changes
    if replace is not None:
        decision["replace"] = replace
    if (output is ...) == (len(decision) == 1):
        raise TypeError("`respond` takes either a whole output, or `changes` and `replace`.")
    if output is not ...:
        decision["output"] = output
    return decision


def comment(message: str) -> Decision:
    """Tell the model something, in the prompt or messages of the params, and call it again.

    Example:
        >>> comment("the total is on the second page")
        {'type': 'comment', 'message': 'the total is on the second page'}
    """
    return {"type": "comment", "message": message}


def accept(reason: str | None = None) -> Decision:
    """Take an output that is not valid as it is; only where `allowed_decisions` has `accept`.

    The call then ends `overruled`, with the JSON that was read.

    Example:
        >>> accept("a total of zero is right here")
        {'type': 'accept', 'message': 'a total of zero is right here'}
    """
    return {"type": "accept", "message": reason}


def defer(until: str) -> Decision:
    """Leave a review open, and out of the inbox until a time (ISO 8601, in UTC unless it says).

    It comes back by itself, and can be answered before. Only where `allowed_decisions` has `defer`.

    Example:
        >>> defer("2030-05-01T08:00")
        {'type': 'defer', 'until': '2030-05-01T08:00'}
    """
    return {"type": "defer", "until": until}


def assign(to: str) -> Decision:
    """Set the label `assignee` of a review, which stays open.

    Only where `allowed_decisions` has `assign`.

    Example:
        >>> assign("ada")
        {'type': 'assign', 'to': 'ada'}
    """
    return {"type": "assign", "to": to}


class ReviewFunction(Protocol):
    """A reviewer as a function, sync or async."""

    def __call__(self, review: Review, /) -> Decision | Awaitable[Decision | None] | None:
        """Decide about a review.

        Args:
            review: The open question. Changing it changes nothing: the decision is all that counts.

        Returns:
            A decision (`approve()`, `edit(…)`, `comment(…)`, …, or its JSON), which is judged like
            a person's answer; or None to leave it to the next reviewer, at last to a person. What
            cannot be applied, and an exception, is shown to the person.
        """
        ...


Reviewer = ReviewFunction | Runnable[Review, Decision | None]
"""A reviewer that decides before a person is asked: a function, or a LangChain runnable."""
