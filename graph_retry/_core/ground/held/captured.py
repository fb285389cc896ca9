"""Compare what two functions hold, to tell equal calls apart.

- same: All that can be compared is equal. What a call changes in place, such as a counter, tells
  nothing about the call, and a lock, a client or a chat model is a means that may be exchanged.
- changed: What differs is the state of an object that both have, or the code was edited.
- other: Other data. The calls are about different things.
- unknown: Data that calls use up, or that cannot be read for certain, such as the rows of a file.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from graph_retry._core.ground.held.content import is_stream
from graph_retry._core.ground.held.reading import Part, Reading, is_followed, token_of
from graph_retry.records import SavedFunction

Likeness = Literal["same", "changed", "other", "unknown"]
_BY_WEIGHT: tuple[Likeness, ...] = ("same", "changed", "unknown", "other")


class Compared(NamedTuple):
    """How a function compares with a saved call's function, and the values that decide this."""

    likeness: Likeness
    names: list[str]


@dataclass(eq=False)
class Captured:
    """A function as a call begins with it.

    function: The function. The parts are of the moment in which they were read.
    parts: What it holds, and the pieces of what may change in place.
    shown: Digests of what the values without a digest show, such as the name of a client's model.
    uncertain: The names of parts whose content cannot be read for certain.
    unsteady: How the function changes a part in a call: "changed", or "used" if it takes entries.
    """

    function: Any
    salt: str
    code: str
    source: str
    parts: dict[str, Part]
    objects: dict[str, str]
    shown: dict[str, str]
    uncertain: set[str]
    unsteady: dict[str, str]

    def saved(self) -> SavedFunction:
        """Return the form for graph state. It has the pieces of those values that calls change."""
        for name in self.unsteady:
            owner = self.parts[name].owner if name in self.parts else None
            if is_followed(owner) and (token := token_of(owner, kept=True)):
                self.objects[name] = token
        return {
            "code": self.code,
            "source": self.source,
            "shown": {name: each for name, each in self.shown.items() if name not in self.unsteady},
            "parts": {
                name: part.digest
                for name, part in self.parts.items()
                if not part.piece_of or part.piece_of in self.unsteady
            },
            "objects": self.objects,
            "unsteady": {name: how for name, how in self.unsteady.items() if name in self.parts},
        }

    def note_changes(self) -> None:
        """Note which captured values the call that has just ended changed in place.

        Such a value, such as a counter of calls, does not tell what the call is about.
        """
        after = captured_by(self.function, self.salt)
        parts, shown = after.parts, after.shown
        changed = [name for name, digest in self.shown.items() if shown.get(name) != digest]
        for name, part in self.parts.items():
            if part.digest and part.piece_of and name not in parts:
                self.unsteady[part.piece_of] = "used"
            elif part.digest and (name not in parts or parts[name].digest != part.digest):
                changed.append(name)
        for name in changed:
            self.unsteady.setdefault(name, "changed")

    def like(self, other: Captured) -> Likeness:
        """Compare the functions of two equal calls that one run of a node makes."""
        mine, others = _wholes(self.parts), _wholes(other.parts)
        if self.code != other.code or mine.keys() != others.keys():
            return "other"
        unsteady = {**self.unsteady, **other.unsteady}
        is_unknown = False
        for name, part in mine.items():
            is_one = part.owner is others[name].owner
            if part.digest is None and others[name].digest is None:
                is_unknown = is_unknown or not is_one
            elif part.digest != others[name].digest and not (is_one and name in unsteady):
                return "other"
        return "unknown" if is_unknown else "same"

    def like_saved(self, saved: SavedFunction | None) -> Compared:
        """Compare this function with a saved call's function. Without a record, any fits."""
        if saved is None:
            return Compared("changed", [])
        names: dict[Likeness, list[str]] = {}
        for name in self._read(saved):
            names.setdefault(self._judged(name, saved), []).append(name)
        likeness: Likeness = "same"
        for each in _BY_WEIGHT:
            likeness = each if each in names else likeness
        if saved["code"] != self.code and likeness in ("changed", "same"):
            # In unchanged files, other code is another function. In changed ones it may be an edit.
            likeness = "other" if self.source and saved["source"] == self.source else "changed"
        return Compared(likeness, names.get(likeness, []))

    def _read(self, saved: SavedFunction) -> list[str]:
        """Return the values to judge: those that differ, or that cannot be read for certain."""
        known = saved["parts"]
        differing = {
            name: part.piece_of
            for name, part in self.parts.items()
            if (part.digest is None and name in self.uncertain and name in known)
            or (part.digest is not None and known.get(name) not in (None, part.digest))
        }
        return [name for name in differing if name not in differing.values()]

    def _judged(self, name: str, saved: SavedFunction) -> Likeness:
        """Judge a value that differs from the value of a saved call."""
        part, unsteady = self.parts[name], saved.get("unsteady", {})
        around = part.piece_of
        in_list = bool(around) and isinstance(self.parts[around].owner, list | deque)
        holders = [each for each in self._around(name) if each in unsteady]
        if any(self._may_change(each, saved) for each in (around if in_list else name, *holders)):
            return "changed"
        if "used" in (unsteady.get(name), unsteady.get(around)):
            return "unknown"
        if name in unsteady:
            return "unknown" if is_stream(part.owner) else "same"
        # A list that grows while it is used may be a log, or a conversation about a document.
        grows = in_list and around in unsteady
        return "unknown" if grows or name in self.uncertain else "other"

    def _around(self, name: str) -> Iterator[str]:
        """Yield the values of which a part is a piece, the smallest first."""
        while name := self.parts[name].piece_of:
            yield name

    def steady(self, saved: SavedFunction | None) -> Any:
        """Return a saved function without what may have changed since."""
        if saved is None:
            return None
        unsteady = tuple(saved.get("unsteady", {}))
        pieces = tuple(f"{name}{sign}" for name in unsteady for sign in "[.:")
        parts = {
            name: digest
            for name, digest in saved["parts"].items()
            if not (name in unsteady or name.startswith(pieces) or self._may_change(name, saved))
        }
        return saved["code"], parts

    def _may_change(self, name: str, saved: SavedFunction) -> bool:
        """Return whether a part is, or is a state of, an object that the saved call had as well."""
        part, objects = self.parts.get(name), saved["objects"]
        places = (name, part.state_of) if part is not None else ()
        return any(
            place in objects and objects[place] == self.objects.get(place) for place in places
        )

    def go_on(self, saved: SavedFunction | None) -> list[str]:
        """Continue a saved call. Return what shows that this function holds another client or such.

        What an earlier version of the package did not compare, it had found to change.
        """
        if saved is None:
            return []
        found = {name: "changed" for name, digest in saved["parts"].items() if digest is None}
        self.unsteady = {**found, **saved.get("unsteady", {}), **self.unsteady}
        before, objects = saved.get("shown", {}), saved["objects"]
        same = [place for place, token in self.objects.items() if objects.get(place) == token]
        return [
            name
            for name, digest in self.shown.items()
            if before.get(name, digest) != digest and name.rpartition(".")[0] not in same
        ]


def _wholes(parts: dict[str, Part]) -> dict[str, Part]:
    return {name: part for name, part in parts.items() if not part.piece_of}


def captured_by(function: Any, salt: str) -> Captured:
    """Read what a function holds. `salt` keeps digests of short values from being guessed.

    Example:
        >>> def about(text):
        ...     return lambda params: f"{text} {params}"
        >>> [captured_by(about(each), "1").saved()["parts"] for each in "aab"]
        [{'text': '82eea262b2f5'}, {'text': '82eea262b2f5'}, {'text': '9ff285e7cee6'}]
    """
    read = Reading(function, salt)
    return Captured(
        function, salt, read.code(), read.source(), read.parts, read.objects, read.shown,
        read.uncertain, {},
    )  # fmt: skip
