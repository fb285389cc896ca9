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

    `success_by_attempt` counts calls by the attempt that succeeded, `latency_s` is by attempt, in
    seconds, and `attempts_without_tokens` counts those that are missing in `tokens`.
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

    Example:
        >>> from graph_retry import retry_llm_call
        >>> records = []
        >>> retry_llm_call(lambda _: "[1,]", {}, output=list[int], on_attempt=records.append)
        [1]
        >>> figures = summarize(records)
        >>> figures["calls"], figures["success_rate"], figures["repairs"]
        (1, 1.0, Counter({'trailing_comma': 1}))
    """
    flat: list[Attempt] = []
    for each in attempts:
        flat.extend(each if isinstance(each, Sequence) else [each])
    calls = sum(attempt["number"] == 1 for attempt in flat)
    right = [attempt["number"] for attempt in flat if attempt["status"] == "succeeded"]
    usages = [attempt["usage"] or {} for attempt in flat]
    seconds = sorted(attempt["duration_s"] for attempt in flat)
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
        "failures": Counter(each["failure"]["kind"] for each in flat if each["failure"]),
        "decisions": Counter(each["decision"]["type"] for each in flat if each["decision"]),
    }


def _sum(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _quantile(ordered: list[float], percent: int) -> float | None:
    return ordered[math.ceil(percent / 100 * len(ordered)) - 1] if ordered else None
