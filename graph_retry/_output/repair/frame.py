"""One open container: what was read of it, and which single edits may explain that it broke."""

import re
from dataclasses import dataclass, field
from typing import Any

from graph_retry._output.repair.report import Edit, Unreadable
from graph_retry._output.repair.scan import ELLIPSIS

_HOLLOW = re.compile(r"(?:\{\s*\}|\[\s*\])[}\])\s]*\Z")
_SWAPPED = re.compile(r"[}\])][\"'][}\])]*\Z")
CLOSE = {"{": "}", "[": "]", "(": ")"}


@dataclass(slots=True)
class Frame:
    """Places in the text; `inner` is the last child, where it is a container of the same kind."""

    text: str
    start: int
    kind: str
    starts: list[int] = field(default_factory=list[int])
    first_comma: int = -1
    comma: int = -1
    value_at: int = -1
    end: int = -1
    inner: "Frame | None" = None

    def separate(self, comma: int) -> None:
        """Note that a member ended at a comma, written or supplied."""
        self.comma = comma
        self.first_comma = comma if self.first_comma < 0 else self.first_comma

    def unclosed(self) -> tuple[Edit, ...]:
        """Suggest that this container should have been closed after its last value.

        The other places that would do come along, so that a choice between them is noticed.
        """
        text, end, close = self.text, self.end, CLOSE[self.kind]
        # What is empty may be the remains of a value.
        hollow = _HOLLOW.search(text[max(end - 100, 0) : end])
        one_line = "\n" not in text[self.start : self.value_at]
        if end < 0 or self.kind == "(" or (hollow and (one_line or hollow[0][1:2].isspace())):
            return ()
        # On one line, a string that ends in a bracket may have changed places with it, and the
        # last digit of a number in the middle of the text may stand where it stood.
        bracket = _SWAPPED.search(text[max(end - 100, 0) : end])
        digit = text[end - 2 : end].isdigit() and text[end:].strip()
        if one_line and (bracket or digit or text[end - 1] == "."):
            return ()
        edits = [Edit(end, 0, close)]
        frame: Frame | None = self
        while frame and len(edits) < 8:
            if frame is not self and len(frame.starts) > 1 and not frame.aligned():
                edits += (Edit(frame.first_comma, 0, close), Edit(frame.comma, 0, close))
            if frame.kind in {"[", "("}:
                edits.append(Edit(frame.start, 1, ""))
            frame = frame.inner
        return tuple(edits)

    def unopened(self) -> tuple[Edit, ...]:
        """Suggest that the last value of this object began a list, which other values follow."""
        end = self.end
        doubtful = end < 0 or self.text[end - 1] == "]" or self.text[self.value_at] in "-+."
        return () if doubtful else (Edit(self.value_at, 0, "["),)

    def key_in_list(self) -> tuple[Edit, ...]:
        """Suggest what a colon after an element may mean: the element is a key."""
        early = (Edit(self.end - 1, 1, ""),) if self.text[self.end - 1] == "}" else ()
        return (*self.unclosed(), Edit(self.value_at, 0, "{"), Edit(self.start, 1, "{"), *early)

    def broken(self, at: int, char: str) -> Unreadable:
        """Say why this container cannot go on after its last value."""
        close = CLOSE[self.kind]
        if char == "":
            message = f"The text ends before `{close}`."
            return Unreadable("truncated", at, message, *self.unclosed())
        if ELLIPSIS.match(self.text, at):
            return Unreadable("elided", at, "Something was left out.")
        edits: tuple[Edit, ...] = ()
        if char in {"}", "]", ")"}:
            edits = (*self.unclosed(), Edit(at, 1, close))
        elif char == ":" and self.kind == "{":
            edits = (Edit(self.value_at, 0, "{"),)
        return Unreadable("syntax", at, f"`{char}` cannot stand after a value.", *edits)

    def aligned(self) -> bool:
        """Tell whether each member starts a line of its own, all indented alike and deeper."""
        line = self.text[self.text.rfind("\n", 0, self.start) + 1 : self.start + 1]
        outer = len(line) - len(line.lstrip(" \t"))
        first = column(self.text, self.starts[0])
        return first > outer and all(column(self.text, start) == first for start in self.starts)


def column(text: str, position: int) -> int:
    """Return how far `position` is indented, or -1 where it does not start a line."""
    line = text.rfind("\n", 0, position) + 1
    return position - line if line and not text[line:position].strip(" \t") else -1


def shifted(value: Any) -> bool:
    """Tell whether some closing brace inside `value` could be left out instead of the last one."""
    while isinstance(value, dict) and value:
        members: list[Any] = list(value.values())  # pyright: ignore[reportUnknownArgumentType]
        if any(member and isinstance(member, dict) for member in members[:-1]):
            return True
        value = members[-1]
    return False
