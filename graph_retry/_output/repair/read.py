"""The tolerant reader: one pass over one document, from its opening bracket to its closing one."""

from typing import Any

from graph_retry._output.repair.comments import refuse_only_comments, skip
from graph_retry._output.repair.frame import CLOSE, Frame, spare_brace
from graph_retry._output.repair.gaps import (
    ONE_NUMBER,
    brace_may_be_text,
    check_element_ahead,
    comma_is_doubtful,
    goes_on,
    may_be_one,
    refuse_absence,
    refuse_moved_comma,
    refuse_prose,
    second_comma_is_doubtful,
)
from graph_retry._output.repair.keys import HALF_QUOTED_KEY, KeyReader
from graph_retry._output.repair.report import Edit, Notes, Unreadable, refuse_if
from graph_retry._output.repair.scalars import number, read_emphasized, read_scalar
from graph_retry._output.repair.scan import (
    KEY_AHEAD,
    MARKDOWN,
    MAX_DEPTH,
    STRICT_COMMA,
    STRICT_KEY,
    STRICT_SCALAR,
    STRICT_START,
    Role,
    char_at,
    same,
    strict_part,
)
from graph_retry._output.repair.strings import CLOSERS, StringReader

_LITERALS = {"true": True, "false": False, "null": None}
_COMMA_OR_OTHER = "A comma is missing here, or something else is wrong."


class Reader:
    """Reads one document of `text`.

    In a `trial`, the text was edited already, and nothing else may be repaired by judgement.
    With `all_edits`, an error lists every edit that may explain it; this takes longer.

    A container is read by three methods that call one another, `_object` or `_array`, `_member` and
    `_value`: with more of them, Python's limit of recursion would come before `MAX_DEPTH`.
    """

    def __init__(self, text: str, *, trial: bool = False, all_edits: bool = False) -> None:
        self.text, self.trial, self.notes = text, trial, Notes()
        self._strings = StringReader(text, self.notes, trial=trial)
        self._keys = KeyReader(text, self.notes, self._strings, trial=trial)
        self._double_braces: bool | None = None  # whether the first object opens with two
        # How many characters the standard library may still read in vain: time stays linear.
        self._allowance = 0 if all_edits else 2 * len(text) + 1000
        self.took_short_cut = False  # whether it read any part

    def read(self, start: int) -> tuple[Any, int]:
        """Read the object or array that opens at `start`; return it and where it ends."""
        start = skip(self.text, start, self.notes)
        bracket = char_at(self.text, start)
        refuse_if(bracket not in {"{", "["}, "syntax", start, "No object or array begins here.")
        frame = Frame(self.text, start, bracket, depth=1)
        value, end = self._object(frame) if bracket == "{" else self._array(frame)
        refuse_moved_comma(self.notes, self.text, start, end)
        return value, end

    def _object(self, frame: Frame) -> tuple[dict[str, Any], int]:
        """Read the object that `frame` opens; return it and where it ends."""
        text = self.text
        members: dict[str, Any] = {}
        is_doubled = self._opens_with_two_braces(frame)
        position = skip(text, frame.start + 1 + is_doubled, self.notes)
        while True:
            if strict_key := STRICT_KEY.match(text, position):
                key, value_start = strict_key["key"], strict_key.end()
                frame.starts.append(position)
            elif (char := char_at(text, position)) == "}":
                break
            # Behind the brace of an inner object, the comma may have changed places with it.
            elif char == "," and not self.trial and (frame.depth == 1 or frame.comma >= 0):
                position = self._skip_extra_comma(frame, position)
                continue
            else:
                frame.starts.append(position)
                key, key_end = self._keys.read(frame, position)
                value_start = self._keys.read_colon(frame, key_end)
            value, position = self._member(frame, value_start)
            # `{name: name}` stands for the value of a variable.
            if value == key and text[value_start : frame.end] == key:
                raise Unreadable("syntax", value_start, f"`{key[:40]}` looks like a variable.")
            if key in members:
                message = f"Two values for the key `{key[:40]}`."
                refuse_if(not same(members[key], value), "ambiguous", value_start, message)
                self.notes.add("duplicate_key", value_start, f"the key `{key[:40]}` twice alike")
            members[key] = value
            if frame.comma >= frame.end:  # the member ended with a comma
                continue
            if (char := char_at(text, position)) == "}":
                break
            if not KEY_AHEAD.match(text, position) and not HALF_QUOTED_KEY.match(text, position):
                raise frame.broken(position, char)
            self._supply_comma(frame, position)
        self._check_end(frame, position)
        return members, self._past_braces(frame, position) if is_doubled else position + 1

    def _opens_with_two_braces(self, frame: Frame) -> bool:
        """Tell whether an object opens with `{{`, as in templates, where braces are doubled.

        Only where the first object does may others do so.
        """
        text, start = self.text, frame.start
        is_doubled = text.startswith("{", start + 1)
        if self._double_braces is None:
            self._double_braces = is_doubled
        if is_doubled and not self._double_braces:
            # `{"a": {{"b": 1}}`: a brace is too much, or stands for a bracket.
            is_text = brace_may_be_text(text, start + 1)
            edits = () if is_text else (Edit(start, 1, ""), Edit(start, 1, "["))
            raise Unreadable("syntax", start, "A key should stand here.", *edits)
        return is_doubled

    def _past_braces(self, frame: Frame, position: int) -> int:
        """Return where an object that opened with `{{` ends; `position` is its closing brace."""
        text = self.text
        if text.startswith("}", position + 1):
            self.notes.add("doubled_braces", frame.start, "braces written twice")
            return position + 2
        # `{{"a": {}}`: the second brace may stand for a value.
        is_text = brace_may_be_text(text, frame.start + 1) or text[position - 2 : position] == "{}"
        is_other = is_text or self.notes.count("doubled_braces")
        is_doubtful = self.trial or not frame.starts or is_other
        refuse_if(is_doubtful, "syntax", position, "Brackets do not pair up.")
        self.notes.add("extra_opener", frame.start, "one brace too many left out", "assumed")
        return position + 1

    def _skip_extra_comma(self, frame: Frame, comma: int) -> int:
        """Leave out a comma where a key should stand; return where to go on."""
        text, after = self.text, skip(self.text, comma + 1, self.notes)
        is_alone = not frame.starts and char_at(text, after) == "}"
        refuse_if(is_alone, "elided", comma, "Nothing stands beside the comma.")
        is_doubtful = second_comma_is_doubtful(text, frame.end, after)
        refuse_if(is_doubtful, "ambiguous", comma, "The comma may belong to what is beside it.")
        self.notes.add("extra_comma", comma, "a comma too many left out")
        return after

    def _array(self, frame: Frame) -> tuple[Any, int]:
        """Read the array or tuple that `frame` opens; return it and where it ends."""
        text, close = self.text, CLOSE[frame.kind]
        elements: list[Any] = []
        supplied_commas = doubtful_commas = 0
        after_supplied_comma = False  # and on the same line
        position = skip(text, frame.start + 1, self.notes)
        while char_at(text, position) != close:
            frame.starts.append(position)
            previous_inner, previous_end = frame.inner, frame.end
            element, position = self._member(frame, position)
            # `[1 1, 2]`: the second one may be a slip.
            if after_supplied_comma and not isinstance(element, (dict, list)):
                is_twice = same(element, elements[-1])
                refuse_if(is_twice, "ambiguous", frame.value_at, "A value is there twice in a row.")
            if isinstance(element, str):
                refuse_prose(frame, element, elements)
            elements.append(element)
            after_supplied_comma = False
            if frame.comma >= frame.end:  # the element ended with a comma
                continue
            if (char := char_at(text, position)) == close:
                break
            if isinstance(element, str) and char in {":", "="}:
                frame.inner, frame.end = previous_inner, previous_end
                # A bracket of the key may have stood before it, or last commas hide one too many.
                is_hidden = element[:1] in {"{", "["} or self.notes.count("trailing_comma")
                is_unclear = is_hidden or (len(elements) > 1 and spare_brace(elements[-2]))
                edits = () if is_unclear else frame.key_in_list()
                raise Unreadable("syntax", position, "A key in a list.", *edits)
            check_element_ahead(frame, position)
            supplied_commas += 1
            doubtful_commas += may_be_one(frame, position)
            after_supplied_comma = "\n" not in text[frame.end : position]
            self._supply_comma(frame, position)
        self._check_end(frame, position)
        # `[1 2, 3]`: where a single comma was supplied, and between numbers, it may be a space too
        # many. The layout tells that it is not.
        is_lone = supplied_commas == doubtful_commas == 1 and not frame.aligned()
        refuse_if(is_lone, "ambiguous", frame.start, ONE_NUMBER)
        value = self._tuple(frame, elements) if frame.kind == "(" else elements
        return value, position + 1

    def _tuple(self, frame: Frame, elements: list[Any]) -> Any:
        """Return what stands in parentheses: a tuple of Python as a list, or a single value."""
        refuse_if(self.trial, "syntax", frame.start, "A parenthesis for a bracket.")
        if len(elements) == 1 and frame.comma < 0:
            self.notes.add("parentheses", frame.start, "parentheses around a value left out")
            return elements[0]
        self.notes.add("tuple", frame.start, "tuple read as a list")
        return elements

    def _member(self, frame: Frame, start: int) -> tuple[Any, int]:
        """Read one value into `frame`, with the comma after it; return where to go on."""
        text = self.text
        frame.value_at, frame.inner = start, None
        if scalar := STRICT_SCALAR.match(text, start):
            string, literal, _, comma = scalar.groups()
            frame.end = scalar.start("end")
            if comma:
                frame.separate(scalar.start("comma"))
            if string is not None:
                return string, scalar.end()
            if literal:
                return _LITERALS[literal], scalar.end()
            return number(text[start : frame.end], start, self.notes), scalar.end()
        value, frame.end = self._value(frame, start)
        if comma := STRICT_COMMA.match(text, frame.end):
            frame.separate(comma.start("comma"))
            return value, comma.end()
        if text[frame.end : frame.end + 1] in {"}", "]"}:
            return value, frame.end
        position = skip(text, frame.end, self.notes)
        while isinstance(value, str) and not self.trial and goes_on(frame, position, self.notes):
            self.notes.add("concatenation", position, "adjacent strings joined")
            part, frame.end = self._string(position, frame.role)
            value, position = value + part, skip(text, frame.end, self.notes)
        if char_at(text, position) != ",":
            return value, position
        frame.separate(position)
        position = skip(text, position + 1, self.notes)
        refuse_absence(text, position, "value")
        return value, position

    def _value(self, frame: Frame, start: int) -> tuple[Any, int]:
        """Read the value at `start`, a member of `frame`; return it and where it ends."""
        text, char = self.text, char_at(self.text, start)
        if char in CLOSE:
            if frame.depth >= MAX_DEPTH:
                raise Unreadable("too_deep", start, "Nested too deeply.")
            if part := self._strict_part(start):
                return part
            inner = Frame(text, start, char, frame.depth + 1)
            value, end = self._object(inner) if char == "{" else self._array(inner)
            frame.inner = inner if inner.kind == frame.kind else None
            return value, end
        if char in CLOSERS:
            return self._string(start, frame.role)
        if emphasized := MARKDOWN.match(text, start):
            return read_emphasized(emphasized, self.notes)
        if self._strings.has_python_prefix(start):
            return self._string(start + 1, frame.role)
        if char in {",", "}", "]", ")"}:
            raise Unreadable("elided", start, f"No value before `{char}`.")
        refuse_absence(text, start, "value")
        return read_scalar(text, start, frame.role, self.notes, self.trial)

    def _strict_part(self, start: int) -> tuple[Any, int] | None:
        """Read an object or array that is strict JSON in itself; `None` for any other."""
        if self._allowance <= 0 or not STRICT_START.match(self.text, start):
            return None
        try:
            part = strict_part(self.text, start)
        except (ValueError, RecursionError) as error:
            # Even the smallest failure costs.
            self._allowance -= getattr(error, "pos", len(self.text) - start) + 300
            return None
        self.took_short_cut = True
        return part

    def _string(self, start: int, role: Role) -> tuple[str, int]:
        """Read a string, with what `+` adds to it."""
        text = self.text
        value, end = self._strings.read(start, role)
        position = end if text[end : end + 1] in {",", "}", "]"} else skip(text, end, self.notes)
        while text[position : position + 1] == "+":
            part_start = skip(text, position + 1, self.notes)
            is_string = text[part_start : part_start + 1] in CLOSERS
            refuse_if(not is_string, "syntax", part_start, "Only strings can be added here.")
            # In a list the `+` may stand in the place of a comma, unless a line breaks behind it.
            at_line_break = position > end and "\n" in text[position:part_start]
            is_doubtful = role != "member" and not at_line_break
            refuse_if(is_doubtful, "ambiguous", position, _COMMA_OR_OTHER)
            self.notes.add("concatenation", position, "strings joined by `+`")
            part, end = self._strings.read(part_start, role)
            value, position = value + part, skip(text, end, self.notes)
        return value, end

    def _check_end(self, frame: Frame, position: int) -> None:
        """Note a comma before the closing bracket; refuse what only comments fill."""
        if not frame.starts:
            refuse_only_comments(self.text, frame.start, position)
        elif frame.comma >= frame.end:
            self.notes.add("trailing_comma", frame.comma, "comma before a closing bracket")

    def _supply_comma(self, frame: Frame, position: int) -> None:
        # Behind a line break too many, the rest of a comment looks like a value: `1 // see \n"a"`.
        has_parts = self.notes.count("comment", "concatenation")
        is_doubtful = self.trial or has_parts or comma_is_doubtful(frame, position)
        refuse_if(is_doubtful, "ambiguous", position, _COMMA_OR_OTHER)
        self.notes.add("missing_comma", frame.end, "comma supplied")
        frame.separate(frame.end)
