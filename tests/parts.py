"""Two parts of the tests: `make test` runs the short one, `.ci/run` the long one as well.

Most tests run in two forms, two modes and on three storages. A fault shows in one of them, or where
two of them meet; so the short part has, of each test, cases in which every two of its parameters
meet in every way. The long part has the other cases, what is marked `long`, and what is marked
`drawn` once more, with more draws. Without `--part` everything runs, as in the long part.
"""

from collections.abc import Hashable, Iterable, Sequence
from itertools import combinations
from typing import Any

import pytest

MARKS = {
    "drawn": "draws at random: in both parts, with more draws in the long one (see `draws`)",
    "long": "takes long for what it can show: `.ci/run` runs it, `make test` does not",
}


class Run:
    """The run that goes on in this process."""

    part: str | None = None


def draws(short: int, long: int) -> int:
    """Return how many examples a `drawn` test draws in this run."""
    return short if Run.part == "short" else long


def in_part(part: str, items: Sequence[pytest.Item]) -> set[pytest.Item]:
    """Choose the cases of a part, in the same way in every process."""
    short = _in_short_part(items)
    if part == "short":
        return short
    return {item for item in items if item not in short or item.get_closest_marker("drawn")}


def _in_short_part(items: Sequence[pytest.Item]) -> set[pytest.Item]:
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        if not item.get_closest_marker("long"):
            tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    return {
        cases[number]
        for cases in tests.values()
        for number in covering([_parameters(item) for item in cases])
    }


def _parameters(item: pytest.Item) -> dict[str, Any]:
    return item.callspec.params if hasattr(item, "callspec") else {}


def covering(cases: Sequence[dict[str, Any]]) -> list[int]:
    """Choose cases, by number: every two values that meet in some case meet in a chosen one.

    Example:
        >>> twice = [{"form": form, "mode": mode} for form in "nf" for mode in "sa"]
        >>> covering(twice)
        [0, 1, 2, 3]
        >>> covering([{**case, "size": size} for case in twice for size in "xy"])
        [0, 3, 5, 6]
    """
    open_cases = {number: set(_meetings(case)) for number, case in enumerate(cases)}
    missing = set().union(*open_cases.values())
    chosen = []
    while missing:
        best = max(open_cases, key=lambda number: (len(open_cases[number] & missing), -number))
        missing -= open_cases.pop(best)
        chosen.append(best)
    return sorted(chosen)


def _meetings(case: dict[str, Any]) -> Iterable[Hashable]:
    values = [(name, _identity(value)) for name, value in sorted(case.items())]
    return [*combinations(values, 2)] or [tuple(values)]


def _identity(value: Any) -> Hashable:
    return (type(value), value) if isinstance(value, str | int | float) else id(value)
