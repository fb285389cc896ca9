"""Plain-JSON records that travel through graph state: issues, repairs, failures, attempts."""

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

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
    """One thing that is wrong with a value.

    `path` is a JSON Pointer (`""` is the whole value). `expected` and `received` are short
    human-readable renderings, `None` where there is nothing to say.
    """

    path: str
    message: str
    code: str
    expected: str | None
    received: str | None


class Repair(TypedDict):
    """One change that was made to read a text as JSON, or to make a value fit its type.

    `position` is a character offset in the raw text, or `None` when the repair has no place in it.
    `grade` is `format` (syntax only), `assumed` (one missing piece supplied on evidence), `guessed`
    (only the `aggressive` level does that) or `coerced` (a value converted to its type).
    """

    kind: str
    position: int | None
    grade: Literal["format", "assumed", "guessed", "coerced"]
    detail: str


class Failure(TypedDict):
    """Why an attempt failed: the route-deciding `kind`, the error class name and its text."""

    kind: FailureKind
    type: str
    message: str


class KeptIn(TypedDict):
    """A checkpoint of the same thread, of the call's own namespace unless another is named."""

    checkpoint_id: str
    checkpoint_ns: NotRequired[str]


class Attempt(TypedDict):
    """One attempt, as the ledger keeps it. Plain JSON, and only what changed.

    `number` is 1-based, `name` that of the call. `params_patch` is an RFC 6902 patch on the
    previous attempt's params; the first attempt's replaces the whole document. `params_types` tells
    which Python types those params had where JSON and the params type cannot. `author` and `reason`
    tell who revised the params for this attempt: `caller`, `hook:NAME`, `human`, `human:NAME`, ….

    `raw` is what the call returned: `{"text": …}`, or `{"value": …}` for structured results.
    `repaired` is the JSON text repair made of it, where that differs; `repairs` says how it was
    read, and `lossless` whether without guessing (None for what was no JSON text). `parsed` is the
    JSON value that was read, under the key `value`; None where `raw` has a value or nothing was.
    `decision` is what a reviewer decided after this attempt failed.

    `kept_in` is None where the record is whole. In the state of a call that goes on, `number` and
    `kept_in` may be all that is left of an earlier attempt: its record is in the checkpoint that
    `kept_in` names. The first of these and the last have a `params_patch`, too, on the params of
    the first attempt. What a user is given is made whole again. Where the checkpoint is gone, or a
    server does not show it, `kept_in` stays; then nothing else in the record is known, the
    `failure` has the type `NotKept`, and `params_patch` is mostly None.

    `started_at` is ISO 8601 in UTC, `duration_s` in seconds. `tries` counts the requests one
    attempt took, where `transient` retries are on.
    """

    number: int
    name: str
    status: Literal["running", "succeeded", "failed"]
    params_patch: list[dict[str, Any]] | None
    params_types: dict[str, str]
    author: str
    reason: str | None
    raw: dict[str, Any] | None
    repaired: dict[str, Any] | None
    repairs: list[Repair]
    lossless: bool | None
    parsed: dict[str, Any] | None
    issues: list[Issue]
    failure: Failure | None
    decision: dict[str, Any] | None
    kept_in: KeptIn | None
    usage: dict[str, Any] | None
    finish_reason: str | None
    started_at: str
    duration_s: float
    tries: int
    idempotency_key: str
    schema_version: int
