"""The table of decisions, with one row for each decision.

The schema of answers, the forms, the text of a question, the console and the loop read these rows.
To add a decision, add a row here, its constructor, and a function that returns its effect.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, cast

from graph_retry._core.ground.issues import literal
from graph_retry._core.ground.json import is_object, is_whole
from graph_retry._core.review.answers import (
    accept,
    approve,
    assign,
    comment,
    defer,
    edit,
    reject,
    respond,
)
from graph_retry._core.review.deadline import is_expired, utc
from graph_retry._core.review.edits import changed_output, changes_of, checked_output, edited
from graph_retry._core.review.review import (
    Decision,
    DecisionType,
    Question,
    Reading,
    Refused,
    Review,
)
from graph_retry.records import Addition

_MAX_NAME = 200


class CallAgain(NamedTuple):
    """A decision's effect: another call, with these params.

    `added` are the parts that were added to the params. `unchanged_edit` marks an edit that changed
    nothing, which counts as an approval.
    """

    params: dict[str, Any]
    types: dict[str, str]
    added: Sequence[Addition] = ()
    unchanged_edit: bool = False


class End(NamedTuple):
    """A decision's effect: the call ends with `output`, or with the shown output if it is None."""

    status: Literal["succeeded", "overruled", "cancelled"]
    output: dict[str, Any] | None = None
    without_output: bool = False


class Wait(NamedTuple):
    """A decision's effect: the review stays open, and these fields of its record change."""

    fields: dict[str, Any]


Effect = CallAgain | End | Wait
"""The effect of a decision. Every accepted decision has one."""


class Accepted(NamedTuple):
    """A decision that passed all checks, and its effect."""

    decision: Decision
    effect: Effect

    @property
    def params(self) -> dict[str, Any] | None:
        """The params of the next attempt, or None if the decision causes none."""
        return self.effect.params if isinstance(self.effect, CallAgain) else None

    @property
    def types(self) -> dict[str, str]:
        """The types map of `params`, with which state restores Python values from JSON."""
        return self.effect.types if isinstance(self.effect, CallAgain) else {}


class Part(NamedTuple):
    """An optional key of a decision, such as `choice` of an approval.

    `schema` returns the JSON Schema of the value, or None if the question does not offer this key.
    `how` describes the effect. `example` is a value as JSON.
    """

    schema: Callable[[Question], dict[str, Any] | None]
    how: str
    example: str


@dataclass(frozen=True, kw_only=True)
class Row:
    """The properties of one decision.

    `words` are the decision's synonyms in all clients. `data` is the key that its JSON needs, and
    `parts` are optional keys. `message` is "needed", or "why" for an optional reason. `calls` has
    two flags: the first for a failed attempt, the second for a valid output. A flag is true if the
    decision then causes another call. `waits` means that the review stays open. `outcome` is the
    result of a call that the decision ends. `by_default` means that the decision is allowed without
    an option. `missing` names a part of the question that the decision needs and that is missing.
    `decide` checks the decision and returns its effect. `does` describes the effect to a person.
    `example` is the decision's JSON, with `...` for values from the question. `typed` lists the
    inputs that may follow its word in the console. `sent` describes how a client without JSON sends
    it.
    """

    words: tuple[str, ...] = ()
    data: str | None = None
    parts: Mapping[str, Part] = field(default_factory=dict[str, Part])
    message: Literal["why", "needed"] = "why"
    calls: tuple[bool, bool] = (False, False)
    waits: bool = False
    outcome: Literal["cancelled", "responded", "overruled"] | None = None
    by_default: bool = True
    missing: Callable[[Question], str | None] = lambda _: None
    decide: Callable[[Reading, Question], Awaitable[Accepted]]
    does: Callable[[Review], str]
    example: Mapping[str, Any] = field(default_factory=dict[str, Any])
    typed: tuple[str, ...] = ("",)
    sent: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that the decision's JSON may have, besides the keys that all decisions have."""
        return tuple(filter(None, (self.data, *self.parts, "message")))


async def _call_again(given: Reading, question: Question) -> Accepted:
    """Approve or edit. In the review of a valid output, `retry` makes an edit without data."""
    decision = given.decision
    kind, choice = decision["type"], decision.get("choice")
    question = question if choice is None else _with_choice(question, choice)
    changes = changes_of(given, question)
    if kind == "approve" and changes:
        raise Refused(
            'To approve is to take the params as shown, but the answer changes some: send {"type": '
            '"edit", "params": {…}} to change them.'
        )
    is_retry = kind == "edit" and "params" not in decision
    is_approval = not changes and not is_retry and "approve" in given.offered
    if is_approval and question.failure is None:
        return Accepted(approve(), End("succeeded"))
    # Unchanged params are validated as well, because their type may have changed since the pause.
    encoded = edited(given, changes, question)
    decision = approve(choice) if is_approval else edit()
    if changes:
        decision["params"] = {name: encoded.view.get(name) for name in changes}
    added, unchanged = question.added_in(encoded.view), is_approval and kind == "edit"
    return Accepted(decision, CallAgain(*encoded, added, unchanged))


def _with_choice(question: Question, choice: Any) -> Question:
    """Return the question with the chosen alternative as its suggestion."""
    options = question.alternatives
    if not is_whole(choice) or not 1 <= choice <= len(options):
        has = f"the alternatives have the numbers 1 to {len(options)}. Give one of these numbers"
        if not options:
            has = "this question has no alternatives. Answer without `choice`"
        raise Refused(f"`choice` is {literal(choice, 80)}, but {has}.")
    return question.with_choice(choice - 1)


def _choices(question: Question) -> dict[str, Any] | None:
    return {"enum": [*range(1, len(question.alternatives) + 1)]} if question.alternatives else None


async def _rejected(_given: Reading, _question: Question) -> Accepted:
    return Accepted(reject(), End("cancelled", without_output=True))


async def _responded(given: Reading, question: Question) -> Accepted:
    parts = {key: part for key, part in given.decision.items() if key in ROWS["respond"].parts}
    sent = changed_output(parts, question) if parts else given.decision.get("output")
    output = await checked_output(sent, question)
    decision = cast("Decision", {**respond(output), **parts})
    return Accepted(decision, End("succeeded", {"value": output}))


async def _commented(given: Reading, question: Question) -> Accepted:
    text = str(given.decision.get("message"))
    return Accepted(comment(text), CallAgain(*question.told(text)))


async def _overruled(_given: Reading, _question: Question) -> Accepted:
    return Accepted(accept(), End("overruled"))


async def _deferred(given: Reading, _question: Question) -> Accepted:
    until = given.decision.get("until")
    moment = utc(str(until))
    if moment is None or is_expired(moment):
        wanted = "a time to come, such as 2030-05-01T08:00+02:00"
        raise Refused(f"`until` expects {wanted}, not {literal(until, 80)}.")
    return Accepted(defer(moment), Wait({"deferred_until": moment}))


async def _assigned(given: Reading, question: Question) -> Accepted:
    to: Any = given.decision.get("to")
    if not isinstance(to, str) or not 0 < len(to) <= _MAX_NAME:
        wanted = f"a name of up to {_MAX_NAME} characters"
        raise Refused(f"`to` expects {wanted}, not {literal(to, 80)}.")
    return Accepted(assign(to), Wait({"labels": {**question.labels, "assignee": to}}))


def _fields_of_output(question: Question) -> dict[str, Any] | None:
    has_fields = question.read is not None and is_object(question.read["value"])
    return {"type": "object", "minProperties": 1} if has_fields else None


def _words_of_output(question: Question) -> dict[str, Any] | None:
    words = {"type": "object", "minProperties": 1, "additionalProperties": {"type": "string"}}
    return None if question.read is None else words


def _output_missing(question: Question) -> str | None:
    if question.failure is None:
        return "the output is valid, so approve takes it"
    return None if question.takes_output else "no output could be read"


def _approves(review: Review) -> str:
    if review.failure is None:
        return "take this output"
    suggested = review.suggested_params is not None
    return f"call again with {'the suggested changes' if suggested else 'the params as they are'}"


ROWS: dict[str, Row] = {
    "approve": Row(
        words=("approved", "retry", "yes"),
        parts={"choice": Part(schema=_choices, how="or take another alternative:", example="2")},
        calls=(True, False),
        decide=_call_again,
        does=_approves,
        sent={"Agent Chat UI": "*Approve*", "Agent Inbox": "*Accept*"},
    ),
    "edit": Row(
        data="params",
        calls=(True, True),
        missing=lambda question: (
            "the call has no params" if question.codec.form == "empty" else None
        ),
        decide=_call_again,
        does=lambda _: "call again with your changes",
        example={"params": ...},
        typed=("", "FIELD", "FIELD=VALUE …"),
        sent={"Agent Chat UI": "fields, *Submit*", "Agent Inbox": "fields, *Submit*"},
    ),
    "reject": Row(
        words=("rejected", "cancel", "canceled", "cancelled", "ignore", "no", "stop"),
        outcome="cancelled",
        decide=_rejected,
        does=lambda _: "stop this call, without an output",
        example={"message": "why to stop"},
        typed=("REASON",),
        sent={
            "Agent Chat UI": "*Reject*, with a reason",
            "Agent Inbox": "`reject: …` in the box",
        },
    ),
    "respond": Row(
        words=("responded",),
        data="output",
        parts={
            "changes": Part(
                schema=_fields_of_output,
                how="or change fields of the output that was read:",
                example='{"FIELD": …}',
            ),
            "replace": Part(
                schema=_words_of_output,
                how="or replace words that are in it once:",
                example='{"OLD WORDS": "NEW WORDS"}',
            ),
        },
        outcome="responded",
        decide=_responded,
        does=lambda _: "give the output of this call",
        example={"output": ...},
        typed=("FILE", "{…}", "FIELD=VALUE …"),
        sent={"Agent Inbox": "`respond: {…}` in the box"},
    ),
    "comment": Row(
        words=("response",),  # Agent Inbox sends a text from its response box with this word.
        message="needed",
        calls=(True, True),
        missing=lambda question: (
            question.codec.why_no_comment
            or "the params have no prompt or messages that a comment may be put into"
            if question.with_comment is None
            else None
        ),
        decide=_commented,
        does=lambda _: "tell the model something, and call again",
        example={"message": "what to mind"},
        typed=("WORDS",),
        sent={"Agent Inbox": "words in the box"},
    ),
    "accept": Row(
        words=("overrule",),
        outcome="overruled",
        by_default=False,
        missing=_output_missing,
        decide=_overruled,
        does=lambda _: "take the output although it is not valid",
        example={"message": "why it is right"},
        typed=("REASON",),
        sent={"Agent Inbox": "`overrule` in the box"},
    ),
    "defer": Row(
        data="until",
        waits=True,
        by_default=False,
        decide=_deferred,
        does=lambda _: "leave it open, and out of the inbox until then",
        example={"until": "2030-05-01T08:00+02:00"},
        typed=("TIME",),
        sent={"Agent Inbox": "`defer: TIME` in the box"},
    ),
    "assign": Row(
        data="to",
        waits=True,
        by_default=False,
        decide=_assigned,
        does=lambda _: "set the label `assignee`, and leave it open",
        example={"to": "ada"},
        typed=("NAME",),
        sent={"Agent Inbox": "`assign: NAME` in the box"},
    ),
}

DECISION_TYPES = cast("tuple[DecisionType, ...]", tuple(ROWS))
BY_DEFAULT: tuple[DecisionType, ...] = tuple(
    kind for kind in DECISION_TYPES if ROWS[kind].by_default
)
WORDS: dict[str, str] = {word: kind for kind, row in ROWS.items() for word in (kind, *row.words)}
"""The decision that each word means, in every client."""


def spelled(word: Any) -> str:
    """Return a word as the table of decisions spells it, without a typed full stop or colon.

    Example:
        >>> spelled(" Reject. ")
        'reject'
    """
    return str(word).strip().rstrip(".!:").rstrip().casefold()


def form_of(kind: str, params: str = "{…}", output: str = "…") -> str:
    """Write the JSON of a decision, following the example in its row.

    Example:
        >>> form_of("respond"), form_of("assign")
        ('{"type": "respond", "output": …}', '{"type": "assign", "to": "ada"}')
    """
    shown = {"params": params, "output": output}
    parts = {"type": kind, **ROWS[kind].example}
    fields = (
        f'"{key}": {shown[key] if part is ... else json.dumps(part)}' for key, part in parts.items()
    )
    return f"{{{', '.join(fields)}}}"


def why_not_offered(question: Question) -> dict[str, str | None]:
    """Return for each decision the reason why the question does not offer it, or None."""
    reasons: dict[str, str | None] = {}
    for kind, row in ROWS.items():
        if question.used_up and row.calls[question.failure is None]:
            reasons[kind] = question.used_up
        elif question.allowed is not None and kind not in question.allowed:
            reasons[kind] = "the option `allowed_decisions` leaves it out"
        else:
            reasons[kind] = row.missing(question)
    # If no decision could end the review, the thread could never continue.
    ends = any(reason is None and not ROWS[kind].waits for kind, reason in reasons.items())
    return reasons if ends else {**reasons, "reject": None}


def offered(question: Question) -> tuple[str, ...]:
    """Return the offered decisions. `reject` is among them if no other one could end the review.

    Example:
        >>> from graph_retry._core.params.codec import ParamsCodec
        >>> failure = {"kind": "transient", "type": "TimeoutError", "message": "30 s"}
        >>> asked = dict(function_name="f", attempt=1, review_id="r", params={}, failure=failure)
        >>> offered(Question(**asked, codec=ParamsCodec(dict), used_up="none left"))
        ('reject', 'respond', 'defer', 'assign')
    """
    return tuple(kind for kind, why in why_not_offered(question).items() if why is None)
