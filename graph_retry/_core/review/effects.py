"""Turn each decision into its effect: the call is made again, ends, or keeps waiting.

Each async function checks one kind of decision against the open question. It returns `Accepted`, or
raises `Refused`. The functions `…_of_output` return the JSON Schema of one key of `respond`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, cast

from graph_retry._core.ground.issues import literal
from graph_retry._core.ground.json import is_array, is_object, is_whole
from graph_retry._core.review.answers import (
    Decision,
    accept,
    approve,
    assign,
    comment,
    defer,
    reject,
    respond,
)
from graph_retry._core.review.deadline import is_expired, utc
from graph_retry._core.review.review_record import Question, Reading, Refused, Review
from graph_retry.records import Addition

_MAX_NAME = 200


class CallAgain(NamedTuple):
    """The effect of a decision: call the model again with these params.

    params, types: The params as JSON, and the Python types of their values by path.
    added: The parts of the params that this library added.
    unchanged_edit: Whether the decision was an edit without any change. It counts as an approval.
    """

    params: dict[str, Any]
    types: dict[str, str]
    added: Sequence[Addition] = ()
    unchanged_edit: bool = False


class End(NamedTuple):
    """The effect of a decision: end the call.

    output: The person's output under the key `value`. None takes the output that the model gave.
    without_output: Whether the call ends without any output, as after a rejection.
    """

    status: Literal["succeeded", "overruled", "cancelled"]
    output: dict[str, Any] | None = None
    without_output: bool = False


class Wait(NamedTuple):
    """The effect of a decision: keep the review open, and change these fields of the review."""

    fields: dict[str, Any]


Effect = CallAgain | End | Wait
"""One of the three effects of a decision."""


class Accepted(NamedTuple):
    """A decision that passed all checks, and its effect."""

    decision: Decision
    effect: Effect

    @property
    def params(self) -> dict[str, Any] | None:
        """The params of the next attempt; None if the decision causes no attempt."""
        return self.effect.params if isinstance(self.effect, CallAgain) else None

    @property
    def types(self) -> dict[str, str]:
        """The Python types of values in `params`, by path. They restore the values from JSON."""
        return self.effect.types if isinstance(self.effect, CallAgain) else {}


async def call_again(given: Reading, question: Question) -> Accepted:
    """Check an `approve` or an `edit`. The model is called again, or an approved output is used.

    The decision `retry` arrives here as an edit without params, and calls the model again.
    """
    decision = given.decision
    kind, choice = decision["type"], decision.get("choice")
    question = question if choice is None else with_choice(question, choice)
    # Imported late, because most calls never need a person's answer.
    from graph_retry._core.review.edits import changes_of, edited  # noqa: PLC0415

    changes = changes_of(given, question)
    if kind == "approve" and changes:
        raise Refused(
            "An approval must leave the params as shown, but this answer changes some: send "
            '{"type": "edit", "params": {…}} instead.'
        )
    is_retry = kind == "edit" and "params" not in decision
    is_approval = not changes and not is_retry and "approve" in given.offered
    if is_approval and question.failure is None:
        return Accepted(approve(), End("succeeded"))
    # Unchanged params are validated as well, because their type may have changed since the pause.
    encoded = edited(given, changes, question)
    new = {name: encoded.view.get(name) for name in changes}
    applied: Decision = approve(choice) if is_approval else {"type": "edit", "params": new}
    added, unchanged = question.added_in(encoded.view), is_approval and kind == "edit"
    return Accepted(applied, CallAgain(*encoded, added, unchanged))


def with_choice(question: Question, choice: Any) -> Question:
    """Return the question with alternative number `choice` (from 1) as its suggestion.

    Raises:
        Refused: If there is no alternative with this number.
    """
    options = question.alternatives
    if not is_whole(choice) or not 1 <= choice <= len(options):
        has = f"the alternatives have the numbers 1 to {len(options)}"
        if not options:
            has = "this question has no alternatives: leave `choice` out"
        raise Refused(f"`choice` is {literal(choice, 80)}, but {has}.")
    return question.with_choice(choice - 1)


def choices(question: Question) -> dict[str, Any] | None:
    return {"enum": [*range(1, len(question.alternatives) + 1)]} if question.alternatives else None


async def rejected(_given: Reading, _question: Question) -> Accepted:
    return Accepted(reject(), End("cancelled", without_output=True))


async def responded(given: Reading, question: Question) -> Accepted:
    from graph_retry._core.review.edits import (  # noqa: PLC0415
        CHANGES,
        checked_change,
        checked_output,
    )

    parts = {key: part for key, part in given.decision.items() if key in CHANGES}
    if parts:
        output, parts = await checked_change(parts, question)
    else:
        output = await checked_output(given.decision.get("output"), question)
    decision = cast("Decision", {**respond(output), **parts})
    return Accepted(decision, End("succeeded", {"value": output}))


async def commented(given: Reading, question: Question) -> Accepted:
    text = str(given.decision.get("message"))
    return Accepted(comment(text), CallAgain(*question.told(text)))


async def overruled(_given: Reading, _question: Question) -> Accepted:
    return Accepted(accept(), End("overruled"))


async def deferred(given: Reading, _question: Question) -> Accepted:
    until = given.decision.get("until")
    moment = utc(str(until))
    if moment is None or is_expired(moment):
        wanted = "a future time, such as 2030-05-01T08:00+02:00"
        raise Refused(f"`until` expects {wanted}, not {literal(until, 80)}.")
    return Accepted(defer(moment), Wait({"deferred_until": moment}))


async def assigned(given: Reading, question: Question) -> Accepted:
    to: Any = given.decision.get("to")
    if not isinstance(to, str) or not 0 < len(to) <= _MAX_NAME:
        wanted = f"a name of up to {_MAX_NAME} characters"
        raise Refused(f"`to` expects {wanted}, not {literal(to, 80)}.")
    return Accepted(assign(to), Wait({"labels": {**question.labels, "assignee": to}}))


def fields_of_output(question: Question) -> dict[str, Any] | None:
    has_fields = question.read is not None and is_object(question.read["value"])
    return {"type": "object", "minProperties": 1} if has_fields else None


def words_of_output(question: Question) -> dict[str, Any] | None:
    words = {"type": "object", "minProperties": 1, "additionalProperties": {"type": "string"}}
    return None if question.read is None else words


def keys_of_output(question: Question) -> dict[str, Any] | None:
    if question.read is None or not (
        is_object(question.read["value"]) or is_array(question.read["value"])
    ):
        return None
    return {"type": "array", "minItems": 1, "items": {"type": "string", "pattern": "^/"}}


def moves_of_output(question: Question) -> dict[str, Any] | None:
    is_misplaced = any(issue.get("code") == "misplaced" for issue in question.issues)
    return {"const": True} if question.read is not None and is_misplaced else None


def output_missing(question: Question) -> str | None:
    if question.failure is None:
        return "the output is valid, so use approve"
    return None if question.takes_output else "no output could be read"


def verb_of(review: Review) -> str:
    return "make the call" if review.is_before_call else "call again"


def approves(review: Review) -> str:
    if review.failure is None:
        return "take this output"
    suggested = review.suggested_params is not None
    how = "the suggested changes" if suggested else "the params as they are"
    return f"{verb_of(review)} with {how}"
