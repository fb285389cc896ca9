"""The results of recorded calls that were made again: one by one, and counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from typing_extensions import TypedDict

from graph_retry._json import digest, is_number, is_object
from graph_retry.metrics import known_sum
from graph_retry.records import Failure

Ended = Literal["at_once", "after_automation", "would_ask"]
"""The outcome of a call: valid at once, valid after automation, or not without a person."""

Compare = Literal["equal", "fields"] | Callable[[Any, Any], float]
"""How to compare an output with one that a person vouched for: `equal` (1 or 0), `fields` (the
share of equal fields), or a function of output and expected value, both as JSON, that returns 0 to
1."""


class Judged(TypedDict):
    """The result of one recorded call, in plain JSON."""

    id: str
    """A hash of the recorded call and of the params of the new one."""

    thread: str
    call: str
    labels: dict[str, str]

    asked_before: bool
    """Whether a person was asked about the recorded call."""

    ended: Ended
    """The outcome of the new call."""

    attempts: int
    output: Any
    """The new output as JSON; None if a person would have been asked."""

    failure: Failure | None
    """Why a person would have been asked; None for a valid output that would have been reviewed."""

    expected: Any
    """The output that a person had supplied, accepted or approved."""

    agreement: float | None
    """How far `output` agrees with `expected`, from 0 to 1; None if there is nothing to compare."""

    tokens: dict[str, int | None]
    cost: float | None
    seconds: float
    """Spent on all attempts."""

    redacted: bool
    """Whether the recorded params went through `redact`; the recorded call may have had others."""


@dataclass
class Evaluation:
    """The results of recorded calls that were made again."""

    name: str = ""
    """The name of the evaluated `llm_call`."""

    results: list[Judged] = field(default_factory=list[Judged])

    left: int = 0
    """Calls that were not begun because the `limit` was spent."""

    skipped: Counter[str] = field(default_factory=Counter[str])
    """Recorded calls that cannot be made again, by reason."""

    def figures(self, results: Iterable[Judged] | None = None) -> dict[str, int | float | None]:
        """Count the outcomes of all calls, or of some; a figure that nobody reported is None.

        A review is avoided if the new output equals the one that a person supplied, took or
        approved. If no person did, a valid output counts only as `valid, unconfirmed`.
        """
        some = self.results if results is None else list(results)
        ended = Counter(one["ended"] for one in some)
        known = [one["agreement"] for one in some if one["agreement"] is not None]
        differs = sum(value < 1 for value in known)
        valid_now = [
            one["agreement"] for one in some if one["asked_before"] and one["ended"] != "would_ask"
        ]
        return {
            "calls": len(some),
            "valid at once": ended["at_once"],
            "after automation": ended["after_automation"],
            "would have asked": ended["would_ask"],
            "asked before": sum(one["asked_before"] for one in some),
            "reviews avoided": valid_now.count(1.0),
            "valid, unconfirmed": valid_now.count(None),
            "new failures": sum(
                not one["asked_before"] and one["ended"] == "would_ask" for one in some
            ),
            "agree": len(known) - differs,
            "differ": differs,
            "tokens": known_sum(one["tokens"].get("total_tokens") for one in some),
            "cost": known_sum(one["cost"] for one in some),
            "seconds": round(sum(one["seconds"] for one in some), 3),
        }

    def table(self, by: str | None = None) -> str:
        """Return a Markdown table of the figures: a row for all calls, and one for each group.

        Args:
            by: `call`, or the name of a label; None for the sum alone.

        Example:
            >>> print(Evaluation("small").table().splitlines()[0][:28])
            |  | calls | valid at once |
        """
        groups: dict[str, list[Judged]] = {self.name or "all": self.results}
        for one in self.results if by else ():
            group = one["call"] if by == "call" else one["labels"].get(cast("str", by), "(none)")
            groups.setdefault(f"{by}: {group}", []).append(one)
        rows = [(name, self.figures(some)) for name, some in groups.items()]
        lines = [f"|  | {' | '.join(rows[0][1])} |", "|---|" + "---:|" * len(rows[0][1])]
        for name, figures in rows:
            cells = ["" if value is None else f"{value:,g}" for value in figures.values()]
            lines.append(f"| {name} | {' | '.join(cells)} |")
        return "\n".join(lines)


def agreement_of(compare: Compare, value: Any, expected: Any) -> float:
    """Compare an output with one that a person vouched for."""
    if callable(compare):
        given = compare(value, expected)
        if not (isinstance(given, bool) or is_number(cast("Any", given))) or not 0 <= given <= 1:
            raise ValueError(f"`compare` returned {given!r:.80}: return a number from 0 to 1.")
        return float(given)
    if compare == "fields" and is_object(value) and is_object(expected):
        names = value.keys() | expected.keys()
        return sum(_same(value, expected, name) for name in names) / max(len(names), 1)
    return float(digest(value) == digest(expected))


def _same(one: dict[str, Any], other: dict[str, Any], name: str) -> bool:
    return name in one and name in other and digest(one[name]) == digest(other[name])
