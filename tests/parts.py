"""Two parts of the tests: `make test` runs the short one, `.ci/run` the long one as well.

Most tests run in two forms, two modes and on three storages. A fault shows in one of them, and
where two of them must meet for it, another test has them meet. So the short part has, of each test,
as few cases as hold each row of each of its tables once: which rows meet in a case differs from
test to test. The long part has the other cases, what is marked `long`, and what is marked `drawn`
once more, with more draws. Without `--part` everything runs, as in the long part.
"""

from collections.abc import Hashable, Sequence
from typing import Any
from zlib import crc32

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
        for test, cases in tests.items()
        for number in covering([_rows(item) for item in cases], test)
    }


def _rows(item: pytest.Item) -> set[Hashable]:
    """Name the rows that meet in a case: one of each table, and one of each fixture."""
    params: dict[str, Any] = item.callspec.params if hasattr(item, "callspec") else {}
    table_of = {
        name: ", ".join(names)
        for mark in item.iter_markers("parametrize")
        for names in [_names(mark.args[0])]
        for name in names
    }
    rows: dict[str, list[Hashable]] = {}
    for name, value in params.items():
        rows.setdefault(table_of.get(name, name), []).append(_identity(value))
    return {(table, *values) for table, values in rows.items()} or {"no table"}


def _names(argnames: str | Sequence[str]) -> list[str]:
    names = argnames.split(",") if isinstance(argnames, str) else argnames
    return [name.strip() for name in names]


def _identity(value: Any) -> Hashable:
    return (type(value), value) if isinstance(value, str | int | float) else id(value)


def covering(cases: Sequence[set[Hashable]], test: str) -> list[int]:
    """Choose cases of a test, by number, that hold each row once; the test's name settles ties.

    Example:
        >>> covering([{"node", "sync"}, {"node", "async"}, {"function", "sync"}], "test_it")
        [1, 2]
    """
    seed = crc32(test.encode())
    left = dict(enumerate(cases))
    missing = set().union(*cases)
    chosen = []
    while missing:
        best = max(left, key=lambda case: (len(left[case] & missing), crc32(b"%d" % case, seed)))
        missing -= left.pop(best)
        chosen.append(best)
    return sorted(chosen)
