"""The tolerant reader: one pass over one document, from its opening bracket to its closing one."""

import re
from typing import Any

from graph_retry._output.repair.comments import refuse_only_comments, skip
from graph_retry._output.repair.frame import CLOSE, Frame, spare_brace
from graph_retry._output.repair.gaps import (
    COLON,
    VALUE_AHEAD,
    colon_is_doubtful,
    comma_is_doubtful,
    goes_on,
    is_grouped_number,
    may_be_one,
    refuse_absence,
    second_colon_is_doubtful,
    second_comma_is_doubtful,
)
from graph_retry._output.repair.report import Edit, Notes, Unreadable, refuse_if
from graph_retry._output.repair.scalars import number, read_emphasized, read_scalar
from graph_retry._output.repair.scan import (
    BARE_KEY,
    KEY_AHEAD,
    MARKDOWN,
    MAX_DEPTH,
    QUOTED_KEY,
    STRICT_COMMA,
    STRICT_KEY,
    STRICT_PART,
    STRICT_SCALAR,
    Role,
    char_at,
    same,
    strict_part,
)
from graph_retry._output.repair.strings import CLOSERS, StringReader

_LITERAL = {"true": True, "false": False, "null": None}
_BARE_KEY = re.compile(r"[\w$][\w$.\- ]*?(?=\s*+(?:[:：＝=]))")
_HALF_KEY = re.compile(r"[^\W\d][\w$.\- ]*[\"”'](?=\s*[:：])")
_EITHER = "A comma is missing here, or something else is wrong."
_ONE_NUMBER = "One number with a space in it, or two numbers."
_PREFIX = re.compile(r"[uU][\"']")  # of a string in Python 2


class Reader:
    """Reads one document of `text`.

    In a `trial`, the text was edited already, and nothing else may be repaired by judgement.
    With `all_edits`, an error lists every edit that may explain it; this takes longer.
    """

    def __init__(self, text: str, *, trial: bool = False, all_edits: bool = False) -> None:
        self.text, self.trial, self.notes = text, trial, Notes()
        self._strings = StringReader(text, self.notes, trial=trial)
        self._closed: dict[str, Frame] = {}  # the container read last, by its kind
        self._double_braces: bool | None = None
        # How many characters the standard library may still read in vain: time stays linear.
        self._allowance = 0 if all_edits else 2 * len(text) + 1000

    def read(self, start: int) -> tuple[Any, int]:
        """Read the object or array that opens at `start`; return it and where it ends."""
        start = self._skip(start)
        container = char_at(self.text, start) in {"{", "["}
        refuse_if(not container, "syntax", start, "No object or array begins here.")
        value, end = self._value(start, "element", 0)
        count = self.notes.count
        moved = count("missing_comma") == 1 == count("trailing_comma", "extra_comma")
        refuse_if(moved, "ambiguous", start, "A comma is missing, and another one is too many.")
        return value, end

    def _skip(self, position: int) -> int:
        return skip(self.text, position, self.notes)

    def _value(self, start: int, role: Role, depth: int) -> tuple[Any, int]:
        text, char = self.text, char_at(self.text, start)
        if char in CLOSE:
            refuse_if(depth >= MAX_DEPTH, "too_deep", start, "Nested too deeply.")
            quick = depth and self._allowance > 0 and STRICT_PART.match(text, start)
            if quick and (part := self._strict_part(start)):
                return part
            frame = Frame(text, start, char)
            read = self._object if char == "{" else self._array
            value, end = read(frame, depth + 1)
            self._closed = {char: frame}
            return value, end
        if char in CLOSERS:
            return self._string(start, role)
        if mark := MARKDOWN.match(text, start):
            return read_emphasized(mark, self.notes)
        if _PREFIX.match(text, start):
            self.notes.add("python_prefix", start, "`u` before a string left out")
            return self._string(start + 1, role)
        refuse_if(char in {",", "}", "]", ")"}, "elided", start, f"No value before `{char}`.")
        refuse_absence(self.text, start, "value")
        return read_scalar(text, start, role, self.notes, self.trial)

    def _strict_part(self, start: int) -> tuple[Any, int] | None:
        """Read an object or array that is strict JSON in itself."""
        try:
            return strict_part(self.text, start)
        except (ValueError, RecursionError) as error:
            # Even the smallest failure costs.
            self._allowance -= getattr(error, "pos", len(self.text) - start) + 300
        return None

    def _string(self, start: int, role: Role) -> tuple[str, int]:
        """Read a string, with what `+` adds to it."""
        value, end = self._strings.read(start, role)
        after = self._skip(end) if self.text[end : end + 1] not in {",", "}", "]"} else end
        while self.text[after : after + 1] == "+":
            more = self._skip(after + 1)
            single = self.text[more : more + 1]
            refuse_if(single not in CLOSERS, "syntax", more, "Only strings can be added here.")
            # In a list the `+` may stand in the place of a comma.
            cut = role == "member" or (after > end and "\n" in self.text[end:more])
            refuse_if(not cut, "ambiguous", after, _EITHER)
            self.notes.add("concatenation", after, "strings joined by `+`")
            part, end = self._strings.read(more, role)
            value, after = value + part, self._skip(end)
        return value, end

    def _member(self, frame: Frame, at: int, role: Role, depth: int) -> tuple[Any, int]:
        """Read one value into `frame`, with the comma after it; return where to go on."""
        frame.value_at = at
        if match := STRICT_SCALAR.match(self.text, at):
            frame.inner, frame.end = None, match.start(3)
            if match[4]:
                frame.separate(match.start(4))
            if match[1] is not None:
                return match[1], match.end()
            word = self.text[at : frame.end]
            return _LITERAL[word] if match[2] else number(word, at, self.notes), match.end()
        self._closed.clear()
        value, frame.end = self._value(at, role, depth)
        frame.inner = self._closed.get(frame.kind)
        if match := STRICT_COMMA.match(self.text, frame.end):
            frame.separate(match.start(1))
            return value, match.end()
        at = self._skip(frame.end)
        while isinstance(value, str) and not self.trial and goes_on(frame, at):
            self.notes.add("concatenation", at, "adjacent strings joined")
            part, frame.end = self._string(at, role)
            value, at = value + part, self._skip(frame.end)
        if char_at(self.text, at) != ",":
            return value, at
        frame.separate(at)
        at = self._skip(at + 1)
        refuse_absence(self.text, at, "value")
        return value, at

    def _object(self, frame: Frame, depth: int) -> tuple[dict[str, Any], int]:
        text, notes = self.text, self.notes
        result: dict[str, Any] = {}
        doubled = text.startswith("{", frame.start + 1)
        self._double_braces = doubled if self._double_braces is None else self._double_braces
        if doubled and not self._double_braces:
            bare = text[frame.start + 2 : frame.start + 3].isalnum()
            edits = () if bare else (Edit(frame.start, 1, ""), Edit(frame.start, 1, "["))
            raise Unreadable("syntax", frame.start, "A key should stand here.", *edits)
        at = self._skip(frame.start + 1 + doubled)
        while (char := char_at(text, at)) != "}":
            if char == "," and not self.trial and (depth == 1 or frame.comma >= 0):
                after = self._skip(at + 1)
                nothing = not result and char_at(text, after) == "}"
                refuse_if(nothing, "elided", at, "Nothing stands beside the comma.")
                doubtful = second_comma_is_doubtful(text, frame.end, after)
                refuse_if(doubtful, "ambiguous", at, "The comma may belong to what is beside it.")
                notes.add("extra_comma", at, "a comma too many left out")
                at = after
                continue
            frame.starts.append(at)
            if match := STRICT_KEY.match(text, at):
                key, place = match[1], match.end()
            else:
                key, at = self._key(frame, at)
                place = self._colon(frame, at)
            value, at = self._member(frame, place, "member", depth)
            name = isinstance(value, str) and text[frame.value_at : frame.end] == key
            refuse_if(name, "syntax", frame.value_at, f"`{key[:40]}` looks like a variable.")
            if key in result:
                differs = not same(result[key], value)
                refuse_if(differs, "ambiguous", place, f"Two values for the key `{key[:40]}`.")
                notes.add("duplicate_key", place, f"the key `{key[:40]}` given twice alike")
            result[key] = value
            if frame.comma >= frame.end:
                continue
            if (char := char_at(text, at)) == "}":
                break
            if not KEY_AHEAD.match(text, at) and not _HALF_KEY.match(text, at):
                raise frame.broken(at, char)
            self._supply_comma(frame, at)
        self._check_end(frame, at)
        if not doubled:
            return result, at + 1
        if text.startswith("}", at + 1):
            notes.add("doubled_braces", frame.start, "braces written twice")
            return result, at + 2
        bare = text[frame.starts[0]].isalnum() if frame.starts else True
        refuse_if(self.trial or bare, "syntax", at, "Brackets do not pair up.")
        notes.add("extra_opener", frame.start, "one brace too many left out", "assumed")
        return result, at + 1

    def _key(self, frame: Frame, at: int) -> tuple[str, int]:
        text, char = self.text, char_at(self.text, at)
        if char in CLOSERS or _PREFIX.match(text, at):
            return self._strings.read(at + (char not in CLOSERS), "key")
        if (mark := MARKDOWN.match(text, at)) and mark[2][0] == '"':
            return read_emphasized(mark, self.notes)
        if (match := _BARE_KEY.match(text, at)) and " " not in match[0]:
            python = match[0] in {"None", "True", "False"}
            refuse_if(python, "ambiguous", at, f"JSON spells the key `{match[0]}` differently.")
            self.notes.add("unquoted_key", at, "key without quotes")
            return match[0], match.end()
        refuse_absence(self.text, at, "key")
        edits: tuple[Edit, ...] = frame.unopened()
        if match := _HALF_KEY.match(text, at):
            # Among keys without quotes, the quote may stand in the place of a letter.
            lost = QUOTED_KEY.search(text) and not BARE_KEY.search(text)
            edits = (Edit(at, 0, match[0][-1]),) if lost else ()
        elif char in {"{", "]"}:
            # So may the bracket.
            bare = text[at + 1 : at + 9].lstrip()[:1].isalnum()
            closed = frame.unclosed()
            edits = (*closed, Edit(at, 1, "")) if closed and not bare else ()
        raise Unreadable("syntax", at, "A key should stand here.", *edits)

    def _colon(self, frame: Frame, at: int) -> int:
        text, at = self.text, self._skip(at)
        if match := COLON.match(text, at):
            swapped = match[0] in {"::", ":="} and second_colon_is_doubtful(text, at, match.end())
            refuse_if(swapped, "ambiguous", at, "The colon may belong to what is beside it.")
            if match[0] != ":":
                self.notes.add("colon", at, f"`{match[0]}` for `:`")
            place = self._skip(match.end())
            comment = "#" in text[match.end() : place].partition("\n")[0]
            refuse_if(comment, "syntax", at, "A value should stand here, not a comment.")
            return place
        refuse_absence(self.text, at, "colon")
        doubtful = self.trial or colon_is_doubtful(text, at)
        if not doubtful and VALUE_AHEAD.match(text, at):
            self.notes.add("colon", at, "colon supplied after a key")
            return at
        raise Unreadable("syntax", at, "A colon should follow the key.", *frame.unopened())

    def _array(self, frame: Frame, depth: int) -> tuple[Any, int]:
        text, close = self.text, CLOSE[frame.kind]
        result: list[Any] = []
        supplied, commas, doubts = False, 0, 0
        at = self._skip(frame.start + 1)
        while char_at(text, at) != close:
            frame.starts.append(at)
            before = frame.inner, frame.end
            value, at = self._member(frame, at, "element", depth)
            twice = supplied and not isinstance(value, (dict, list)) and same(value, result[-1])
            refuse_if(twice, "ambiguous", frame.value_at, "A value is there twice in a row.")
            result.append(value)
            supplied = False
            if frame.comma >= frame.end:
                continue
            if (char := char_at(text, at)) == close:
                break
            if isinstance(value, str) and char in {":", "="}:
                frame.inner, frame.end = before
                # A bracket inside the key may have stood before it.
                unclear = value[:1] in {"{", "["} or (len(result) > 1 and spare_brace(result[-2]))
                edits = () if unclear else frame.key_in_list()
                raise Unreadable("syntax", at, "A key in a list.", *edits)
            gap = text[frame.end : at]
            refuse_if(is_grouped_number(frame, at), "ambiguous", at, _ONE_NUMBER)
            apart = gap or (text[frame.end - 1] in "]}" and char in {"[", "{"})
            if not char or not apart or not VALUE_AHEAD.match(text, at):
                raise frame.broken(at, char)
            supplied = "\n" not in gap
            doubts += may_be_one(frame, at)
            commas += 1
            self._supply_comma(frame, at)
        self._check_end(frame, at)
        lone = doubts == commas == 1 and not frame.aligned()
        refuse_if(lone, "ambiguous", frame.start, _ONE_NUMBER)
        if frame.kind == "(":
            refuse_if(self.trial, "syntax", frame.start, "A parenthesis for a bracket.")
            if len(result) == 1 and frame.comma < 0:
                self.notes.add("parentheses", frame.start, "parentheses around a value left out")
                return result[0], at + 1
            self.notes.add("tuple", frame.start, "tuple read as a list")
        return result, at + 1

    def _check_end(self, frame: Frame, at: int) -> None:
        if frame.end < 0:
            refuse_only_comments(self.text, frame.start, at)
        elif frame.end <= frame.comma:
            self.notes.add("trailing_comma", frame.comma, "comma before a closing bracket")

    def _supply_comma(self, frame: Frame, at: int) -> None:
        doubtful = self.trial or comma_is_doubtful(frame, at)
        refuse_if(doubtful, "ambiguous", at, _EITHER)
        self.notes.add("missing_comma", frame.end, "comma supplied")
        frame.separate(frame.end)
