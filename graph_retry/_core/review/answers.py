"""Decisions about a review, and the functions that make them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NotRequired, cast

from typing_extensions import TypedDict

from graph_retry._core.ground.functions.arguments import (
    Count,
    Moment,
    Name,
    WrongArgumentError,
    checked,
)
from graph_retry._core.ground.issues import as_json
from graph_retry._core.review.deadline import utc
from graph_retry.lossless._ground import as_repr

ValidDecisionType = Literal["approve", "edit", "reject", "respond", "comment", "defer", "assign"]
"""The decisions after which an output is always of the call's output type."""

DecisionType = Literal[ValidDecisionType, "accept"]


class Decision(TypedDict):
    """The decision of a person or an agent about one review.

    type: The word of the decision.
    params: For `edit`: the changed fields, merged onto the shown params.
    output: For `respond`: a whole output, validated like the model's.
    changes: For `respond`: fields to change in the output that was read.
    replace: For `respond`: new words by the old words of this output.
    drop: For `respond`: JSON Pointers of keys to remove from this output.
    move: For `respond`: True to move keys of this output out of wrong objects.
    choice: For `approve`: the number of an alternative.
    message: The reason of a decision, or the comment for the model.
    until: For `defer`: a time in ISO 8601.
    to: For `assign`: a person's name.
    attempt: Binds the decision to this attempt.
    review_id: Binds the decision to this question.
    decision_id: An id by which a second delivery of the same decision is recognised.
    by: The author.
    channel: The client (default: known by the form of the answer).
    """

    type: DecisionType
    params: NotRequired[Any]
    message: NotRequired[str | None]
    output: NotRequired[Any]
    choice: NotRequired[int]
    changes: NotRequired[dict[str, Any]]
    replace: NotRequired[dict[str, str]]
    drop: NotRequired[list[str]]
    move: NotRequired[bool]
    until: NotRequired[str]
    to: NotRequired[str]
    attempt: NotRequired[int]
    review_id: NotRequired[str]
    decision_id: NotRequired[str]
    by: NotRequired[str]
    channel: NotRequired[str]


_FIELDS = "a dict of the fields to change (`edit(value=…)` for params that are a single value)"
_HOW = (
    "the result of `approve()`, `edit(…)` or `reject(…)`, or JSON (the value for "
    "`Command(resume=…)`)"
)
_Edited = Annotated[Mapping[str, Any], _FIELDS]
Answer = Annotated[Mapping[str, Any] | Sequence[Any] | str | float | bool | None, _HOW]
"""An answer to a review: a `Decision`, or any JSON that a client sends."""


class _ByReview:
    """The rule that a dict has a decision for each review, and is not a decision itself."""

    hint = " Give a single decision as `decision=`."

    def holds(self, value: Mapping[str, Any]) -> bool:
        """Say whether no key is a key of a decision. A review id never is."""
        return value.keys().isdisjoint(("action", *Decision.__annotations__))


Answers = Annotated[Mapping[str, Answer], _ByReview(), "a dict {review_id: decision}"]
"""Answers to several reviews, by review id or interrupt id."""


@checked
def approve(choice: Count | None = None) -> Decision:
    """Call again with the suggested params, or with the same params if there is no suggestion.

    If a hook gave `Alternatives`, `choice` is the number of one of them (from 1). In the review of
    a valid output (see the option `review`), an approval takes the output without another call.

    Example:
        >>> approve()
        {'type': 'approve'}
    """
    return {"type": "approve"} if choice is None else {"type": "approve", "choice": choice}


@checked
def edit(params: _Edited | None = None, /, **changes: Any) -> Decision:
    """Call again with some fields of the params changed. The other fields stay as shown.

    An edit without any change counts as an approval, and the ledger records `approve`.

    Raises:
        WrongArgumentError: If no field is given.

    Example:
        >>> edit(temperature=0.0)
        {'type': 'edit', 'params': {'temperature': 0.0}}
    """
    if not (params or changes):
        raise WrongArgumentError(
            "`edit` has no field to change: write `edit(model=…)`, or `approve()`."
        )
    return {"type": "edit", "params": {**(params or {}), **changes}}


@checked
def reject(reason: str | None = None) -> Decision:
    """Stop the call without an output, with a reason for the ledger.

    Example:
        >>> reject("the input has no invoice in it")
        {'type': 'reject', 'message': 'the input has no invoice in it'}
    """
    return {"type": "reject", "message": reason}


@checked
def respond(
    output: Any = ...,
    *,
    changes: dict[str, Any] | None = None,
    replace: dict[str, str] | None = None,
    drop: list[str] | None = None,
    move: bool = False,
) -> Decision:
    """Supply the output, or change parts of it. The result is validated like the model's output.

    Args:
        output: The whole output. A model, a dataclass or a date is converted to JSON, under the
            aliases of its type. The call's output type reads this JSON. If the call has no output
            type, the call returns the JSON.
        changes: Fields to change in the output that was read, valid or not. The changes are merged
            as in an edit, and the other fields stay.
        replace: A dict `{old words: new words}` for the texts of the output that was read. Each old
            text must occur exactly once.
        drop: Keys and items to remove from the output that was read, as JSON Pointers such as
            `/lines/0/note` (the paths of issues). If `changes`, `replace`, `drop` or `move` is
            given, keys that the schema forbids are removed as well, and the ledger lists these keys
            in `drop`.
        move: True to move keys from a wrong object to the place that the issue `misplaced` names.

    Raises:
        TypeError: If `output` is given together with one of the others, or if nothing is given.

    Example:
        >>> respond({"name": "Ada"})
        {'type': 'respond', 'output': {'name': 'Ada'}}
        >>> respond(changes={"age": 36}, replace={"Monday": "Tuesday"})
        {'type': 'respond', 'changes': {'age': 36}, 'replace': {'Monday': 'Tuesday'}}
    """
    parts = {"changes": changes, "replace": replace, "drop": drop, "move": move or None}
    given = {name: part for name, part in parts.items() if part is not None}
    if (output is ...) == (not given):
        names = "`changes`, `replace`, `drop` or `move`"
        raise TypeError(f"`respond` takes either a whole `output`, or changes of it: {names}.")
    decision = cast("Decision", {"type": "respond", **given})
    if output is not ...:
        decision["output"] = as_json(output)
    return decision


@checked
def comment(message: Name) -> Decision:
    """Add a message for the model to the params' prompt or messages, and call again.

    Example:
        >>> comment("the total is on the second page")
        {'type': 'comment', 'message': 'the total is on the second page'}
    """
    return {"type": "comment", "message": message}


@checked
def accept(reason: str | None = None) -> Decision:
    """Take an invalid output unchanged. The option `allowed_decisions` must allow `accept`.

    The call ends with the status `overruled`, and returns the JSON that was read.

    Example:
        >>> accept("a total of zero is right here")
        {'type': 'accept', 'message': 'a total of zero is right here'}
    """
    return {"type": "accept", "message": reason}


@checked
def defer(until: Moment) -> Decision:
    """Hide an open review from the inbox until a time (ISO 8601; UTC if it has no zone).

    The review can still be answered earlier. The option `allowed_decisions` must allow `defer`.

    Raises:
        ValueError: If `until` is not a time.

    Example:
        >>> defer("2030-05-01T08:00")
        {'type': 'defer', 'until': '2030-05-01T08:00'}
    """
    if utc(until) is None:
        wanted = "give a time in ISO 8601, such as '2030-05-01T08:00'"
        raise WrongArgumentError(f"`until`: {wanted}; not {as_repr(until, 80)}.")
    return {"type": "defer", "until": until}


@checked
def assign(to: Name) -> Decision:
    """Set the label `assignee` of a review. The review stays open.

    The option `allowed_decisions` must allow `assign`.

    Example:
        >>> assign("ada")
        {'type': 'assign', 'to': 'ada'}
    """
    return {"type": "assign", "to": to}
