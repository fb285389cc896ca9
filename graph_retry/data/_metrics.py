"""Compute figures over attempts: success rate, requests, latency, tokens, failures."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Annotated

from typing_extensions import TypedDict

from graph_retry.ledger import Ledger, attempts_in, tokens_of
from graph_retry.plugins import WrongArgumentError, checked, known_sum, literal
from graph_retry.records import Attempt

Attempts = Annotated[
    Ledger | Iterable[Attempt] | Iterable[Sequence[Attempt]] | Iterable[Ledger],
    "a `Ledger`, a list of them, or the records that `on_attempt` collected",
]
"""One ledger, several of them, or the records that `on_attempt` collected."""

_NEEDED = ("number", "status", "tries", "duration_s", "repairs", "failure", "decision", "usage")
"""The keys that a record needs for the figures."""

_TOKENS = ("input_tokens", "output_tokens", "total_tokens")


class Summary(TypedDict):
    """Figures of some calls. An unknown figure is None, not zero.

    An attempt whose record was deleted counts only as one attempt and one request.

    calls: The number of calls; a call and its forks count as one.
    succeeded: The number of calls that ended with an output, including a person's (`respond`).
    success_rate: `succeeded` divided by `calls`.
    attempts: The number of attempts, each counted once.
    mean_attempts: `attempts` divided by `calls`.
    retried: The share of calls that needed more than one attempt. Above 0.3, improve the
        prompt.
    retries_per_success: The mean number of attempts after the first, of the succeeded calls.
    requests: The number of requests. With the option `transient`, an attempt may make several.
    success_by_attempt: The number of succeeded calls, by the number of their last attempt.
    latency_s: The quantiles `p50`, `p90`, `p99` and `p100` of the attempts' durations, in seconds.
    mean_latency_s: The mean of the attempts' durations, in seconds.
    total_s: The sum of the attempts' durations, in seconds, without the time of waiting for a
        person.
    tokens: The sums of the reported tokens, by kind. A missing total is computed from its parts.
    attempts_without_tokens: The number of attempts whose tokens are unknown.
    repairs: The number of repairs, by kind.
    failures: The number of failed attempts, by kind of failure.
    decisions: The number of reviewers' decisions, by type.
    gate: The number of outputs by the verdict of a `Gate`: `passed`, `asked` (a person was asked)
        and `sampled` (a person saw a passing output as a sample). `audited` counts the sampled
        outputs about which a person decided. `audited_wrong` counts those that were not approved.
        `wrong_passed` estimates the errors among `passed` (None if nothing was audited).
    """

    calls: int
    succeeded: int
    success_rate: float | None
    attempts: int
    mean_attempts: float | None
    retried: float | None
    retries_per_success: float | None
    requests: int
    success_by_attempt: Counter[int]
    latency_s: dict[str, float | None]
    mean_latency_s: float | None
    total_s: float
    tokens: dict[str, int | None]
    attempts_without_tokens: int
    repairs: Counter[str]
    failures: Counter[str]
    decisions: Counter[str]
    gate: dict[str, float | None]


@checked
def summarize(attempts: Attempts) -> Summary:
    """Summarize one ledger, several ledgers, or the records that `on_attempt` collected.

    An attempt that is in the ledgers of several forks counts once. The ledgers of a call and of its
    forks count as one call, with the outcome of the last ledger. To count outputs of people, pass
    ledgers. The records that `on_attempt` gets were made before a review, so they lack such
    outputs.

    Example:
        >>> from graph_retry import retry_llm_call
        >>> records = []
        >>> retry_llm_call(lambda _: "[1,]", {}, output=list[int], on_attempt=records.append)
        [1]
        >>> figures = summarize(records)
        >>> figures["calls"], figures["success_rate"], figures["repairs"]
        (1, 1.0, Counter({'trailing_comma': 1}))
    """
    ledgers = ledgers_of(attempts)
    flat = distinct(ledgers)
    last_attempts = {_key(ledger[0]): ledger[-1] for ledger in ledgers if ledger}
    calls = sum(attempt["number"] == 1 for attempt in flat)
    succeeded = [last["number"] for last in last_attempts.values() if Ledger([last]).has_output]
    tokens = [tokens_of(attempt) for attempt in flat]
    known = [attempt for attempt in flat if not attempt.get("kept_in")]
    seconds = sorted(attempt["duration_s"] for attempt in known)
    return {
        "calls": calls,
        "succeeded": len(succeeded),
        "success_rate": len(succeeded) / calls if calls else None,
        "attempts": len(flat),
        "mean_attempts": len(flat) / calls if calls else None,
        "retried": sum(attempt["number"] == 2 for attempt in flat) / calls if calls else None,
        "retries_per_success": sum(succeeded) / len(succeeded) - 1 if succeeded else None,
        "requests": sum(attempt["tries"] for attempt in flat),
        "success_by_attempt": Counter(succeeded),
        "latency_s": {f"p{q}": _quantile(seconds, q) for q in (50, 90, 99, 100)},
        "mean_latency_s": sum(seconds) / len(seconds) if seconds else None,
        "total_s": sum(seconds),
        "tokens": {name: known_sum(counts[name] for counts in tokens) for name in _TOKENS},
        "attempts_without_tokens": sum(counts["total_tokens"] is None for counts in tokens),
        "repairs": Counter(repair["kind"] for attempt in flat for repair in attempt["repairs"]),
        "failures": Counter(
            attempt["failure"]["kind"] for attempt in known if attempt["failure"] is not None
        ),
        "decisions": Counter(
            attempt["decision"]["type"] for attempt in flat if attempt["decision"] is not None
        ),
        "gate": _gate(known),
    }


def _gate(attempts: Sequence[Attempt]) -> dict[str, float | None]:
    verdicts = [(one["gate"], one["decision"]) for one in attempts if "gate" in one]
    passed = sum(not gate["ask"] for gate, _ in verdicts)
    audits = [decision for gate, decision in verdicts if gate["sampled"] and decision]
    wrong = sum(decision["type"] != "approve" for decision in audits)
    return {
        "passed": passed,
        "asked": sum(gate["ask"] and not gate["sampled"] for gate, _ in verdicts),
        "sampled": sum(gate["sampled"] for gate, _ in verdicts),
        "audited": len(audits),
        "audited_wrong": wrong,
        "wrong_passed": passed * wrong / len(audits) if audits else None,
    }


def ledgers_of(attempts: Attempts) -> list[Sequence[Attempt]]:
    """Group attempts by call. A record without a ledger counts as a separate call."""
    calls = [attempts] if isinstance(attempts, Ledger) else attempts
    ledgers = [
        attempts_in(call) if isinstance(call, Ledger | Sequence) else [call] for call in calls
    ]
    for record in (record for ledger in ledgers for record in ledger):
        if missing := [key for key in _NEEDED if key not in record]:
            raise WrongArgumentError(
                f"`attempts` has a record without `{missing[0]}`: {literal(record, 80)}. Give "
                "whole records, such as those of `on_attempt` and `attempts_of`."
            )
    return ledgers


def distinct(ledgers: Iterable[Sequence[Attempt]]) -> list[Attempt]:
    """List each attempt once.

    If several ledgers have the attempt, take its record in the last one.
    """
    return list({_key(attempt): attempt for ledger in ledgers for attempt in ledger}.values())


def _key(attempt: Attempt) -> tuple[str, str] | int:
    """Return a key that identifies an attempt across ledgers.

    The key includes the time, because equal calls outside any thread have equal idempotency keys.
    """
    kept_in, number = attempt.get("kept_in"), attempt["number"]
    key = f"{kept_in['checkpoint_id']} {number}" if kept_in else attempt.get("idempotency_key")
    return (key, attempt.get("started_at", "")) if key else id(attempt)


def _quantile(ordered: list[float], percent: int) -> float | None:
    return ordered[math.ceil(percent / 100 * len(ordered)) - 1] if ordered else None
