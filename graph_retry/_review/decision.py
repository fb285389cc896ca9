"""Decisions in their canonical form, and the constructors people write in code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired, cast

from typing_extensions import TypedDict

DecisionType = Literal["approve", "edit", "reject", "respond", "comment", "accept"]
DECISION_TYPES: tuple[DecisionType, ...] = (
    "approve",
    "edit",
    "reject",
    "respond",
    "comment",
    "accept",
)
CALLING_AGAIN: tuple[DecisionType, ...] = ("approve", "edit", "comment")
"""What leads to another call; of a valid output an approval is not among them."""


class Decision(TypedDict):
    """What a person or an agent decided about one review.

    `params` (edit) is partial: it is merged onto what was shown. `message` is the reason (of any
    decision), of a comment what the model is told. `output` (respond) is validated like the
    model's. `attempt` and `review_id` bind the decision to one question; `decision_id` makes a
    repeated delivery recognisable; `by` names the author and `channel` what it came through
    (default: told by the answer's shape).
    """

    type: DecisionType
    params: NotRequired[Any]
    message: NotRequired[str | None]
    output: NotRequired[Any]
    attempt: NotRequired[int]
    review_id: NotRequired[str]
    decision_id: NotRequired[str]
    by: NotRequired[str]
    channel: NotRequired[str]


Answer = Mapping[str, Any] | Sequence[Any] | str | bool | None
"""What a review may be answered with: a `Decision`, or what a client sends instead of one.

A function, such as `approve` without its parentheses, is none: type checkers say so.
"""


def approve() -> Decision:
    """Retry with the suggested params if there are any, else with the same ones.

    Where a valid output is reviewed (the option `review`), take it: nothing is called.

    Example:
        >>> approve()
        {'type': 'approve'}
    """
    return {"type": "approve"}


def edit(params: dict[str, Any] | None = None, /, **changes: Any) -> Decision:
    """Retry with some fields changed; the others stay as they were shown.

    One that changes nothing, be it empty or with the values that are there already, counts as
    `approve()`: the call is made again with what is shown. Of a valid output it is a call, too.

    Example:
        >>> edit(temperature=0.0)
        {'type': 'edit', 'params': {'temperature': 0.0}}
    """
    given = cast("object", params)
    if given is not None and not isinstance(given, Mapping):
        came = type(given).__name__
        raise TypeError(f"`edit` takes a dict of what changes, or keywords, not a `{came}`.")
    return {"type": "edit", "params": {**(params or {}), **changes}}


def reject(reason: str | None = None) -> Decision:
    """Give the call up, with a reason for the record.

    Example:
        >>> reject("the input has no invoice in it")
        {'type': 'reject', 'message': 'the input has no invoice in it'}
    """
    return {"type": "reject", "message": reason}


def respond(output: Any) -> Decision:
    """Supply the output by hand; it is validated like the model's.

    Example:
        >>> respond({"name": "Ada"})
        {'type': 'respond', 'output': {'name': 'Ada'}}
    """
    return {"type": "respond", "output": output}


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
