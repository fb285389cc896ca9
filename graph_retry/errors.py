"""The errors that this library raises.

    GraphRetryError
    ├── AttemptFailed         an attempt failed; hooks receive this error
    ├── CallCancelled         a reviewer rejected the call
    ├── AttemptsExhausted     all automatic attempts failed, and nobody may be asked
    ├── InterventionRequired  a person is needed, and the run cannot pause
    ├── PauseSwallowed        user code caught or delayed the interrupt of a waiting call
    ├── AnswerRefused         an answer was not applied, and its question is asked again
    ├── StaleDecision         a decision is for a review that is no longer open
    └── ReplayMismatch        the thread does not fit the code that continues it

A wrong argument raises an error that is both a `TypeError` and a `ValueError`. The message names
the argument, the given value, and the allowed values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graph_retry.lossless._ground import EscapedText
from graph_retry.records import Attempt, FailureKind, Issue, shown_record

__all__ = [
    "AnswerRefused",
    "AttemptFailed",
    "AttemptsExhausted",
    "CallCancelled",
    "GraphRetryError",
    "InterventionRequired",
    "PauseSwallowed",
    "ReplayMismatch",
    "StaleDecision",
]


class GraphRetryError(EscapedText):
    """The base class of all errors of this library. `attempts` is the ledger, if it is known."""

    def __init__(self, message: str, attempts: list[Attempt] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.attempts: list[Attempt] = list(map(shown_record, attempts or []))

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.message, self.attempts), self.__dict__)


class AttemptFailed(GraphRetryError):
    """The failure of one attempt, which `on_retry` hooks receive.

    Graph state saves the data of the error, but not the original exception. So hooks get the same
    error again after a crash.

    kind: The failure kind.
    type: The class name of the original exception, or `ValidationError`, `InvalidJSON`, ….
    issues: The errors that validation found.
    raw_output: The model's text, if there is any.
    output_schema: The JSON Schema of the output, if there is one.

    Example:
        >>> raise AttemptFailed("429 Resource exhausted", kind="transient", type="RateLimitError")
        Traceback (most recent call last):
        ...
        graph_retry.errors.AttemptFailed: 429 Resource exhausted
    """

    def __init__(
        self,
        message: str,
        attempts: list[Attempt] | None = None,
        *,
        kind: FailureKind = "rejected_input",
        type: str = "Exception",
        issues: list[Issue] | None = None,
        raw_output: str | None = None,
        output_schema: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message, attempts)
        self.kind: FailureKind = kind
        self.type = type
        self.issues: list[Issue] = issues or []
        self.raw_output = raw_output
        self.output_schema = output_schema
        # An `Added`: the parts that were added to the hook's params. New feedback replaces them.
        self.added: Any = None

    def __reduce__(self) -> tuple[Any, ...]:
        # The params of users need not be picklable.
        return (type(self), (self.message, self.attempts), {**self.__dict__, "added": None})


class CallCancelled(GraphRetryError):
    """A reviewer or `default_decision` rejected the call. `reason` is the decision's message."""

    def __init__(
        self, message: str, attempts: list[Attempt] | None = None, *, reason: str | None = None
    ) -> None:
        super().__init__(message, attempts)
        self.reason = reason


class AttemptsExhausted(GraphRetryError):
    """Every automatic attempt failed, and nobody is asked, because `review=False` is set.

    If the option `lessons` is set, the attribute `lessons` lists the newest errors of all steps,
    including this call's.
    """

    def __init__(
        self,
        message: str,
        attempts: list[Attempt] | None = None,
        *,
        lessons: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        super().__init__(message, attempts)
        self.lessons = [dict(lesson) for lesson in lessons]


class InterventionRequired(GraphRetryError):
    """A person is needed, and this run has no checkpointer to pause on.

    A subgraph inherits the checkpointer, except below `compile(checkpointer=False)`.
    """


class PauseSwallowed(GraphRetryError):
    """User code caught or delayed the interrupt of a waiting call, so nobody was asked.

    For example, `except Exception` catches the interrupt, and a `finally:` block delays it. The
    node's next call raises this error. If the node makes none, the next call of a later node raises
    it, or the end of the run.
    """


class AnswerRefused(GraphRetryError):
    """An answer was refused, and the model was not called. The message gives the reason.

    The thread still waits: the question is asked again, with a new review id. If `resume` got
    several answers, it applied those that were not refused.

    review_ids: The ids of the new reviews.
    issues: One entry for each wrong field. `path` is a JSON Pointer into the params or the output
        that the answer sent.
    reasons: The reason for each refused answer, by the id of the review that it answered.

    Example:
        >>> raise AnswerRefused('`n` expects a number, not "many".', review_ids=["3f92"])
        Traceback (most recent call last):
        ...
        graph_retry.errors.AnswerRefused: `n` expects a number, not "many".
    """

    def __init__(
        self,
        message: str,
        attempts: list[Attempt] | None = None,
        *,
        review_ids: list[str] | None = None,
        issues: list[Issue] | None = None,
        reasons: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message, attempts)
        self.review_ids: list[str] = review_ids or []
        self.issues: list[Issue] = issues or []
        self.reasons: dict[str, str] = reasons or {}


class StaleDecision(GraphRetryError):
    """The decision names a review that is closed or never existed."""


class ReplayMismatch(GraphRetryError):
    """The saved thread does not fit the code that continues or replays it.

    If the result of a replay differs, `attempt` is the number of the first attempt that differs,
    `expected` is the recorded value, and `actual` is the new value.
    """

    def __init__(
        self,
        message: str,
        attempts: list[Attempt] | None = None,
        *,
        attempt: int | None = None,
        expected: Any = None,
        actual: Any = None,
    ) -> None:
        super().__init__(message, attempts)
        self.attempt = attempt
        self.expected = expected
        self.actual = actual
