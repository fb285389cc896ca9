"""The options that `retry_llm_call`, retry nodes and the agent middleware share, validated."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal, cast, get_args

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
from graph_retry._core.review.answers import Reviewer
from graph_retry._core.review.decisions import ROWS
from graph_retry._core.review.review import (
    Decision,
    DecisionType,
    NotifyFunction,
    ValidDecisionType,
)
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
    """All options but `allowed_decisions`, which decides the type of the result."""

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
    """The options of a call whose result is always of the type `output`. See `RetryOptions`.

    allowed_decisions: The decisions that a reviewer may take, without `accept`.
    """

    allowed_decisions: Annotated[Sequence[ValidDecisionType], Within(1)]


class RetryOptions(_OtherOptions, total=False):
    """Options of `retry_llm_call`, `aretry_llm_call` and `create_retry_node`.

    repair: The level to which a model's text is repaired before it is validated: `none`, `minimal`,
        `standard` (default; lossless) or `aggressive`. A function `text -> text` runs after
        `standard`. A pair of a level and a function sets both.
    format: The format of the answer: `json`, `yaml`, `jsonl` (JSON Lines, for lists) or `xml` (a
        tag for each field), or a `graph_retry.output.Format` (default None: JSON).
    strict: Refuse values of the wrong type instead of converting them (default False).
    check_formats: Whether validation checks `format` in a JSON Schema, such as `date` or `email`
        (default False: `format` is only an annotation).
    stop_early: Whether a streamed answer is stopped as soon as it can no longer become valid
        (default True). See `docs/streaming.md`.
    max_attempts: Maximum number of model calls, including the first one (default 10). If a person
        may be asked, automation leaves the last attempt to that person.
    auto_retries: Maximum number of automatic attempts between two reviews. With the default 0, a
        person is asked after the first failure, and sees the hook's params as a suggestion. With
        `output`, and without a hook or `feedback`, these attempts tell the model its errors, as
        with `feedback="errors_only"`.
    review: Whether a person may be asked (default True). If False, a call that fails ends as
        `exhausted`. With `always`, or if a function `attempt -> bool` returns True, a person also
        sees a valid output, and an approval takes it without another call. If the function returns
        a number, a person is asked if the model's confidence is lower; see
        `graph_retry.hooks.Gate`.
    transient: LangGraph's `RetryPolicy` for transient failures, inside one attempt (default None:
        a transient failure is a failed attempt). A `Retry-After` is obeyed up to a minute.
        Leave its `retry_on` out: `classify` says which failures are transient.
    timeout: Seconds one request may take (default None), or LangGraph's `TimeoutPolicy`, whose
        `idle_timeout` ends a stream that stalls. A sync call that takes longer continues in its
        thread, and its late result is dropped.
    classify: A function of an exception that returns its failure kind, or None to leave it to the
        library (the default for every exception).
    feedback: A hook that tells the model its errors, in addition to the changes of `on_retry`
        hooks: a strategy of `graph_retry.hooks.feedback`, or any hook (default None).
    reviewer: Functions (or runnables) `review -> decision | None`, asked in order before a person
        (default none); see `graph_retry.hooks.ReviewFunction`.
    expires_after: Seconds after which a review expires (default None: it waits for ever). A later
        answer is refused. `graph_retry.threads.expire_reviews` ends expired reviews.
    default_decision: The decision that ends an expired review: `reject(…)` (default) or another,
        except `defer` and `assign`, which leave it open. Its author is `system`.
    notify: Called with each question, a `graph_retry.hooks.Review`, a moment before the thread is
        saved as waiting, to send a message (default None). Its errors are logged.
    redact: A function `text -> text` that hides private data (default None). It is applied to
        reviews and to the ledger: params, outputs, issues, errors and messages. An edit keeps the
        original of a redacted value. The state and the arguments of hooks are not redacted.
    budget: The limit for automation, after which a reviewer is asked: a `graph_retry.hooks.Budget`
        for this call, or a `SharedBudget` for all calls that get the same object (default None).
    lessons: The errors of other steps, or past corrections, that are added to the prompt: a
        `Lessons` or `PastCorrections` of `graph_retry.hooks` (default None).
    on_attempt: Called once with each finished attempt's record (default None).
    observers: Functions of each `graph_retry.observers.Event` of the call, such as a question
        or an answer (default none). Their errors are logged, and change nothing.
    name: The name of this call in reviews, events and records (default: the function's name).
    key: Identifies this call among the calls with its name that one node makes (default: its
        params). Give a key if the params change from run to run (function form only).
    labels: Texts by name, such as `tenant`, `assignee` and `priority`, by which reviewers sort and
        filter (default none). Reviews, records and notifications have them.
    subject: What the call is about, for lists of reviews: a text, or a function of the params
        (default None). 200 characters are kept. `redact` is applied. Errors are logged.
    on_cancel: The end of a rejected or exhausted call. `raise`, the default of the function form,
        raises an exception. `end`, the default of the node form and allowed only there, ends the
        call with that status.
    locked: Fields of the params that no reviewer may edit (default none). Hooks and feedback may
        still change them.
    not_secret: Fields of the params that hold no credential although their name or value looks like
        one (default none). Each is a name, or a path such as `/headers/cookie`.
    keys: Other names for the state keys of `StateKeys` (node form only).
    allowed_decisions: Decisions that a reviewer may take (default all but `accept`, `defer` and
        `assign`). `accept` takes an output that could be read but is not valid, and the call ends
        as `overruled`. For type checkers, the result is then of the type `output | JsonValue`.
    """

    allowed_decisions: Annotated[Sequence[DecisionType], Within(1)]


_IN_PARAMS = "it is a matter of the call itself: put it into `params`, and use it in your function"
_AS_TRANSIENT = "failures of the transport are repeated by `transient=RetryPolicy(…)`"
_CALLED_HERE = {
    **dict.fromkeys(
        ("max_retries", "retries"),
        "give `max_attempts`, which counts the first call as well, or `auto_retries`, which counts "
        "the retries without a person",
    ),
    "initial_delay": f"{_AS_TRANSIENT} (`initial_interval`)",
    "backoff_factor": f"{_AS_TRANSIENT} (`backoff_factor`)",
    **dict.fromkeys(("backoff", "delay", "wait", "stop"), _AS_TRANSIENT),
    **dict.fromkeys(("retry_config", "retry_policy"), _AS_TRANSIENT),
    **dict.fromkeys(
        ("temperature", "model", "max_tokens", "messages", "prompt", "system_prompt", "seed"),
        _IN_PARAMS,
    ),
    "repair_only": "give `review=False` and leave `auto_retries` out: the answer is repaired and "
    "validated, and an invalid one raises `AttemptsExhausted`",
    "feedback_strategy": "give `feedback`",
    "custom": "give `repair=(level, function)`",
    "level": "give `repair`",
    **dict.fromkeys(
        ("validate", "validator", "schema", "output_schema", "response_model", "response_format"),
        "give `output`: a type, a JSON Schema, or a function of the value",
    ),
    **dict.fromkeys(("retry_on", "should_retry"), "give `classify`, and `transient`"),
}
"""What options of other libraries are called here. It changes only the words of an error."""
_HUMP = lazy(r"(?<=[a-z])(?=[A-Z])")


def settle(default_name: str, form: Literal["function", "node"], options: RetryOptions) -> Settings:
    """Check the options of a function's call or of a retry node, and add the defaults.

    Raises:
        WrongArgumentError: If an option is unknown, or has a value that is not allowed.
        ValueError: If an option does not fit this form, or another option.

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
            f"`{option}` is for `create_retry_node`: a function can only return or raise."
        )
    if form == "node" and "key" in given:
        raise ValueError(
            "`key` is for `retry_llm_call`: a retry node makes one call, known by its task."
        )
    if "default_decision" in given:
        if "expires_after" not in given:
            raise ValueError("`default_decision` needs `expires_after`, the seconds to wait.")
        check_options(Decision, given["default_decision"], inside="default_decision")
        if ROWS[word := given["default_decision"]["type"]].waits:
            closing = ", ".join(kind for kind, row in ROWS.items() if not row.waits)
            raise ValueError(
                f"`default_decision` is `{word}`, which leaves the review open: give one of "
                f"{closing}."
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
    """Return a feedback hook that asks for an answer in a format."""
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
            "`reviewer` has a chat model, which takes no review: pass "
            "`graph_retry.hooks.model_reviewer(model)`."
        )
    return each


def _observers(given: Sequence[Observer]) -> tuple[Observer, ...]:
    for one in given:
        if is_async(one):
            raise TypeError(
                f"`observers` has the async function `{name_of(one, 'observers')}`: an observer is "
                "called at once, so give a sync one (which may put the event into a queue)."
            )
    return tuple(given)


def _transient(given: RetryPolicy) -> RetryPolicy:
    if given.retry_on is not RetryPolicy().retry_on:
        raise ValueError(
            "`transient` has `retry_on`, which is not used, because each failure of the kind "
            "`transient` is tried again. Leave `retry_on` out. To choose the exceptions, return "
            '"transient" or another kind from `classify=`.'
        )
    return given


def _labels(given: Mapping[str, str]) -> dict[str, str]:
    if long := [name for name, text in given.items() if len(name + text) > _MAX_LABEL]:
        raise ValueError(
            f"`labels` has `{long[0]:.80}`, over {_MAX_LABEL} characters with its text."
        )
    if len(given) > _MOST_LABELS:
        raise ValueError(f"`labels` has {len(given)}: give {_MOST_LABELS} at most.")
    return dict(given)


def _keys(given: Mapping[str, str]) -> dict[str, str]:
    names = {**dict(DEFAULT_KEYS), **check_options(StateKeys, given, inside="keys")}
    if len(set(names.values())) < len(names):
        raise ValueError(f"`keys` is {as_repr(given, 200)}: two keys have one name, rename one.")
    return names


_FORMS: dict[str, Callable[[Any], Any]] = {
    "repair": _repair,
    "format": format_named,
    "feedback": _feedback,
    "reviewer": _reviewers,
    "timeout": TimeoutPolicy.coerce,
    "transient": _transient,
    "labels": _labels,
    "observers": _observers,
    "allowed_decisions": tuple,
    "locked": tuple,
    "not_secret": tuple,
    "keys": _keys,
}
"""How an option that may be given in several forms is brought into the one of `Settings`."""
