"""Keys of objects, and the colon between a key and its value."""

import re

from graph_retry._output.repair.comments import skip
from graph_retry._output.repair.frame import Frame
from graph_retry._output.repair.gaps import (
    COLON,
    VALUE_AHEAD,
    brace_may_be_text,
    colon_is_doubtful,
    refuse_absence,
    second_colon_is_doubtful,
)
from graph_retry._output.repair.report import Edit, Notes, Unreadable, refuse_if
from graph_retry._output.repair.scalars import read_emphasized
from graph_retry._output.repair.scan import BARE_KEY, MARKDOWN, QUOTED_KEY, char_at
from graph_retry._output.repair.strings import CLOSERS, StringReader

# A key that lost its opening quote: `age"` of `{age": 5}`.
HALF_QUOTED_KEY = re.compile(r"[^\W\d_][\w$.\- ]*[\"”'](?=\s*[:：])")
# No name begins with a digit: in `1,7qty: 2` the digit may belong to the number.
_UNQUOTED_KEY = re.compile(r"(?:\d+|(?!\d)[\w$](?:[\w$.\-]*?[\w$])??)(?=\s*+[:：＝=])")


class KeyReader:
    """Reads the keys of one document; in a `trial`, no colon is supplied."""

    def __init__(self, text: str, notes: Notes, strings: StringReader, *, trial: bool) -> None:
        self.text, self.notes, self.trial = text, notes, trial
        self._strings = strings
        self._mark = ""  # what stands for a colon

    def read(self, frame: Frame, start: int) -> tuple[str, int]:
        """Read the key at `start`, which belongs to the object of `frame`; return where it ends."""
        text, char = self.text, char_at(self.text, start)
        if char in CLOSERS:
            return self._strings.read(start, "key")
        if unquoted := _UNQUOTED_KEY.match(text, start):
            # In Python, `{None: 1}` has a key that JSON writes as `"null"`.
            if unquoted[0] in {"None", "True", "False"}:
                message = f"JSON spells the key `{unquoted[0]}` differently."
                raise Unreadable("ambiguous", start, message)
            self.notes.add("unquoted_key", start, "key without quotes")
            return unquoted[0], unquoted.end()
        if self._strings.has_python_prefix(start):
            return self._strings.read(start + 1, "key")
        emphasized = MARKDOWN.match(text, start)
        if emphasized and emphasized["value"].startswith('"'):
            return read_emphasized(emphasized, self.notes)
        refuse_absence(text, start, "key")
        edits = self._explanations(frame, start)
        raise Unreadable("syntax", start, "A key should stand here.", *edits)

    def _explanations(self, frame: Frame, start: int) -> tuple[Edit, ...]:
        """Suggest why no key stands at `start`."""
        text, char = self.text, char_at(self.text, start)
        if half_quoted := HALF_QUOTED_KEY.match(text, start):
            # Among keys without quotes, the quote may stand in the place of a letter.
            all_quoted = QUOTED_KEY.search(text) and not BARE_KEY.search(text)
            return (Edit(start, 0, half_quoted[0][-1]),) if all_quoted else ()
        if char in {"{", "]"}:
            # `{"a": {"b": 1, {"c": 2}`: the inner object was not closed, or the bracket is too
            # much.
            unclosed = frame.unclosed()
            # On a line of its own, another document may begin: the bracket before it is missing.
            is_extra = unclosed and not brace_may_be_text(text, start) and text[start - 1] != "\n"
            # `{"a": 1, ]`: a list that opened before the 1.
            unopened = frame.unopened() if char == "]" else ()
            return (*unclosed, Edit(start, 1, ""), *unopened) if is_extra else ()
        return frame.unopened()

    def read_colon(self, frame: Frame, start: int) -> int:
        """Step over the colon at `start` and what stands around it; return where a value begins.

        A colon that is missing is supplied where nothing else can be missing.
        """
        text, position = self.text, skip(self.text, start, self.notes)
        if colon := COLON.match(text, position):
            return self._after_colon(colon)
        refuse_absence(text, position, "colon")
        is_doubtful = self.trial or colon_is_doubtful(text, position)
        if is_doubtful or not VALUE_AHEAD.match(text, position):
            raise Unreadable(
                "syntax", position, "A colon should follow the key.", *frame.unopened()
            )
        self.notes.add("missing_colon", position, "colon supplied after a key")
        return position

    def _after_colon(self, colon: re.Match[str]) -> int:
        """Return where the value after a colon, or what is written for one, begins."""
        text, start, end = self.text, colon.start(), colon.end()
        # `{"a":: 1}` and `{"a":= 1}`: the second mark may stand in the place of a character.
        if (mark := colon[0]) != ":":
            is_doubtful = mark in {"::", ":="} and (
                self.trial or second_colon_is_doubtful(text, start, end)
            )
            refuse_if(is_doubtful, "ambiguous", start, "The colon may belong to what is beside it.")
            # `{"a"=1, "b"=>2}`: the `>` stands for a sign or a quote.
            is_other = self._mark not in {"", mark}
            refuse_if(is_other, "ambiguous", start, f"`{self._mark}` and `{mark}` for `:`.")
            self._mark = mark
            self.notes.add("colon", start, f"`{mark}` for `:`")
        value_start = skip(text, end, self.notes)
        # `{a1=.5}`: the digit has changed places with the mark.
        if text.startswith(".", value_start) and text[start - 1].isdigit():
            raise Unreadable("ambiguous", start, "A digit may belong to the key or to the value.")
        # `{"color": #ff0000`: what looks like a comment may be the value.
        if "#" in text[end:value_start].partition("\n")[0]:
            raise Unreadable("syntax", start, "A value should stand here, not a comment.")
        return value_start
