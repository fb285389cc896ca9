"""The results of an evaluation, which repeats recorded calls, for example with a new model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from typing_extensions import TypedDict

from graph_retry.plugins import as_repr, identical, is_number, is_object, known_sum, passed_as
from graph_retry.records import Failure

Ended = Literal["at_once", "after_automation", "would_ask"]
"""The outcome of a repeated call. `at_once`: the first attempt is valid. `after_automation`: a
later automatic attempt is valid. `would_ask`: no attempt is valid, and a person would be asked.
"""

Compare = Literal["equal", "fields"] | Callable[[Any, Any], float]
"""How a new output is compared with the output that a person supplied, accepted or approved.
`equal` gives 1 or 0. `fields` gives the share of equal fields. A function gets the new and the
person's output as JSON, and returns a number from 0 to 1.
"""


class Judged(TypedDict):
    """The result of repeating one recorded call, in plain JSON.

    id: A hash of the recorded call and of the params of the new call.
    thread: The thread of the recorded call.
    call: The call's name.
    labels: The call's labels.
    asked_before: Whether a person was asked about the recorded call.
    ended: The outcome of the new call.
    attempts: Number of attempts of the new call.
    output: The new output as JSON; None if a person would have been asked.
    failure: The failure about which a person would have been asked; None if the new output is
        valid.
    expected: The output that a person supplied, accepted or approved for the recorded call.
    agreement: The agreement of `output` with `expected`, from 0 to 1; None if one of the two
        is missing.
    tokens: Tokens of the new call by kind; None if unknown.
    cost: The new call's cost by the `price` of the option `limit`; None if unknown.
    seconds: The seconds spent in all attempts of the new call.
    redacted: Whether the recorded params were redacted, so that they may differ from the original.
    """

    id: str
    thread: str
    call: str
    labels: dict[str, str]
    asked_before: bool
    ended: Ended
    attempts: int
    output: Any
    failure: Failure | None
    expected: Any
    agreement: float | None
    tokens: dict[str, int | None]
    cost: float | None
    seconds: float
    redacted: bool


@dataclass
class Evaluation:
    """The results of all repeated calls of an evaluation."""

    name: str = ""
    """The name of the evaluated `llm_call`."""

    results: list[Judged] = field(default_factory=list[Judged])

    left: int = 0
    """Number of calls that did not start, because earlier calls had used up the `limit`."""

    skipped: Counter[str] = field(default_factory=Counter[str])
    """Number of recorded calls that cannot be repeated, by reason."""

    def figures(self, results: Iterable[Judged] | None = None) -> dict[str, int | float | None]:
        """Count the outcomes of all calls, or of the given results. An unknown figure is None.

        A recorded call that asked a person counts in `reviews avoided` if the new output equals the
        output that the person supplied, accepted or approved. It counts in `valid, unconfirmed` if
        the new output is valid, but the person gave no output. A recorded call that asked nobody
        counts in `new failures` if the new call would ask a person.
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
        """Return a Markdown table of the figures, with a row for all calls and one for each group.

        Args:
            by: `call` to group by the call's name, or the name of a label to group by its values.
                By default, there are no groups.

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
    """Compare an output with the expected output. Return the agreement from 0 to 1."""
    if callable(compare):
        with passed_as("compare"):
            given = compare(value, expected)
        if not (isinstance(given, bool) or is_number(cast("Any", given))) or not 0 <= given <= 1:
            raise ValueError(
                f"`compare` returned {as_repr(given, 80)}: return a number from 0 to 1."
            )
        return float(given)
    if compare == "fields" and is_object(value) and is_object(expected):
        both, every = value.keys() & expected.keys(), value.keys() | expected.keys()
        return sum(identical(value[name], expected[name]) for name in both) / max(len(every), 1)
    return float(identical(value, expected))
