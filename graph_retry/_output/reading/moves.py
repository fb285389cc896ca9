"""The possible next steps of a reader: JSON's grammar, other notations, and accidents.

A reader's mode tells what it expects. A value: `r` (root), `f` (first element), `e` (element after
a comma) or `m` (member). A key: `k` (first) or `l` (after a comma). A colon: `c`. The text behind a
value: `a`, or `b` after a string, which may be continued. The string after a `+`: `p`. The text
behind the document: `z`. Nothing more: `$`.
"""

import json
import re
from bisect import bisect_right
from typing import Any

from graph_retry._output.reading import lexis
from graph_retry._output.reading.costs import ACCIDENT
from graph_retry._output.reading.search import Frame, Mean, Node
from graph_retry._output.reading.strings import Strings
from graph_retry._patterns import lazy

_CLOSE = {"o": "}", "O": "}", "a": "]", "t": ")", "T": ")"}
_OPEN = {"{": ("k", "o"), "[": ("f", "a")}
_INDENT = lazy(f"(?m)^[{lexis.BLANK}]*")
_OPENING = frozenset("{[(｛［")
_EDGE_START = frozenset(",:=}])")
_VALUE_AHEAD = lazy(r"[\"'“`\d\[{(\-]|(?i:true|false|null|none)\b")
_KEY_AHEAD = lazy(r"[\"'“`]|[\w$][\w$.\-]*\s*[:=]|\*+\"")
_CLEAN = lazy(r"\"[^\"\\\x00-\x1f]*+\"(?=[ \t\r\n]*(?:,[ \t\r\n]*[\"{\[\d\-tfn}\]]|[}\]]))")
_PYTHON_KEY = lazy(r"[{,]\s*+'[^'\n]{0,80}'\s*+:")
_SPACED = lazy(r"\+\s*[\"']\s")
MORE = lazy(  # Behind a document, prose never begins like this.
    r"[\w\"'“&]|\.[a-z_]|\s*+[,;]?\s*+(?:[\"'“][^\"\n]*[\"'”]\s*+[:,}\]{\[])"
    r"|\s*+[,;]\s*+\w+\s*+:\s*+[\"\d\[{]"
    r"|\s*+[:=+,](?!\s*+[\[{])|\s*+(?:true|false|null)\b|[^{}\[\]]{0,500}[}\]]"
    r"|\s*+,?\s*+(?:[\"'][^\"'\n]*[\"']|-?\d[\w.+-]*|true|false|null)\s*+(?:[,\]}]|\Z)"
)
BRACKETS = lazy(r"[{\[]\s*[\"'{\[\d]|[\w\"']\s*:\s*[\"{\[\d]")
_NEEDED = {"r": "{[", "f": "\"{[]", "e": "\"{[", "m": "\"{[", "k": "\"}", "l": "\"", "c": ":",
           "a": ",]})", "b": ",]})", "p": "\""}  # fmt: skip
_INSERTED = dict.fromkeys("{[}])", "missing_bracket") | dict.fromkeys("\"'", "missing_quote")
_MARKS = frozenset(",:[]{}()\"'/*")
_QUOTE_AHEAD = lazy(r"[\"']|\Z")
_DAMAGED = lazy(
    r"(?:[^\"'“]|[\"'“](?=(?:[\d.eE+-]+|[a-zA-Z]{3,4})?\s*[,\]}\n]))"
    r"(?:[^,\]}\n:\"']|(?<=\w)[\"'](?=\w|\s*[,:=\]}\n])){0,99}"
)
_WORD = lazy(r"\w+")
_DECODER = json.JSONDecoder()


class Moves(Strings):
    """The steps of a reader outside of strings; the document begins at the start of `text`."""

    def __init__(
        self, text: str, price: dict[str, int], suspect: bytearray, *, closed: bool
    ) -> None:
        super().__init__(text, price)
        self.suspect, self.closed = suspect, closed  # `closed`: the model finished its answer.
        self.emphasis = dict(m.span(i) for m in lexis.EMPHASIS.finditer(text) for i in (1, 2))
        self.lines = [match.span() for match in _INDENT.finditer(text)] if "\n" in text else []
        self.columns = {end: end - start for start, end in self.lines[1:]}
        self.is_python = _PYTHON_KEY.search(text) is not None  # A bare name may be a variable.
        self.jumps = 2 * len(text) + 2000  # It limits the work of short cuts that fail.

    def first(self) -> Node:
        """Return the first reader, at a bracket or at a key whose opening brace is missing."""
        if self.text[:1] in _OPENING or not lexis.OPENING_KEY.match(self.text):
            return self.node
        self.go(0, "k", self.frame(None, "o", -1), ("{",), "missing_opener")
        return self.buckets[self.price["missing_opener"]].pop()

    def step(self, mode: str, stack: Frame | None, mark: str, at: int) -> Any:
        """Return mode, stack and meaning after `mark` in strict JSON; None if it is not allowed."""
        top = stack.kind if stack else ""
        if mode in "rfem" and mark in _OPEN:
            follows, kind = _OPEN[mark]
            return follows, self.frame(stack, kind, self.line_indent(at)), (mark,)
        if mark in lexis.CLOSERS and mode in "femklp":
            return f"S{mark}{'k' if mode in 'kl' else 'v'}0", stack, ("+",) if mode == "p" else ()
        if mode in "ab" and mark == "," and stack:
            if top == "t":
                stack = self.frame(stack.parent, "T", stack.line_indent, stack.indent)
            return ("l" if top in "oO" else "e"), stack, ()
        if mode in "abfk" and mark == _CLOSE.get(top):
            return self.pop(stack)
        return ("m", stack, ()) if mode == "c" and mark == ":" else None

    @staticmethod
    def pop(stack: Frame | None) -> tuple[str, Frame | None, Mean]:
        """Close the innermost container. Parentheses around one value make no tuple."""
        parent = stack.parent if stack else None
        is_value = stack is not None and stack.kind == "t"
        return ("a" if parent else "z"), parent, ("1",) if is_value else ("]",)

    def line_indent(self, at: int) -> int:
        """Return the indentation of the line at `at`, or -1 if the text has only one line."""
        if not self.lines:
            return -1
        start, end = self.lines[bisect_right(self.lines, (at, at)) - 1]
        return min(end, at) - start

    def laid_out(self, stack: Frame, column: int, char: str) -> Frame:
        """Charge for a token at the start of a line that does not fit the indentation so far."""
        if char in "]})":
            is_odd = column != stack.line_indent and stack.line_indent >= 0
            self.extra = self.price["layout"] if is_odd else 0
        elif self.node.mode in "klfe" and char not in ",/#":
            if stack.indent < 0:
                self.extra = self.price["mixed_layout"] if self.node.mode in "le" else 0
                return self.frame(stack.parent, stack.kind, stack.line_indent, column)
            self.extra = self.price["layout"] if column != stack.indent else 0
        return stack

    def expand(self) -> None:
        """Add a reader for each possible next step of the present one."""
        _, pos, mode, stack, *_ = self.node
        self.wide = bool(self.suspect[pos]) and self.node.cost < ACCIDENT
        if mode[0] == "S":
            self.in_string()
            return
        space = lexis.STRICT_SPACE.match(self.text, pos)
        self.at = space.end() if space else pos
        char = self.text[self.at : self.at + 1]
        if (char == "\\" or not char.isascii()) and self._odd_space():
            return
        if mode == "z":
            self._behind(char)
        elif not char:
            self._at_end()
        else:
            self._structure(char, stack)

    def _odd_space(self) -> bool:
        """Skip white space that JSON does not allow, or white space written as an escape."""
        odd = lexis.SPACE.match(self.text, self.at)
        if odd and odd.end() > self.at:
            self.go(odd.end(), self.node.mode, self.node.stack, (), "odd_space")
            return True
        return False

    def _structure(self, char: str, stack: Frame | None) -> None:
        """Read a mark of the grammar, or another notation in its place."""
        mode = self.node.mode
        if stack and self.at in self.columns:
            stack = self.laid_out(stack, self.columns[self.at], char)
        if self._aside(char, stack):
            return
        mark = lexis.FULL_WIDTH.get(char, char)
        if not self._short_cut(mark, stack) and not self._take(mark, mark != char, stack):
            if mode in "rfem":
                self._value(mark, stack)
            elif mode in "kl":
                self._key(mark, stack)
            elif mode == "c":
                self._colon(mark, stack)
            elif stack:
                self._after(mark, stack)
        if self.wide:
            self._accidents(char, stack)

    def _aside(self, char: str, stack: Frame | None) -> bool:
        """Skip comments, ellipses and emphasis; return True if no other step is possible here."""
        text, at, mode = self.text, self.at, self.node.mode
        if char in "/#<" and (comment := lexis.COMMENT.match(text, at)):
            self._comment(comment, stack)
        if char in ".…" and (dots := lexis.ELISION.match(text, at)):
            self.lose("elided", dots.end(), "a", stack)
        if at in self.emphasis:
            self.go(self.emphasis[at], mode, stack, (), "markdown")
        return at in self.emphasis and not self.wide

    def _take(self, mark: str, is_wide: bool, stack: Frame | None) -> bool:
        """Read one mark that strict JSON allows here, also in another spelling such as `“`."""
        mode, at, text = self.node.mode, self.at, self.text
        if mark in "\"'" and mode in "fem" and (triple := lexis.TRIPLE.match(text, at)):
            self.go(triple.end(), "b", stack, ("t", triple[2]), "triple_quotes")
        if mode in "rfem" and mark == "{" and text.startswith("{{", at):
            inner = self.frame(stack, "O", self.line_indent(at))
            self.go(at + 2, "k", inner, ("{",), "doubled_braces")
        to = self.step(mode, stack, mark, at)
        if to is None:
            return False
        row, odd, size = "full_width" if is_wide else "", "", 1
        if to[0][0] == "S":
            row = lexis.QUOTE_ROWS.get(mark, "smart_quotes")
            odd = "edge" if text[at + 1 : at + 2] in _EDGE_START else ""
        elif stack and stack.kind == "O" and mark == "}":
            if not text.startswith("}}", at):
                return False
            size = 2
        self.go(at + size, to[0], to[1], to[2], row, odd)
        return True

    def _short_cut(self, mark: str, stack: Frame | None) -> bool:
        """Read a whole strict string or value in one step, if no accident is suspected here."""
        mode, at = self.node.mode, self.at
        if self.wide or mark not in '"{[' or mode not in "femkl":
            return False
        if mark == '"':
            if mode in "kl" and (key := lexis.STRICT_KEY.match(self.text, at)):
                self.go(key.end(), "m", stack, ("s", key[1], "k"))
                return True
            string = _CLEAN.match(self.text, at) if mode in "fem" else None
            if string:
                self.go(string.end(), "b", stack, ("s", string[0][1:-1], "v"))
            return string is not None
        if self.jumps <= 0 or mode in "kl" or self.suspect[at]:
            return False
        suspect = self.suspect.find(1, at, at + 4000)
        piece = self.text[at : suspect if suspect >= 0 else at + 4000]
        try:
            _, end = _DECODER.raw_decode(piece)
        except (ValueError, RecursionError) as error:
            self.jumps -= getattr(error, "pos", 4000) + 300
            return False
        self.go(at + end, "a", stack, ("j", piece[:end]))
        return True

    def _comment(self, comment: re.Match[str], stack: Frame | None) -> None:
        """Leave out a comment, unless it stands for omitted data."""
        end, mode = comment.end(), self.node.mode
        found = lexis.comment_row(comment[0].strip("/*#<!-> \t\r\n"))
        if found == "elided":
            self.lose("elided", end, mode, stack)
            return
        if found and comment[0][0] in "/#" and lexis.MEMBER.search(comment[0]):
            self.lose("data_lost", end, mode, stack)
        self.go(end, mode, stack, (), "comment", found)

    def _value(self, mark: str, stack: Frame | None) -> None:
        """Read a value that begins in another notation than strict JSON."""
        text, at, mode = self.text, self.at, self.node.mode
        if mode == "r" or stack is None:
            return
        if mark == "(":
            inner = self.frame(stack, "t", self.line_indent(at))
            self.go(at + 1, "f", inner, ("[",), "tuple")
        elif mark in "]})":
            if mode == "e" and mark == _CLOSE[stack.kind]:
                self.go(at + 1, *self.pop(stack), "trailing_comma")
            elif mode == "m" and mark == _CLOSE[stack.kind]:
                self.lose("empty_slot", at, "a", stack)
        elif mark == ",":
            self.lose("empty_slot", at, "a", stack)
        elif mark in ":=" and text[at - 1] == ":":  # These are `::` and `:=`.
            self.go(at + 1, mode, stack, (), "equals")
        elif mark in "<$" and (holder := lexis.PLACEHOLDER.match(text, at)):
            self.lose("placeholder", holder.end(), "a", stack)
        elif mark in "uU" and text[at + 1 : at + 2] in {'"', "'"}:
            self.go(at + 1, mode, stack, (), "python_prefix")
        else:
            self._word(stack)

    def _word(self, stack: Frame) -> None:
        """Read a token without quotes: a number, a literal, or a string."""
        text, at = self.text, self.at
        if self.node.mode == "m" and (thousands := lexis.THOUSANDS.match(text, at)):
            mean = ("=", thousands[0].replace(",", ""))
            self.go(thousands.end(), "a", stack, mean, "number_format")
        match = lexis.TOKEN.match(text, at)
        token = match[0].rstrip(" \t_") if match else ""
        for word in dict.fromkeys([token, *token.split()[:1]]):
            if found := lexis.scalar(word):
                self.go(at + len(word), "a", stack, ("=", word), found[0])
                if word == token:
                    return
        if not token:
            return
        row, odd = lexis.word_row(token)
        if row != "unquoted_value":
            self.lose(row, at + len(token), "a", stack)
        else:
            if self.is_python and lexis.NAME.match(token):
                self.lose("code", at + len(token), "a", stack)
            self.go(at + len(token), "a", stack, ("w", token), row, odd)

    def _key(self, mark: str, stack: Frame | None) -> None:
        """Read a key that begins in another notation than strict JSON."""
        text, at, mode = self.text, self.at, self.node.mode
        closes = stack and mark == "}" and (stack.kind == "o" or text.startswith("}}", at))
        if mode == "l" and closes and stack:
            self.go(at + 1 + (stack.kind == "O"), *self.pop(stack), "trailing_comma")
        elif mark in ":=":
            self.lose("empty_slot", at, "c", stack)
        elif mark == ",":
            self.go(at + 1, "l", stack, (), "extra_comma" if mode == "l" else "leading_comma")
        elif mark in "uU" and text[at + 1 : at + 2] in {'"', "'"}:
            self.go(at + 1, mode, stack, (), "python_prefix")
        elif bare := lexis.BARE_KEY.match(text, at):
            self.go(bare.end(), "c", stack, ("s", bare[0], "k"), "unquoted_key")
        elif mark in "<{" and (holder := lexis.PLACEHOLDER.match(text, at)):
            self.lose("placeholder", holder.end(), "a", stack)

    def _colon(self, mark: str, stack: Frame | None) -> None:
        """Read an equals sign for the colon, or supply a missing colon."""
        if mark == "=":
            size = 2 if self.text.startswith("=>", self.at) else 1
            self.go(self.at + size, "m", stack, (), "equals")
        elif _VALUE_AHEAD.match(self.text, self.at):
            self.go(self.at, "m", stack, (), "missing_colon")

    def _after(self, mark: str, stack: Frame) -> None:
        """Read the text behind a value that is neither a comma nor a bracket."""
        (_, pos, mode, *_), text, at = self.node, self.text, self.at
        column = self.columns.get(at, -1)
        in_object, odd = stack.kind in "oO", list[str]()
        if mode == "b" and mark == "+":
            is_apart = in_object or text[at - 2 : at] == ' "' or _SPACED.match(text, at)
            self.go(at + 1, "p", stack, (), "concatenation", "" if is_apart else "glued")
        if mode == "b" and mark in lexis.CLOSERS:
            before = text[max(0, at - 200) : at].rstrip(lexis.BLANK + "\n")
            is_spaced = before[-2:-1].isspace() or text[at + 1 : at + 2].isspace()
            is_habit = in_object or is_spaced or not self.price["adjacent_lines"]
            row = "adjacent_lines" if column >= 0 and is_habit else "adjacent"
            self.go(at + 1, f"S{mark}v0", stack, ("+",), row, "" if is_spaced else "glued")
            odd.append("adjacent_edge" if is_spaced else "")
        follows = "l" if in_object else "e"
        if (_KEY_AHEAD if in_object else _VALUE_AHEAD).match(text, at):
            row = "missing_comma_line" if column >= 0 else "missing_comma"
            self.go(pos, follows, stack, (), row, *odd)

    def _at_end(self) -> None:
        """Handle the end of the text: its last bracket is missing, or it was cut off."""
        mode, stack = self.node.mode, self.node.stack
        is_last = self.closed and mode in "able" and stack and not stack.parent
        if is_last and stack and (stack.kind == "o" or stack.indent > 0):
            comma = "trailing_comma" if mode in "le" else ""
            self.go(self.end, "$", None, ("]",), "last_closer", comma)
        self.cut_off()

    def _behind(self, char: str) -> None:
        """End the document, or refuse the text behind it if it cannot be prose."""
        text, at, pos = self.text, self.at, self.node.pos
        if not char:
            self.go(at, "$", None)
            return
        if char in "]}":
            rest = text[at:].lstrip("]}) \t\r\n")
            self.go(self.end - len(rest), "z", None, (), "extra_closer")
            if not rest:
                return
        is_beside = "\n" not in text[pos:at]  # On the next line, `#` is rather a heading.
        if char in "/#" and is_beside and (comment := lexis.COMMENT.match(text, at)):
            self._comment(comment, None)
        if MORE.match(text, pos):
            self.lose("more", pos, "$", None)
            if self.wide and len(text[at:].strip()) == 1 and not char.isalnum():
                self.go(at + 1, "z", None, (), "deleted")
        else:
            self.extra = self.price["follows" if BRACKETS.search(text, at, at + 500) else "prose"]
            self.go(pos, "$", None)

    def _accidents(self, char: str, stack: Frame | None) -> None:
        """Assume one accident: a mark is superfluous, missing, replaced, or swapped."""
        text, at, mode = self.text, self.at, self.node.mode
        ahead = text[at + 1 : at + 2]
        is_lone = not char.isalnum() or not (ahead.isalnum() or text[at - 1 : at].isalnum())
        in_value = (
            mode == "a" and at == self.node.pos and text[at - 1].isalnum() and char not in "\"'"
        )
        if in_value and (more := _WORD.match(text, at + 1)):
            self.lose("swallowed", more.end(), "a", stack)
        in_value = in_value or char in "-+." or (ahead in {"[", "{"} and char not in _MARKS)
        layout, self.extra = self.extra, 0
        if is_lone and (char.isalnum() or in_value):
            self.lose("swallowed", at + 1, mode, stack)
        elif is_lone:
            self.go(at + 1, mode, stack, (), "deleted")
        self.extra = layout
        if ahead in {'"', "'"} and ahead != char and (to := self.step(mode, stack, ahead, at)):
            self.go(at + 2, to[0], to[1], ("2", to[2], ("s", char, "")), "swapped")
        if ahead and ahead in "\"'{}[],:" and (first := self.step(mode, stack, ahead, at)):
            second = self.step(first[0], first[1], char, at) if first[0] != "z" else None
            if second:
                self.go(at + 2, second[0], second[1], ("2", first[2], second[2]), "swapped")
        self._marks(char, stack, is_lone=is_lone)
        damaged = _DAMAGED.match(text, at) if mode in "femkl" else None
        if damaged and (mode in "kl" or not lexis.is_word(text, at)):
            bare = "unquoted_key" if mode in "kl" else ""
            self.lose("unreadable", damaged.end(), "c" if bare else "a", stack, bare)

    def _marks(self, char: str, stack: Frame | None, *, is_lone: bool) -> None:
        """Supply each mark that is allowed here, and also put it in place of the present mark."""
        text, at, mode = self.text, self.at, self.node.mode
        quote = _QUOTE_AHEAD.search(text, at, at + 200)
        in_comment = lexis.COMMENT.match(text, at)
        is_last, is_last_but_one = (not text[i:].strip("]}) \n") for i in (at, at + 1))
        for mark in _NEEDED[mode].replace('"', quote[0] if quote and quote[0] else '"'):
            to = self.step(mode, stack, mark, at) if mark != char else None
            if to is None or (mark in _OPEN and char in "]}"):
                continue
            if mark in _OPEN:  # The indentation tells nothing about a bracket that is not there.
                self.extra, to = 0, (to[0], self.frame(stack, to[1].kind, -1), to[2])
            if mark in _INSERTED and not in_comment and (to[0] != "z" or is_last):
                self.go(at, to[0], to[1], to[2], _INSERTED[mark])  # never an end in front of data
            if is_lone and (to[0] != "z" or is_last_but_one):
                row = "mismatched" if mark in "]}" and char in "]}" else "replaced"
                self.go(at + 1, to[0], to[1], to[2], row)
