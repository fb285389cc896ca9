"""The protocols of what steers a call, besides hooks: budgets and lessons.

The loop knows these protocols and no implementation. The ready-made objects of `graph_retry.hooks`
are implementations like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from graph_retry.records import Addition, Attempt


@runtime_checkable
class BudgetRule(Protocol):
    """The protocol of the option `budget`: a rule that ends automation before it costs too much.

    Derive your own budget from this class and write `exceeded`. The other methods have defaults.
    Large earlier records of a long call are not in its state. If a rule implements `spent_on`, the
    loop saves the sum of those records and gives it as `before`. Otherwise it reads them again.

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
        """Return why automation must stop after these attempts, or None; then a person is asked.

        Args:
            attempts: The records of the call's attempts, without those that `before` sums up.
            before: The sum of the records before them, from `spent_on`; None if there are none.
        """
        ...

    def used_up(self, attempts: Sequence[Attempt], before: Any = None) -> str | None:
        """Return why nobody may allow another attempt, or None if a person may (the default)."""
        del attempts, before
        return None

    def spent_on(self, attempts: Sequence[Attempt], before: Any = None) -> Any:
        """Return the sum `before` plus `attempts`, as JSON that is saved (default None: no sum)."""
        del attempts, before

    def count(self, *attempts: Attempt) -> None:
        """Take note of attempts that have ended (default: nothing).

        A resumed call reports its attempts again. The `idempotency_key` tells attempts apart.
        """
        del attempts

    def refused(self) -> str | None:
        """Return why no automatic model call may be made now, or None if one may (the default).

        A call asks this before each automatic attempt, even before the first attempt.
        """
        return None

    def unknown(self, attempt: Attempt) -> str | None:
        """Return the limit towards which an attempt cannot be counted, for a warning, or None."""
        del attempt
        return None


class Taught(NamedTuple):
    """Params with lessons, and a reason for the ledger.

    added: The parts of the params that the lessons added, so that they are never taken for text
        of the caller. Only the ready-made lessons know them.
    """

    params: Any
    reason: str
    added: Sequence[Addition] = ()


@runtime_checkable
class LessonsRule(Protocol):
    """The protocol of the option `lessons`: what a call learns before its first attempt.

    Lessons are JSON values in a window, which a retry node reads from and writes to its state.
    """

    known: Sequence[Any]
    """Lessons to start with."""

    @property
    def reducer(self) -> Any:
        """The reducer `(window, new) -> window` of the state key; equal rules have the same one.

        A lesson that is merged twice is in the window once.
        """
        ...

    def learned(self, step: str, attempts: Sequence[Attempt]) -> list[Any]:
        """Return the lessons from finished attempts of one call, which has the name `step`."""
        ...

    def newest(self, window: Any, step: str, own: Sequence[Attempt]) -> list[Any]:
        """Return the lessons that the error of a call without an output has (default: all)."""
        merged: list[Any] = self.reducer(window, [*self.known, *self.learned(step, own)])
        return merged

    def add_to(self, params: Any, window: list[Any]) -> Taught | None:
        """Return params with the lessons of a window, or None if there is nothing to add."""
        ...


class OwnFeedback(Protocol):
    """How errors and a person's comments are told to the model, if no hook does it otherwise."""

    def __call__(self, error: Any, attempt: int, params: Any, /) -> Any:
        """Return the params with feedback, or None if there is nothing to add."""
        ...

    def place(self, fields: Any, field: str | None) -> str | None:
        """Return the field of the params to which a comment can be added, or None."""
        ...

    def with_comment(
        self, params: Any, message: str, *, answer: str, issues: Any, field: str | None, added: Any
    ) -> tuple[Any, Any]:
        """Return the params with a person's comment, and the parts that are added in them."""
        ...
