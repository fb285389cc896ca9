"""Plain-JSON records that travel through graph state: issues, repairs, failures, attempts."""

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

__all__ = [
    "SCHEMA_VERSION",
    "Attempt",
    "Failure",
    "FailureKind",
    "GateVerdict",
    "Issue",
    "KeptIn",
    "Repair",
    "RepairLevel",
]

SCHEMA_VERSION = 1
"""Version of the ledger record; a reader refuses a newer one."""

FailureKind = Literal[
    "transient",
    "invalid_syntax",
    "invalid_schema",
    "truncated",
    "context_overflow",
    "refusal",
    "rejected_input",
    "permanent",
]

RepairLevel = Literal["none", "minimal", "standard", "aggressive"]


class Issue(TypedDict):
    """One thing that is wrong with a value."""

    path: str
    """A JSON Pointer; `""` is the whole value."""

    message: str
    """The error in the validator's words."""

    code: str
    """The kind of issue, e.g. pydantic's `missing` or JSON Schema's `required`."""

    expected: str | None
    """The expected value, in short, or None."""

    received: str | None
    """The received value, in short, or None."""

    hopeless: NotRequired[bool]
    """True where the validator says that no other call could help."""


class Repair(TypedDict):
    """One change that was made to read a text as JSON, or to make a value fit its type."""

    kind: str
    """The kind of change, such as `trailing_comma`."""

    position: int | None
    """Character offset in the raw text; None where the change has no position in it."""

    grade: Literal["format", "assumed", "guessed", "coerced"]
    """`format`: syntax only. `assumed`: one missing piece supplied on evidence. `guessed`: only the
    `aggressive` level does that. `coerced`: a value converted to its type."""

    detail: str
    """The change in words."""


class Failure(TypedDict):
    """Why an attempt failed."""

    kind: FailureKind
    """The kind of failure. It decides which automation may act on it."""

    type: str
    """Class name of the error."""

    message: str
    """Its text, with keys of providers masked."""


class KeptIn(TypedDict):
    """A checkpoint of the same thread that holds a record."""

    checkpoint_id: str
    """The checkpoint."""

    checkpoint_ns: NotRequired[str]
    """Its namespace, where that is not the call's own."""


class GateVerdict(TypedDict):
    """The verdict of a gate about a valid output."""

    ask: bool
    """Whether a person is asked."""

    sampled: bool
    """Whether it is asked about only as a sample of what passes."""

    confidence: float | None
    """From 0 to 1; None where nothing told it."""

    needed: float
    """The confidence below which a person is asked."""


class Attempt(TypedDict):
    """One attempt, as the ledger keeps it: plain JSON, and only what changed.

    In the state of a call that goes on, `number` and `kept_in` may be all that is left of an
    earlier attempt; the first of these and the last have a `params_patch` too, on the params of the
    first attempt. Of many such only the first and the last eight are listed: the checkpoints of
    those list the ones before. What a user is given is made whole again. Where the checkpoint is
    gone, or a server does not show it, `kept_in` stays, the `failure` has the type `NotKept`, and
    nothing else in the record is known (`params_patch` is mostly None).
    """

    number: int
    """1 for the first attempt of a call."""

    name: str
    """The call's name, as its reviews have it."""

    status: Literal["running", "succeeded", "failed"]
    """`running` until the attempt has ended."""

    params_patch: list[dict[str, Any]] | None
    """RFC 6902 patch on the previous attempt's params; the first replaces the whole document."""

    params_types: dict[str, str]
    """Python types that the params had, where JSON and the params type do not tell them."""

    author: str
    """Who revised the params for this attempt: `caller`, `hook:NAME`, `human`, `human:NAME`, …."""

    reason: str | None
    """Why they were revised."""

    raw: dict[str, Any] | None
    """What the call returned: `{"text": …}`, `{"value": …}` for structured results, or
    `{"type": …}` for what has no JSON form; None if it raised. Where the provider gave it,
    `reasoning` is what the model wrote to itself first, of at most 20,000 characters."""

    repaired: dict[str, Any] | None
    """`{"text": …}`: the JSON text that repair made of it, where that differs."""

    repairs: list[Repair]
    """The changes made to read the text and to fit the value."""

    lossless: bool | None
    """Whether the text was read without guessing; None if the output was not JSON text."""

    parsed: dict[str, Any] | None
    """The JSON value that was read, under the key `value`. None where `raw` has a value itself,
    where nothing could be read, and for texts of more than 4,000 characters."""

    issues: list[Issue]
    """The errors of the value."""

    failure: Failure | None
    """Why the attempt failed; None if it did not."""

    decision: dict[str, Any] | None
    """What a reviewer decided after this attempt, by whom, when and through what; the `output` that
    they supplied or took; and `suggested_by`, whose params the review suggested."""

    kept_in: KeptIn | None
    """The checkpoint that holds this record; None where the record is whole."""

    usage: dict[str, Any] | None
    """Tokens, as the provider reported them: `input_tokens`, `output_tokens`, `total_tokens`."""

    finish_reason: str | None
    """Why the model stopped, in the provider's word."""

    started_at: str
    """ISO 8601 in UTC."""

    duration_s: float
    """Seconds the call took."""

    stopped_early: NotRequired[bool]
    """True where the answer was a stream that was closed before its end: `raw` has what had come
    by then, and `issues` what could not become valid any more."""

    traceparent: NotRequired[str]
    """The OpenTelemetry span of the run that made the attempt, where tracing is set up (W3C)."""

    gate: NotRequired[GateVerdict]
    """The verdict of a `graph_retry.hooks.Gate` about a valid output."""

    logprob: NotRequired[float]
    """Mean log-probability of the answer's tokens, where the provider gave them."""

    labels: NotRequired[dict[str, str]]
    """The caller's `labels`, if there are any."""

    to_review: NotRequired[bool]
    """True in the last record of what a retry node is given, where it is to open a review of that
    attempt instead of making another; see `review_later`."""

    redacted: NotRequired[bool]
    """True where the option `redact` is set: the texts here went through it."""

    params_shown: NotRequired[dict[str, Any] | None]
    """In state, beside a `params_patch` as the loop needs it: the params as reviews show them. A
    record that is given out has those in its `params_patch`, and None here."""

    tries: int
    """The number of requests, if `transient` retries are on; otherwise 1."""

    idempotency_key: str
    """The same when a crash repeats the call, different for every other attempt."""

    schema_version: int
    """Version of this record, see `SCHEMA_VERSION`."""
