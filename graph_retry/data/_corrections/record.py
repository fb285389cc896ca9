"""The record of a correction: one decision about one attempt of a ledger."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Literal, NotRequired, cast

from typing_extensions import TypedDict

from graph_retry.ledger import Ledger, output_of, params_in
from graph_retry.plugins import (
    Redact,
    as_text,
    checked,
    did_you_mean,
    digest,
    is_object,
    redacted,
    redacted_fields,
)
from graph_retry.records import (
    STRUCTURED_RESPONSE,
    Addition,
    Attempt,
    Failure,
    Issue,
    parts_of_messages,
)
from graph_retry.reviews import DECISIONS

How = Literal[
    "supplied", "overruled", "confirmed", "edited", "commented", "approved", "rejected", "own"
]
"""The kind of decision that a reviewer took about an attempt. `supplied`: wrote the output.
`overruled`: accepted an invalid output. `confirmed`: approved a valid output. `edited`: changed the
params. `commented`: sent the model a message. `approved`: had the model called again with the
params that the review shows. `rejected`: ended the call. `own`: not from a review, because you
wrote the row yourself.
"""


class Correction(TypedDict):
    """A reviewer's decision about one attempt of a call, in plain JSON. Unknown fields are None.

    id: A hash of the decision: the same in every fork of the thread and in every export.
    thread: The id of the call's thread; empty if unknown. A `split` of the rows goes by this id.
    call: The call's name.
    node: The graph node that made the call; empty if unknown.
    labels: The call's `labels`.
    attempt: Number of the reviewed attempt.
    how: The kind of decision; see `How`. If `How` lacks the kind, the decision's `type`.
    role: The kind of author: `human`, `rewind` (a person who called `rewind`), `agent` or
        `system`.
    by: The author's name, if known.
    at: The time of the decision, in ISO 8601.
    channel: The client that sent the decision.
    message: The message that the author wrote with the decision.
    suggested_by: The hook or feedback that made the params suggested in the review, if recorded.
    params: The params of the reviewed attempt.
    added: The parts of `params` that feedback, comments, lessons and corrections had added.
    revised: The params of the next attempt, if the model was called again.
    raw: The model's output: `{"text": …}` or `{"value": …}`; None if the call raised.
    output: The value that was read from `raw`, or the text if no value could be read.
    issues: The errors of the output.
    failure: The failure of the attempt; None for a valid output.
    value: The call's final output, from this decision or from a later attempt. A model's
        output is the JSON that was read, before its conversion to the output type.
    value_from: Who made `value`: `person` or `model`; None if the ledger has no `value`.
    vouched: Whether a person supplied, accepted or approved this `value`.
    pair: Whether `output` and `value` are a preference pair: for the same params, a person replaced
        the model's `output` by `value`. After an edit of the params, they are not a pair.
    outcome: How the call ended, as in `Ledger.outcome`.
    redacted: Whether the call's option `redact` has changed the texts.
    is_message: Whether the outputs are messages of an agent's model; see `Attempt.is_message`.
    provenance: The origin of the row: `namespace`, `idempotency_key`, `started_at`,
        `attempts`, `usage`.
    split: The part of the data set to which the row was exported, if the export was split.
    """

    id: str
    thread: str
    call: str
    node: str
    labels: dict[str, str]
    attempt: int
    how: How | str
    role: str
    by: str | None
    at: str | None
    channel: str | None
    message: str | None
    suggested_by: str | None
    params: dict[str, Any] | None
    added: NotRequired[list[Addition]]
    revised: dict[str, Any] | None
    raw: dict[str, Any] | None
    output: Any
    issues: list[Issue]
    failure: Failure | None
    value: Any
    value_from: Literal["person", "model"] | None
    vouched: bool
    pair: bool
    outcome: str
    redacted: bool
    is_message: bool
    provenance: dict[str, Any]
    split: NotRequired[str]


@checked
def corrections_in(ledger: Ledger) -> Iterator[Correction]:
    """Yield a correction for each decision in a call's ledger, in the order of the attempts.

    Example:
        >>> list(corrections_in(Ledger([])))
        []
    """
    for attempt in ledger.attempts:
        decision = attempt["decision"]
        if decision is None or attempt["kept_in"] is not None:
            continue
        # A kind of decision that this version does not know keeps its own word.
        row = DECISIONS.get(decision["type"])
        if how := decision["type"] if row is None else row.how:
            yield _correction(ledger, attempt, decision, how)


def _correction(
    ledger: Ledger, attempt: Attempt, decision: Mapping[str, Any], how: How | str
) -> Correction:
    if decision["type"] == "approve" and attempt["failure"] is None:
        how = "confirmed"
    role, _, name = str(decision.get("author", "")).partition(":")
    output = output_of(attempt)
    value, value_from, vouched = counted_value(ledger)
    turned_down = how == "supplied" and answer_text(attempt["raw"]) is not None
    row: Correction = {
        "id": digest(
            *(attempt["idempotency_key"], attempt["started_at"]),
            *(decision.get("review_id"), decision["type"], decision.get("at")),
        ),
        "thread": ledger.thread,
        "call": ledger.name,
        "node": ledger.node,
        "labels": dict(attempt.get("labels", {})),
        "attempt": attempt["number"],
        "how": how,
        "role": role,
        "by": name or decision.get("by"),
        "at": decision.get("at"),
        "channel": decision.get("channel"),
        "message": decision.get("message"),
        "suggested_by": decision.get("suggested_by"),
        "params": params_in(ledger, attempt["number"]),
        "revised": params_in(ledger, attempt["number"] + 1),
        "raw": attempt["raw"],
        "output": output,
        "issues": attempt["issues"],
        "failure": attempt["failure"],
        "value": value,
        "value_from": value_from,
        "vouched": vouched,
        "pair": turned_down and value_from == "person" and digest(output) != digest(value),
        "outcome": ledger.outcome,
        "redacted": bool(attempt.get("redacted")),
        "is_message": bool(attempt.get("is_message")),
        "provenance": {
            "namespace": ledger.namespace,
            "idempotency_key": attempt["idempotency_key"],
            "started_at": attempt["started_at"],
            "attempts": len(ledger.attempts),
            "usage": attempt["usage"],
        },
    }
    if added := attempt.get("added"):
        row["added"] = added
    return row


def counted_value(ledger: Ledger) -> tuple[Any, Literal["person", "model"] | None, bool]:
    """Return the final output of a call, its author, and whether a person vouched for it."""
    last, outcome = ledger.attempts[-1], ledger.outcome
    decision = last["decision"] or {}
    if outcome == "responded" and "output" in decision:
        return decision["output"], "person", True
    if outcome in ("succeeded", "overruled") and last["kept_in"] is None:
        return output_of(last), "model", bool(decision)
    return None, None, False


def check_names(wanted: Collection[str], known: Collection[str]) -> None:
    """Refuse a call name that is not in the source.

    Raises:
        ValueError: If `known` lacks one of the `wanted` names.
    """
    for name in wanted:
        if name not in known:
            names = tuple(sorted(filter(None, known)))
            listed = ", ".join(f"`{each}`" for each in names) or "no calls"
            raise ValueError(
                f"`calls` (in the terminal `--name`) has `{name}`, but no call of `source` has "
                f"this name.{did_you_mean(name, names)} `source` has {listed}."
            )


def expected_value(ledger: Ledger) -> tuple[Any, bool]:
    """Return the output that a person vouched for, and whether a new output can equal it.

    Only the agent's model writes a message, so a new output cannot equal a message. If a person
    supplied a structured response with the message, this response is returned instead.
    """
    value, _, vouched = counted_value(ledger)
    if vouched and ledger.attempts[-1].get("is_message"):
        message: dict[str, Any] = value if is_object(value) else {}
        return message.get(STRUCTURED_RESPONSE), STRUCTURED_RESPONSE in message
    return value, vouched


def answer_text(given: Any) -> str | None:
    """Return the text of a recorded output, or its value as JSON; None if it has neither."""
    if not is_object(given):
        return None
    if "text" in given:
        return str(given["text"])
    return as_text(given["value"]) if "value" in given else None


def content_key(row: Correction) -> str:
    """Return a hash that is the same for corrections with the same content, in any thread."""
    parts = ("call", "how", "params", "raw", "revised", "value", "value_from", "message")
    fields = cast("dict[str, Any]", row)
    return digest(*(fields[name] for name in parts))


_WORDS = ("id", "how", "role", "at", "value_from", "outcome", "split")
"""Fields that are never redacted, because they hold fixed words, times or hashes."""


def redacted_row(row: Correction, redact: Redact | None) -> Correction:
    """Return a row with all texts redacted, except fixed words, times and hashes."""
    if redact is None:
        return row
    from_attempt = redacted_fields(row, redact)
    known = {name: from_attempt[name] for name in ("raw", "failure", "issues")}
    source = row["provenance"]
    known["provenance"] = {**source, "namespace": redacted(source.get("namespace"), redact)}
    known |= {name: value for name, value in row.items() if name in _WORDS}
    known["added"] = parts_of_messages(row.get("added") or (), row["params"])
    rest = {name: redacted(value, redact) for name, value in row.items() if name not in known}
    return cast("Correction", {name: (known | rest)[name] for name in row} | {"redacted": True})
