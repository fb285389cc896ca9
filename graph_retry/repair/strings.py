"""Strings: where one ends when its quotes are not escaped, and what its escapes mean."""

import re
from typing import Literal

from graph_retry.repair.report import Edit, Notes, Unreadable
from graph_retry.repair.scan import FOLLOW, FOLLOW_STRONG, KEY_AHEAD, QUOTE

Slot = Literal["key", "member", "element"]
CLOSERS = {
    '"': '"”', "'": "'’", "`": "`", "“": '”“"', "”": '”"', "„": '“”"', "‟": '”"', "‘": "’'",
    "’": "’'", "‚": "‘’", "‛": "’'", "＂": '＂"', "＇": "＇'",
}  # fmt: skip
TRIPLE = ('"""', "'''")
_CHUNK = {
    close: re.compile(rf"[^{close}\\]*+(?:\\.[^{close}\\]*+)*+", re.DOTALL)
    for close in {char for closers in CLOSERS.values() for char in closers}
}
_STRUCTURE = re.compile(rf"{QUOTE}\s*[:：]|[{{\[]\s*{QUOTE}|{QUOTE}\s*[}}\]]")
_LIST_LIKE = re.compile(rf"{QUOTE}\s*,|,\s*{QUOTE}")
_CLOSING = "}] \t\r\n"
_OPEN_KEY = re.compile(r"[^\W\d][\w $.\-]*?(?=\s*[:：])")

_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|U000[0-9a-fA-F]{5}|x[0-9a-fA-F]{2}|.)", re.DOTALL)
_MEANING = {
    '"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t",
    "'": "'", "`": "`", "_": "_", "$": "$",
}  # fmt: skip
_DRIVE = re.compile(r"\s*[A-Za-z]:\\[^\\/\"]")
_CONTROL = re.compile(r"[\x00-\x1f]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def decode(raw: str, start: int, notes: Notes) -> str:
    """Resolve the escapes of `raw`, which starts at `start`; two readings of one are refused."""
    if _CONTROL.search(raw):
        notes.add("raw_control", start, "control characters inside a string kept as written")
    if "\\" not in raw:
        return raw
    kept: list[str] = []
    resolved: list[str] = []

    def replace(match: re.Match[str]) -> str:
        escape = match[1]
        if len(escape) > 1:
            resolved.append("u")
            return chr(int(escape[1:], 16))
        if escape in _MEANING:
            resolved.append(escape)
            if escape in "'`_$":
                notes.add("bad_escape", start + match.start(), f"`\\{escape}` is no JSON escape")
            return _MEANING[escape]
        if not escape.isascii() or not escape.isalpha() or escape == "v":
            raise Unreadable(
                "ambiguous", start + match.start(), f"The escape `\\{escape!s}` has two readings."
            )
        kept.append(escape)
        notes.add("bad_escape", start + match.start(), f"`\\{escape}` kept as written")
        return match[0]

    value = _ESCAPE.sub(replace, raw)
    if (kept and set(resolved) & set("bfnrt\\")) or (
        _DRIVE.match(raw) and set(resolved) & set("bfnrt")
    ):
        raise Unreadable("ambiguous", start, "Backslashes that are escapes in part only.")
    if _SURROGATE.search(value):
        value = value.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    return value


class StringReader:
    """Reads the strings of one document; `careful` refuses what needs a judgement."""

    def __init__(self, text: str, notes: Notes, *, careful: bool) -> None:
        self.text = text
        self.notes = notes
        self.careful = careful
        self.odd = 0

    def read(self, start: int, slot: Slot) -> tuple[str, int]:
        """Read the string whose opening quote is at `start`; return it and where it ends."""
        text = self.text
        if text.startswith(TRIPLE, start):
            return self._triple(start)
        opener = text[start]
        if opener != '"':
            kind = "single_quotes" if opener == "'" else "odd_quotes"
            self.notes.add(kind, start, f"string in `{opener}` quotes")
        follow = FOLLOW[slot]
        first = len(text)
        for number, close in enumerate(CLOSERS[opener]):
            end = self._chunk(close, start + 1)
            if not number:
                first = end
            if end >= len(text):
                continue
            while close in "'’" and end < len(text) and self._apostrophe(end):
                if follow.match(text, end + 1):
                    break
                end = self._chunk(close, end + 1)
            if end < len(text) and follow.match(text, end + 1) and (not number or end < first):
                if number:
                    self.notes.add("odd_quotes", end, f"string closed by `{close}`")
                return self._finish(start, end), end + 1
        close = next((c for c in CLOSERS[opener] if self._chunk(c, start + 1) < len(text)), None)
        if close is None:
            raise self._unterminated(start, slot)
        return self._unescaped(start, close, slot)

    def _chunk(self, close: str, position: int) -> int:
        match = _CHUNK[close].match(self.text, position)
        end = match.end() if match else position
        return len(self.text) if self.text[end : end + 1] == "\\" else end

    def _apostrophe(self, position: int) -> bool:
        text = self.text
        return text[position - 1].isalnum() and text[position + 1 : position + 2].isalnum()

    def _finish(self, start: int, end: int) -> str:
        raw = self.text[start + 1 : end]
        if self.text[start] == "`" and "${" in raw:
            raise Unreadable("elided", start, "A template is not filled in.")
        return decode(raw, start + 1, self.notes)

    def _triple(self, start: int) -> tuple[str, int]:
        quotes = self.text[start : start + 3]
        match = _CHUNK[quotes[0]].match(self.text, start + 3)
        while match and match.end() < len(self.text):
            end = match.end()
            if self.text.startswith(quotes, end):
                while self.text.startswith(quotes, end + 1):
                    end += 1
                self.notes.add("triple_quotes", start, "string in triple quotes")
                return decode(self.text[start + 3 : end], start + 3, self.notes), end + 3
            match = _CHUNK[quotes[0]].match(self.text, match.end() + 1)
        raise Unreadable("truncated", start, "A string in triple quotes is never closed.")

    def _unescaped(self, start: int, close: str, slot: Slot) -> tuple[str, int]:
        """Read a string with unescaped quotes inside, where only one end makes sense."""
        text, strong = self.text, FOLLOW_STRONG[slot]
        first = end = self._chunk(close, start + 1)
        inner = 0
        while end < len(text):
            if strong.match(text, end + 1):
                break
            inner += not (close in "'’" and self._apostrophe(end))
            end = self._chunk(close, end + 1)
        edits = self._missing_quote(start, first, slot)
        if end >= len(text):
            raise Unreadable("syntax", start, "A string is not closed where it should be.", edits)
        raw = text[start + 1 : end]
        twice = close + close
        if (
            self.careful
            or edits
            or _STRUCTURE.search(raw)
            or twice in raw[1:-1].strip(close)
            or raw.startswith(twice)
            or raw.endswith(twice)
            or (raw.startswith(close) and raw.endswith(close))
            or (slot == "element" and inner and self._list_like(raw, inner, end))
            or (slot == "key" and re.search(r"[,:{}\[\]]", raw))
        ):
            raise Unreadable("ambiguous", start, "A string may end in more than one place.", edits)
        self.odd += inner % 2
        if self.odd > 1:
            raise Unreadable("ambiguous", start, "Unescaped quotes that do not pair up.")
        self.notes.add("inner_quotes", first, "unescaped quotes inside a string")
        return self._finish(start, end), end + 1

    def _list_like(self, raw: str, inner: int, end: int) -> bool:
        closed = self.text[end + 1 :].lstrip()[:1] in {"]", "］"} if inner % 2 else True
        return not closed or _LIST_LIKE.search(raw) is not None

    def _missing_quote(self, start: int, first: int, slot: Slot) -> tuple[Edit, ...]:
        """Suggest where the closing quote may have gone missing: before the next key."""
        text = self.text
        if self.careful:
            return ()
        if slot == "key":
            match = _OPEN_KEY.match(text, start + 1)
            return (Edit(match.end(), 0, text[start]),) if match and match.end() < first else ()
        if not KEY_AHEAD.match(text, first):
            return ()
        before = text[start + 1 : first].rstrip()
        if not before.endswith((",", "，")):
            return ()
        return self._before_each(start + 1, start + len(before), text[start])

    def _before_each(self, low: int, high: int, quote: str) -> tuple[Edit, ...]:
        """Suggest a quote before each of the closing brackets (and the comma) ahead of `high`."""
        inside, line, _ = self.text[low:high].partition("\n")
        if line:
            return (Edit(low + len(inside.rstrip(" \t\r,")), 0, quote),)
        tail = low + len(inside.rstrip(_CLOSING))
        if self.text[tail - 1] in "\"'\\" or ("," in inside and "]" in self.text[tail:high]):
            return ()
        brackets = [place for place in range(tail, high) if self.text[place] in "}]"][:6]
        return tuple(Edit(place, 0, quote) for place in [*brackets, high])

    def _unterminated(self, start: int, slot: Slot) -> Unreadable:
        text = self.text
        edits: tuple[Edit, ...] = ()
        if slot == "key":
            match = _OPEN_KEY.match(text, start + 1)
            edits = (Edit(match.end(), 0, text[start]),) if match else ()
        else:
            edits = self._before_each(start + 1, len(text), text[start])
        return Unreadable(
            "truncated", len(text), "The text ends inside a string.", edits, at_end=True
        )
