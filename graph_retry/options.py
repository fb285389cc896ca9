"""The options all three forms share, and their validation."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast, get_args

from langgraph.types import RetryPolicy
from typing_extensions import TypedDict

from graph_retry.records import Attempt
from graph_retry.repair import RepairLevel
from graph_retry.review.decision import DECISION_TYPES, DecisionType

RepairOption = RepairLevel | Callable[[str], str] | tuple[RepairLevel, Callable[[str], str]]


class StateKeys(TypedDict, total=False):
    """Names of the node form's state keys, where they are not the default ones."""

    params: str
    output: str
    status: str
    attempts: str


class RetryOptions(TypedDict, total=False):
    """Options of `retry_llm_call`, `aretry_llm_call` and `create_retry_node`.

    repair: How far a model's text may be repaired before it is validated: `none`, `minimal`,
        `standard` (default; lossless) or `aggressive`, or a function `text -> text` that runs
        after `standard`, or both as a pair.
    strict: Refuse values of the wrong type instead of converting them (default False).
    max_attempts: Model calls at most, the first one included (default 10).
    auto_retries: Times a hook's params are used without asking, between two reviews (default 0:
        ask at the first failure and show the hook's params as a suggestion).
    review: Whether a person may be asked (default True). If False, the call ends `exhausted`.
    transient: LangGraph's `RetryPolicy` for transport errors, inside one attempt (default None).
    on_attempt: Called once with each finished attempt's record.
    name: What reviews, events and records call this step (default: the function's name).
    on_cancel: What a rejected or exhausted call does: `raise` (default of the function form) or
        `end` with that status (default of the node form, and only there).
    allowed_decisions: Decisions a reviewer may take (default all four).
    locked: Params fields no reviewer may edit.
    keys: Other names for the state keys `params`, `output`, `status`, `attempts` (node form only).
    """

    repair: RepairOption
    strict: bool
    max_attempts: int
    auto_retries: int
    review: bool
    transient: RetryPolicy
    on_attempt: Callable[[Attempt], Any]
    name: str
    on_cancel: Literal["raise", "end"]
    allowed_decisions: Sequence[DecisionType]
    locked: Sequence[str]
    keys: StateKeys


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Options after validation, every default filled in."""

    name: str
    repair_level: RepairLevel = "standard"
    repair_function: Callable[[str], str] | None = None
    strict: bool = False
    max_attempts: int = 10
    auto_retries: int = 0
    review: bool = True
    transient: RetryPolicy | None = None
    on_attempt: Callable[[Attempt], Any] | None = None
    raises: bool = True
    allowed: tuple[DecisionType, ...] = DECISION_TYPES
    locked: tuple[str, ...] = ()
    keys: dict[str, str] = field(
        default_factory=lambda: {key: key for key in StateKeys.__annotations__}
    )


def settle(default_name: str, form: Literal["function", "node"], options: RetryOptions) -> Settings:
    """Validate options and fill in the defaults of one form.

    Raises:
        TypeError: If an option is unknown or has the wrong type.
        ValueError: If an option's value is not one of those allowed.
    """
    unknown = sorted(set(options) - set(RetryOptions.__annotations__))
    if unknown:
        known = ", ".join(RetryOptions.__annotations__)
        msg = f"unknown option `{unknown[0]}`; the options are {known}."
        raise TypeError(msg)
    level, function = _repair(options.get("repair", "standard"))
    _require_bools(options)
    on_cancel = options.get("on_cancel", "raise" if form == "function" else "end")
    if on_cancel not in ("raise", "end"):
        msg = f"`on_cancel` must be 'raise' or 'end', not {on_cancel!r}."
        raise ValueError(msg)
    if form == "function" and (on_cancel == "end" or "keys" in options):
        option = "keys" if "keys" in options else "on_cancel='end'"
        msg = f"`{option}` is for `create_retry_node`: a function can only return or raise."
        raise ValueError(msg)
    on_attempt = options.get("on_attempt")
    if on_attempt is not None and not callable(cast("object", on_attempt)):
        msg = f"`on_attempt` must be a function of the record, not {on_attempt!r}."
        raise TypeError(msg)
    transient = options.get("transient")
    if transient is not None and not isinstance(cast("object", transient), RetryPolicy):
        msg = f"`transient` must be a `langgraph.types.RetryPolicy`, not {transient!r}."
        raise TypeError(msg)
    return Settings(
        name=options.get("name") or default_name,
        repair_level=level,
        repair_function=function,
        strict=options.get("strict", False),
        max_attempts=_count(options, "max_attempts", default=10, least=1),
        auto_retries=_count(options, "auto_retries", default=0, least=0),
        review=options.get("review", True),
        transient=transient,
        on_attempt=on_attempt,
        raises=on_cancel == "raise",
        allowed=_allowed(options.get("allowed_decisions", DECISION_TYPES)),
        locked=_locked(options.get("locked", ())),
        keys=_keys(options.get("keys", {})),
    )


def _require_bools(options: RetryOptions) -> None:
    for name in ("strict", "review"):
        value = options.get(name, True)
        if not isinstance(value, bool):
            msg = f"`{name}` must be True or False, not {value!r}."
            raise TypeError(msg)


def _count(options: RetryOptions, name: str, *, default: int, least: int) -> int:
    value = options.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool):
        msg = f"`{name}` must be a whole number, not {value!r}."
        raise TypeError(msg)
    if value < least:
        msg = f"`{name}` must be at least {least}, not {value}."
        raise ValueError(msg)
    return value


def _repair(value: RepairOption) -> tuple[RepairLevel, Callable[[str], str] | None]:
    given: Any = value
    level, function = given if isinstance(value, tuple) else (given, None)
    if callable(level):
        level, function = "standard", level
    if level not in get_args(RepairLevel) or not (function is None or callable(function)):
        levels = ", ".join(repr(known) for known in get_args(RepairLevel))
        msg = f"`repair` must be one of {levels}, a function, or a pair of both, not {value!r}."
        raise ValueError(msg)
    return level, function


def _allowed(decisions: Sequence[DecisionType]) -> tuple[DecisionType, ...]:
    wrong = [repr(decision) for decision in decisions if decision not in DECISION_TYPES]
    if wrong or isinstance(decisions, str) or not decisions:
        came = wrong[0] if wrong else repr(decisions)
        msg = f"`allowed_decisions` must list some of {', '.join(DECISION_TYPES)}, not {came}."
        raise ValueError(msg)
    return tuple(decision for decision in DECISION_TYPES if decision in decisions)


def _locked(fields: Sequence[str]) -> tuple[str, ...]:
    if isinstance(fields, str):
        msg = f"`locked` must be a list of field names: write `locked=[{fields!r}]`."
        raise TypeError(msg)
    return tuple(fields)


def _keys(keys: StateKeys) -> dict[str, str]:
    settled = {key: key for key in StateKeys.__annotations__} | cast("dict[str, str]", keys)
    unknown = sorted(set(settled) - set(StateKeys.__annotations__))
    if unknown or len(set(settled.values())) < len(settled):
        known = ", ".join(StateKeys.__annotations__)
        msg = f"`keys` may rename {known}, each to a name of its own, not {dict(keys)!r}."
        raise ValueError(msg)
    return settled
