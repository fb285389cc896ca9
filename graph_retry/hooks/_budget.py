"""Limits on the cost of automation before a reviewer is asked.

A `Budget` limits each call by the cost in that call's ledger, so it works after a restart. A
`SharedBudget` also counts the other calls that were given the same object.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from numbers import Real
from typing import Any, cast

from typing_extensions import TypedDict

from graph_retry._attempts import tokens_of
from graph_retry._json import is_number, is_whole
from graph_retry._output.failures import BudgetExceededError
from graph_retry._wording import counted
from graph_retry.records import Attempt


class Spent(TypedDict):
    """The cost of some attempts, in the terms of a `Budget`."""

    tokens: int
    cost: float
    seconds: float
    rounds: int


_NOTHING = Spent(tokens=0, cost=0.0, seconds=0.0, rounds=0)


def _added(one: Spent, other: Any, sign: int = 1) -> Spent:
    total = {name: spent + sign * other[name] for name, spent in cast("Any", one).items()}
    return cast("Spent", total)


def _price_unknown(attempt: Attempt) -> None:
    """Stand for no `price` at all."""
    del attempt


def _check_limit(name: str, given: Any, *, at_least: float = 0.0, whole: bool = False) -> None:
    """Refuse a limit that is not a number or could never be reached."""
    is_right = is_whole if whole else is_number
    if given is not None and not (is_right(given) and given >= at_least):
        wanted = f"a {'whole ' if whole else ''}number, {at_least:g} or more"
        raise ValueError(f"`{name}` must be {wanted}, or None for no limit, not {given!r:.200}.")


@dataclass(frozen=True, kw_only=True)
class Budget:
    """The limits of automation for one call; past a limit every further step is a reviewer's.

    A reviewer who approves or edits extends the budget by one attempt. Waiting for a person costs
    nothing. What a provider does not report counts as unknown, not as zero, and reaches no limit.
    What a call has spent is read from its ledger: a restart loses nothing.

    tokens: Total tokens over all attempts.
    cost: Sum of `price(attempt)` over all attempts, in the unit `price` returns.
    price: What one attempt cost, from its record, as any number; None where that is unknown.
    seconds: Time spent in the model, in seconds.
    rounds: Decisions by reviewers; after them only `respond` and `reject` are offered.

    Example:
        >>> from graph_retry import AttemptsExhausted, Completion, retry_llm_call
        >>> def model(params):
        ...     return Completion("no", usage={"total_tokens": 300})
        >>> def ask_again(error, attempt, params):
        ...     return {"prompt": f"{attempt}: answer in JSON!"}
        >>> options = {"auto_retries": 9, "review": False, "budget": Budget(tokens=800)}
        >>> try:
        ...     retry_llm_call(model, {"prompt": "Hi."}, ask_again, output=dict, **options)
        ... except AttemptsExhausted as error:
        ...     len(error.attempts)
        3
    """

    tokens: int | None = None
    cost: float | None = None
    price: Callable[[Attempt], float | Decimal | None] = _price_unknown
    seconds: float | None = None
    rounds: int | None = None

    def __post_init__(self) -> None:
        """Refuse limits that would limit nothing.

        Raises:
            TypeError: If `price` is not a function.
            ValueError: If a limit is not a number, or is negative, or `cost` has no `price`.
        """
        for name in ("tokens", "rounds"):
            _check_limit(name, getattr(self, name), whole=True)
        for name in ("cost", "seconds"):
            _check_limit(name, getattr(self, name))
        if not callable(self.price):
            raise TypeError(f"`price` must be a function of an attempt, not {self.price!r:.200}.")
        if self.cost is not None and self.price is _price_unknown:
            raise ValueError("`cost` needs `price`, a function of an attempt that tells its cost.")

    def spent_on(self, attempts: Iterable[Attempt], before: Spent | None = None) -> Spent:
        """Add up the cost of these attempts and of those `before` them.

        A record that is kept in another checkpoint has no figures; `before` counts it.

        Example:
            >>> attempt = {"usage": {"total_tokens": 9}, "duration_s": 2.0, "decision": None}
            >>> Budget().spent_on([attempt, attempt])
            {'tokens': 18, 'cost': 0.0, 'seconds': 4.0, 'rounds': 0}
        """
        total = (before or _NOTHING).copy()
        for attempt in attempts:
            if not attempt.get("kept_in"):
                total = _added(total, self._spent_on_one(attempt))
        return total

    def _spent_on_one(self, attempt: Attempt) -> Spent:
        price = self.price(attempt)
        if price is not None and not isinstance(cast("Any", price), Real | Decimal):
            raise TypeError(
                f"`price` returned {price!r:.200}: return a number, or None if unknown."
            )
        return {
            "tokens": tokens_of(attempt)["total_tokens"] or 0,
            "cost": 0.0 if price is None else float(price),
            "seconds": attempt["duration_s"],
            "rounds": int(attempt["decision"] is not None),
        }

    def exceeded(self, attempts: Sequence[Attempt], before: Spent | None = None) -> str | None:
        """Say which limit a call with these attempts has reached, if any.

        Example:
            >>> spent = {"usage": {"total_tokens": 900}, "duration_s": 2.0, "decision": None}
            >>> Budget(tokens=800).exceeded([spent])
            'the budget of 800 tokens is spent (900)'
        """
        return self._limit_reached(self._counted(attempts, before))

    def rounds_used_up(self, attempts: Sequence[Attempt], before: Spent | None = None) -> bool:
        """Return whether reviewers have reached their limit."""
        spent = self._counted(attempts, before)
        return self.rounds is not None and spent["rounds"] >= self.rounds

    def _counted(self, attempts: Sequence[Attempt], before: Spent | None) -> Spent:
        """Return the cost that the limits are compared with."""
        return self.spent_on(attempts, before)

    def count(self, *attempts: Attempt) -> None:
        """Take note of attempts that have ended; only a `SharedBudget` remembers them."""

    def check(self) -> None:
        """Refuse an automatic call if other calls have used up the budget.

        Raises:
            BudgetExceededError: If a `SharedBudget` has reached a limit.
        """

    def _limit_reached(self, spent: Spent) -> str | None:
        if self.tokens is not None and spent["tokens"] >= self.tokens:
            return f"the budget of {self.tokens} tokens is spent ({spent['tokens']})"
        if self.cost is not None and spent["cost"] >= self.cost:
            return f"the budget of {self.cost:g} is spent ({spent['cost']:g})"
        if self.seconds is not None and spent["seconds"] >= self.seconds:
            return f"the budget of {self.seconds:g} model seconds is spent ({spent['seconds']:.1f})"
        return None


class _Account:
    """The cost of all calls of one `SharedBudget`, and the ends of the last ones."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spent: dict[str, Spent] = {}
        self._failed: set[str] = set()
        self._succeeded_at = 0.0
        self._failed_at = 0.0
        self.total = _NOTHING

    def add(self, key: str, spent: Spent) -> None:
        """Add the cost of one attempt, in place of its earlier figure."""
        with self._lock:
            known = self._spent.get(key, _NOTHING)
            if known != spent:
                self.total = _added(_added(self.total, spent), known, sign=-1)
                self._spent[key] = spent

    def note_end(self, attempt: Attempt) -> None:
        """Count a failure, or a success that ends the row of failures before it.

        An attempt can be told again long after others have ended, so its own times decide.
        """
        failure = attempt["failure"]
        if failure and failure["type"] == BudgetExceededError.__name__:
            return  # no call was made, so the model is not to blame
        if not attempt["started_at"]:
            return  # an incomplete record, written by hand
        started = datetime.fromisoformat(attempt["started_at"]).timestamp()
        ended, key = started + attempt["duration_s"], attempt["idempotency_key"]
        with self._lock:
            if failure is None and ended > self._succeeded_at:
                self._succeeded_at = ended
                self._failed.clear()
            elif failure and ended > self._succeeded_at and key not in self._failed:
                self._failed.add(key)
                self._failed_at = time.monotonic()

    def failed_in_a_row(self) -> tuple[int, float]:
        """Return how many attempts failed since the last success, and the seconds since then."""
        with self._lock:
            return len(self._failed), time.monotonic() - self._failed_at


@dataclass(frozen=True, kw_only=True)
class SharedBudget(Budget):
    """One budget for all calls that are given this same object: a batch, say.

    Its limits count over all these calls, whatever their names, nodes, threads and event loops, in
    this process. Where a limit is reached, a call that is about to begin is not made either: it
    goes to a reviewer, with the failure kind `permanent`, and ends at once where nobody may be
    asked. Every attempt counts once, by its idempotency key, however often a thread is resumed.

    A restart loses what the other calls spent: a call that goes on counts its own ledger again,
    calls that were over do not count any more. Make one object for each batch, since it remembers
    every attempt as long as it lives; with `failures` alone it remembers only those in a row.

    failures: Failed attempts in a row, over all calls, after which no call is made for `cool_down`
        seconds unless a reviewer decides to (a circuit breaker).
    cool_down: Seconds after the last failure; then calls are made again, and one that fails
        starts them anew.

    Example:
        >>> from graph_retry import AttemptsExhausted, Completion, retry_llm_call
        >>> batch, records = SharedBudget(tokens=500), []
        >>> def model(params):
        ...     return Completion("fine", usage={"total_tokens": 300})
        >>> options = {"budget": batch, "review": False, "on_attempt": records.append}
        >>> for page in ("one", "two", "three"):
        ...     try:
        ...         print(retry_llm_call(model, page, output=str, **options))
        ...     except AttemptsExhausted:
        ...         print(records[-1]["failure"]["message"])
        fine
        fine
        the budget of 500 tokens is spent (600); no call is made unless a reviewer decides to
    """

    failures: int | None = None
    cool_down: float = 60.0
    _account: _Account = field(default_factory=_Account, init=False, repr=False)

    def __post_init__(self) -> None:
        """Refuse limits that would limit nothing.

        Raises:
            ValueError: If a limit is not a number, or is too small, or `cost` has no `price`.
        """
        super().__post_init__()
        _check_limit("failures", self.failures, at_least=1, whole=True)
        _check_limit("cool_down", self.cool_down)

    def _counted(self, attempts: Sequence[Attempt], before: Spent | None) -> Spent:
        """Return the cost of all calls; `before` is a part of it already."""
        del before
        self.count(*attempts)
        return self._account.total

    def count(self, *attempts: Attempt) -> None:
        """Take note of attempts that have ended, each once."""
        sums_up = (self.tokens, self.cost, self.seconds, self.rounds) != (None,) * 4
        for attempt in attempts:
            if attempt.get("kept_in") or attempt["status"] == "running":
                continue
            if sums_up:
                self._account.add(attempt["idempotency_key"], self._spent_on_one(attempt))
            if self.failures is not None:
                self._account.note_end(attempt)

    def check(self) -> None:
        """Refuse an automatic call if a limit is reached.

        Raises:
            BudgetExceededError: If one is.
        """
        reason = self._limit_reached(self._account.total)
        failed, ago = self._account.failed_in_a_row()
        if reason is None and self.failures is not None and failed >= self.failures:
            left = self.cool_down - ago
            if left <= 0:
                return
            many = counted(failed, "attempt")
            message = f"{many} failed in a row; no call is made for another {left:.0f} s"
            raise BudgetExceededError(f"{message} unless a reviewer decides to")
        if reason is not None:
            raise BudgetExceededError(f"{reason}; no call is made unless a reviewer decides to")
