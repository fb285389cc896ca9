"""The records that graph state holds as plain JSON: attempts, with failures, issues and repairs."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, NamedTuple, NotRequired, cast

from typing_extensions import TypedDict

from graph_retry.lossless._ground import Repair, RepairLevel

__all__ = [
    "FAILURE_KINDS",
    "PEOPLE",
    "SCHEMA_VERSION",
    "STRUCTURED_RESPONSE",
    "Addition",
    "Attempt",
    "Doubt",
    "Failure",
    "FailureKind",
    "FailureMeaning",
    "GateVerdict",
    "Issue",
    "KeptIn",
    "Repair",
    "RepairLevel",
    "author_role",
    "parts_of_messages",
]

SCHEMA_VERSION = 1
"""Version of the ledger record; a reader refuses a newer one."""

INTERVENTION = "llm_intervention"
"""The `type` in the value of each interrupt that graph-retry raises."""

SAVED_NAMESPACE: Final = "checkpoint_ns"
"""Our own key of a call's namespace, in `kept_in` and in the value of an interrupt. If LangGraph
renames its key of the same name (`CONFIG_NAMESPACE`), this key stays."""

STRUCTURED_RESPONSE = "structured_response"
"""The key of the structured response in the message of an agent's model."""

APPROVAL = "ApprovalNeeded"
"""The `type` of the failure of a tool call that has not run, because a person must approve it."""

OWN_TYPES = frozenset({APPROVAL, "BudgetExceededError", "NothingReturned", "Refusal", "ToolError"})
"""The `type` of failures that graph-retry itself writes. It recognizes them by this `type`."""

PEOPLE = frozenset({"human", "rewind", "state edit"})
"""The roles of people. `human` answers a review. `rewind` goes back to an earlier attempt. `state
edit` edits the params in state while a review waits."""


def author_role(author: str) -> str:
    """Return the role of an author, such as `hook` for `hook:shorten`.

    Example:
        >>> author_role("human:ada"), author_role("human:ada") in PEOPLE
        ('human', True)
    """
    return author.partition(":")[0]


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


class FailureMeaning(NamedTuple):
    """What a failure kind means.

    words: The kind in a few words, for messages and lists.
    sentence: The kind in a sentence, for a page.
    for_hooks: True if hooks and feedback act first. Otherwise a reviewer is asked at once.
    status: The HTTP status with which scripted models raise an error of this kind, or None.
    """

    words: str
    sentence: str
    for_hooks: bool = True
    status: int | None = None


FAILURE_KINDS: dict[FailureKind, FailureMeaning] = {
    "permanent": FailureMeaning("failed", "The call failed, and would fail again.", False, 401),
    "rejected_input": FailureMeaning(
        "error", "The call ended with an error. A changed call may succeed.", status=400
    ),
    "context_overflow": FailureMeaning("too long", "The text is too long for this model."),
    "refusal": FailureMeaning("declined", "The model declined to answer."),
    "transient": FailureMeaning(
        "failed for now", "The call failed for now. The same call may succeed later.", status=503
    ),
    "truncated": FailureMeaning("cut off", "The model's answer was cut off."),
    "invalid_schema": FailureMeaning("invalid answer", "The model's answer has the wrong form."),
    "invalid_syntax": FailureMeaning("unreadable answer", "The model's answer cannot be read."),
}
"""All failure kinds, sorted: another attempt helps least after a failure of the first kind."""


class Issue(TypedDict):
    """One error in a value that a model returned.

    path: A JSON Pointer; `""` is the whole value.
    message: The error in the validator's words.
    code: The kind of issue, e.g. pydantic's `missing` or JSON Schema's `required`.
    expected: The expected value, in short, or None.
    received: The received value, in short, or None.
    hopeless: True if the validator says that another call cannot help.
    """

    path: str
    message: str
    code: str
    expected: str | None
    received: str | None
    hopeless: NotRequired[bool]


class Failure(TypedDict):
    """Why an attempt failed.

    kind: The kind of failure. It decides which automation may act on it.
    type: Class name of the error.
    message: The error's text, with API keys masked.
    is_unknown: True if the library does not know the error. `kind` is then `rejected_input` by
        default.
    """

    kind: FailureKind
    type: str
    message: str
    is_unknown: NotRequired[bool]


class KeptIn(TypedDict):
    """The checkpoint that holds the record of an attempt, in the thread of its call.

    The field for the namespace is set only if it differs from the checkpoint namespace of the call.
    """

    checkpoint_id: str
    checkpoint_ns: NotRequired[str]


class Doubt(TypedDict):
    """A field of a valid output that a person should check first.

    path: A JSON Pointer.
    why: The reason, such as `not in the input`.
    """

    path: str
    why: str


class GateVerdict(TypedDict):
    """The verdict of a `graph_retry.hooks.Gate` about a valid output.

    ask: Whether a person is asked.
    sampled: True if the output passed the gate, but was chosen as a random sample for a person.
    confidence: From 0 to 1; None if it is unknown.
    needed: The confidence below which a person is asked.
    doubts: The fields that may be wrong, at most 20.
    """

    ask: bool
    sampled: bool
    confidence: float | None
    needed: float
    doubts: NotRequired[list[Doubt]]


class Addition(TypedDict):
    """A replaceable part of the params, which feedback, a comment, lessons or corrections added.

    by: Which of the four. New feedback or a new comment replaces all earlier feedback and comments.
    field: The field of the params; `value` if the params are a single text.
    start: The position of the first added character in a text, or of the first added message in a
        list.
    end: The position after the last added character or message.
    inside: If only a part of one message was added, the position of the first added character and
        the position after the last. If the content is a list, the positions count content blocks.
    """

    by: Literal["feedback", "comment", "lessons", "corrections"]
    field: str
    start: int
    end: int
    inside: NotRequired[list[int]]


class Attempt(TypedDict):
    """One attempt in the ledger, as plain JSON. It stores the params as a patch.

    The functions of the library return whole records. In graph state, an earlier attempt of a
    waiting call may be a stub: a record with only `number` and `kept_in`. `kept_in` names the older
    checkpoint that holds the whole record. The first and the last stub also have a `params_patch`,
    relative to the first attempt's params. Graph state lists the first stub and the last eight
    stubs. The checkpoints of these stubs list the other stubs. Whole records stay in state if
    they have at most 4,000 characters together, if the durability is `exit`, or if the checkpointer
    keeps only the newest checkpoint.

    If the checkpoint that holds a whole record was deleted, or if a server hides this checkpoint,
    you get a record with `kept_in` set and a `failure` of the type `NotKept`. Its other fields are
    unknown. If eight such checkpoints in a row were deleted, all records before them are lost too.

    number: 1 for the first attempt of a call.
    name: The call's name, as in its reviews.
    status: `running` until the attempt has ended.
    params_patch: RFC 6902 patch of the previous attempt's params; the first patch sets the
        whole params.
    params_types: Python types of params, by path, if neither the JSON nor the params type shows the
        type.
    author: The author of this attempt's params: `caller`, `hook:NAME`, `human`, `human:NAME`,
        ….
    added: The parts that the library added to these params, such as feedback, and may replace
        later. All other text comes from the caller, a hook or a reviewer, and is never removed.
    reason: The reason for the change of the params; None for the caller's params.
    raw: The call's result: `{"text": …}`, `{"value": …}` for a structured result, or `{"type": …}`
        for a result without a JSON form. If the call raised, `raw` is None; if a stream broke off,
        `{"received": …}` has the text so far. The key `reasoning` has the model's reasoning text,
        if the provider gave it: at most 20,000 characters.
    repaired: `{"text": …}`: the JSON text after repair, if it differs from the raw text.
    repairs: The changes made to read the text and to fit the value.
    lossless: Whether the text was read without a guess and without rounding a number. If the output
        was not JSON text: None.
    parsed: The JSON value that was read, under the key `value`. None if `raw` already has a
        value, if nothing could be read, or if the text has more than 4,000 characters.
    issues: The errors of the value.
    failure: The failure of the attempt; None if it did not fail.
    decision: The reviewer's decision after this attempt, with its author, time and channel, and
        with the `output` that the reviewer supplied or accepted. `suggested_by` is the author of
        the suggested params.
    kept_in: The checkpoint that holds this record; None if the record is whole.
    usage: Tokens, as the provider reported them: `input_tokens`, `output_tokens`,
        `total_tokens`.
    finish_reason: The provider's word for the reason why the model stopped.
    started_at: ISO 8601 in UTC.
    duration_s: Seconds the call took.
    stopped_early: True if the library closed the answer's stream early, because the answer could no
        longer become valid. `raw` has the part that had arrived, and `issues` has the errors in it.
        `usage` is then incomplete: OpenAI's client gives None, and Anthropic's counts too few.
    traceparent: The OpenTelemetry span of the attempt's run (W3C), if tracing is set up.
    gate: The verdict of a `graph_retry.hooks.Gate` about a valid output.
    params: The params. Only a function for `review=` gets a record with this field.
    output_schema: The JSON Schema of the output. Only a function for `review=` gets a record with
        this field.
    sent: Values that an agent's middleware sent instead of those in the params, such as another
        `model`. A review shows both.
    logprob: Mean log-probability of the answer's tokens, if the provider gave them.
    labels: The option `labels`, if it is set.
    subject: The title of the call that the option `subject` gave.
    is_message: True if the output is the message of an agent's model: an object with `content`,
        `tool_calls` and so on. An output that a person supplied may also have
        `structured_response`.
    to_review: Set by `review_later` in the last record of a retry node's input: the node opens a
        review of that attempt instead of making another attempt.
    redacted: True if the option `redact` is set. The texts of the record are then redacted.
    params_shown: The redacted params, only in state, where `params_patch` holds the original
        params. In a record that the library returns, `params_patch` holds the redacted params, and
        this field is None.
    tries: The number of requests, if `transient` retries are on; otherwise 1.
    idempotency_key: A key for the provider. If this attempt is repeated after a crash, the key is
        the same. Every other attempt has a different key.
    schema_version: Version of this record: see `SCHEMA_VERSION`.
    """

    number: int
    name: str
    status: Literal["running", "succeeded", "failed"]
    params_patch: list[dict[str, Any]] | None
    params_types: dict[str, str]
    author: str
    added: NotRequired[list[Addition]]
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
    stopped_early: NotRequired[bool]
    traceparent: NotRequired[str]
    gate: NotRequired[GateVerdict]
    params: NotRequired[Any]
    output_schema: NotRequired[dict[str, Any] | None]
    sent: NotRequired[dict[str, Any]]
    logprob: NotRequired[float]
    labels: NotRequired[dict[str, str]]
    subject: NotRequired[str]
    is_message: NotRequired[bool]
    to_review: NotRequired[bool]
    redacted: NotRequired[bool]
    params_shown: NotRequired[dict[str, Any] | None]
    tries: int
    idempotency_key: str
    schema_version: int


class Sealed(TypedDict):
    """The parts that the library added to the params in graph state, with a hash of their fields.

    `of` is the hash. If the hash of the fields is different later, somebody edited the params in
    state.
    """

    of: str
    parts: list[Addition]


def parts_of_messages(
    parts: Iterable[Addition], params: Mapping[str, Any] | None
) -> list[Addition]:
    """Return the added parts that are whole messages.

    Other parts are positions in texts. After redaction, these positions would be wrong.

    Example:
        >>> part = {"by": "comment", "field": "messages", "start": 1, "end": 2}
        >>> parts_of_messages([part], {"messages": ["Hello", "No."]}) == [part]
        True
    """
    return [
        part
        for part in parts
        if "inside" not in part and isinstance((params or {}).get(part["field"]), list)
    ]


class SavedFunction(TypedDict):
    """The function of a call, as digests in the saved state.

    code, source: Digests of the code and of its files. If a file is not found, its digest is empty.
    parts: The digest of each captured value by its name. If a value has no readable content: None.
    objects: The ids of the functions and objects that hold the parts, by the place of each part.
        An id counts only in the process that saved the call.
    shown: The digests of the visible attributes of each value, such as a chat model, that has no
        digest itself. A different digest means that another object, perhaps an equal one, took
        the value's place.
    unsteady: The parts that the function itself changes during a call: "changed", or "used" if the
        function takes entries out of them.
    """

    code: str
    source: str
    parts: dict[str, str | None]
    objects: dict[str, str]
    shown: NotRequired[dict[str, str]]
    unsteady: NotRequired[dict[str, str]]


def shown_record(record: Attempt) -> Attempt:
    """Return an attempt's record as users may see it. If `redact` is set, the params are redacted.

    The patches in state hold the original params. The texts of a running attempt are left out,
    because they are redacted only at the attempt's end.
    """
    if not record.get("redacted"):
        return record
    shown = record.get("params_shown")
    patch: Any = [{"op": "replace", "path": "", "value": shown}]
    known: Any = {"params_patch": patch if shown is not None else None, "params_types": {}}
    if shown is not None and "added" in record:
        known["added"] = parts_of_messages(record["added"], shown)
    # The patch of a record from an earlier call of this function already has redacted params.
    if "params_shown" in record and shown is None:
        known = {}
    if record.get("status") == "running":
        known |= {"raw": None, "repaired": None, "parsed": None, "failure": None}
        known |= {"issues": [], "repairs": []}
    return cast("Attempt", {**record, **known, "params_shown": None})
