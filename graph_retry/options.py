"""The options that `retry_llm_call`, retry nodes and the agent middleware share, validated."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal, cast, get_args, get_origin

from langgraph.types import RetryPolicy, TimeoutPolicy
from typing_extensions import TypedDict

from graph_retry._core.ground.functions.arguments import (
    Count,
    Name,
    Seconds,
    Size,
    WrongArgumentError,
    check_options,
)
from graph_retry._core.ground.functions.calling import is_async
from graph_retry._core.ground.functions.kinds import Within
from graph_retry._core.ground.functions.signatures import Hook, LLMCall, OnRetry, name_of
from graph_retry._core.ground.functions.steering import BudgetRule, LessonsRule
from graph_retry._core.loop.run.events import Observer
from graph_retry._core.loop.run.settings import DEFAULT_KEYS, Settings, StateKeys
from graph_retry._core.output.formats.format import Format, FormatName, format_named
from graph_retry._core.review.answers import Decision, DecisionType, ValidDecisionType
from graph_retry._core.review.decisions import ROWS
from graph_retry._core.review.review_record import NotifyFunction, Reviewer
from graph_retry.hooks import FeedbackStrategy, feedback
from graph_retry.lossless._ground import as_repr, lazy
from graph_retry.records import Attempt, FailureKind, RepairLevel

__all__ = [
    "LLMCall",
    "OnRetry",
    "OptionsWithoutAccept",
    "RepairOption",
    "RetryOptions",
    "StateKeys",
    "settle",
]

RepairOption = RepairLevel | Callable[[str], str] | tuple[RepairLevel, Callable[[str], str]]

_MOST_LABELS, _MAX_LABEL = 20, 200


class _OtherOptions(TypedDict, total=False):
    """All options except `allowed_decisions`, because this option decides the result's type."""

    repair: RepairOption
    format: FormatName | Format
    strict: bool
    check_formats: bool
    stop_early: bool
    max_attempts: Count
    auto_retries: Size
    review: bool | Literal["always"] | Callable[[Attempt], Any]
    transient: RetryPolicy
    timeout: Seconds | TimeoutPolicy
    classify: Callable[[Exception], FailureKind | None]
    feedback: FeedbackStrategy | Hook[Any]
    reviewer: Reviewer | Sequence[Reviewer]
    expires_after: Seconds
    default_decision: Annotated[Decision, "a decision, such as `reject(…)` or `respond(…)`"]
    notify: NotifyFunction
    redact: Callable[[str], str]
    budget: Annotated[
        BudgetRule,
        "a `SharedBudget`, your own `BudgetRule` or a `Budget`, such as `Budget(tokens=10_000)`",
    ]
    lessons: Annotated[LessonsRule, "a `Lessons`, such as `Lessons(told=3)`"]
    on_attempt: Callable[[Attempt], Any]
    observers: Sequence[Observer]
    name: Name
    key: Name
    labels: Mapping[str, str]
    subject: str | Callable[[Any], str]
    on_cancel: Literal["raise", "end"]
    locked: Sequence[str]
    not_secret: Sequence[str]
    keys: StateKeys


class OptionsWithoutAccept(_OtherOptions, total=False):
    """The options of a call that always returns a value of the type `output`. See `RetryOptions`.

    allowed_decisions: The decisions that a reviewer may take, without `accept`.
    """

    allowed_decisions: Annotated[Sequence[ValidDecisionType], Within(1)]


class RetryOptions(_OtherOptions, total=False):
    """Options of `retry_llm_call`, `aretry_llm_call` and `create_retry_node`.

    repair: The level of repair of the model's text before validation: `none`, `minimal`, `standard`
        (default; lossless) or `aggressive`. If you give a function `text -> text`, it runs after
        the level `standard`. For a different level, give a pair `(level, function)`.
    format: The format of the answer (default None: `json`): `json`, `yaml`, `jsonl` (JSON Lines,
        for lists; each line is repaired by itself), `xml` (a tag for each field), or your own
        `graph_retry.output.Format`. A fence inside a field is a part of the answer. Two answers
        that differ are refused.
    strict: Refuse values of the wrong type instead of converting them (default False).
    check_formats: Whether validation checks `format` in a JSON Schema, such as `date` or `email`
        (default False: `format` is only an annotation).
    stop_early: Whether a streamed answer is stopped as soon as it can no longer become valid
        (default True). The text so far is validated after each 32 new characters, or, if the text
        is long, after it has grown by one sixteenth. If all fields that have not yet arrived have
        defaults, an `after` validator of your type may run on the unfinished object. Google's API
        sends the arguments of a tool call in one piece, so only its text can be stopped early.
    max_attempts: Maximum number of model calls, including the first one (default 10). If a person
        may be asked, automation does not use the last attempt.
    auto_retries: Maximum number of automatic attempts between two reviews. With the default 0, a
        person is asked after the first failure, and sees the hook's params as a suggestion. If
        `output` is set, but no hook or `feedback`, these attempts use `feedback="errors_only"`.
    review: Whether a person may be asked (default True). With False, a call that fails ends as
        `exhausted`. With `always`, a person also reviews each valid output, and an approval takes
        the output without another call. A function `attempt -> bool` chooses the outputs to review.
        A function `attempt -> number` returns a limit from 0 to 1. If the field `confidence` of the
        output is below this limit, the output is reviewed. See also `graph_retry.hooks.Gate`. Your
        own gate returns a `graph_retry.records.GateVerdict`.
    transient: LangGraph's `RetryPolicy` for transient failures, inside one attempt (default None: a
        transient failure is a failed attempt). A `Retry-After` header is obeyed, up to one minute.
        Do not set the policy's `retry_on`: `classify` says which failures are transient.
    timeout: Maximum seconds of one request (default None), or LangGraph's `TimeoutPolicy`. The
        `idle_timeout` of this policy ends a stalled stream. The timeout covers a whole stream. At
        the timeout, or if the run is cancelled, an async stream is closed at once, and a sync
        stream at its next piece. If a sync call exceeds its timeout, it continues in its own OS
        thread, and its late result is dropped.
    classify: A function `exception -> failure kind`. By default, or if it returns None, the library
        classifies the exception: by the HTTP status, the provider's error code and text, or the
        exception after `from`. An `ExceptionGroup` gets the kind of its worst member. If the
        function raises or returns another value, the failure is `permanent`, with a WARNING. To
        give a refusal in plain words the kind `refusal`, raise your own exception in `llm_call`.
    feedback: A hook that tells the model its errors (default None). Give a strategy of
        `graph_retry.hooks.feedback`, or any hook. The changes of `on_retry` hooks stay.
    reviewer: Functions (or runnables) `review -> decision | None`, asked in order before a person
        (default none); see `graph_retry.hooks.ReviewFunction`.
    expires_after: Seconds after which a review expires (default None: never). A later answer is
        refused. Run `graph_retry.threads.expire_reviews` regularly to end expired reviews.
    default_decision: The decision that ends an expired review, by the author `system` (default:
        `reject(…)`). If it cannot be applied to the review, the call is rejected. `defer` and
        `assign` are not allowed, because they leave the review open.
    notify: A function that sends a message about a new review (default None). It gets a
        `graph_retry.hooks.Review`, shortly before the thread is saved as waiting. It is called once
        for each question, but not again after `defer` or `assign`. A question that is asked again
        after a refused answer is a new one. If the process dies while `notify` runs, the next run
        of the thread calls it again. Its errors are logged, and change nothing.
    redact: A function `text -> text` that hides private data (default None). It is applied to
        params, outputs, issues, errors and messages in reviews and in the ledger, and to the keys
        of objects, but not to names that a type declares. State and the arguments of hooks are not
        redacted. If an edit leaves a redacted value unchanged, the original value stays. Events of
        a stream have a text only when the text is complete, because the function may not recognise
        the beginning of a private text.
    budget: The limit for automation, after which a reviewer is asked: a `graph_retry.hooks.Budget`
        for this call, or a `SharedBudget` for all calls that get the same object (default None).
    lessons: The errors of other steps, or past corrections, that are added to the prompt: a
        `Lessons` or `PastCorrections` of `graph_retry.hooks` (default None).
    on_attempt: Called once with each finished attempt's record (default None).
    observers: Sync functions that get each `graph_retry.observers.Event` of the call, such as a
        question or an answer (default none). Their errors are logged, and change nothing.
    name: The name of this call in reviews, events and records (default: the function's name).
    key: Identifies this call among calls of the same name in one node (default: the params identify
        the call). If the params change from run to run, give a key (function form only).
    labels: A dict of texts by which reviewers sort and filter, such as `tenant`, `assignee` and
        `priority` (default none). Reviews, records and notifications contain the labels.
    subject: A title for lists of reviews: a text, or a function of the params (default None). The
        first 200 characters are kept, after `redact`. Errors of the function are logged.
    on_cancel: What a rejected or exhausted call does. `raise` raises an exception (default of the
        function form). `end` ends the node with this status (node form only; the default there).
    locked: Fields of the params that no reviewer may edit (default none). Hooks and feedback may
        still change them.
    not_secret: Fields of the params that look like a credential, by name or value, but hold none
        (default none). Give each field as a name, or as a path such as `/headers/cookie`. The check
        reads 10,000 characters of each text, and 200,000 characters of all params together.
    keys: Other names for the state keys of `StateKeys` (node form only).
    allowed_decisions: Decisions that a reviewer may take (default: all except `accept`, `defer` and
        `assign`). `accept` takes an output that could be read but is not valid, and ends the call
        as `overruled`. With `accept`, type checkers see the result as `output | JsonValue`.
    """

    allowed_decisions: Annotated[Sequence[DecisionType], Within(1)]


_IN_PARAMS = "put this value into `params`, and use it in `llm_call`"
_AS_TRANSIENT = "to retry transport failures, give `transient=RetryPolicy(…)`"
_CALLED_HERE = {
    **dict.fromkeys(
        ("max_retries", "retries"),
        "give `max_attempts`, which includes the first call, or `auto_retries`, the number of "
        "retries without a person",
    ),
    "initial_delay": f"{_AS_TRANSIENT} (`initial_interval`)",
    "backoff_factor": f"{_AS_TRANSIENT} (`backoff_factor`)",
    **dict.fromkeys(("backoff", "delay", "wait", "stop"), _AS_TRANSIENT),
    **dict.fromkeys(("retry_config", "retry_policy"), _AS_TRANSIENT),
    **dict.fromkeys(
        ("temperature", "model", "max_tokens", "messages", "prompt", "system_prompt", "seed"),
        _IN_PARAMS,
    ),
    "repair_only": "give `review=False` and leave `auto_retries` out, so that an invalid "
    "answer raises `AttemptsExhausted`",
    "feedback_strategy": "give `feedback`",
    "custom": "give `repair=(level, function)`",
    "level": "give `repair`",
    **dict.fromkeys(
        ("validate", "validator", "schema", "output_schema", "response_model", "response_format"),
        "give `output`: a type, a JSON Schema, or a function of the value",
    ),
    **dict.fromkeys(("retry_on", "should_retry"), "give `classify`, and `transient`"),
}
"""Advice for arguments of other libraries. Only an error message shows it."""
_HUMP = lazy(r"(?<=[a-z])(?=[A-Z])")


_NEEDED: dict[str, tuple[str, str]] = {
    "default_decision": ("expires_after", "the seconds to wait"),
    "strict": ("output", "the type of the answer"),
    "check_formats": ("output", "the JSON Schema of the answer"),
    "repair": ("output", "the type or JSON Schema of the answer"),
    "format": ("output", "the type or JSON Schema of the answer"),
    "repeatable": ("transient", "a `RetryPolicy`"),
}
"""The options that have an effect only beside another option, and what to give for this option."""
_OFF: tuple[Any, ...] = (None, False, "none", [], ())


def _check_effects(options: Mapping[str, Any]) -> None:
    """Raise if an option has no effect without another option. `...` is a value not yet known."""
    given = {name for name in _NEEDED if options.get(name) not in _OFF}
    if options.get("feedback") is not None:
        given.discard("format")  # Feedback asks for this format, even if `llm_call` reads answers.
    for name, (needed, value) in _NEEDED.items():
        if name in given and options.get(needed) is None:
            raise WrongArgumentError(
                f"`{name}` needs `{needed}`, without which it has no effect: give {value}, or "
                f"leave `{name}` out."
            )
    output = options.get("output")
    if "check_formats" in given and (isinstance(output, type) or get_origin(output) is not None):
        raise WrongArgumentError(
            "`check_formats` has no effect, because `output` is the type "
            f"`{getattr(output, '__name__', output)}`: leave it out, or give a JSON Schema."
        )


def settle(
    default_name: str,
    form: Literal["function", "node"],
    options: RetryOptions,
    output: Any = ...,
    **beside: Any,
) -> Settings:
    """Check the options of a function's call or of a retry node, and add the defaults.

    `output` is the wanted output; `...` if not yet known. `beside` has arguments that options read.

    Raises:
        WrongArgumentError: If an option is unknown, or has a value that is not allowed.
        ValueError: If an option is not allowed in this form, or conflicts with another option.

    Example:
        >>> settle("read", "function", {"max_attempts": 3}).max_attempts
        3
    """
    for name in options:
        spelled = _HUMP.sub("_", name).lower()  # As in `maxRetries` of JavaScript.
        advice = _CALLED_HERE.get(spelled)
        if spelled != name and spelled in (*RetryOptions.__annotations__, "on_retry"):
            advice = f"give `{spelled}`"
        if advice and name not in RetryOptions.__annotations__:
            raise WrongArgumentError(f"unknown argument `{name}`: {advice}.")
    # The middleware has no argument `output`. An error about this name must not suggest it.
    given = check_options(RetryOptions, options, {"on_retry", "output"} - set(options))
    if form == "function" and ("keys" in given or given.get("on_cancel") == "end"):
        option = "keys" if "keys" in given else "on_cancel='end'"
        raise ValueError(
            f"`{option}` is only for `create_retry_node`: leave it out, because a function "
            "has no state keys and can only return or raise."
        )
    if form == "node" and "key" in given:
        raise ValueError(
            "`key` is only for `retry_llm_call`: leave it out, because a retry node makes one call."
        )
    _check_effects({**given, **beside, "output": output})
    if "default_decision" in given:
        check_options(Decision, given["default_decision"], inside="default_decision")
        if ROWS[word := given["default_decision"]["type"]].waits:
            closing = ", ".join(kind for kind, row in ROWS.items() if not row.waits)
            raise ValueError(
                f"`default_decision` is `{word}`, which would leave the review open: give one "
                f"of {closing}."
            )
    for option, brought in _FORMS.items():
        if option in given:
            given[option] = brought(given[option])
    # The loop of a function's call always ends with a status: the function itself then raises.
    if form == "function":
        given.pop("on_cancel", None)
    given.setdefault("name", default_name)
    told = replace(feedback(), optional=True)
    settings = Settings(**given, own_feedback=_in_format(told, given.get("format")))
    return replace(settings, feedback=_in_format(settings.feedback, settings.format))


def _in_format(hook: Any, written: Format | None) -> Any:
    """Return a feedback hook whose text asks for an answer in the given format."""
    asking = getattr(hook, "asking", None)
    if written is None or asking is None:
        return hook
    return asking(f"Answer again, complete and corrected. {written.describe()}")


def _repair(given: Any) -> Any:
    if isinstance(given, tuple):
        return cast("Any", given)
    return ("standard", given) if callable(given) else (given, None)


def _feedback(given: Any) -> Any:
    return feedback(given) if given in get_args(FeedbackStrategy) else given


def _reviewers(given: Reviewer | Sequence[Reviewer]) -> tuple[Reviewer, ...]:
    each = tuple(given) if isinstance(given, Sequence) else (given,)
    if any(hasattr(one, "bind_tools") for one in each):
        raise TypeError(
            "`reviewer` is a chat model, which cannot read a review: give "
            "`graph_retry.hooks.model_reviewer(model)`."
        )
    return each


def _observers(given: Sequence[Observer]) -> tuple[Observer, ...]:
    for one in given:
        if is_async(one):
            raise TypeError(
                f"`observers` has the async function `{name_of(one, 'observers')}`: give a sync "
                "function. It may put the event into a queue."
            )
    return tuple(given)


def _transient(given: RetryPolicy) -> RetryPolicy:
    if given.retry_on is not RetryPolicy().retry_on:
        raise ValueError(
            "`transient` has `retry_on`, which would be ignored: leave it out. To choose the "
            'exceptions to retry, return "transient" from `classify=`.'
        )
    return given


def _budget(given: BudgetRule) -> BudgetRule:
    from graph_retry.hooks import Budget, SharedBudget  # noqa: PLC0415 - most calls have no budget

    limits = ("tokens", "cost", "seconds", "rounds", "failures")
    # A class of the user may have a limit of its own.
    is_ours = type(given) in (Budget, SharedBudget)
    if is_ours and all(getattr(given, name, None) is None for name in limits):
        what = f"`budget` is a `{type(given).__name__}` without a limit, and has no effect"
        raise WrongArgumentError(f"{what}: give a limit, such as `tokens=10_000`, or leave it out.")
    return given


def _labels(given: Mapping[str, str]) -> dict[str, str]:
    if long := [name for name, text in given.items() if len(name + text) > _MAX_LABEL]:
        raise ValueError(
            f"`labels` has `{long[0]:.80}`, which is too long: name and text may have "
            f"{_MAX_LABEL} characters together."
        )
    if len(given) > _MOST_LABELS:
        raise ValueError(f"`labels` has {len(given)} labels: give at most {_MOST_LABELS}.")
    return dict(given)


def _keys(given: Mapping[str, str]) -> dict[str, str]:
    names = {**dict(DEFAULT_KEYS), **check_options(StateKeys, given, inside="keys")}
    if len(set(names.values())) < len(names):
        raise ValueError(
            f"`keys` is {as_repr(given, 200)}, which gives one name to two keys: rename one."
        )
    return names


_FORMS: dict[str, Callable[[Any], Any]] = {
    "repair": _repair,
    "format": format_named,
    "feedback": _feedback,
    "reviewer": _reviewers,
    "timeout": TimeoutPolicy.coerce,
    "transient": _transient,
    "budget": _budget,
    "labels": _labels,
    "observers": _observers,
    "allowed_decisions": tuple,
    "locked": tuple,
    "not_secret": tuple,
    "keys": _keys,
}
"""The functions that convert options to their types in `Settings`."""
