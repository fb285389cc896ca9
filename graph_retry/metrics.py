"""Figures over attempts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from typing_extensions import TypedDict

from graph_retry.records import Attempt

_TOKENS = ("input_tokens", "output_tokens", "total_tokens")


class Summary(TypedDict):
    """Figures over some calls. What nobody reported is None, never zero.

    `success_by_attempt` counts calls by the attempt that succeeded, or whose review was answered
    with an output (`respond`). `latency_s` is by attempt, in seconds, and `attempts_without_tokens`
    counts those that are missing in `tokens`. An attempt whose record is not kept any more counts
    as an attempt of one request, and in nothing else.
    """

    calls: int
    succeeded: int
    success_rate: float | None
    attempts: int
    mean_attempts: float | None
    requests: int
    success_by_attempt: Counter[int]
    latency_s: dict[str, float | None]
    tokens: dict[str, int | None]
    attempts_without_tokens: int
    repairs: Counter[str]
    failures: Counter[str]
    decisions: Counter[str]


def summarize(attempts: Iterable[Attempt] | Iterable[Sequence[Attempt]]) -> Summary:
    """Sum up one ledger, several ledgers, or the records that `on_attempt` collected.

    An attempt counts once, however many ledgers hold it: forks of a call share those before the
    fork. Such ledgers are one call, and the last of them tells how it ended. What `on_attempt` gets
    is not decided yet, so only ledgers tell of `respond`.

    Example:
        >>> from graph_retry import retry_llm_call
        >>> records = []
        >>> retry_llm_call(lambda _: "[1,]", {}, output=list[int], on_attempt=records.append)
        [1]
        >>> figures = summarize(records)
        >>> figures["calls"], figures["success_rate"], figures["repairs"]
        (1, 1.0, Counter({'trailing_comma': 1}))
    """
    ledgers = [each if isinstance(each, Sequence) else [each] for each in attempts]
    flat = distinct(ledgers)
    ends = {_key(ledger[0]): ledger[-1] for ledger in ledgers if ledger}
    calls = sum(attempt["number"] == 1 for attempt in flat)
    right = [attempt["number"] for attempt in ends.values() if _gave_output(attempt)]
    usages = [attempt["usage"] or {} for attempt in flat]
    known = [attempt for attempt in flat if not attempt.get("kept_in")]
    seconds = sorted(attempt["duration_s"] for attempt in known)
    return {
        "calls": calls,
        "succeeded": len(right),
        "success_rate": len(right) / calls if calls else None,
        "attempts": len(flat),
        "mean_attempts": len(flat) / calls if calls else None,
        "requests": sum(attempt["tries"] for attempt in flat),
        "success_by_attempt": Counter(right),
        "latency_s": {f"p{q}": _quantile(seconds, q) for q in (50, 90, 99, 100)},
        "tokens": {name: _sum(usage.get(name) for usage in usages) for name in _TOKENS},
        "attempts_without_tokens": sum(usage.get("total_tokens") is None for usage in usages),
        "repairs": Counter(repair["kind"] for each in flat for repair in each["repairs"]),
        "failures": Counter(each["failure"]["kind"] for each in known if each["failure"]),
        "decisions": Counter(each["decision"]["type"] for each in flat if each["decision"]),
    }


def distinct(ledgers: Iterable[Sequence[Attempt]]) -> list[Attempt]:
    """List the attempts of ledgers once each, as the last ledger that holds them has them."""
    return list({_key(attempt): attempt for ledger in ledgers for attempt in ledger}.values())


def _key(attempt: Attempt) -> tuple[str, str] | int:
    """Return what an attempt is known by; one without a key or a place is only itself.

    Equal calls outside of threads have equal keys and differ in when they were made.
    """
    kept_in, number = attempt.get("kept_in"), attempt["number"]
    key = f"{kept_in['checkpoint_id']} {number}" if kept_in else attempt.get("idempotency_key")
    return (key, attempt.get("started_at", "")) if key else id(attempt)


def _gave_output(last: Attempt) -> bool:
    """Tell by its last attempt whether a call ended with an output."""
    decided = last["decision"] and last["decision"]["type"]
    return decided == "respond" or (last["status"] == "succeeded" and decided != "reject")


def _sum(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _quantile(ordered: list[float], percent: int) -> float | None:
    return ordered[math.ceil(percent / 100 * len(ordered)) - 1] if ordered else None
