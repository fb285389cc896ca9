"""Limits on what automation may spend before a person is asked."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from typing_extensions import TypedDict

from graph_retry._output.failures import CircuitOpenError
from graph_retry.records import Attempt, Failure


class Spent(TypedDict):
    """What attempts have spent, in the terms of a `Budget`."""

    tokens: int
    cost: float
    seconds: float
    rounds: int


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What automation may spend on one call; past a limit every further step is a reviewer's.

    A reviewer who approves or edits extends the budget by one attempt. Waiting for a person costs
    nothing. What a provider does not report counts as unknown, not as zero, and trips no limit.

    tokens: Total tokens over all attempts.
    cost: Sum of `price(attempt)` over all attempts, in the unit `price` returns.
    seconds: Time spent in the model, in seconds.
    rounds: Decisions by reviewers; after them only `respond` and `reject` are offered.
    failures: Consecutive failures of all calls with the same name in this process, after which
        no call is made for `cool_down` seconds unless a reviewer decides to (a circuit breaker).

    Example:
        >>> spent = {"usage": {"total_tokens": 900}, "duration_s": 2.0, "decision": None}
        >>> Budget(tokens=800).tripped([spent])
        'the budget of 800 tokens is spent (900)'
    """

    tokens: int | None = None
    cost: float | None = None
    price: Callable[[Attempt], float | None] = lambda _: None
    seconds: float | None = None
    rounds: int | None = None
    failures: int | None = None
    cool_down: float = 60.0

    def tripped(self, attempts: Sequence[Attempt], before: Spent | None = None) -> str | None:
        """Say which limit is reached by these attempts and what was spent `before`, if any."""
        spent = spent_on(attempts, self, before)
        tokens, cost, seconds = spent["tokens"], spent["cost"], spent["seconds"]
        if self.tokens is not None and tokens >= self.tokens:
            return f"the budget of {self.tokens} tokens is spent ({tokens})"
        if self.cost is not None and cost >= self.cost:
            return f"the budget of {self.cost:g} is spent ({cost:g})"
        if self.seconds is not None and seconds >= self.seconds:
            return f"the budget of {self.seconds:g} model seconds is spent ({seconds:.1f})"
        return None

    def rounds_are_over(self, attempts: Sequence[Attempt], before: Spent | None = None) -> bool:
        """Tell whether reviewers have decided as often as they may."""
        if self.rounds is None:
            return False
        decided = sum(attempt["decision"] is not None for attempt in attempts)
        return decided + (before["rounds"] if before else 0) >= self.rounds


def spent_on(
    attempts: Sequence[Attempt], budget: Budget | None = None, before: Spent | None = None
) -> Spent:
    """Sum up what attempts have spent, and `before` them others; costs by the budget's price.

    Example:
        >>> attempt = {"usage": {"total_tokens": 9}, "duration_s": 2.0, "decision": None}
        >>> spent_on([attempt, attempt])
        {'tokens': 18, 'cost': 0.0, 'seconds': 4.0, 'rounds': 0}
    """
    known = before or Spent(tokens=0, cost=0.0, seconds=0.0, rounds=0)
    attempts = [attempt for attempt in attempts if not attempt.get("kept_in")]
    usages = [attempt["usage"] or {} for attempt in attempts]
    costs = [] if budget is None else [budget.price(attempt) or 0.0 for attempt in attempts]
    return {
        "tokens": known["tokens"] + sum(usage.get("total_tokens") or 0 for usage in usages),
        "cost": known["cost"] + sum(costs),
        "seconds": known["seconds"] + sum(attempt["duration_s"] for attempt in attempts),
        "rounds": known["rounds"] + sum(attempt["decision"] is not None for attempt in attempts),
    }


class Breaker:
    """Consecutive failures by name, for all threads of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._failures: dict[str, int] = {}
        self._last: dict[str, float] = {}

    def check(self, name: str, budget: Budget) -> None:
        """Refuse a call of this name while its circuit is open.

        Raises:
            CircuitOpenError: If it is open.
        """
        with self._lock:
            failures, left = self._failures.get(name, 0), self._left(name, budget)
        if budget.failures is not None and failures >= budget.failures and left > 0:
            raise CircuitOpenError(
                f"`{name}` failed {failures} times in a row; no call is made for another "
                f"{left:.0f} s unless a reviewer decides to"
            )

    def note(self, name: str, failure: Failure | None) -> None:
        """Count the end of an attempt; one that made no call says nothing about the model."""
        if failure is not None and failure["type"] == CircuitOpenError.__name__:
            return
        with self._lock:
            self._failures[name] = self._failures.get(name, 0) + 1 if failure else 0
            self._last[name] = time.monotonic()

    def _left(self, name: str, budget: Budget) -> float:
        return budget.cool_down - (time.monotonic() - self._last.get(name, 0.0))


breaker = Breaker()
"""The breaker all calls of this process share."""
