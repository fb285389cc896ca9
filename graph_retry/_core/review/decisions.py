"""The table of decisions. Each decision, such as `approve`, is one row.

Everything that offers, describes or applies a decision uses these rows. To add a decision, add a
row here, its effect in `effects.py` (or use an existing effect), and its constructor and word in
`answers.py`.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, cast

from graph_retry._core.ground.functions.arguments import checked
from graph_retry._core.review.answers import DecisionType
from graph_retry._core.review.effects import (
    Accepted,
    approves,
    assigned,
    call_again,
    choices,
    commented,
    deferred,
    fields_of_output,
    keys_of_output,
    moves_of_output,
    output_missing,
    overruled,
    rejected,
    responded,
    verb_of,
    words_of_output,
)
from graph_retry._core.review.review_record import Question, Reading, Review


class Part(NamedTuple):
    """An optional key of a decision, such as `choice` in an approval.

    schema: Returns the JSON Schema of the key's value; None if the question does not offer the key.
    how: The effect of the key, as a text for people.
    example: An example of the value, as JSON.
    """

    schema: Callable[[Question], dict[str, Any] | None]
    how: str
    example: str


@dataclass(frozen=True, kw_only=True)
class DecisionKind:
    """The facts about a decision that are the same in each review.

    words: Other words for the decision, which every client may send.
    data: The key that an answer with this decision needs, such as `params` for `edit`.
    parts: Optional keys.
    message: "needed" if the decision needs a message, or "why" if a message is an optional reason.
    calls: Whether the model is called again: after a failed attempt, and after a valid output.
    waits: Whether the review stays open.
    outcome: The outcome of the call after the decision. None if the decision does not end the call.
    does: Returns the effect, as a text for reviewers.
    typed: What a person may type behind the word in the console.
    place: The position on the page, from 1.
    done: Two sentences for the person after a decision that does not call the model.
    how: The word for the decision in data sets. Data sets leave out a decision without a word.

    Example:
        >>> from graph_retry.reviews import DECISIONS
        >>> [word for word, kind in DECISIONS.items() if kind.waits]
        ['defer', 'assign']
    """

    words: tuple[str, ...] = ()
    data: str | None = None
    parts: Mapping[str, Part] = field(default_factory=dict[str, Part])
    message: Literal["why", "needed"] = "why"
    calls: tuple[bool, bool] = (False, False)
    waits: bool = False
    outcome: Literal["cancelled", "responded", "overruled"] | None = None
    does: Callable[[Review], str]
    typed: tuple[str, ...] = ("",)
    place: int
    done: tuple[str, str] | None = None
    how: str = ""

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of the decision's JSON, besides the keys that all decisions have."""
        return tuple(filter(None, (self.data, *self.parts, "message")))


@dataclass(frozen=True, kw_only=True)
class Row(DecisionKind):
    """One row of the table: the facts about a decision, and how the loop checks and applies it.

    by_default: Whether the decision is allowed if the option `allowed_decisions` is not set.
    missing: Returns why the question cannot offer the decision, or None if it can.
    decide: Checks the decision, and returns its effect.
    example: The decision's JSON. `...` marks a value that comes from the question.
    sent: How a person sends the decision in a client without JSON, by the client's name.
    """

    by_default: bool = True
    missing: Callable[[Question], str | None] = lambda _: None
    decide: Callable[[Reading, Question], Awaitable[Accepted]]
    example: Mapping[str, Any] = field(default_factory=dict[str, Any])
    sent: Mapping[str, str] = field(default_factory=dict[str, str])


ROWS: dict[str, Row] = {
    "approve": Row(
        words=("approved", "retry", "yes"),
        parts={"choice": Part(schema=choices, how="or take another alternative:", example="2")},
        calls=(True, False),
        decide=call_again,
        does=approves,
        sent={"Agent Chat UI": "*Approve*", "Agent Inbox": "*Accept*"},
        place=1,
        how="approved",
    ),
    "edit": Row(
        data="params",
        calls=(True, True),
        missing=lambda question: (
            "the call has no params" if question.codec.form == "empty" else None
        ),
        decide=call_again,
        does=lambda review: f"{verb_of(review)} with your changes",
        example={"params": ...},
        typed=("", "FIELD", "FIELD=VALUE …"),
        sent={"Agent Chat UI": "fields, *Submit*", "Agent Inbox": "fields, *Submit*"},
        place=2,
        how="edited",
    ),
    "reject": Row(
        words=("rejected", "cancel", "canceled", "cancelled", "ignore", "no", "stop"),
        outcome="cancelled",
        decide=rejected,
        does=lambda _: "stop this call, without an output",
        example={"message": "why to stop"},
        typed=("REASON",),
        sent={
            "Agent Chat UI": "*Reject*, with a reason",
            "Agent Inbox": "`reject: …` in the box",
        },
        place=8,
        done=("The call is stopped.", "It ended without an output."),
        how="rejected",
    ),
    "respond": Row(
        words=("responded",),
        data="output",
        parts={
            "changes": Part(
                schema=fields_of_output,
                how="or change fields of the output that was read:",
                example='{"FIELD": …}',
            ),
            "replace": Part(
                schema=words_of_output,
                how="or replace words that occur in the output once:",
                example='{"OLD WORDS": "NEW WORDS"}',
            ),
            "drop": Part(
                schema=keys_of_output,
                how="or remove keys of the output:",
                example='["/KEY"]',
            ),
            "move": Part(
                schema=moves_of_output,
                how="or move keys to the place that the issue names:",
                example="true",
            ),
        },
        outcome="responded",
        decide=responded,
        does=lambda _: "give the output of this call",
        example={"output": ...},
        typed=("FILE", "{…}", "FIELD=VALUE … -FIELD"),
        sent={"Agent Inbox": "`respond: {…}` in the box"},
        place=4,
        done=("Your output is used.", "It is valid. The call was not made again."),
        how="supplied",
    ),
    "comment": Row(
        words=("response",),  # Agent Inbox sends a text from its response box with this word.
        message="needed",
        calls=(True, True),
        missing=lambda question: (
            question.codec.why_no_comment or "the params have no prompt or messages for a comment"
            if question.with_comment is None
            else None
        ),
        decide=commented,
        does=lambda _: "tell the model something, and call again",
        example={"message": "what to mind"},
        typed=("WORDS",),
        sent={"Agent Inbox": "words in the box"},
        place=3,
        how="commented",
    ),
    "accept": Row(
        words=("overrule",),
        outcome="overruled",
        by_default=False,
        missing=output_missing,
        decide=overruled,
        does=lambda _: "take the output although it is not valid",
        example={"message": "why it is right"},
        typed=("REASON",),
        sent={"Agent Inbox": "`overrule` in the box"},
        place=5,
        done=("The output is used as it is.", "The history records that it is invalid."),
        how="overruled",
    ),
    "defer": Row(
        data="until",
        waits=True,
        by_default=False,
        decide=deferred,
        does=lambda _: "leave the review open, but out of the inbox until then",
        example={"until": "2030-05-01T08:00+02:00"},
        typed=("TIME",),
        sent={"Agent Inbox": "`defer: TIME` in the box"},
        place=6,
        done=("You will be asked later.", "The review comes back to the list by itself."),
    ),
    "assign": Row(
        data="to",
        waits=True,
        by_default=False,
        decide=assigned,
        does=lambda _: "set the label `assignee`, and leave the review open",
        example={"to": "ada"},
        typed=("NAME",),
        sent={"Agent Inbox": "`assign: NAME` in the box"},
        place=7,
        done=("The review is assigned to {to}.", "It stays open."),
    ),
}

DECISION_TYPES = cast("tuple[DecisionType, ...]", tuple(ROWS))
BY_DEFAULT: tuple[DecisionType, ...] = tuple(
    kind for kind in DECISION_TYPES if ROWS[kind].by_default
)
WORDS: dict[str, str] = {word: kind for kind, row in ROWS.items() for word in (kind, *row.words)}
"""The decision that each word means, for all words that a client may send."""

DECISIONS: Mapping[str, DecisionKind] = ROWS
"""All decisions by their words, in the order in which errors list them."""


def spelled(word: Any) -> str:
    """Return a typed word as the table spells it: in small letters, without an end mark.

    Example:
        >>> spelled(" Reject. ")
        'reject'
    """
    return str(word).strip().rstrip(".!:").rstrip().casefold()


@checked
def decision_named(text: str) -> str | None:
    """Return the `type` of the decision that a typed word means; None if no decision is meant.

    Example:
        >>> decision_named("Yes."), decision_named("perhaps")
        ('approve', None)
    """
    return WORDS.get(spelled(text))


def form_of(kind: str, params: str = "{…}", output: str = "…") -> str:
    """Return an example of the JSON with which a person takes a decision.

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
            reasons[kind] = "the option `allowed_decisions` does not allow it"
        else:
            reasons[kind] = row.missing(question)
    # If no decision could end the review, the thread could never continue.
    ends = any(reason is None and not ROWS[kind].waits for kind, reason in reasons.items())
    return reasons if ends else {**reasons, "reject": None}


def offered(question: Question) -> tuple[str, ...]:
    """Return the decisions that a person may take. If none could end the review, `reject` is added.

    Example:
        >>> from graph_retry._core.params.codec import ParamsCodec
        >>> failure = {"kind": "transient", "type": "TimeoutError", "message": "30 s"}
        >>> asked = dict(function_name="f", attempt=1, review_id="r", params={}, failure=failure)
        >>> offered(Question(**asked, codec=ParamsCodec(dict), used_up="none left"))
        ('reject', 'respond', 'defer', 'assign')
    """
    return tuple(kind for kind, why in why_not_offered(question).items() if why is None)
