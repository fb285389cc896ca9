"""The tolerant reader: one pass over one document, from its opening bracket to its closing one."""

import re
from typing import Any

from graph_retry.repair.frame import CLOSE, Frame
from graph_retry.repair.report import Edit, Notes, Unreadable
from graph_retry.repair.scalars import read_scalar
from graph_retry.repair.scan import ELLIPSIS, KEY_AHEAD, char_at, skip
from graph_retry.repair.strict import same
from graph_retry.repair.strings import CLOSERS, Slot, StringReader

MAX_DEPTH = 200
_BARE_KEY = re.compile(r"[\w$][\w$.\- ]*?(?=\s*+(?:[:：＝=]))")
_HALF_KEY = re.compile(r"[^\W\d][\w$.\- ]*[\"”'](?=\s*[:：])")
_COLON = re.compile(r"(?:=>|:=|->|[:：=＝])")
_VALUE_AHEAD = re.compile(
    r"[\"'“‘`\[{(\-\d]|(?:true|false|null|none|nan|infinity)\b", re.IGNORECASE
)
_GROUPED = re.compile(r"(?<!\d)[1-9]\d{0,2}[ \xa0]+\d{3}(?!\d)")


class Reader:
    """Reads one document of `text`.

    `careful` is the mode in which a single edit is being tried: nothing that takes a judgement
    of its own is accepted on top of it.
    """

    def __init__(self, text: str, *, careful: bool = False) -> None:
        self.text = text
        self.careful = careful
        self.notes = Notes()
        self._strings = StringReader(text, self.notes, careful=careful)
        self._closed: Frame | None = None
        self._loose_end = -1
        self._doubled: bool | None = None

    def read(self, start: int) -> tuple[Any, int]:
        """Read the object or array that opens at `start`; return it and where it ends."""
        return self._value(start, "element", 0)

    def _skip(self, position: int) -> int:
        return skip(self.text, position, self.notes)

    def _value(self, start: int, slot: Slot, depth: int) -> tuple[Any, int]:
        text = self.text
        char = char_at(text, start)
        if char in CLOSE:
            if depth >= MAX_DEPTH:
                raise Unreadable("too_deep", start, f"More than {MAX_DEPTH} levels of nesting.")
            if text[start] != char:
                self.notes.add("full_width", start, f"`{text[start]}` for `{char}`")
            frame = Frame(text, start, char)
            read = self._object if char == "{" else self._array
            value, end = read(frame, depth + 1)
            self._closed = frame
            return value, end
        if char in CLOSERS:
            return self._joined(start, slot)
        if char in {"u", "U"} and text[start + 1 : start + 2] in {'"', "'"}:
            self.notes.add("string_prefix", start, "string with a `u` prefix")
            return self._joined(start + 1, slot)
        if char == "":
            raise Unreadable("truncated", start, "The text ends where a value should stand.")
        if char in {",", "}", "]", ")"}:
            raise Unreadable("elided", start, f"A value is missing before `{char}`.")
        if char == "<" or ELLIPSIS.match(text, start):
            raise Unreadable("elided", start, "A placeholder stands in the place of data.")
        return read_scalar(text, start, slot, self.notes, careful=self.careful)

    def _member_value(self, frame: Frame, at: int, slot: Slot, depth: int) -> tuple[Any, int]:
        """Read one value into `frame`; return it and where the next token starts."""
        self._closed = None
        frame.value_at = at
        value, frame.end = self._value(at, slot, depth)
        child = self._closed
        frame.inner = child if child and child.kind == frame.kind else None
        at = self._skip(frame.end)
        while isinstance(value, str) and self._goes_on(frame, at, slot):
            self.notes.add("concatenation", at, "adjacent strings joined")
            part, frame.end = self._joined(at, slot)
            value += part
            at = self._skip(frame.end)
        return value, at

    def _joined(self, start: int, slot: Slot) -> tuple[str, int]:
        """Read a string, with what `+` adds to it."""
        value, end = self._strings.read(start, slot)
        after = self._skip(end) if self.text[end : end + 1] not in {",", "}", "]"} else end
        while self.text[after : after + 1] == "+":
            more = self._skip(after + 1)
            if self.text[more : more + 1] not in CLOSERS:
                raise Unreadable("syntax", more, "Something other than a string is added to one.")
            self.notes.add("concatenation", after, "strings joined by `+`")
            part, end = self._strings.read(more, slot)
            value += part
            after = self._skip(end)
        return value, end

    def _goes_on(self, frame: Frame, at: int, slot: Slot) -> bool:
        """Tell whether a string goes on in a next literal at `at`, as `pprint` writes long ones."""
        text, end = self.text, frame.end
        if self.careful or text[at : at + 1] not in {'"', "'"}:
            return False
        if frame.kind == "(":
            return True
        if "\n" not in text[end:at] or (slot == "member" and KEY_AHEAD.match(text, at)):
            return False
        if not (text[end - 2].isspace() or text[end - 3 : end - 1] == "\\n"):
            return False
        if slot == "element" and text[end - 1] == text[at] == '"':
            raise Unreadable("ambiguous", at, "One string in two parts, or a comma is missing.")
        return True

    def _object(self, frame: Frame, depth: int) -> tuple[dict[str, Any], int]:
        text, notes = self.text, self.notes
        result: dict[str, Any] = {}
        doubled = text.startswith("{", frame.start + 1)
        if self._doubled is None:
            self._doubled = doubled
        elif doubled and not self._doubled:
            edits = (Edit(frame.start, 1, ""), Edit(frame.start, 1, "["))
            raise Unreadable("syntax", frame.start, "A key should stand here.", edits)
        at = self._skip(frame.start + 1 + doubled)
        while True:
            char = char_at(text, at)
            if char == "}":
                if frame.starts:
                    self._loose(at, frame)
                return result, self._close_object(at, frame, doubled=doubled)
            if char == "," and not self.careful:
                notes.add("extra_comma", at, "a comma too many left out")
                at = self._skip(at + 1)
                continue
            frame.starts.append(at)
            key, at = self._key(frame, at)
            at = self._colon(frame, at)
            place = at
            value, at = self._member_value(frame, at, "member", depth)
            if key in result:
                if not same(result[key], value):
                    raise Unreadable("ambiguous", place, f"Two values for the key `{key[:40]}`.")
                notes.add("duplicate_key", place, f"the key `{key[:40]}` given twice alike")
            result[key] = value
            char = char_at(text, at)
            if char == ",":
                at = self._comma(frame, at)
            elif char == "}":
                return result, self._close_object(at, frame, doubled=doubled)
            elif KEY_AHEAD.match(text, at) or _HALF_KEY.match(text, at):
                self._supply_comma(frame, at)
            else:
                raise self._broken(frame, at, char)

    def _close_object(self, at: int, frame: Frame, *, doubled: bool) -> int:
        if not doubled:
            return at + 1
        if self.text.startswith("}", at + 1):
            self.notes.add("doubled_braces", frame.start, "braces written twice")
            return at + 2
        if self.careful:
            raise Unreadable("syntax", at, "Brackets do not pair up.")
        self.notes.add("extra_opener", frame.start, "one brace too many left out", "assumed")
        return at + 1

    def _key(self, frame: Frame, at: int) -> tuple[str, int]:
        text = self.text
        char = char_at(text, at)
        if char in CLOSERS:
            return self._strings.read(at, "key")
        if match := _BARE_KEY.match(text, at):
            self.notes.add("unquoted_key", at, "key without quotes")
            return match[0], match.end()
        if char == "":
            raise Unreadable("truncated", at, "The text ends where a key should stand.")
        if char == "<" or ELLIPSIS.match(text, at):
            raise Unreadable("elided", at, "A placeholder stands in the place of data.")
        edits: tuple[Edit, ...] = ()
        if match := _HALF_KEY.match(text, at):
            edits = (Edit(at, 0, match[0][-1]),)
        elif char in {"{", "]"}:
            edits = frame.unclosed()
            edits += (Edit(at, 1, ""),) if edits else ()
        else:
            edits = frame.unopened()
        raise Unreadable("syntax", at, "A key should stand here.", edits)

    def _colon(self, frame: Frame, at: int) -> int:
        text = self.text
        at = self._skip(at)
        if match := _COLON.match(text, at):
            if match[0] != ":":
                self.notes.add("colon", at, f"`{match[0]}` for `:`")
            place = match.end()
            at = self._skip(place)
            if text.startswith(":", at) and not self.careful:
                self.notes.add("colon", at, "a colon too many left out")
                at = self._skip(at + 1)
            if text.startswith("#", place) or "#" in text[place:at].partition("\n")[0]:
                raise Unreadable("syntax", place, "A value should stand here, not a comment.")
            return at
        if char_at(text, at) == "":
            raise Unreadable("truncated", at, "The text ends where a colon should stand.")
        if not self.careful and _VALUE_AHEAD.match(text, at):
            self.notes.add("colon", at, "colon supplied after a key")
            return at
        raise Unreadable("syntax", at, "A colon should follow the key.", frame.unopened())

    def _array(self, frame: Frame, depth: int) -> tuple[Any, int]:
        text, close = self.text, CLOSE[frame.kind]
        result: list[Any] = []
        supplied = False
        at = self._skip(frame.start + 1)
        while True:
            char = char_at(text, at)
            if char == close:
                if frame.starts:
                    self._loose(at, frame)
                break
            frame.starts.append(at)
            earlier, end_of_earlier = frame.inner, frame.end
            value, at = self._member_value(frame, at, "element", depth)
            if supplied and not isinstance(value, (dict, list)) and same(value, result[-1]):
                raise Unreadable("ambiguous", frame.value_at, "A value is there twice in a row.")
            result.append(value)
            supplied = False
            char = char_at(text, at)
            if char == ",":
                at = self._comma(frame, at)
            elif char == close:
                break
            elif isinstance(value, str) and char in {":", "="}:
                frame.end, frame.inner = end_of_earlier, earlier
                raise Unreadable("syntax", at, "A key in a list.", frame.key_in_list())
            elif char and _VALUE_AHEAD.match(text, at) and self._comma_missing(frame, at):
                supplied = "\n" not in text[frame.end : at]
                self._supply_comma(frame, at)
            else:
                raise self._broken(frame, at, char)
        if frame.kind == "(":
            if len(result) == 1 and frame.comma < 0:
                return result[0], at + 1
            self.notes.add("tuple", frame.start, "tuple read as a list")
        return result, at + 1

    def _comma_missing(self, frame: Frame, at: int) -> bool:
        """Tell whether an element may start at `at` without a comma; two readings are refused."""
        text, gap = self.text, self.text[frame.end : at]
        if _GROUPED.match(text, frame.value_at) and "\n" not in gap:
            raise Unreadable("ambiguous", at, "One number with a space in it, or two numbers.")
        return bool(gap) or (text[frame.end - 1] in "]}" and text[at] in "[{")

    def _supply_comma(self, frame: Frame, at: int) -> None:
        if frame.end == self._loose_end:
            raise Unreadable("ambiguous", at, "Commas and brackets are out of order.")
        self.notes.add("missing_comma", frame.end, "comma supplied")
        frame.separate(frame.end)

    def _comma(self, frame: Frame, at: int) -> int:
        if self.text[at] != ",":
            self.notes.add("full_width", at, f"`{self.text[at]}` for `,`")
        frame.separate(at)
        after = self._skip(at + 1)
        if char_at(self.text, after) == "":
            raise Unreadable("truncated", after, "The text ends after a comma.")
        return after

    def _loose(self, at: int, frame: Frame) -> None:
        self.notes.add("trailing_comma", frame.comma, "comma before a closing bracket")
        self._loose_end = at + 1

    def _broken(self, frame: Frame, at: int, char: str) -> Unreadable:
        """Say why a container cannot go on after a value."""
        if char == "":
            message = f"The text ends before `{CLOSE[frame.kind]}`."
            return Unreadable("truncated", at, message, frame.unclosed(), at_end=True)
        if ELLIPSIS.match(self.text, at):
            return Unreadable("elided", at, "Something was left out.")
        if char in {"}", "]", ")"}:
            message = f"`{char}` does not close `{frame.kind}`."
            return Unreadable("syntax", at, message, frame.wrongly_closed(at))
        edits = (Edit(frame.value_at, 0, "{"),) if char == ":" and frame.kind == "{" else ()
        return Unreadable("syntax", at, f"`{char}` cannot stand after a value.", edits)
