"""Decisions about a review, and the functions that create them.

A decision is a dict that `Command(resume=…)` or this library's `resume` sends to a paused call.
"""

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
"""The decisions after which any output of the call is valid: all except `accept`."""

DecisionType = Literal[ValidDecisionType, "accept"]


class Decision(TypedDict):
    """The decision of a person or a program about one review.

    type: The kind of decision, such as `approve`.
    params: For `edit`: the changed fields. They are merged onto the shown params.
    output: For `respond`: a whole output. It is validated like the model's output.
    changes: For `respond`: fields to change in the model's output.
    replace: For `respond`: words to replace in the model's output, as `{old: new}`.
    drop: For `respond`: JSON Pointers of keys and items to remove from the model's output.
    move: For `respond`: True to move keys of the model's output out of wrong objects.
    choice: For `approve`: the number of an alternative (from 1).
    message: The reason of a decision, or the comment for the model.
    until: For `defer`: a time in ISO 8601.
    to: For `assign`: the name of a person.
    attempt: The number of the attempt that the decision is for. An attempt of another call
        may have the same number.
    review_id: The question that the decision is for. Any other open question refuses it.
    decision_id: An id by which a second delivery of this decision is recognised.
    by: The person or program that decided.
    channel: The client that sent the decision (default: recognised by the form of the answer).
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


BINDING = ("attempt", "review_id", "decision_id", "by", "channel")
"""The keys of a decision that say which question it is for, and who sent it."""

_FIELDS = "a dict of the fields to change (`edit(value=…)` for params that are a single value)"
_HOW = (
    "the result of `approve()`, `edit(…)` or `reject(…)`, or JSON (the value for "
    "`Command(resume=…)`)"
)
_Edited = Annotated[Mapping[str, Any], _FIELDS]
Answer = Annotated[Mapping[str, Any] | Sequence[Any] | str | float | bool | None, _HOW]
"""An answer to a review: a `Decision`, or any JSON that a client sends."""


class _ByReview:
    """A check that a dict has review ids as keys, and is not itself a single decision."""

    hint = " Give a single decision as `decision=`."

    def holds(self, value: Mapping[str, Any]) -> bool:
        """Return whether no key of the dict belongs to a decision. Review ids never do."""
        return value.keys().isdisjoint(("action", *Decision.__annotations__))


_ReviewId = Annotated[str, "the `review_id` of a review"]
Answers = Annotated[Mapping[_ReviewId, Answer], _ByReview(), "a dict {review_id: decision}"]
"""Answers to several reviews. A key is a review id or an interrupt id."""


@checked
def approve(choice: Count | None = None) -> Decision:
    """Call the model again with the suggested params, or the same params if none are suggested.

    If a valid output waits for approval (see the option `review`), use this output. The model is
    not called again.

    If a hook returned `Alternatives`, `choice` is the number of the alternative to use (from 1).

    Example:
        >>> approve()
        {'type': 'approve'}
    """
    return {"type": "approve"} if choice is None else {"type": "approve", "choice": choice}


@checked
def edit(params: _Edited | None = None, /, **changes: Any) -> Decision:
    """Call the model again with some fields of the params changed. All other fields stay as shown.

    An edit that changes nothing counts as an approval, and the ledger records `approve`. If
    approvals are not allowed, the edit calls the model again.

    Give the names of fields, not paths such as `/options/top`. An object changes only the keys that
    it names. But an object that is written as JSON text, or has a new discriminator, replaces the
    whole field. The texts of a form are converted to the types of the fields (bytes: from text or
    base64). A message needs a `role`, or the `type` of LangChain. Params of the type `dict` declare
    no types. Their edit is refused if a new name resembles an existing name, or if a text in place
    of a number, list or object cannot be read as one.

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
    """End the call without an output. The ledger records the reason.

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
    """Supply the output of the call, or change parts of the model's output.

    The result is validated like an output of the model. If nothing of the model's output could be
    read, or if the option `redact` hides an invalid output, give the whole output.

    Args:
        output: The whole output. A model, a dataclass or a date is converted to JSON, under the
            aliases of its type. The call's output type reads this JSON. If the call has no output
            type, the call returns the JSON.
        changes: Fields to change in the model's output, which may be invalid. The changes are
            merged as in `edit`, and all other fields stay. A new field is refused if no branch of
            the output type has it.
        replace: Words to replace in the texts of the model's output, as `{old: new}`. Each old text
            must occur exactly once, and the old texts must not overlap.
        drop: Keys and list items to remove from the model's output, as JSON Pointers such as
            `/lines/0/note` (the `path` of an issue). Keys that the schema forbids need not be
            named: each change of the output removes them, and the ledger lists them under `drop`.
        move: True to move keys from a wrong object to the place that the issue `misplaced` names.

    Raises:
        WrongArgumentError: If `output` is given with another argument, or if nothing is given.

    Example:
        >>> respond({"name": "Ada"})
        {'type': 'respond', 'output': {'name': 'Ada'}}
        >>> respond(changes={"age": 36}, replace={"Monday": "Tuesday"})
        {'type': 'respond', 'changes': {'age': 36}, 'replace': {'Monday': 'Tuesday'}}
    """
    parts = {"changes": changes, "replace": replace, "drop": drop, "move": move or None}
    given = {name: part for name, part in parts.items() if part}
    if (output is ...) == (not given):
        names = "`changes`, `replace`, `drop` or `move`"
        came = "nothing to change" if output is ... else "both"
        raise WrongArgumentError(
            f"`respond` got {came}: give either a whole `output`, or changes of it ({names})."
        )
    decision = cast("Decision", {"type": "respond", **given})
    if output is not ...:
        decision["output"] = as_json(output)
    return decision


@checked
def comment(message: Name) -> Decision:
    """Call the model again. The message is added to the prompt or messages in the params.

    If the params have no prompt, a text in the response box of Agent Inbox is a rejection.

    Example:
        >>> comment("the total is on the second page")
        {'type': 'comment', 'message': 'the total is on the second page'}
    """
    return {"type": "comment", "message": message}


@checked
def accept(reason: str | None = None) -> Decision:
    """Use the model's output although it is not valid, without changing it.

    The option `allowed_decisions` must allow `accept`. The call ends with the status `overruled`,
    and returns the JSON that was read from the model's text.

    Example:
        >>> accept("a total of zero is right here")
        {'type': 'accept', 'message': 'a total of zero is right here'}
    """
    return {"type": "accept", "message": reason}


@checked
def defer(until: Moment) -> Decision:
    """Hide a review from the inbox until a time in ISO 8601 (UTC if the time has no zone).

    The review stays open, and can be answered earlier. The option `allowed_decisions` must allow
    `defer`.

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
    """Set the label `assignee` of a review to a person's name. The review stays open.

    The option `allowed_decisions` must allow `assign`.

    Example:
        >>> assign("ada")
        {'type': 'assign', 'to': 'ada'}
    """
    return {"type": "assign", "to": to}
