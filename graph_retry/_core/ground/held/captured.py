"""Compare the values that two functions hold, to tell apart calls with equal names and params.

A comparison has one of four results:

- same: All compared values are equal. A value that a call changes in place, such as a counter, is
  not compared. Neither is an object that only helps to make the call, such as a lock or a client.
- changed: The functions differ only in the state of an object that both hold, or in edited code.
- other: The functions hold different data, so the calls are about different things.
- unknown: The functions hold data that calls use up or that cannot be read for certain, such as the
  rows of a file.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from graph_retry._core.ground.held.content import is_stream
from graph_retry._core.ground.held.function_parts import Reading, is_followed, token_of
from graph_retry.records import SavedFunction

Likeness = Literal["same", "changed", "other", "unknown"]
_BY_WEIGHT: tuple[Likeness, ...] = ("same", "changed", "unknown", "other")


class Compared(NamedTuple):
    """The result of a comparison, and the names of the values that decided it."""

    likeness: Likeness
    names: list[str]


class Captured(Reading):
    """A function and the values that it holds when a call begins.

    unsteady: The names of values that a call changes in place, each as "changed", or as "used" if
        the call takes entries out of the value.

    Example:
        >>> def about(text):
        ...     return lambda params: f"{text} {params}"
        >>> [Captured(about(each), "1").saved()["parts"] for each in "aab"]
        [{'text': '82eea262b2f5'}, {'text': '82eea262b2f5'}, {'text': '9ff285e7cee6'}]
    """

    def __init__(self, function: Any, salt: str) -> None:
        """Read a function. `salt` is a key for the digests, so nobody can guess short values."""
        self.unsteady: dict[str, str] = {}
        super().__init__(function, salt)

    def saved(self) -> SavedFunction:
        """Return the digests for graph state, with pieces only of values that calls change."""
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
        """Record in `unsteady` the values that the call that has just ended changed in place.

        A value that changes with each call, such as a counter, does not tell what a call is about.
        """
        if not (self.parts or self.shown):
            return
        after = Reading(self.function, self.salt, before=self)
        changed = [name for name, each in self.shown.items() if after.shown.get(name) != each]
        same = {
            name
            for name, part in self.parts.items()
            if name in after.parts and after.parts[name].digest == part.digest
        }
        for name, part in self.parts.items():
            now = after.parts.get(name)
            if not same.isdisjoint(self._around(name)):
                continue
            if part.digest and part.piece_of and now is None:
                self.unsteady[part.piece_of] = "used"
            elif part.digest and (now is None or now.digest != part.digest):
                changed.append(name)
        for name in changed:
            self.unsteady.setdefault(name, "changed")

    def like(self, other: Captured) -> Likeness:
        """Compare this function with the function of an equal call in this run."""
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
        """Compare this function with that of a saved call; "changed" if no function was saved."""
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
            # If the file is unchanged, different code is a different function. If the file has
            # changed, the code may have been edited.
            if saved["source"] == self.source:
                return Compared("other" if self.source else "unknown", [])
            likeness = "changed"
        return Compared(likeness, sorted(names.get(likeness, [])))

    def _judged(self, name: str, saved: SavedFunction) -> Likeness:
        """Return the result for a part that differs from the saved part, or cannot be read."""
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
        """Yield the names of the values that contain a part, from the innermost outwards."""
        while name := self.parts[name].piece_of:
            yield name

    def _may_change(self, name: str, saved: SavedFunction) -> bool:
        """Return whether a part belongs to, or is, an object that the saved call also held."""
        places = (name, self.parts[name].state_of) if name in self.parts else ()
        before = saved["objects"]
        return any(each in before and before[each] == self.objects.get(each) for each in places)

    def steady(self, saved: SavedFunction | None) -> Any:
        """Return a saved function's digests of its code and of the values that no call changes."""
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
        """Take over the records of a saved call; return the names of parts of exchanged clients.

        A saved part without a digest counts as changed, because earlier versions of this library
        saved changing parts in this way.
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
