"""Find the errors in an incomplete value that no later text can correct.

A member or element is settled when the next one has begun. Before that, even its closing quote may
be a quote inside the text. The settled parts are validated by the whole type or schema. Errors at
unsettled places do not count. For example, an open object may still get a missing field.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

from graph_retry._core.ground.issues import Path, child_of
from graph_retry._core.ground.json import ABSENT, is_array, is_object, pointer
from graph_retry.records import Issue

_CERTAIN = frozenset({"too_long", "extra_forbidden", "maxItems", "additionalProperties"})
"""Errors that count even in an open object or list, because it can only grow."""


class PlacedError(NamedTuple):
    """An error in an incomplete value."""

    path: Path
    """The path of the error, which may contain names of union branches."""
    code: str
    issue: Issue


class Judge(NamedTuple):
    """A validator for incomplete values."""

    errors: Callable[[Any], list[PlacedError]]
    """Validates a value as if it were complete."""
    unsure: AbstractSet[Any] = frozenset()
    """Keys and names of union branches at which an error may disappear later."""
    counts_elements: bool = False
    """Whether the type limits the length of a list, or has a type for each index."""


class _Level(NamedTuple):
    """An open object or list, with only the parts that are validated now."""

    parts: Any
    open_key: Any
    """The key or index of the last part, which is still arriving."""
    left_out: int
    """The number of elements at the list's beginning that were validated before."""


class Settled:
    """Validates the settled parts of one growing value, each part once."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._done: dict[Path, int] = {}

    def issues(self, value: Any, *, is_closed: bool = False) -> list[Issue]:
        """Return the errors of `value` that no later text can correct.

        With `is_closed`, the errors of the outermost object or list count, too.
        """
        before, self._done = self._done, {}
        levels: list[_Level] = []
        new = self._new_parts(value, (), before, levels)
        if self._done == before:
            return []
        found = [
            self._certain(error, levels, is_closed=is_closed) for error in self._judge.errors(new)
        ]
        return [one for one in found if one is not None]

    def _new_parts(
        self, value: Any, path: Path, before: dict[Path, int], levels: list[_Level]
    ) -> Any:
        """Return an open object or list without open parts, and without parts validated before."""
        parts: list[Any] = [*value.items()] if is_object(value) else [*enumerate(value)]
        if not parts:
            return value
        *settled, (key, last) = parts
        self._done[path] = len(settled)
        keeps_all = is_array(value) and self._judge.counts_elements
        skipped = 0 if keeps_all else before.get(path, 0)
        left_out = skipped if is_array(value) else 0
        kept = settled[skipped:]
        new: Any = dict(kept) if is_object(value) else [part for _, part in kept]
        levels.append(_Level(new, key if is_object(value) else len(new), left_out))
        if is_object(last) or is_array(last):
            below = self._new_parts(last, (*path, key), before, levels)
            if is_object(new):
                new[key] = below
            else:
                new.append(below)
        return new

    def _certain(
        self, error: PlacedError, levels: list[_Level], *, is_closed: bool
    ) -> Issue | None:
        """Return the issue with its path in the whole value; None if later text may correct it."""
        real: list[int | str] = []
        for part, level in zip(error.path, levels, strict=False):
            # If a branch of a union has no name, pydantic writes its type, such as `list[int]`.
            if part in self._judge.unsure or "[" in str(part):
                return None
            real.append(part + level.left_out if isinstance(part, int) else part)
            if part != level.open_key:
                if child_of(level.parts, part) is ABSENT:
                    return None
                break
        else:
            if error.code not in _CERTAIN and not (is_closed and not error.path):
                return None
        inside = error.issue["path"].removeprefix(pointer(error.path[: len(real)]))
        return {**error.issue, "path": pointer(real) + inside}
