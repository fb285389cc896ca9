"""The protocols of the objects that steer a call besides hooks: budgets and lessons.

The loop knows only these protocols, so you may replace a ready-made object of `graph_retry.hooks`
by your own object.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from graph_retry.records import Addition, Attempt


@runtime_checkable
class BudgetRule(Protocol):
    """A rule for the option `budget`: it stops automatic retries before they cost too much.

    Derive your own budget from this class and write `exceeded`. The other methods have defaults.
    Before each retry of a long call, graph-retry reads the large records of older attempts again.
    If you also write `spent_on`, graph-retry saves the sum of these records instead, and passes the
    sum as `before`.

    Example:
        >>> from graph_retry import AttemptsExhausted, retry_llm_call
        >>> class ThreeCalls(BudgetRule):
        ...     def exceeded(self, attempts, before=None):
        ...         return "three calls were made" if len(attempts) >= 3 else None
        >>> def again(error, attempt, params):
        ...     return f"{params}!"
        >>> options = {"auto_retries": 9, "review": False, "budget": ThreeCalls()}
        >>> try:
        ...     retry_llm_call(lambda prompt: "no", "Hi", again, output=int, **options)
        ... except AttemptsExhausted as error:
        ...     print(len(error.attempts), "three calls were made" in str(error))
        3 True
    """

    def exceeded(self, attempts: Sequence[Attempt], before: Any = None) -> str | None:
        """Return why automatic retries must stop after these attempts; None if they may continue.

        If they stop, a person is asked. With `review=False`, the call ends as `exhausted`.

        Args:
            attempts: The records of the call's attempts, without those that `before` sums up.
            before: The sum of the earlier records, from `spent_on`; None if there is no sum.
        """
        ...

    def used_up(self, attempts: Sequence[Attempt], before: Any = None) -> str | None:
        """Return the reason why nobody may allow another attempt, or None (the default)."""
        del attempts, before
        return None

    def spent_on(self, attempts: Sequence[Attempt], before: Any = None) -> Any:
        """Return what `before` and `attempts` spent together, as JSON (by default None: no sum)."""
        del attempts, before

    def count(self, *attempts: Attempt) -> None:
        """Count attempts that have ended. The default does nothing.

        A resumed call reports its attempts again. To count each attempt once, compare their
        `idempotency_key`.
        """
        del attempts

    def refused(self) -> str | None:
        """Return the reason why no automatic model call may be made now, or None (the default).

        The loop calls this method before each automatic attempt, even before the first.
        """
        return None

    def unknown(self, attempt: Attempt) -> str | None:
        """Return a limit for which the attempt has no figure, to warn about it, or None."""
        del attempt
        return None


class Taught(NamedTuple):
    """The result of `LessonsRule.add_to`: params with lessons, and the reason for the ledger.

    added: The parts of the params that hold the lessons. All other text counts as the caller's.
        Your own rule may leave this field empty.
    """

    params: Any
    reason: str
    added: Sequence[Addition] = ()


@runtime_checkable
class LessonsRule(Protocol):
    """A rule for the option `lessons`: what a call learns from the errors of earlier calls.

    The lessons are added to the params before the first attempt. A lesson is a JSON value. A retry
    node keeps the lessons in a list, the window, under a key of its state.
    """

    known: Sequence[Any]
    """The lessons to start with."""

    @property
    def reducer(self) -> Any:
        """The LangGraph reducer `(window, new) -> window` of the state key that holds the lessons.

        Of two equal lessons, the reducer must keep one. Rules that compare equal must return the
        same reducer.
        """
        ...

    def learned(self, step: str, attempts: Sequence[Attempt]) -> list[Any]:
        """Return the lessons from the finished attempts of one call. `step` is the call's name."""
        ...

    def newest(self, window: Any, step: str, own: Sequence[Attempt]) -> list[Any]:
        """Return the lessons for the error `AttemptsExhausted` of a call (default: all lessons)."""
        merged: list[Any] = self.reducer(window, [*self.known, *self.learned(step, own)])
        return merged

    def add_to(self, params: Any, window: list[Any]) -> Taught | None:
        """Return the params with lessons from the list `window`; None if there are none to add."""
        ...


class OwnFeedback(Protocol):
    """The default feedback: tells the model about errors and comments, unless a hook does so."""

    def __call__(self, error: Any, attempt: int, params: Any, /) -> Any:
        """Return the params with feedback about an error; None if there is nothing to add."""
        ...

    def place(self, fields: Any, field: str | None) -> str | None:
        """Return the field of the params to which a comment can be added; None if there is none."""
        ...

    def with_comment(
        self, params: Any, message: str, *, answer: str, issues: Any, field: str | None, added: Any
    ) -> tuple[Any, Any]:
        """Return the params with a person's comment, and the parts that were added to them."""
        ...
