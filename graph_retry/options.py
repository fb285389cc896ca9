"""The options that `retry_llm_call`, retry nodes and the agent middleware share, validated."""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, cast, get_args

from langchain_core.runnables import Runnable
from langgraph.types import RetryPolicy
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    InstanceOf,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from typing_extensions import TypedDict

from graph_retry._json import is_array
from graph_retry._output.formats.format import Format, FormatName, format_named
from graph_retry._review.answers import Decision, DecisionType, Reviewer, reject
from graph_retry._review.decisions import BY_DEFAULT
from graph_retry._review.review import Review
from graph_retry._signatures import check_callback, check_hook
from graph_retry._wording import did_you_mean
from graph_retry.hooks._budget import Budget
from graph_retry.hooks._feedback import FeedbackStrategy, feedback
from graph_retry.hooks._lessons import Lessons
from graph_retry.records import Attempt, FailureKind, RepairLevel

__all__ = ["RepairOption", "RetryOptions", "StateKeys"]

RepairOption = RepairLevel | Callable[[str], str] | tuple[RepairLevel, Callable[[str], str]]

_MAX_LABEL = 200

_CALLED_WITH = {
    "repair": "a text",
    "review": "an attempt's record",
    "classify": "an exception",
    "reviewer": "a review",
    "notify": "a review",
    "redact": "a text",
    "on_attempt": "an attempt's record",
}
"""Options that may be functions of one argument, with the argument in words."""

_SYNC_ONLY = ("repair", "classify", "redact")

_WANTED = {
    "reviewer": "give a function of the review, or a list of them",
    "budget": "give a `Budget` or a `SharedBudget`, such as `Budget(tokens=10_000)`",
    "default_decision": "give what `approve()`, `edit(…)`, `reject(…)` or `respond(…)` returns",
    "labels": "give a dict of text by name",
    "allowed_decisions": "give a list of decisions, such as ['approve', 'reject']",
    "locked": "give a list of fields",
}
"""Advice for options whose types have unclear names in pydantic's errors."""


class StateKeys(TypedDict, total=False):
    """Other names for the state keys of a retry node."""

    params: str
    output: str
    status: str
    attempts: str
    lessons: str


DEFAULT_KEYS = tuple(sorted((key, key) for key in StateKeys.__annotations__))
"""The default names of the state keys, which calls of functions always use."""


class RetryOptions(TypedDict, total=False):
    """Options of `retry_llm_call`, `aretry_llm_call` and `create_retry_node`.

    repair: How far a model's text may be repaired before it is validated: `none`, `minimal`,
        `standard` (default; lossless) or `aggressive`. A function `text -> text` runs after
        `standard`; a pair of a level and a function sets both.
    format: The format of the answer: `json`, `yaml`, `jsonl` (JSON Lines, for lists) or `xml` (a
        tag for each field), or a `graph_retry.output.Format` (default None: JSON).
    strict: Refuse values of the wrong type instead of converting them (default False).
    check_formats: Whether validation checks `format` in a JSON Schema, such as `date` or `email`
        (default False: `format` is only an annotation).
    stop_early: Whether a streamed answer is stopped as soon as it can no longer become valid
        (default True). See `docs/streaming.md`.
    max_attempts: Model calls at most, the first one included (default 10). If a person may be
        asked, automation leaves the last attempt to them.
    auto_retries: Automatic attempts between two reviews at most (default 0: a person is asked
        after the first failure, and sees the hook's params as a suggestion).
    review: Whether a person may be asked (default True). If False, a call that fails ends as
        `exhausted`. With `always`, or if a function `attempt -> bool` returns True, a person also
        sees a valid output, and an approval takes it without another call. If the function returns
        a number, a person is asked if the model's confidence is lower; see
        `graph_retry.hooks.Gate`.
    transient: LangGraph's `RetryPolicy` for transient failures, inside one attempt (default None:
        a transient failure is a failed attempt). A `Retry-After` up to a minute is waited for.
    timeout: Seconds one request may take (default None). A sync call that overruns is left behind
        in its thread and its late result dropped.
    classify: A function of an exception that returns its failure kind, or None to leave it to the
        library (the default for every exception).
    feedback: A hook that tells the model its errors, in addition to the changes of `on_retry`
        hooks: a strategy of `graph_retry.hooks.feedback`, or any hook (default None).
    reviewer: Functions (or runnables) `review -> decision | None`, asked in order before a person
        (default none); see `graph_retry.hooks.ReviewFunction`.
    expires_after: Seconds after which a review expires (default None: it waits for ever). A later
        answer is refused. `graph_retry.expiry.expire_reviews` ends expired reviews.
    default_decision: The decision that ends an expired review: `reject(…)` (default), `approve()`,
        `edit(…)` or `respond(…)`. Its author is `system`.
    notify: Called with each question, a `graph_retry.hooks.Review`, a moment before the thread is
        saved as waiting, to send a message (default None). Its errors are logged.
    redact: A function `text -> text` that hides private data (default None). It is applied to
        reviews and to the ledger: params, outputs, issues, errors and messages. An edit keeps the
        original of a redacted value. The state and the arguments of hooks are not redacted.
    budget: What automation may spend before a reviewer is asked: a `graph_retry.hooks.Budget` for
        this call, or a `SharedBudget` for all calls that are given the same (default None).
    lessons: How this call learns from other steps, a `graph_retry.hooks.Lessons` (default None).
    on_attempt: Called once with each finished attempt's record (default None).
    name: The name of this call in reviews, events and records (default: the function's name).
    key: Identifies this call among the calls with its name that one node makes (default: its
        params). Give a key if the params change from run to run (function form only).
    labels: Texts by name, such as `tenant`, `assignee` and `priority`, by which reviewers sort and
        filter (default none). Reviews, records and notifications have them.
    on_cancel: Whether a rejected or exhausted call raises (`raise`, the default of the function
        form) or ends with that status (`end`, the default of the node form, and only there).
    allowed_decisions: Decisions that a reviewer may take (default all but `accept`, `defer` and
        `assign`). `accept` takes an output that could be read but is not valid, and the call ends
        as `overruled`.
    locked: Fields of the params that no reviewer may edit (default none). Hooks and feedback may
        still change them.
    keys: Other names for the state keys of `StateKeys` (node form only).
    """

    repair: RepairOption
    format: FormatName | Format
    strict: bool
    check_formats: bool
    stop_early: bool
    max_attempts: int
    auto_retries: int
    review: bool | Literal["always"] | Callable[[Attempt], Any]
    transient: RetryPolicy
    timeout: float
    classify: Callable[[Exception], FailureKind | None]
    feedback: FeedbackStrategy | Callable[..., Any]
    reviewer: Reviewer | Sequence[Reviewer]
    expires_after: float
    default_decision: Decision
    notify: Callable[[Review], Any]
    redact: Callable[[str], str]
    budget: Budget
    lessons: Lessons
    on_attempt: Callable[[Attempt], Any]
    name: str
    key: str
    labels: Mapping[str, str]
    on_cancel: Literal["raise", "end"]
    allowed_decisions: Sequence[DecisionType]
    locked: Sequence[str]
    keys: StateKeys


_building = threading.Lock()


class Settings(BaseModel):
    """Validated options, with all defaults."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)

    name: str = Field(min_length=1)
    key: str | None = Field(default=None, min_length=1)
    repair: tuple[RepairLevel, Callable[[str], str] | None] = ("standard", None)
    format: InstanceOf[Format] | None = None
    strict: bool = False
    check_formats: bool = False
    stop_early: bool = True
    max_attempts: int = Field(default=10, ge=1)
    auto_retries: int = Field(default=0, ge=0)
    review: bool | Literal["always"] | Callable[[Attempt], Any] = True
    transient: InstanceOf[RetryPolicy] | None = None
    timeout: float | None = Field(default=None, gt=0)
    classify: Callable[[Exception], FailureKind | None] = lambda _: None
    feedback: Callable[..., Any] | None = None
    reviewer: tuple[InstanceOf[Runnable[Any, Any]] | Callable[..., Any], ...] = ()
    expires_after: float | None = Field(default=None, gt=0)
    default_decision: Decision = Field(default_factory=lambda: reject("nobody answered in time"))
    notify: Callable[[Review], Any] | None = None
    redact: Callable[[str], str] | None = None
    budget: InstanceOf[Budget] | None = None
    lessons: InstanceOf[Lessons] | None = None
    on_attempt: Callable[[Attempt], Any] | None = None
    labels: dict[str, str] = Field(default_factory=dict[str, str], max_length=20)
    on_cancel: Literal["raise", "end"]
    allowed_decisions: tuple[DecisionType, ...] = BY_DEFAULT
    locked: tuple[str, ...] = ()
    keys: dict[str, str] = Field(default_factory=dict[str, str], validate_default=True)

    @field_validator("review", mode="before")
    @classmethod
    def _known_review(cls, given: Any) -> Any:
        if not (isinstance(given, bool) or callable(given) or given == "always"):
            raise ValueError("give True, False, 'always' or a function of the attempt's record")
        return given

    @field_validator("labels")
    @classmethod
    def _short(cls, given: dict[str, str]) -> dict[str, str]:
        long = [name for name, text in given.items() if len(name + text) > _MAX_LABEL]
        if long:
            raise ValueError(f"`{long[0]:.80}` and its text are over {_MAX_LABEL} characters")
        return given

    @field_validator("allowed_decisions", "locked", "reviewer", mode="before")
    @classmethod
    def _as_tuple(cls, given: Any) -> Any:
        if callable(given) or isinstance(given, Runnable):
            return (given,)
        return cast("Any", tuple(given) if is_array(given) else given)

    @field_validator("allowed_decisions")
    @classmethod
    def _has_one(cls, given: tuple[DecisionType, ...]) -> tuple[DecisionType, ...]:
        if not given:
            raise ValueError("name at least one decision")
        return given

    @field_validator("repair", mode="before")
    @classmethod
    def _as_pair(cls, given: Any) -> Any:
        if callable(given):
            return ("standard", given)
        return cast("Any", given if isinstance(given, tuple) else (given, None))

    @field_validator("format", mode="before")
    @classmethod
    def _as_format(cls, given: Any) -> Format | None:
        return format_named(given)

    @field_validator("feedback", mode="before")
    @classmethod
    def _as_hook(cls, given: Any) -> Any:
        if not callable(given) and given is not None:
            if given not in get_args(FeedbackStrategy):
                raise ValueError(f"give a hook or one of {', '.join(get_args(FeedbackStrategy))}")
            return feedback(given)
        if given is not None:
            check_hook(given, "feedback")
        return cast("Any", given)

    @field_validator(*_CALLED_WITH)
    @classmethod
    def _takes_one(cls, given: Any, info: ValidationInfo) -> Any:
        option = info.field_name or ""
        functions: Any = given if option in ("repair", "reviewer") else (given,)
        for function in functions:
            if callable(function) and not isinstance(function, Runnable):
                is_sync = option in _SYNC_ONLY
                check_callback(function, _CALLED_WITH[option], may_be_async=not is_sync)
        return given

    @field_validator("keys")
    @classmethod
    def _complete(cls, given: dict[str, str]) -> dict[str, str]:
        names = {key: key for key in StateKeys.__annotations__} | given
        if set(names) != set(StateKeys.__annotations__) or len(set(names.values())) < len(names):
            known = ", ".join(StateKeys.__annotations__)
            raise ValueError(f"rename only {known}, each to a name of its own")
        return names


def settle(default_name: str, form: Literal["function", "node"], options: RetryOptions) -> Settings:
    """Validate the options of a function's call or of a retry node, and add its defaults.

    Raises:
        TypeError: If an option is unknown.
        ValueError: If an option has a value that is not allowed.
    """
    options = cast("RetryOptions", {key: it for key, it in options.items() if it is not None})
    unknown = sorted(set(options) - set(RetryOptions.__annotations__))
    if unknown:
        # The middleware has no argument `output`. If that is the unknown name, do not suggest it.
        arguments = {"on_retry", "output"} - {unknown[0]}
        known = (*RetryOptions.__annotations__, *sorted(arguments))
        meant = did_you_mean(unknown[0], known) or f" The options are {', '.join(known)}."
        raise TypeError(f"unknown option `{unknown[0]}`.{meant}")
    if form == "function" and ("keys" in options or options.get("on_cancel") == "end"):
        option = "keys" if "keys" in options else "on_cancel='end'"
        raise ValueError(
            f"`{option}` is for `create_retry_node`: a function can only return or raise."
        )
    if form == "node" and "key" in options:
        raise ValueError(
            "`key` is for `retry_llm_call`: a retry node makes one call, known by its task."
        )
    if "default_decision" in options and "expires_after" not in options:
        raise ValueError("`default_decision` needs `expires_after`, the seconds a review waits.")
    ending = "raise" if form == "function" else "end"
    if not Settings.__pydantic_complete__:
        with _building:  # In pydantic 2.11, two threads must not build a model at the same time.
            Settings.model_rebuild()
    try:
        settings = Settings.model_validate({"name": default_name, "on_cancel": ending, **options})
    except ValidationError as error:
        first = error.errors()[0]
        option, reason = str(first["loc"][0]), first["msg"].removeprefix("Value error, ")
        if first["type"].endswith(("_type", "is_instance_of")):
            reason = _WANTED.get(option, reason)
        raise ValueError(f"`{option}`: {reason}; not {first['input']!r}.") from None
    asking = getattr(settings.feedback, "asking", None)
    if settings.format is None or asking is None:
        return settings
    words = f"Answer again, complete and corrected. {settings.format.describe()}"
    return settings.model_copy(update={"feedback": asking(words)})
