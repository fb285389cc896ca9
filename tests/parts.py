"""Three parts of the tests: `make test` runs the short one, `.ci/run` the slow one as well.

Most tests run in two forms, two modes and on three storages. A fault shows in one of them, and
where two of them must meet for it, another test has them meet. So the short part has, of each test,
as few cases as hold each row of each of its tables once, and of each file as few as hold each form,
mode and storage once: which rows meet in a case differs from test to test. Of these cases, the slow
part has those of tests that drive a browser (the fixture `browser`), or that start many programs or
servers, or read very much (marked `slow`). The long part has the other cases, what is marked
`long`, and what is marked `drawn` once more, with more draws. Without `--part` everything runs, as
in the long part.
"""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple
from zlib import crc32

import pytest

PARTS = ("short", "slow", "long")

MARKS = {
    "drawn": "draws at random: in both parts, with more draws in the long one (see `draws`)",
    "slow": "takes seconds: `.ci/run` runs it, `make test` does not",
    "long": "takes long for what it can show: `make long` runs it",
}


class Run:
    """The run that goes on in this process."""

    part: str | None = None


def draws(short: int, long: int) -> int:
    """Return how many examples a `drawn` test draws in this run."""
    return short if Run.part in ("short", "slow") else long


def in_part(part: str, items: Sequence[pytest.Item]) -> set[pytest.Item]:
    """Choose the cases of a part, in the same way in every process."""
    few = _with_each_row_once(items)
    if part == "long":
        return {item for item in items if item not in few or item.get_closest_marker("drawn")}
    return {item for item in few if _is_slow(item) == (part == "slow")}


def _is_slow(item: pytest.Item) -> bool:
    drives_a_browser = "browser" in getattr(item, "fixturenames", ())
    return drives_a_browser or item.get_closest_marker("slow") is not None


def _with_each_row_once(items: Sequence[pytest.Item]) -> set[pytest.Item]:
    files: dict[tuple[str, bool], dict[str, list[pytest.Item]]] = {}
    for item in items:
        if not item.get_closest_marker("long"):
            file, test = item.nodeid.partition("::")[0], item.nodeid.partition("[")[0]
            files.setdefault((file, _is_slow(item)), {}).setdefault(test, []).append(item)
    return {
        tests[test][number]
        for tests in files.values()
        for test, numbers in covering(
            {test: [_rows(item) for item in cases] for test, cases in tests.items()}
        ).items()
        for number in numbers
    }


class Rows(NamedTuple):
    """The rows that meet in a case: one of each table of the test, and one of each fixture."""

    own: frozenset[Hashable]
    shared: frozenset[Hashable] = frozenset()


def _rows(item: pytest.Item) -> Rows:
    params: dict[str, Any] = item.callspec.params if hasattr(item, "callspec") else {}
    table_of = {
        name: ", ".join(names)
        for mark in item.iter_markers("parametrize")
        for names in [_names(mark.args[0])]
        for name in names
    }
    own: dict[str, list[Hashable]] = {}
    for name in params.keys() & table_of.keys():
        own.setdefault(table_of[name], []).append((name, _identity(params[name])))
    return Rows(
        own=frozenset((table, *sorted(values, key=repr)) for table, values in own.items()),
        shared=frozenset((name, _identity(params[name])) for name in params.keys() - table_of),
    )


def _names(argnames: str | Sequence[str]) -> list[str]:
    names = argnames.split(",") if isinstance(argnames, str) else argnames
    return [name.strip() for name in names]


def _identity(value: Any) -> Hashable:
    return (type(value), value) if isinstance(value, str | int | float) else id(value)


def covering(tests: Mapping[str, Sequence[Rows]]) -> dict[str, list[int]]:
    """Choose cases of a file's tests, by number; the tests' names settle ties.

    A test's own rows are each held once by the test. Those of fixtures, which all tests of the
    file share, are each held by the file: the rows that its tests held least come next.

    Example:
        >>> node, function = Rows(frozenset(), {"node"}), Rows(frozenset(), {"function"})
        >>> covering({"test_one": [node, function], "test_two": [node, function]})
        {'test_one': [1], 'test_two': [0]}
    """
    chosen: dict[str, set[int]] = {test: set() for test in tests}
    held: Counter[Hashable] = Counter()

    def take(test: str, number: int) -> Rows:
        chosen[test].add(number)
        held.update(tests[test][number].shared)
        return tests[test][number]

    def choose(test: str, missing: AbstractSet[Hashable]) -> Rows:
        def worth(number: int) -> tuple[int, int, int]:
            rows = tests[test][number]
            used = sum(held[each] for each in rows.shared)
            return len(rows.own & missing), -used, crc32(b"%d" % number, crc32(test.encode()))

        left = [number for number in range(len(tests[test])) if number not in chosen[test]]
        return take(test, max(left, key=worth))

    for test, cases in tests.items():
        missing = set().union(*(case.own for case in cases))
        times = Counter(row for case in cases for row in case.own)
        for number, case in enumerate(cases):
            if any(times[row] == 1 for row in case.own):  # no other case has it
                missing -= take(test, number).own
        if not chosen[test]:
            missing -= choose(test, missing).own
        while missing:
            missing -= choose(test, missing).own
    for test, cases in tests.items():
        while any(not held[each] for case in cases for each in case.shared):
            choose(test, set())
    return {test: sorted(numbers) for test, numbers in chosen.items()}
