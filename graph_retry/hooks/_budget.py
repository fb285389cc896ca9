"""Limit what automatic attempts may cost. At the limit, a reviewer decides about more attempts.

A `Budget` limits each call separately. A `SharedBudget` limits the total of all calls that share
one object.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from numbers import Real
from typing import Any, cast

from langgraph.config import get_config
from typing_extensions import TypedDict

from graph_retry._core.ground.functions.steering import BudgetRule
from graph_retry.ledger import tokens_of
from graph_retry.plugins import Amount, Count, Size, as_repr, checked, counted, passed_as
from graph_retry.records import Attempt


class Spent(TypedDict):
    """The cost of some attempts. `cost` is in the unit of the function `price`."""

    tokens: int
    cost: float
    seconds: float
    rounds: int


_NOTHING = Spent(tokens=0, cost=0.0, seconds=0.0, rounds=0)


def _added(one: Spent, other: Any, sign: int = 1) -> Spent:
    total = {name: spent + sign * other[name] for name, spent in cast("Any", one).items()}
    return cast("Spent", total)


def _price_unknown(attempt: Attempt) -> None:
    del attempt


@checked
@dataclass(frozen=True, kw_only=True)
class Budget(BudgetRule):
    """Limits for the automatic attempts of one call. At a limit, reviewers decide each step.

    After a limit is reached, each approval or edit by a reviewer allows one more attempt. The time
    in which a call waits for a person does not count. A figure that the provider does not report
    counts as zero. The cost is read from the call's recorded attempts, so a restart loses nothing.

    tokens: Total tokens over all attempts, and over all model calls of an attempt.
    cost: Sum of `price(attempt)` over all attempts, in the unit that `price` returns.
    price: A function `attempt record -> cost`, a number in any unit, or None for an unknown cost.
    seconds: Time spent in the model, in seconds.
    rounds: Number of decisions by reviewers. After these, no decision may call the model again.

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

    tokens: Size | None = None
    cost: Amount | None = None
    price: Callable[[Attempt], float | Decimal | None] = _price_unknown
    seconds: Amount | None = None
    rounds: Size | None = None

    def __post_init__(self) -> None:
        """Check that a `cost` has a `price`, because a limit without prices could never be reached.

        Raises:
            ValueError: If `cost` has no `price`.
        """
        if self.cost is not None and self.price is _price_unknown:
            raise ValueError(
                "`cost` needs `price`: give a function that returns the cost of an attempt."
            )

    def spent_on(self, attempts: Iterable[Attempt], before: Spent | None = None) -> Spent:
        """Add up the cost of attempts. `before` is the cost of earlier attempts, and is included.

        Example:
            >>> attempt = {"usage": {"total_tokens": 9}, "duration_s": 2.0, "decision": None}
            >>> Budget().spent_on([attempt, attempt])
            {'tokens': 18, 'cost': 0.0, 'seconds': 4.0, 'rounds': 0}
        """
        total = (before or _NOTHING).copy()
        for attempt in attempts:
            total = _added(total, self._spent_on_one(attempt))
        return total

    def cost_of(self, attempt: Attempt) -> float | None:
        """Return the cost of one attempt by `price`; None if it is unknown.

        Raises:
            TypeError: If `price` does not return a number or None.
        """
        with passed_as("price"):
            price = self.price(attempt)
        is_some_number = isinstance(cast("Any", price), Real | Decimal)
        if price is not None and not (is_some_number and not math.isnan(price)):
            raise TypeError(
                f"`price` returned {as_repr(price, 80)}: return a number, or None if unknown."
            )
        return None if price is None else float(price)

    def _spent_on_one(self, attempt: Attempt) -> Spent:
        return {
            "tokens": tokens_of(attempt)["total_tokens"] or 0,
            "cost": self.cost_of(attempt) or 0.0,
            "seconds": attempt["duration_s"],
            "rounds": int(attempt["decision"] is not None),
        }

    def unknown(self, attempt: Attempt) -> str | None:
        """Return the name of a limit for which this attempt has no figure, or None.

        Example:
            >>> attempt = {"usage": None, "duration_s": 2.0, "decision": None}
            >>> Budget(tokens=800).unknown(attempt)
            'tokens'
        """
        if self.tokens is not None and tokens_of(attempt)["total_tokens"] is None:
            return "tokens"
        return "cost" if self.cost is not None and self.cost_of(attempt) is None else None

    def exceeded(self, attempts: Sequence[Attempt], before: Spent | None = None) -> str | None:
        """Describe the limit that the attempts have reached; None if they are below every limit.

        Example:
            >>> spent = {"usage": {"total_tokens": 900}, "duration_s": 2.0, "decision": None}
            >>> Budget(tokens=800).exceeded([spent])
            'the budget of 800 tokens is spent (900)'
        """
        return self._limit_reached(self._counted(attempts, before))

    def used_up(self, attempts: Sequence[Attempt], before: Spent | None = None) -> str | None:
        """Return the reason if reviewers have made all decisions that `rounds` allows, or None."""
        spent = self._counted(attempts, before)
        if self.rounds is None or spent["rounds"] < self.rounds:
            return None
        return f"the budget of {counted(self.rounds, 'decision')} is spent"

    def _counted(self, attempts: Sequence[Attempt], before: Spent | None) -> Spent:
        return self.spent_on(attempts, before)

    def _limit_reached(self, spent: Spent) -> str | None:
        if self.tokens is not None and spent["tokens"] >= self.tokens:
            return f"the budget of {self.tokens} tokens is spent ({spent['tokens']})"
        if self.cost is not None and spent["cost"] >= self.cost:
            return f"the budget of {self.cost:g} is spent ({spent['cost']:g})"
        if self.seconds is not None and spent["seconds"] >= self.seconds:
            return f"the budget of {self.seconds:g} model seconds is spent ({spent['seconds']:.1f})"
        return None


class _Account:
    """The total cost for one value of `per`, and the failed attempts since the last success."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spent: dict[str, Spent] = {}
        self._failed: set[str] = set()
        self._succeeded_at = 0.0
        self._failed_at = 0.0
        self.total = _NOTHING

    def add(self, key: str, spent: Spent) -> None:
        """Set the cost of the attempt with the idempotency key `key`, or replace it."""
        with self._lock:
            known = self._spent.get(key, _NOTHING)
            if known != spent:
                self.total = _added(_added(self.total, spent), known, sign=-1)
                self._spent[key] = spent

    def note_end(self, attempt: Attempt) -> None:
        """Record whether an attempt failed. A success removes the failures that ended before it.

        The attempts' own times decide, because a resumed thread reports its earlier attempts again.
        """
        failure = attempt["failure"]
        if failure and failure["type"] == "BudgetExceededError":
            return  # The budget refused this attempt. No call was made, so the model did not fail.
        if not attempt["started_at"]:
            return  # This record is incomplete, because it was written by hand.
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
        """Return the number of failures in a row, and the seconds since the last failure."""
        with self._lock:
            return len(self._failed), time.monotonic() - self._failed_at


class _Accounts:
    """The accounts of one `SharedBudget`: one for each value of the config key `per`."""

    def __init__(self) -> None:
        self._known: dict[Any, _Account] = {}

    def of(self, whose: Any) -> _Account:
        return self._known.setdefault(whose, _Account())


@checked
@dataclass(frozen=True, kw_only=True)
class SharedBudget(Budget):
    """One budget for all calls that share this object, such as the calls of a batch.

    Each limit applies to the total of all calls in this process that were given this object. Their
    names, nodes, threads and event loops may differ. After a limit is reached, no automatic model
    call is made, not even a first attempt. A call that needs a model call then fails with the kind
    `permanent`, and a reviewer decides. If reviews are off, the call ends.

    The object keeps the cost of every attempt in memory, so make one object for each batch. If only
    `failures` is set, it keeps only the failures since the last success. After a restart of the
    process, the total starts at zero. A call that is resumed then adds its earlier attempts, which
    are recorded in its thread. Each attempt counts once.

    failures: Number of failed attempts in a row, over all calls, that pauses automatic calls.
    cool_down: Length of this pause in seconds, from the last failure. If the first call after the
        pause fails, the pause begins again.
    per: A key of the config's `configurable`, such as `thread_id` or `user_id`. The limits then
        apply to each value of this key separately. Without `per`, they apply to all calls together.

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

    failures: Count | None = None
    cool_down: Amount = 60.0
    per: str | None = None
    _accounts: _Accounts = field(default_factory=_Accounts, init=False, repr=False)

    @property
    def _account(self) -> _Account:
        """The account of the current run, by its value of the config key `per`.

        Raises:
            ValueError: If the run has no value for the key `per`.
        """
        if self.per is None:
            return self._accounts.of(None)
        try:
            whose = get_config().get("configurable", {}).get(self.per)
        except RuntimeError:  # The call was made outside of a graph.
            whose = None
        if whose is None:
            raise ValueError(
                f"`SharedBudget(per={as_repr(self.per)})` counts by a key of the run's "
                f"`configurable`, and this run has no such key: give it in the config, e.g. "
                f"`{{'configurable': {{{as_repr(self.per)}: …}}}}`, or count by another key, such "
                "as `per='thread_id'`."
            )
        return self._accounts.of(whose)

    def _counted(self, attempts: Sequence[Attempt], before: Spent | None) -> Spent:
        """Count the attempts; return the cost of all calls, which already includes `before`."""
        del before
        self.count(*attempts)
        return self._account.total

    def count(self, *attempts: Attempt) -> None:
        """Add finished attempts to the total. An attempt that is reported twice counts once."""
        sums_up = (self.tokens, self.cost, self.seconds, self.rounds) != (None,) * 4
        for attempt in attempts:
            if sums_up:
                self._account.add(attempt["idempotency_key"], self._spent_on_one(attempt))
            if self.failures is not None:
                self._account.note_end(attempt)

    def refused(self) -> str | None:
        """Describe the limit that stops automatic model calls now; None if they are allowed."""
        reason, wait = self._limit_reached(self._account.total), ""
        failed, ago = self._account.failed_in_a_row()
        left = self.cool_down - ago
        if reason is None and self.failures is not None and failed >= self.failures and left > 0:
            reason = f"{counted(failed, 'attempt')} failed in a row"
            wait = f" for another {left:.0f} s"
        if reason is None:
            return None
        return f"{reason}; no call is made{wait} unless a reviewer decides to"
