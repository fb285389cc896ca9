"""The checked options of a call. `graph_retry.options` creates the `Settings`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from langgraph.types import RetryPolicy, TimeoutPolicy
from typing_extensions import TypedDict

from graph_retry._core.ground.functions.steering import BudgetRule, LessonsRule, OwnFeedback
from graph_retry._core.loop.run.events import Observer
from graph_retry._core.output.formats.format import Format
from graph_retry._core.review.answers import Decision, DecisionType, reject
from graph_retry._core.review.decisions import BY_DEFAULT
from graph_retry._core.review.review_record import Review, Reviewer
from graph_retry.records import Attempt, FailureKind, RepairLevel

_UNANSWERED = reject("nobody answered in time")


class StateKeys(TypedDict, total=False):
    """New names for the state keys of a retry node, for example `{"output": "answer"}`.

    params: The params of the call, which the node reads.
    output: The output, or None.
    status: How the call ended.
    attempts: The ledger.
    lessons: The errors of other steps, with the option `lessons`.
    """

    params: str
    output: str
    status: str
    attempts: str
    lessons: str


DEFAULT_KEYS = tuple(sorted((key, key) for key in StateKeys.__annotations__))
"""The default names of the state keys. Calls of functions always use them."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The options of a call after all checks. Each option has a default and only one form."""

    name: str
    own_feedback: OwnFeedback
    key: str | None = None
    repair: tuple[RepairLevel, Callable[[str], str] | None] = ("standard", None)
    format: Format | None = None
    strict: bool = False
    check_formats: bool = False
    stop_early: bool = True
    max_attempts: int = 10
    auto_retries: int = 0
    review: bool | Literal["always"] | Callable[[Attempt], Any] = True
    transient: RetryPolicy | None = None
    timeout: TimeoutPolicy | None = None
    classify: Callable[[Exception], FailureKind | None] = lambda _: None
    feedback: Callable[..., Any] | None = None
    reviewer: tuple[Reviewer, ...] = ()
    expires_after: float | None = None
    default_decision: Decision = field(default_factory=_UNANSWERED.copy)
    notify: Callable[[Review], Any] | None = None
    redact: Callable[[str], str] | None = None
    budget: BudgetRule | None = None
    lessons: LessonsRule | None = None
    on_attempt: Callable[[Attempt], Any] | None = None
    observers: tuple[Observer, ...] = ()
    labels: dict[str, str] = field(default_factory=dict[str, str])
    subject: str | Callable[[Any], str] | None = None
    on_cancel: Literal["raise", "end"] = "end"
    allowed_decisions: tuple[DecisionType, ...] = BY_DEFAULT
    locked: tuple[str, ...] = ()
    not_secret: tuple[str, ...] = ()
    keys: dict[str, str] = field(default_factory=lambda: dict(DEFAULT_KEYS))
