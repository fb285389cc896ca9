"""A container of which only the beginning has come, held against its part of the output type.

A part of it is settled when the next part beside it has begun: not before, as what looks like the
end of a value may turn out to be a quote inside of it. What is settled is validated like any whole
value; the last part, which may go on, is looked into where its type is one that says by itself what
its parts are. So each value is validated once for each container it stands in, however often the
text is read again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graph_retry._issues import ABSENT, MAX_ISSUES, cut, pointer
from graph_retry._json import is_array, is_object
from graph_retry.records import Issue

Container = dict[str, Any] | list[Any]
Key = str | int


class OpenPart:
    """The rules of a type for one container; `issues` is called again as the container grows."""

    wants_container = True
    """Whether some kind of container is wanted. If it is not the one that came, a bracket that was
    left out may still make it of this one."""

    def __init__(self) -> None:
        self._issues: list[Issue] = []
        self._judged = 0
        self._of_wrong_kind: list[Issue] | None = None
        self._last_key: Any = ABSENT
        self._last: OpenPart | None = None

    def issues(self, value: Container) -> list[Issue]:
        """Return the errors of `value` that no later text can correct."""
        self._issues = self._issues or self._certain(value)
        return self._issues

    def _certain(self, value: Container) -> list[Issue]:
        parts: list[tuple[Key, Any]] = [*value.items()] if is_object(value) else [*enumerate(value)]
        if parts and self._of_wrong_kind is None:
            self._of_wrong_kind = self.wrong_kind(value)
        if self._of_wrong_kind:
            return [] if self.wants_container else self._of_wrong_kind
        settled = max(len(parts) - 1, 0)
        for key, child in parts[self._judged : settled]:
            if wrong := self.wrong_part(key, child):
                return wrong
        self._judged = settled
        if wrong := self.wrong_number(value, settled):
            return wrong
        if not parts:
            return []
        key, child = parts[-1]
        if not (is_object(child) or is_array(child)):
            return []
        if key != self._last_key:
            self._last_key, self._last = key, self.opened(key)
        return [] if self._last is None else under(key, self._last.issues(child))

    def wrong_kind(self, value: Container) -> list[Issue]:  # noqa: ARG002
        """Say why no object, or no list, is wanted here; `value` is the one that came."""
        return []

    def wrong_part(self, key: Key, child: Any) -> list[Issue]:  # noqa: ARG002
        """Return the errors of a finished member or element; paths begin with its key."""
        return []

    def wrong_number(self, value: Container, settled: int) -> list[Issue]:  # noqa: ARG002
        """Say that these are too many members or elements."""
        return []

    def opened(self, key: Key) -> OpenPart | None:  # noqa: ARG002
        """Return the validator of the container that begins at `key`, or None."""
        return None


class OneOfParts(OpenPart):
    """A union: wrong where every branch is; a branch nothing is known of is never wrong."""

    def __init__(self, branches: Sequence[OpenPart | None]) -> None:
        super().__init__()
        self._branches = branches

    def issues(self, value: Container) -> list[Issue]:
        """Return the issues of all branches, if each has some."""
        return _if_all([branch.issues(value) if branch else [] for branch in self._branches])

    def wrong_kind(self, value: Container) -> list[Issue]:
        """Return why no branch wants this kind of container."""
        return _if_all([branch.wrong_kind(value) if branch else [] for branch in self._branches])


class AllOfParts(OpenPart):
    """Several demands on one container: wrong where any of them is."""

    def __init__(self, demands: Sequence[OpenPart]) -> None:
        super().__init__()
        self._demands = demands

    def issues(self, value: Container) -> list[Issue]:
        """Return the issues of the first demand that is not met."""
        return _first([demand.issues(value) for demand in self._demands])

    def wrong_kind(self, value: Container) -> list[Issue]:
        """Return why one of the demands wants another kind of container."""
        return _first([demand.wrong_kind(value) for demand in self._demands])


def _if_all(groups: Sequence[list[Issue]]) -> list[Issue]:
    return [issue for issues in groups for issue in issues][:MAX_ISSUES] if all(groups) else []


def _first(groups: Sequence[list[Issue]]) -> list[Issue]:
    return next(filter(None, groups), list[Issue]())


def under(key: Key, issues: list[Issue]) -> list[Issue]:
    """Return issues of a part as issues of the container it stands in, at `key`."""
    step = pointer([key])
    return [{**issue, "path": cut(step + issue["path"], 500)} for issue in issues]
