"""Strings: where one ends when its quotes are not escaped, and what its escapes mean."""

import re

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

CLOSERS = {
    '"': '"”', "'": "'’", "`": "`", "“": '”"“', "”": '”"', "„": '“”"', "‟": '”"', "‘": "’'",
    "’": "’'", "‚": "‘’", "‛": "’'", "＂": '＂"', "＇": "＇'",
}  # fmt: skip
_CHUNK = {q: re.compile(rf"(?s)[^{q}\\]*+(?:\\.[^{q}\\]*+)*+") for q in "\"'`“”‘’＂＇"}
_STRICT_STRING = re.compile(r"\"([^\"\\\x00-\x1f]*+)\"")
_TRIPLE = re.compile(r"([\"'])\1\1((?:[^\\]|\\.)*?)\1{3}(?!\1)", re.DOTALL)
_STRUCTURE = re.compile(rf"{QUOTE}\s*[:：]|[{{\[]\s*{QUOTE}|{QUOTE}\s*[}}\]]")
_LIST_LIKE = re.compile(rf"{QUOTE}\s*,|,\s*{QUOTE}")
_OPEN_KEY = re.compile(r"(?:[^\W\d]|[^\W\d][\w $.\-]*?[^\W_])(?=\s*[:：])")
_SCALAR = re.compile(r"\s*(?:\".*\"|'.*'|[-+.]?\d[\d.eE+-]*|true|false|null|True|False|None)\s*")
_TEMPLATE = re.compile(r"`([^`]*+)`")
# Quotes inside a string as writers use them: in pairs around words or the attributes of HTML, or
# an apostrophe in a word.
_PAIRED = {
    q: re.compile(
        rf"(?s)(?:[^{q}\\]|\\.|(?<![^\s(\[{{—–-]){q}(?=[\w$€£¿¡])(?:[^{q}\\]|\\.)*(?<=[^\s{q}]){q}(?!\w)"
        + (rf"|(?<=\w){q}(?=\w)" if q in "'’" else "")
        + (r"|(?<=\w=)\"[^\"<>\n]*\"(?=\s*/?>|\s+[\w-]+=\")" if q == '"' else "")
        + ")*+"
    )
    for q in "\"'`“”‘’＂＇"
}
# What may stand without quotes, too: then a quote may be too much as well as missing.
_MEMBER_INSIDE = re.compile(rf"[,，]\s*(?:{KEY}|-?\d|(?:true|false|null)\b)|\s(?:#|//|/\*)")
_BARE_VALUE = re.compile(
    r"(?i)\s|[\[{\"'`“”‘’]|[-+.e]*\d[\w.+-]*\Z|(?:true|false|null|none|nan)\Z|\Z"
)

_HEX = "[0-9a-fA-F]"
_ESCAPE = re.compile(rf"(?s)\\(u{_HEX}{{4}}|U00(?:0{_HEX}|10){_HEX}{{4}}|x{_HEX}{{2}}|.)")
# Escapes of other languages, or of JSON with a digit missing.
_OTHER_ESCAPES = re.compile(rf"u[{{\dA-Fa-f]|x{_HEX}|v|e\[|N\{{")
_MEANING = dict(zip("\"\\/bfnrt'`_$", "\"\\/\b\f\n\r\t'`_$", strict=True))
# Where a backslash stands before a letter it keeps, it does so before punctuation, too.
_PATTERN = re.compile(r"(?<!\\)(?:\\\\)*\\[dDsSwWpPA]")
_DRIVE = re.compile(r"\s*[A-Za-z]:\\[^\\/\"]")


def decode(raw: str, start: int, notes: Notes) -> str:
    """Resolve the escapes of `raw`, which starts at `start`; two readings of one are refused."""
    if re.search(r"[\x00-\x1f]", raw):
        notes.add("raw_control", start, "control characters inside a string kept as written")
    if "\\" not in raw:
        return raw
    kept, resolved = False, False
    pattern_like = _PATTERN.search(raw)

    def replace(match: re.Match[str]) -> str:
        nonlocal kept, resolved
        escape, place = match[1], start + match.start()
        if len(escape) > 1:
            if escape[0] != "u":
                notes.add("bad_escape", place, f"`\\{escape}` is no JSON escape")
            return chr(int(escape[1:], 16))
        if escape in _MEANING:
            resolved |= escape in "bfnrt\\"
            if escape in "'`_$":
                notes.add("bad_escape", place, f"`\\{escape}` is no JSON escape")
            return _MEANING[escape]
        if escape == "\n":
            notes.add("bad_escape", place, "a string that goes on in the next line")
            return ""
        other = re.match(_OTHER_ESCAPES, raw[match.start() + 1 : match.start() + 3])
        pattern = pattern_like and escape.isascii() and not escape.isalnum()
        if other or not (pattern or (escape.isascii() and escape.isalpha())):
            raise Unreadable("ambiguous", place, f"The escape `\\{escape}` has two readings.")
        kept = True
        notes.add("bad_escape", place, f"`\\{escape}` kept as written")
        return match[0]

    value = _ESCAPE.sub(replace, raw)
    if resolved and (kept or _DRIVE.match(raw)):
        raise Unreadable("ambiguous", start, "Some backslashes are escapes, others may not be.")
    # Halves of one character, escaped one by one, come together.
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


class StringReader:
    """Reads the strings of one document; in a `trial`, what needs a judgement is refused."""

    def __init__(self, text: str, notes: Notes, *, trial: bool) -> None:
        self.text, self.notes, self.trial = text, notes, trial
        self._absent: set[str] = set()
        self._templates: bool | None = None

    def read(self, start: int, role: Role) -> tuple[str, int]:
        """Read the string whose opening quote is at `start`; return it and where it ends."""
        text, follow, opener = self.text, FOLLOW[role], self.text[start]
        if match := _STRICT_STRING.match(text, start):
            end = match.end()
            if follow.match(text, end) and text[end : end + 1] != '"':
                return match[1], end
        if text.startswith(('"""', "'''"), start):
            match = _TRIPLE.match(text, start)
            if match is None:
                raise Unreadable("truncated", start, "A string in triple quotes is never closed.")
            self.notes.add("triple_quotes", start, "string in triple quotes")
            return decode(match[2], start + 3, self.notes), match.end()
        if opener != '"':
            kind = "single_quotes" if opener == "'" else "odd_quotes"
            self.notes.add(kind, start, f"string in `{opener}` quotes")
        first, seen = len(text), ""
        for close in CLOSERS[opener]:
            end = self._find(close, start + 1, first)
            while end < first and self._apostrophe(end, close) and not follow.match(text, end + 1):
                end = self._find(close, end + 1, first)
            if end < first and follow.match(text, end + 1):
                return self._closed_by(close, start, end), end + 1
            if not seen and end < first:
                first, seen = end, close
        if not seen:
            edits = self._missing_quote(start, first, role)
            raise Unreadable("truncated", first, "The text ends inside a string.", *edits)
        return self._unescaped(start, seen, role)

    def _find(self, close: str, position: int, limit: int) -> int:
        """Return where the next unescaped `close` is, or `limit`."""
        if close in self._absent:
            return limit
        match = _CHUNK[close].match(self.text, position, limit)
        end = match.end() if match else position
        if end >= limit or self.text[end] == "\\":
            if limit == len(self.text):
                self._absent.add(close)
            return limit
        return end

    def _apostrophe(self, place: int, close: str) -> bool:
        around = self.text[place - 1], self.text[place + 1 : place + 2]
        return close in "'’" and all(char.isalnum() for char in around)

    def _closed_by(self, close: str, start: int, end: int) -> str:
        opener = self.text[start]
        other = close == "”" != opener != "“" and "“" in self.text[start:end]
        refuse_if(other, "ambiguous", start, "A string may end in several places.")
        if close != CLOSERS[opener][0]:
            self.notes.add("odd_quotes", end, f"string closed by `{close}`")
        return self._finish(start, end)

    def _finish(self, start: int, end: int) -> str:
        raw = self.text[start + 1 : end]
        if self.text[start] == "`":
            refuse_if("${" in raw, "elided", start, "An unfilled template.")
            either = _SCALAR.fullmatch(raw) and not self._has_template()
            refuse_if(either, "ambiguous", start, "A value marked as code, or a string.")
        return decode(raw, start + 1, self.notes)

    def _has_template(self) -> bool:
        """Tell whether a string in backticks is no number or the like, so that all are strings."""
        if self._templates is None:
            inside = _TEMPLATE.findall(self.text)
            self._templates = any(not _SCALAR.fullmatch(part) for part in inside)
        return self._templates

    def _unescaped(self, start: int, close: str, role: Role) -> tuple[str, int]:
        """Read a string with unescaped quotes inside, where only one end makes sense."""
        text, strong = self.text, FOLLOW_STRONG[role]
        first = end = self._find(close, start + 1, len(text))
        inner = 0
        while end < len(text) and not strong.match(text, end + 1):
            inner += not self._apostrophe(end, close)
            end = self._find(close, end + 1, len(text))
        edits = () if self.trial else self._missing_quote(start, first, role)
        refuse_if(end >= len(text), "syntax", start, "A string is not closed in its place.", *edits)
        raw = text[start + 1 : end]
        doubts = (
            self.trial or edits or not _PAIRED[close].fullmatch(raw),
            _STRUCTURE.search(raw) or (role == "key" and re.search(r"[,:{}\[\]]", raw)),
            raw.startswith(close) and raw.endswith(close),
            role == "element" and inner and _LIST_LIKE.search(raw),
        )
        refuse_if(any(doubts), "ambiguous", start, "A string may end in several places.", *edits)
        self.notes.add("inner_quotes", first, "unescaped quotes inside a string")
        return self._finish(start, end), end + 1

    def _missing_quote(self, start: int, first: int, role: Role) -> tuple[Edit, ...]:
        """Suggest where the closing quote may have gone missing.

        That is before a colon, or before the next key or the end and the brackets ahead of them.
        """
        text, quote = self.text, self.text[start]
        if text.count(quote) < 2:
            return ()
        if role == "key":
            # Among keys without quotes, the quote may stand in the place of a letter.
            quoted = QUOTED_KEY.search(text) and not BARE_KEY.search(text)
            match = _OPEN_KEY.match(text, start + 1, first) if quoted else None
            return (Edit(match.end(), 0, quote),) if match else ()
        low, high = start + 1, first
        if first < len(text):
            high = low + len(text[low:first].rstrip()) - 1
            if not KEY_AHEAD.match(text, first) or text[high] not in {",", "，"}:
                return ()
        inside, newline, _ = text[low:high].partition("\n")
        tail = low + len(inside.rstrip(" \t\r," if newline else "}] \t\r"))
        # Another character in the place of the quote would explain as much as a quote left out.
        content = text[low:tail]
        blurred = not content[-1:].isalnum() or inside[-1:].isspace() or quote in content
        blurred = blurred or resembles_literal(content) or text[tail : tail + 1] in {" ", "\t"}
        if blurred or _BARE_VALUE.match(content) or _MEMBER_INSIDE.search(content):
            return ()
        if newline:
            return (Edit(tail, 0, quote),)
        if "," in inside and "]" in text[tail:high]:
            return ()
        brackets = [place for place in range(tail, high) if text[place] in "}]"][:6]
        return tuple(Edit(place, 0, quote) for place in [*brackets, high])
