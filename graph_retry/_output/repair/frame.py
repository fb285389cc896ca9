"""One open container: what was read of it, and which single edits may explain that it broke."""

import re
from dataclasses import dataclass, field
from typing import Any

from graph_retry._output.repair.report import Edit, Unreadable
from graph_retry._output.repair.scan import ELLIPSIS, Role

# An empty container at the end of what was read, and what closes others: `{}`, `[ ]}`, `{} # x\n}`.
_EMPTY_AT_END = re.compile(r"(?:\{\s*\}|\[\s*\])(?:[}\])\s]|(?://|#)[^\n]*\n|/\*[^*]*\*/)*+\Z")
# A string with a bracket directly before its last quote: `"x]"`, `"x}"}`.
_BRACKET_IN_STRING = re.compile(r"(?<![^\"'\\])(?P<string>(?:[^\"'\\]|\\.)*[}\])])[\"'][\s}\])]*\Z")
_CLOSING = frozenset("}])")
CLOSE = {"{": "}", "[": "]", "(": ")"}


@dataclass(slots=True)
class Frame:
    """An object, list or tuple while it is read. Positions are offsets in `text`, -1 for none.

    `start` is where its opening bracket stands, and `kind` is that bracket; the outermost container
    has the `depth` 1; `starts` is where each of its members begins. Of the last member there is
    where its value begins (`value_at`), where it ends (`end`), and, if it is a container of the
    same kind, its own frame (`inner`).
    """

    text: str
    start: int
    kind: str
    depth: int
    starts: list[int] = field(default_factory=list[int])
    first_comma: int = -1
    comma: int = -1
    value_at: int = -1
    end: int = -1
    inner: "Frame | None" = None

    @property
    def role(self) -> Role:
        """What a value is in this container."""
        return "member" if self.kind == "{" else "element"

    def separate(self, comma: int) -> None:
        """Note that a member ended at a comma, written or supplied."""
        self.comma = comma
        self.first_comma = comma if self.first_comma < 0 else self.first_comma

    def unclosed(self) -> tuple[Edit, ...]:
        """Suggest that this container should have been closed after its last value.

        The other places that would do come along, so that a choice between them is noticed.
        """
        if not self._may_end():
            return ()
        text, close = self.text, CLOSE[self.kind]
        edits = [Edit(self.end, 0, close)]
        frame: Frame | None = self
        while frame and len(edits) < 8:
            # `[1, [.5]}`: the bracket before the point may stand for a digit.
            if text.startswith(".", frame.start + 1):
                return ()
            # `{"a": {"b": 1, "c": 2, "d": 3}`: the inner object may end at any of its commas, of
            # which two are enough for a choice. Its layout tells that it does not.
            if frame is not self and len(frame.starts) > 1 and not frame.aligned():
                edits += (Edit(frame.first_comma, 0, close), Edit(frame.comma, 0, close))
            # `{"a": [1}`: the opening bracket may be too much.
            if frame.kind in {"[", "("}:
                edits.append(Edit(frame.start, 1, ""))
            frame = frame.inner
        return tuple(edits)

    def _may_end(self) -> bool:
        """Tell whether nothing but a closing bracket can be missing after the last value."""
        text, end = self.text, self.end
        if end < 0 or self.kind == "(":
            return False
        one_line = "\n" not in text[self.start : min(self.value_at, end)]
        before = text[max(end - 100, 0) : end]
        # `[1, []`: what is empty may be the remains of a value.
        empty = before[-1] in _CLOSING and _EMPTY_AT_END.search(before)
        start = end - len(empty[0]) if empty else end
        # `{a: {}` and a brace on the next line: no layout has them so.
        line_before = text[self.start + 1 : start].rpartition("\n")[2]
        on_its_line = "\n" in text[start:] and self.aligned() and "{" not in line_before
        if empty and (one_line or empty[0][1:2].isspace() or not on_its_line):
            return False
        # `["x]"`: the bracket at the end of the string may have changed places with the quote.
        swapped = _BRACKET_IN_STRING.search(before)
        if not one_line and "\n" in text[end:]:
            return not (swapped and _is_unpaired(swapped["string"]))
        # `{"a": [1, 25, "b": 3}`: the last digit may stand in the place of the bracket. At the end
        # of the text it does not: there the bracket was cut off.
        overwritten = text[end - 2 : end].isdigit() and text[end:].strip()
        # `{"a": {"b": 12.}`: so may the point.
        return not (swapped or overwritten or before.rstrip("}]")[-1:] == ".")

    def unopened(self) -> tuple[Edit, ...]:
        """Suggest that the last value began a list: `{"a": 1, 2], "b": 3}` lacks a bracket."""
        if self.end < 0:
            return ()
        # A list already, or a number whose sign or point may stand in the place of the bracket.
        doubtful = self.text[self.end - 1] == "]" or self.text[self.value_at] in "-+."
        return () if doubtful else (Edit(self.value_at, 0, "["),)

    def key_in_list(self) -> tuple[Edit, ...]:
        """Suggest what a colon after an element may mean: the element is a key.

        The list should have ended before it, an object began at it, the list is an object, or, in
        `[{"a": 1}, "b": 2}]`, the object before it ended too early.
        """
        ended_early = (Edit(self.end - 1, 1, ""),) if self.text[self.end - 1] == "}" else ()
        object_here = Edit(self.value_at, 0, "{")
        object_from_start = Edit(self.start, 1, "{")
        return (*self.unclosed(), object_here, object_from_start, *ended_early)

    def broken(self, position: int, char: str) -> Unreadable:
        """Say why this container cannot go on with `char` after its last value."""
        close = CLOSE[self.kind]
        if char == "":
            message = f"The text ends before `{close}`."
            return Unreadable("truncated", position, message, *self.unclosed())
        if ELLIPSIS.match(self.text, position):
            return Unreadable("elided", position, "Something was left out.")
        edits: tuple[Edit, ...] = ()
        if char in {"}", "]", ")"}:
            # `[1, 2}`: a bracket is missing before this one, or this one is of the wrong kind.
            edits = (*self.unclosed(), Edit(position, 1, close))
            # `[{"a": 1}}`: where braces are written twice, the first bracket is the wrong one.
            is_lone = len(self.starts) == 1
            if (
                is_lone
                and self.text.startswith("[{", self.start)
                and self.text[position - 1 : position + 1] == "}}"
            ):
                edits = ()
        elif char == ":" and self.kind == "{":
            # `{"a": "b": 1}`: the value is the first key of an object.
            edits = (Edit(self.value_at, 0, "{"),)
        return Unreadable("syntax", position, f"`{char}` cannot stand after a value.", *edits)

    def aligned(self) -> bool:
        """Tell whether each member starts a line of its own, all indented alike and deeper."""
        line = self.text[self.text.rfind("\n", 0, self.start) + 1 : self.start + 1]
        outer = len(line) - len(line.lstrip(" \t"))
        first = column(self.text, self.starts[0])
        return first > outer and all(column(self.text, start) == first for start in self.starts)


def _is_unpaired(string: str) -> bool:
    """Tell whether the bracket at the end of `string` closes none in it."""
    opening = {"}": "{", "]": "[", ")": "("}[string[-1]]
    return string.count(opening) < string.count(string[-1])


def column(text: str, position: int) -> int:
    """Return how far `position` is indented, or -1 where it does not start a line."""
    line = text.rfind("\n", 0, position) + 1
    return position - line if line and not text[line:position].strip(" \t") else -1


def spare_brace(value: Any) -> bool:
    """Tell whether some closing brace inside `value` could be left out instead of the last one.

    In `{"a": {"b": 1}, "c": 2}}` it could: then `c` is a member of `a`.
    """
    while isinstance(value, dict) and value:
        members: list[Any] = list(value.values())  # pyright: ignore[reportUnknownArgumentType]
        if any(member and isinstance(member, dict) for member in members[:-1]):
            return True
        value = members[-1]
    return False
