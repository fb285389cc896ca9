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
from typing import Any, Literal, NamedTuple

from graph_retry._core.ground.held.content import is_stream
from graph_retry._core.ground.held.reading import Reading, is_followed, token_of
from graph_retry.records import SavedFunction

Likeness = Literal["same", "changed", "other", "unknown"]
_BY_WEIGHT: tuple[Likeness, ...] = ("same", "changed", "unknown", "other")


class Compared(NamedTuple):
    """How a function compares with that of a saved call, and the values that decide this."""

    likeness: Likeness
    names: list[str]


class Captured(Reading):
    """A function as a call begins with it.

    unsteady: How the function changes a part in a call: "changed", or "used" if it takes entries.

    Example:
        >>> def about(text):
        ...     return lambda params: f"{text} {params}"
        >>> [Captured(about(each), "1").saved()["parts"] for each in "aab"]
        [{'text': '82eea262b2f5'}, {'text': '82eea262b2f5'}, {'text': '9ff285e7cee6'}]
    """

    def __init__(self, function: Any, salt: str) -> None:
        """Read a function. `salt` keeps digests of short values from being guessed."""
        self.unsteady: dict[str, str] = {}
        super().__init__(function, salt)

    def saved(self) -> SavedFunction:
        """Return the form for graph state. It has the pieces of those values that calls change."""
        unsteady = {name: how for name, how in self.unsteady.items() if name in self.parts}
        for name in unsteady:
            value = self.parts[name].value
            if is_followed(value) and (token := token_of(value, kept=True)):
                self.objects[name] = token
        return {
            "code": self.code,
            "source": self.source,
            "shown": {name: each for name, each in self.shown.items() if name not in self.unsteady},
            "parts": {
                name: part.digest
                for name, part in self.parts.items()
                if not part.piece_of or part.piece_of in unsteady
            },
            "objects": self.objects,
            "unsteady": unsteady,
        }

    def note_changes(self) -> None:
        """Note which captured values the call that has just ended changed in place.

        Such a value, such as a counter of calls, does not tell what the call is about.
        """
        after = Reading(self.function, self.salt)
        changed = [name for name, each in self.shown.items() if after.shown.get(name) != each]
        for name, part in self.parts.items():
            now = after.parts.get(name)
            if part.digest and part.piece_of and now is None:
                self.unsteady[part.piece_of] = "used"
            elif part.digest and (now is None or now.digest != part.digest):
                changed.append(name)
        for name in changed:
            self.unsteady.setdefault(name, "changed")

    def like(self, other: Captured) -> Likeness:
        """Compare the functions of two equal calls that one run of a node makes."""
        mine, others = (
            {name: part for name, part in each.parts.items() if not part.piece_of}
            for each in (self, other)
        )
        if self.code != other.code or mine.keys() != others.keys():
            return "other"
        unsteady = {*self.unsteady, *other.unsteady}
        exchanged = [name for name in mine if mine[name].value is not others[name].value]
        if any(
            mine[name].digest != others[name].digest and (name in exchanged or name not in unsteady)
            for name in mine
        ):
            return "other"
        return "unknown" if any(mine[name].digest is None for name in exchanged) else "same"

    def like_saved(self, saved: SavedFunction | None) -> Compared:
        """Compare this function with that of a saved call. Without a record, it may be any."""
        if saved is None:
            return Compared("changed", [])
        known, names = saved["parts"], dict[Likeness, list[str]]()
        differing = {
            name: part.piece_of
            for name, part in self.parts.items()
            if name in known
            and (name in self.uncertain if part.digest is None else known[name] != part.digest)
            and (part.digest is None or known[name] is not None)
        }
        for name in differing.keys() - differing.values():
            names.setdefault(self._judged(name, saved), []).append(name)
        likeness: Likeness = "same"
        for each in _BY_WEIGHT:
            likeness = each if each in names else likeness
        if saved["code"] != self.code and likeness in ("changed", "same"):
            # In unchanged files, other code is another function. In changed ones it may be an edit.
            if saved["source"] == self.source:
                return Compared("other" if self.source else "unknown", [])
            likeness = "changed"
        return Compared(likeness, sorted(names.get(likeness, [])))

    def _judged(self, name: str, saved: SavedFunction) -> Likeness:
        """Judge a value that differs from that of a saved call, or that nobody can read."""
        part, unsteady = self.parts[name], saved.get("unsteady", {})
        around = part.piece_of
        in_list = bool(around) and isinstance(self.parts[around].value, list | deque)
        holders = [each for each in self._around(name) if each in unsteady]
        if any(self._may_change(each, saved) for each in (around if in_list else name, *holders)):
            return "changed"
        if "used" in (unsteady.get(name), unsteady.get(around)):
            return "unknown"
        if name in unsteady:
            yields = any(is_stream(self.parts[each].value) for each in (name, *holders))
            return "unknown" if yields else "same"
        # A list that grows while it is used may be a log, or a conversation about a document.
        grows = in_list and around in unsteady
        return "unknown" if grows or name in self.uncertain else "other"

    def _around(self, name: str) -> Iterator[str]:
        """Yield the values of which a part is a piece, the smallest first."""
        while name := self.parts[name].piece_of:
            yield name

    def _may_change(self, name: str, saved: SavedFunction) -> bool:
        """Return whether a part is, or is a state of, an object that the saved call had as well."""
        places = (name, self.parts[name].state_of) if name in self.parts else ()
        before = saved["objects"]
        return any(each in before and before[each] == self.objects.get(each) for each in places)

    def steady(self, saved: SavedFunction | None) -> Any:
        """Return a saved function without what may have changed since."""
        if saved is None:
            return None
        unsteady = tuple(saved.get("unsteady", {}))
        pieces = tuple(f"{name}{sign}" for name in unsteady for sign in "[.:")
        return saved["code"], {
            name: digest
            for name, digest in saved["parts"].items()
            if not (name in unsteady or name.startswith(pieces) or self._may_change(name, saved))
        }

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
