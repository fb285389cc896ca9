"""The steps that continue a reading inside a string, where each quote may end the string or not.

In a string, the mode of a reading is `S`, the opening quote, `k` (key) or `v` (value), and `1` or
`0`, as in `S"v0`. `1` means that an inner quote has no partner yet. Two more letters may follow:
`l` if an inner quote stays without a partner, and `m` if an inner quote looks like the quote of an
object's member. With both letters, a quote was probably lost between two strings.
"""

from graph_retry.lossless._ground import lazy
from graph_retry.lossless.weighted import lexis
from graph_retry.lossless.weighted.moves import Moves

_MEMBER = r"(?:[uU]?[\"'“`][^\"'”`\n]{0,200}[\"'”`]\s*+[:=]|[\w$][\w$.-]{0,100}\s*+[:=])"
_CLOSED = r"(?:[ \t\r]*+\n|\s*+(?:[,}\]]|\Z))"
# These match the text after the end of a key, of a member's value, and of an element of a list.
_STRONG = {
    "k": lazy(r"\s*+[:=：]"),
    "o": lazy(
        rf"\s*+(?:,\s*+(?:{_MEMBER}|[}}\]]|//|#|/\*)|[}}\]]{_CLOSED}|\Z)"
        rf"|[ \t]*+,?[ \t]*+\n\s*+(?:[}}\]]|{_MEMBER})"
    ),
    "a": lazy(
        rf"\s*+(?:,\s*+(?:[uU]?[\"'“`{{\[\d-]|true|false|null|//|#|/\*)|\]{_CLOSED}|\Z)"
        r"|[ \t]*+,?[ \t]*+\n\s*+[\]\"'“`{\[]"
    ),
}
_OPENS = lazy(r"\s*+[:=]\s*+[{\[]")
_OF_MEMBER = lazy(
    rf"(?<=[{{,\[\n]){_MEMBER}|(?<=[{{,] ){_MEMBER}"
    r"|[\"'”]\s*+[:=]\s*+(?:[{\[\"'\d-]|true\b|false\b|null\b)"
)
_NO_QUOTE = {"k": lazy(r"\s*+[:=]"), "v": lazy(r"[ \t\r]*+\n|\s*+(?:[,}\]]|//|/\*)")}
_STRUCTURE = lazy(r"[\"'{}\[\]:,=\n]|^\s|\s\Z")
_EDGE = frozenset(",:{[(}])")
_AFTER = frozenset(".,;:!?)…'’\"”<>*_")
_QUOTATION = lazy("[„“]\\w[^„“”]*\\Z")  # A typographic quotation that is not closed yet.
_BEFORE, _BEHIND = frozenset("([{—–-='>"), frozenset("<$€£¿¡-_/@#{[(")


def _is_torn(raw: str) -> bool:
    return raw[-1] in ",:" or any(raw.count(a) != raw.count(b) for a, b in ("{}", "[]", "()"))


class Reader(Moves):
    """A search with all steps, inside and outside of strings."""

    def expand(self) -> None:
        """Add a reading for each possible next step of the present reading."""
        self.wide = self.is_near and bool(self.suspect[self.node.pos])
        if self.node.mode[0] == "S":
            self._in_string()
        else:
            self.outside()

    def _write(self, pos: int, mode: str, raw: str, *rows: str) -> None:
        """Write `raw` into the string as one step. A `mode` outside of strings ends the string."""
        self.spend(len(raw))
        content = lexis.written(raw)
        if content is None:
            self.go(pos, mode, self.node.stack, "", "escapes", *rows)
        else:
            closing = "" if mode[0] == "S" else '"'
            self.go(pos, mode, self.node.stack, content + closing, *rows)

    def _in_string(self) -> None:
        """Read up to the next quote. Add readings that end the string there, or continue it."""
        _, pos, mode, stack, *_ = self.node
        text, quote, role = self.text, mode[1], mode[2]
        match = lexis.UNTIL[quote].match(text, pos)
        self.at = at = match.end() if match else pos
        self.spend(at - pos)
        raw, char, ahead = text[pos:at], text[at : at + 1], text[at + 1 : at + 2]
        row = "raw_control" if lexis.RAW_CONTROL.search(raw) else ""
        row = "bad_escape" if "\\" in raw and lexis.BAD_ESCAPE.search(raw) else row
        follows = "c" if role == "k" else "b"
        if self.wide:
            self._unclosed(pos, raw, follows, role)
        if not char or char == "\\":
            self.cut_off()
            return
        if quote == "`" and "${" in raw:
            self.go(at + 1, follows, stack, "", "placeholder")
            return
        is_usual = char == lexis.CLOSERS[quote][0]
        in_word = quote in "'’‘" and at > pos and text[at - 1].isalnum() and ahead.isalpha()
        if in_word or (not is_usual and quote in "\"'"):
            alone = "unpaired" if char == "”" and "“" not in raw else ""
            self._write(at + 1, mode, raw + char, row, "apostrophe" if in_word else alone)
            if not self.wide:
                return
        lone = ["unpaired"] * (mode[3] == "1") + ["torn_member"] * (mode[3:] == "1m")
        mixed = "" if is_usual else "mixed_quotes"
        odd = self._surprises(raw, role)
        self._write(at + 1, follows, raw, mixed or row, row if mixed else "", *odd, *lone)
        self._inner_quote(pos, raw + char, row)
        if self.wide:
            self._misplaced_quote(raw, follows, role)

    def _surprises(self, raw: str, role: str) -> list[str]:
        """Return one row "edge" for each sign that the content of a string is odd."""
        is_torn = raw and raw[-1] in _EDGE and _is_torn(raw)
        return ["edge"] * (bool(is_torn) + (role == "k" and bool(_STRUCTURE.search(raw))))

    def _inner_quote(self, pos: int, inside: str, row: str) -> None:
        """Add readings in which a quote belongs to the string: in a pair with another, or alone."""
        _, _, mode, stack, *_ = self.node
        text, at, is_odd = self.text, self.at, mode[3] == "1"
        before, ahead = text[at - 1] if at > pos else " ", text[at + 1 : at + 2]
        closes = not before.isspace() and (ahead in _AFTER or ahead.isspace())
        opens = (before.isspace() or before in _BEFORE) and (ahead.isalnum() or ahead in _BEHIND)
        kind = "k" if mode[2] == "k" else "o" if stack and stack.kind == "o" else "a"
        both = [row, "odd_key" if kind == "k" else ""]
        if _STRONG[kind].match(text, at + 1) or _OPENS.match(text, at + 1):
            both.append("strong_inner")
        marks = mode[4:] + "m" * (bool(_OF_MEMBER.match(text, at)) and "m" not in mode[4:])
        torn = "torn_member" if "l" in marks and marks != mode[4:] else ""
        if is_odd:
            odd = "" if closes else "odd_inner"
            self._write(at + 1, f"{mode[:3]}0{marks}", inside, "", *both, odd, torn)
        else:
            odd = "" if opens and at > pos else "edge" if opens else "odd_inner"
            self._write(at + 1, f"{mode[:3]}1{marks}", inside, "inner_quote", *both, odd, torn)
        is_end = mode[1] in "\"'" and _QUOTATION.search(inside)
        odd = "" if opens or closes or is_end else "odd_inner"
        lone = "inch_mark" if before.isdigit() and ahead == " " else "unpaired"
        lone = "inner_quote" if is_end else lone
        torn = "torn_member" if "m" in marks and (torn or "l" not in marks) else ""
        marks += "" if "l" in marks else "l"
        self._write(at + 1, mode[:4] + marks, inside, lone, *both, odd, torn)

    def _torn(self) -> list[str]:
        """Return the row "torn_member" if an inner quote looks like the quote of a member."""
        return ["torn_member"] if "m" in self.node.mode[4:] else []

    def _unclosed(self, pos: int, raw: str, follows: str, role: str) -> None:
        """Add readings that end the string where its closing quote may be lost or replaced."""
        places = list[int]()
        for low in {0, max(0, len(raw) - 300)}:
            found = [
                match.start() + low for match in _NO_QUOTE[role].finditer(raw[low : low + 300])
            ]
            places += found[:3] + found[-4:]
        for place in sorted(set(places)):
            self.at = pos + place
            if raw[:place].strip():
                odd = self._surprises(raw[:place], role) + self._torn()
                self._write(self.at, follows, raw[:place], "missing_quote", *odd)
                if not raw[place - 1].isalnum():
                    self._write(self.at, follows, raw[: place - 1], "replaced", *odd)
        self.at = pos + len(raw)

    def _misplaced_quote(self, raw: str, follows: str, role: str) -> None:
        """Add readings that drop the quote, or swap it with the character beside it."""
        text, at, (_, _, mode, stack, *_) = self.text, self.at, self.node
        ahead = text[at + 1 : at + 2]
        if raw and ahead not in "\"'":
            strong = ["strong_inner"] if _OF_MEMBER.match(text, at) else self._torn()
            self.go(at + 1, mode, stack, "", "unreadable", *strong)
        else:
            self._write(at + 1, mode, raw, "deleted")
        if raw and (to := self.step(follows, stack, raw[-1], at)):
            content = lexis.written(raw[:-1]) or ""
            odd = self._surprises(raw[:-1], role)
            self.go(at + 1, to[0], to[1], f'{content}"{to[2]}', "swapped", *odd)
        if ahead and not ahead.isspace():
            odd = self._surprises(raw + ahead, role)
            self._write(at + 2, follows, raw + ahead, "swapped", *odd)
