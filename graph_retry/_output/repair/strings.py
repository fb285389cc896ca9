"""Strings: where one ends when its quotes are not escaped, or when one of them is missing."""

import re

from graph_retry._output.repair.escapes import decode
from graph_retry._output.repair.report import Edit, Notes, Unreadable, refuse_if
from graph_retry._output.repair.scalars import resembles_literal
from graph_retry._output.repair.scan import (
    BARE_KEY,
    FOLLOW,
    FOLLOW_STRONG,
    KEY,
    KEY_AHEAD,
    QUOTE,
    QUOTED_KEY,
    Role,
)

# The quotes that may close a string, by the one that opens it; the most likely one comes first.
CLOSERS = {
    '"': '"”', "'": "'’", "`": "`", "“": '”"“', "”": '”"', "„": '“”"', "‟": '”"', "‘": "’'",
    "’": "’'", "‚": "‘’", "‛": "’'", "＂": '＂"', "＇": "＇'",
}  # fmt: skip
_OPENERS = {"“": "“", "”": "“", "„": "„", "‘": "‘", "’": "‘", "‚": "‚"}
# A string of Python 2, `u'red'`, and one where it stands in a document.
_PYTHON_PREFIX = re.compile(r"[uU][\"']")
_PYTHON_PREFIXES = re.compile(r"(?<![^\s\[{(,:])[uU][\"']")
# What stands before the next quote of a kind that is not escaped.
_UNTIL_QUOTE = {q: re.compile(rf"(?s)[^{q}\\]*+(?:\\.[^{q}\\]*+)*+") for q in "\"'`“”‘’＂＇"}
_STRICT_STRING = re.compile(r"\"([^\"\\\x00-\x1f]*+)\"")
# A string in triple quotes, as Python has them.
_TRIPLE = re.compile(r"([\"'])\1\1((?:[^\\]|\\.)*?)\1{3}(?!\1)", re.DOTALL)
# A quote beside a colon or a bracket, `": `, `{"`, `"]`: the inside of a string has none.
_STRUCTURE = re.compile(
    rf"{QUOTE}\s*[:：]|,[ \t\r]*\n\s*+{QUOTE}|[\"'“”][ \t\r]*\n|[{{\[]\s*{QUOTE}|{QUOTE}\s*[}}\]]"
    rf"|(?:[,{{]|\A{QUOTE})\s*+(?:[\w$]++\s*+)?[:=]\s*{QUOTE}"
)
_STRUCTURE_OF_KEY = re.compile(r"[,:{}\[\]]")
# A quote beside a comma: in a list, an element may end or begin there.
_ELEMENT_END = re.compile(rf"{QUOTE}\s*,|,\s*{QUOTE}")
# A key that no quote closes: `age` of `"age: 5`.
_OPEN_KEY = re.compile(r"(?:[^\W\d]|[^\W\d][\w $.\-]*?[^\W_])(?=\s*[:：])")
# A JSON value, where it stands between backticks as code does.
_SCALAR = re.compile(r"\s*(?:\".*\"|'.*'|[-+.]?\d[\d.eE+-]*|true|false|null|True|False|None)\s*")
_SWAPPED_ESCAPE = re.compile(r"(?<!\\)\\[^\\']'")
_MEMBER_BEHIND = re.compile(r"[^{]*,\s*\"[^\"\n]*\"\s*:")
_TEMPLATE = re.compile(r"`([^`]*+)`")
# Quotes inside a string as writers use them: in pairs around words or the attributes of HTML, or
# an apostrophe in a word.
_PAIRED = {
    q: re.compile(
        # Other characters, escapes, and pairs as in `say "hi" twice`: the first quote of a pair
        # stands before a word, and the second one after a word.
        rf"(?s)(?:[^{q}\\]|\\.|(?<![^\s(\[{{—–-]){q}(?=[\w$€£¿¡])(?:[^{q}\\]|\\.)*(?<=[^\s{q}]){q}(?!\w|\\u)"
        # `it's`
        + (rf"|(?<=[^\W_]){q}(?=[^\W\d_])" if q in "'’" else "")
        # `<b class="x">`
        + (r"|(?<=\w=)\"[^\"<>\n]*\"(?=\s*/?>|\s+[\w-]+=\")" if q == '"' else "")
        + ")*+"
    )
    for q in "\"'`“”‘’＂＇"
}
# What may stand without quotes, too: then a quote may be too much as well as missing. Inside a
# string that is another member or a comment, `x, b: 2`, at its start a number, a literal or `{`, or
# the other half of a comment's mark.
_MEMBER_INSIDE = re.compile(rf"[,，]\s*(?:{KEY}|[\[{{]|-?\d|(?:true|false|null)\b)|\s(?:#|//|/\*)")
_OTHER_QUOTE = re.compile(rf"{QUOTE}\s*[,:]")
_BARE_VALUE = re.compile(
    r"(?i)\s|[\[{\"'`“”‘’/*#]|[-+.e]*\d[\w.+-]*\Z|x[\da-f]+\Z|(?:true|false|null|none|nan)\Z|\Z"
)


class StringReader:
    """Reads the strings of one document; in a `trial`, what needs a judgement is refused."""

    def __init__(self, text: str, notes: Notes, *, trial: bool) -> None:
        self.text, self.notes, self.trial = text, notes, trial
        self._absent: set[str] = set()  # quotes that are known not to come any more
        self._has_template_strings: bool | None = None
        self._has_prefixes: bool | None = None

    def has_python_prefix(self, start: int) -> bool:
        """Tell whether a string of Python 2 begins at `start`, and note that its `u` is left out.

        Raises:
            Unreadable: no other string has one, so that `u"sd"` may have been `"usd"`.
        """
        if not _PYTHON_PREFIX.match(self.text, start):
            return False
        if self._has_prefixes is None:
            self._has_prefixes = len(_PYTHON_PREFIXES.findall(self.text)) > 1
        message = "A prefix of Python, or a letter and a quote that changed places."
        refuse_if(not self._has_prefixes, "ambiguous", start, message)
        self.notes.add("python_prefix", start, "`u` before a string left out")
        return True

    def read(self, start: int, role: Role) -> tuple[str, int]:
        """Read the string whose opening quote is at `start`; return it and where it ends."""
        text, follow, opener = self.text, FOLLOW[role], self.text[start]
        if opener == '"' and (match := _STRICT_STRING.match(text, start)):
            end = match.end()
            if follow.match(text, end) and text[end : end + 1] != '"':
                return match[1], end
        if text.startswith(('"""', "'''"), start):
            return self._triple_quoted(start)
        if opener != '"':
            kind = "single_quotes" if opener == "'" else "odd_quotes"
            self.notes.add(kind, start, f"string in `{opener}` quotes")
        # Of the quotes that may close it, the first of a kind does if what follows can follow a
        # string. If none does, quotes inside were not escaped.
        inner_close, limit = "", len(text)
        for close in CLOSERS[opener]:
            end = self._next_end(close, start + 1, limit, follow)
            if end == limit:
                continue
            if follow.match(text, end + 1):
                return self._closed_by(close, start, end), end + 1
            if not inner_close:
                inner_close, limit = close, end
        if inner_close:
            return self._with_inner_quotes(start, inner_close, role)
        edits = self._missing_quotes(start, limit, role)
        raise Unreadable("truncated", limit, "The text ends inside a string.", *edits)

    def _triple_quoted(self, start: int) -> tuple[str, int]:
        match = _TRIPLE.match(self.text, start)
        if match is None:
            raise Unreadable("truncated", start, "A string in triple quotes is never closed.")
        # `"""x"""""`: the last quotes are text, or too many.
        is_doubtful = match[2].endswith(match[1]) and not match[2].endswith("\\" + match[1])
        refuse_if(is_doubtful, "ambiguous", start, "Quotes at the end of a string.")
        self.notes.add("triple_quotes", start, "string in triple quotes")
        return decode(match[2], start + 3, self.notes), match.end()

    def _next_quote(self, close: str, position: int, limit: int) -> int:
        """Return where the next unescaped `close` is, or `limit`."""
        if close in self._absent:
            return limit
        match = _UNTIL_QUOTE[close].match(self.text, position, limit)
        end = match.end() if match else position
        if end >= limit or self.text[end] == "\\":
            if limit == len(self.text):
                self._absent.add(close)
            return limit
        return end

    def _next_end(self, close: str, position: int, limit: int, follow: re.Pattern[str]) -> int:
        """Return where the next `close` is that is no apostrophe inside a word, or `limit`."""
        end = self._next_quote(close, position, limit)
        while end < limit and self._is_apostrophe(end, close):
            if follow.match(self.text, end + 1):  # `{'a'1}`: only a colon is missing
                break
            end = self._next_quote(close, end + 1, limit)
        return end

    def _is_apostrophe(self, position: int, quote: str) -> bool:
        """Tell whether the quote at `position` stands inside a word: `it's`."""
        if quote not in "'’" or not self.text[position - 1].isalnum():
            return False
        return self.text[position + 1 : position + 2].isalpha()

    def _closed_by(self, close: str, start: int, end: int) -> str:
        """Return the string from `start` to the quote at `end`, which may be of another kind."""
        opener = self.text[start]
        # `"she said “yes”` and `'‘yes’`: the last quote may belong to the pair inside.
        inner = {"”": "“", "’": "‘", "“": "„", "‘": "‚"}.get(close)
        inner_pair = inner and opener != inner and inner in self.text[start + 1 : end]
        # `“last: 5, “title”`: the first quote that closes is missing.
        opens_again = opener in "“”„‘’‚" and self.text.find(_OPENERS[opener], start + 1, end) >= 0
        # `"”`: a pair of these quotes may have lost its first one, and its contents.
        is_lone = end == start + 1 and close != CLOSERS[opener][0]
        doubtful = (
            is_lone or inner_pair or (opens_again and close not in self.text[start + 1 : end])
        )
        refuse_if(doubtful, "ambiguous", start, "A string may end in several places.")
        if close != CLOSERS[opener][0]:
            self.notes.add("odd_quotes", end, f"string closed by `{close}`")
        return self._decoded(start, end)

    def _decoded(self, start: int, end: int) -> str:
        """Return what stands between the quotes at `start` and `end`, its escapes resolved."""
        raw = self.text[start + 1 : end]
        if self.text[start] == "`":
            # `x ${y}`: the value of `y` is not there.
            refuse_if("${" in raw, "elided", start, "An unfilled template.")
            # `u, "b": `: the mark that closes the template is missing.
            refuse_if(_MEMBER_BEHIND.match(raw), "ambiguous", start, "A template with a key in it.")
            # `5` between backticks: a number that Markdown marks as code, or a string.
            two_readings = _SCALAR.fullmatch(raw) and not self._has_templates()
            refuse_if(two_readings, "ambiguous", start, "A value marked as code, or a string.")
        # `'O\B'rien'`: a character has come between the backslash and the apostrophe.
        if "\\" in raw and self.text[start] == "'" and _SWAPPED_ESCAPE.search(raw):
            raise Unreadable("ambiguous", start, "An escape that may belong to a quote.")
        return decode(raw, start + 1, self.notes)

    def _has_templates(self) -> bool:
        """Tell whether a string in backticks is no number or the like, so that all are strings."""
        if self._has_template_strings is None:
            contents = _TEMPLATE.findall(self.text)
            self._has_template_strings = any(not _SCALAR.fullmatch(raw) for raw in contents)
        return self._has_template_strings

    def _with_inner_quotes(self, start: int, close: str, role: Role) -> tuple[str, int]:
        """Read a string with unescaped quotes inside, where only one end makes sense."""
        text, follow = self.text, FOLLOW_STRONG[role]
        first = end = self._next_quote(close, start + 1, len(text))
        inner_quotes = 0
        while end < len(text) and not follow.match(text, end + 1):
            inner_quotes += not self._is_apostrophe(end, close)
            end = self._next_quote(close, end + 1, len(text))
        edits = () if self.trial else self._missing_quotes(start, first, role)
        refuse_if(end >= len(text), "syntax", start, "A string is not closed in its place.", *edits)
        raw = text[start + 1 : end]
        # Text that was edited already is not judged. Where a quote may be missing, that is a
        # second explanation: `{"name": "Ann, age: "5", city: "Rome"}`.
        doubtful = self.trial or edits or _may_end_inside(raw, close, role, inner_quotes)
        refuse_if(doubtful, "ambiguous", start, "A string may end in several places.", *edits)
        self.notes.add("inner_quotes", first, "unescaped quotes inside a string")
        return self._decoded(start, end), end + 1

    def _missing_quotes(self, start: int, next_quote: int, role: Role) -> tuple[Edit, ...]:
        """Suggest where the quote that closes the string at `start` may have gone missing.

        `next_quote` is where one stands that may close it, the end of the text if there is none.
        """
        if self.text.count(self.text[start]) < 2:
            return ()
        if role == "key":
            return self._missing_after_key(start, next_quote)
        return self._missing_after_value(start, next_quote)

    def _missing_after_key(self, start: int, next_quote: int) -> tuple[Edit, ...]:
        """Suggest a quote before the colon: `{"a: 1, "b": 2}`."""
        # Among keys without quotes, the quote may stand in the place of a letter.
        if not QUOTED_KEY.search(self.text) or BARE_KEY.search(self.text):
            return ()
        match = _OPEN_KEY.match(self.text, start + 1, next_quote)
        # `{"key:"\\"Ann"}`: the backslash stands for the colon.
        match = None if self.text.startswith("\\", next_quote + 1) else match
        return (Edit(match.end(), 0, self.text[start]),) if match else ()

    def _missing_after_value(self, start: int, next_quote: int) -> tuple[Edit, ...]:
        """Suggest a quote before the next key or the end, and before each bracket ahead of them.

        In `{"a": "x, "b": 2}` it is missing before the comma. In `{"a": ["x]}` it may be missing
        before the bracket, before the brace or after it: reading tells which of them gives JSON.
        """
        text, quote = self.text, self.text[start]
        low, high = start + 1, next_quote
        if next_quote < len(text):
            high = low + len(text[low:next_quote].rstrip()) - 1
            if not KEY_AHEAD.match(text, next_quote) or text[high] not in {",", "，"}:
                return ()
        line, newline, _ = text[low:high].partition("\n")
        end = low + len(line.rstrip(" \t\r," if newline else "}] \t\r"))
        content = text[low:end]
        if (
            # Another character in the place of the quote would explain as much as one left out.
            not content[-1:].isalnum()
            or line[-1:].isspace()
            or quote in content
            or resembles_literal(content)
            or text[end : end + 1] in {" ", "\t"}
            # So would a quote too much at the start.
            or _BARE_VALUE.match(content)
            or _MEMBER_INSIDE.search(content)
            or _OTHER_QUOTE.search(content)
            or BARE_KEY.search(content)
        ):
            return ()
        rest = text[end:high]
        if newline:
            # `"x,` on the last line before a bracket: the comma may be text.
            is_last = rest[1:].lstrip()[:1] in {"}", "]"} and line.rstrip().endswith(",")
            return () if is_last else (Edit(end, 0, quote),)
        # `["x, y]`: the quote may be missing before the comma, too. In `"x\t}` the tab may stand in
        # its place.
        if ("," in line and "]" in rest) or re.search(r"\s", rest):
            return ()
        brackets = [position for position in range(end, high) if text[position] in "}]"][:6]
        return tuple(Edit(position, 0, quote) for position in [*brackets, high])


def _may_end_inside(raw: str, close: str, role: Role, inner_quotes: int) -> bool:
    """Tell whether a string whose contents are `raw` may end at one of the quotes inside it."""
    return bool(
        # `5" wide`: a quote without its partner.
        not _PAIRED[close].fullmatch(raw)
        # `"b": 1`: a member, of which the string took the quotes.
        or _STRUCTURE.search(raw)
        or raw.startswith(("//", "#", "/*"))
        or (role == "key" and (_STRUCTURE_OF_KEY.search(raw) or raw.startswith(close)))
        # `"all"`: quotes that are written twice rather than unescaped.
        or (raw.startswith(close) and raw.endswith(close))
        # `she said "no", "maybe"` in a list: several elements.
        or (role == "element" and inner_quotes and _ELEMENT_END.search(raw))
    )
