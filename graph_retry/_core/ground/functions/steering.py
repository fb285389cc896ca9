"""The protocols of the objects that steer a call besides hooks: budgets and lessons.

The loop uses these protocols, and knows no class that implements a protocol. The ready-made objects
of `graph_retry.hooks` have no privilege over your own objects.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from graph_retry.records import Addition, Attempt


@runtime_checkable
class BudgetRule(Protocol):
    """The protocol of the option `budget`: a rule that ends automation before it costs too much.

    Derive your own budget from this class and write `exceeded`. The other methods have defaults.
    The state of a long call does not contain large earlier records. If a rule implements
    `spent_on`, the loop saves the sum of the earlier records, and passes this sum as `before`.
    Otherwise, the loop reads the earlier records again.

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
        """Return why automation must stop after these attempts, or None if it may go on.

        If automation stops, a person is asked.

        Args:
            attempts: The records of the call's attempts, without those that `before` sums up.
            before: The sum of the earlier records, from `spent_on`; None if there is no sum.
        """
        ...

    def used_up(self, attempts: Sequence[Attempt], before: Any = None) -> str | None:
        """Return why nobody may allow another attempt, or None if a person may (the default)."""
        del attempts, before
        return None

    def spent_on(self, attempts: Sequence[Attempt], before: Any = None) -> Any:
        """Return the sum of `before` and `attempts`, as JSON to save (default None: no sum)."""
        del attempts, before

    def count(self, *attempts: Attempt) -> None:
        """Count attempts that have ended (default: do nothing).

        A resumed call reports its attempts again. To count each attempt once, compare the
        `idempotency_key` of the attempts.
        """
        del attempts

    def refused(self) -> str | None:
        """Return why no automatic model call may be made now, or None if one may (the default).

        A call runs this method before each automatic attempt, even before the first attempt.
        """
        return None

    def unknown(self, attempt: Attempt) -> str | None:
        """Return the limit for which the attempt has no figure (a warning names it), or None."""
        del attempt
        return None


class Taught(NamedTuple):
    """Params to which lessons were added, and the reason that the ledger shows.

    added: The parts of the params that the lessons added. So the library never treats such a part
        as text of the caller. Only the ready-made lessons know these parts.
    """

    params: Any
    reason: str
    added: Sequence[Addition] = ()


@runtime_checkable
class LessonsRule(Protocol):
    """The protocol of the option `lessons`: what a call learns before its first attempt.

    Lessons are JSON values. A retry node reads and writes the lessons under a key of its state. The
    list of lessons under this key is called the window.
    """

    known: Sequence[Any]
    """Lessons to start with."""

    @property
    def reducer(self) -> Any:
        """The LangGraph reducer `(window, new) -> window` of the state key for lessons.

        Equal rules have the same reducer. A lesson that is merged twice is in the window once.
        """
        ...

    def learned(self, step: str, attempts: Sequence[Attempt]) -> list[Any]:
        """Return the lessons from finished attempts of one call, which has the name `step`."""
        ...

    def newest(self, window: Any, step: str, own: Sequence[Attempt]) -> list[Any]:
        """Return the lessons for the error of a call that has no output (default: all lessons)."""
        merged: list[Any] = self.reducer(window, [*self.known, *self.learned(step, own)])
        return merged

    def add_to(self, params: Any, window: list[Any]) -> Taught | None:
        """Return params with the lessons of a window, or None if there is nothing to add."""
        ...


class OwnFeedback(Protocol):
    """Tells the model about errors and a person's comments, unless a hook does this."""

    def __call__(self, error: Any, attempt: int, params: Any, /) -> Any:
        """Return the params with feedback, or None if there is nothing to add."""
        ...

    def place(self, fields: Any, field: str | None) -> str | None:
        """Return the field of the params to which a comment can be added, or None."""
        ...

    def with_comment(
        self, params: Any, message: str, *, answer: str, issues: Any, field: str | None, added: Any
    ) -> tuple[Any, Any]:
        """Return the params with a person's comment, and the parts that were added to them."""
        ...
