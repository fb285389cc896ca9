"""Validate the settled parts of an object or list that is still arriving.

A member or element is settled when the next one has begun. Before that, its apparent end may be a
quote inside a text. A settled value is validated like a complete value. The last value may
continue, so that only the settled parts inside it are validated, if its type is known.
"""

from __future__ import annotations

from typing import Any

from graph_retry._issues import ABSENT, cut, describe, issue, pointer
from graph_retry._json import is_array, is_object
from graph_retry.records import Issue

Key = str | int


class Part:
    """The rules for one place of a value. This base class has no rules."""

    container: type[Any] | None = None
    """`dict` or `list`, if the parts of such a container have rules; otherwise None."""
    most: int | None = None
    """Maximum number of elements of a list, or None."""

    def errors(self, value: Any) -> list[Issue]:  # noqa: ARG002
        """Return the errors of a settled value."""
        return []

    def inner(self, key: Key) -> Part:  # noqa: ARG002
        """Return the rules for the member or element at `key`."""
        return Part()


class Forbidden(Part):
    """The rules for a member or element that is not allowed."""

    def __init__(self, message: str, code: str) -> None:
        self._message, self._code = message, code

    def errors(self, value: Any) -> list[Issue]:
        """Return the same error for every value."""
        return [issue("", self._message, self._code, None, describe(value))]


class OpenPart:
    """Validates one growing value by its rules; each settled part is validated once."""

    def __init__(self, part: Part) -> None:
        self._part, self._settled = part, 0
        self._last: tuple[Any, OpenPart | None] = ABSENT, None

    def issues(self, value: Any) -> list[Issue]:
        """Return the errors of `value` that no later text can correct.

        A list in place of an object, or the reverse, is no error yet, because a bracket may be
        missing.
        """
        if type(value) is not self._part.container or not value:
            return []
        parts: list[tuple[Key, Any]] = [*value.items()] if is_object(value) else [*enumerate(value)]
        settled = len(parts) - 1
        for key, child in parts[self._settled : settled]:
            if wrong := self._part.inner(key).errors(child):
                return _under(key, wrong)
        self._settled = settled
        most = self._part.most
        if is_array(value) and most is not None and settled > most:
            message = f"there should be at most {most} items, and more have come"
            return [issue("", message, "too_long", f"at most {most}", describe(len(value)))]
        key, child = parts[-1]
        before, last = self._last
        if last is None or before != key:
            last = OpenPart(self._part.inner(key))
            self._last = key, last
        return _under(key, last.issues(child))


def _under(key: Key, issues: list[Issue]) -> list[Issue]:
    """Return the issues of a part with paths from the container around it."""
    step = pointer([key])
    return [{**issue, "path": cut(step + issue["path"], 500)} for issue in issues]
