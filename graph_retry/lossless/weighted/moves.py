"""The steps that continue a reading outside of strings.

A step reads the next piece of the text: by JSON's grammar, in another notation, or as an accident.
An accident is one mark that was lost, added, replaced or moved by mistake. The mode of a reading is
a letter, which says where in JSON's grammar the reading is:

- These expect a value: `r` (the root), `f` (the first element of a list), `e` (an element after a
  comma), `m` (the value of a member).
- These expect a key: `k` (the first key of an object), `l` (a key after a comma).
- `c` expects a colon, and `p` expects the string after a `+`.
- `a` is after a value, and `b` is after a string, which may be continued.
- `z` is after the document, and `$` is the end.
"""

import json
import re
from array import array
from bisect import bisect_right

from graph_retry.lossless._ground import lazy
from graph_retry.lossless.strict import has_odd_escape
from graph_retry.lossless.weighted import lexis
from graph_retry.lossless.weighted.search import Frame, Node, Search, Step, Work

_CLOSE = {"o": "}", "a": "]", "t": ")", "T": ")", "g": ")"}
_OPEN = {"{": ("k", "o"), "[": ("f", "a"), "(": ("f", "t")}
_BEFORE = {"e": ",", "l": ",", "m": ":", "p": "\0"}
r"""The strict JSON before a value or key, by mode. `\0` joins a string to the previous string."""
_INDENT = lazy(f"(?m)^[{lexis.BLANK}]*")
_OPENING = frozenset("{[(｛［")
_EDGE_START = frozenset(",:=}])")
_VALUE_AHEAD = lazy(r"[\"'“`\d\[{(\-]|(?i:true|false|null|none)\b")
_KEY_AHEAD = lazy(r"[\"'“`]|[\w$][\w$.\-]*\s*[:=]|\*+\"")
_PYTHON_KEY = lazy(r"[{,]\s*+'[^'\n]{0,80}'\s*+:")
_SPACED = lazy(r"\+\s*[\"']\s")
MORE = lazy(  # Prose after a document never begins like this.
    r"[\w\"'“&]|\.[a-z_]|\s*+[,;]?\s*+(?:[\"'“][^\"\n]*[\"'”]\s*+[:,}\]{\[])"
    r"|\s*+[,;]\s*+\w+\s*+:\s*+[\"\d\[{]"
    r"|\s*+[:=+,](?!\s*+[\[{])|\s*+(?:true|false|null)\b|[^{}\[\]]{0,500}[}\]]"
    r"|\s*+,?\s*+(?:[\"'][^\"'\n]*[\"']|-?\d[\w.+-]*|true|false|null)\s*+(?:[,\]}]|\Z)"
)
BRACKETS = lazy(r"[{\[]\s*[\"'{\[\d\]}]|[\w\"']\s*[:=]\s*[\"'{\[(\d]")
_NEEDED = {"r": "{[", "f": "\"{[]", "e": "\"{[", "m": "\"{[", "k": "\"}", "l": "\"", "c": ":",
           "a": ",]})", "b": ",]})", "p": "\""}  # fmt: skip
_INSERTED = dict.fromkeys("{[}])", "missing_bracket") | dict.fromkeys("\"'", "missing_quote")
_MARKS = frozenset(",:[]{}()\"'/*")
_CLOSERS = lazy(r"[\]})](?:\s*+[\]})])*+")
_QUOTE_AHEAD = lazy(r"\"|(?<!\w)'|'(?!\w)|\Z")
_DAMAGED = lazy(
    r"(?:[^\"'“]|[\"'“](?=(?:[\d.eE+-]+|[a-zA-Z]{3,4})?\s*[,\]}\n]))"
    r"(?:[^,\]}\n:\"']|(?<=\w)[\"'](?=\w|\s*[,:=\]}\n])){0,99}"
)
_DECODER = json.JSONDecoder(parse_constant=int)  # `int("NaN")` raises.
JUMP = 2_000
"""Maximum number of characters that are read in one step."""


class Moves(Search):
    """A search that knows the steps outside of strings. `text` begins with the document."""

    def __init__(
        self, text: str, price: dict[str, int], work: Work, suspect: bytearray, *, closed: bool
    ) -> None:
        super().__init__(text, price, work)
        self.suspect, self.closed = suspect, closed  # `closed`: the model finished its answer.
        self.wide = False  # True at places where accidents are tried.
        lines = [*_INDENT.finditer(text)]
        self.starts = array("q", (line.start() for line in lines))
        self.tokens = array("q", (line.end() for line in lines))  # the first token of each line
        self.is_python = _PYTHON_KEY.search(text) is not None  # A bare name may be a variable.

    def first(self) -> Node:
        """Return the first reading. It begins at a bracket, or at a key if the `{` is missing."""
        if self.text[:1] in _OPENING or not lexis.OPENING_KEY.match(self.text):
            return self.node
        self.go(0, "k", self.frame(None, "o", -1), "{", "missing_opener")
        return self.buckets[self.price["missing_opener"]].pop()

    def step(self, mode: str, stack: Frame | None, mark: str, at: int) -> Step | None:
        """Return the mode, stack and text after `mark`; None if strict JSON forbids `mark` here."""
        top = stack.kind if stack else ""
        if mode in "rfem" and mark in "{[":
            return self.opened(mode, stack, mark, at)
        if mark in lexis.CLOSERS and mode in "femklp":
            return f"S{mark}{'k' if mode in 'kl' else 'v'}0", stack, _BEFORE.get(mode, "") + '"'
        if mode in "ab" and mark == "," and stack and top != "g":
            if top == "t":
                stack = self.frame(stack.parent, "T", stack.line_indent, stack.indent)
            return ("l" if top == "o" else "e"), stack, ""
        unfinished = "t" if mode in "ab" else "g"  # `(1)` is no tuple, and `()` is no group.
        if mode in "abfk" and stack and mark == _CLOSE[top] and top != unfinished:
            return self.closed_by(mark, stack)
        return ("m", stack, "") if mode == "c" and mark == ":" else None

    def opened(self, mode: str, stack: Frame | None, mark: str, at: int) -> Step:
        """Return the step that opens an object, a list or a tuple."""
        follows, kind = _OPEN[mark]
        inner = self.frame(stack, kind, self.line(at)[0])
        return follows, inner, _BEFORE.get(mode, "") + ("{" if mark == "{" else "[")

    @staticmethod
    def closed_by(mark: str, stack: Frame) -> Step:
        """Return the step that closes the innermost container."""
        written = "" if stack.kind == "g" else "}" if mark == "}" else "]"
        return ("a" if stack.parent else "z"), stack.parent, written

    def line(self, at: int) -> tuple[int, bool]:
        """Return the indentation of the line of `at`, and whether `at` is the line's first token.

        The indentation is -1 in a text of one line.
        """
        number = bisect_right(self.starts, at) - 1
        indent = self.tokens[number] - self.starts[number] if len(self.starts) > 1 else -1
        return indent, number > 0 and self.tokens[number] == at

    def laid_out(self, stack: Frame, column: int, char: str) -> Frame:
        """Set a cost if the indentation of a line does not fit its container; return the container.

        The first line in a container sets its indentation.
        """
        if char in "]})":
            is_odd = column != stack.line_indent and stack.line_indent >= 0
            self.odd = "layout" if is_odd else ""
        elif self.node.mode in "klfe" and char not in ",/#":
            if stack.indent < 0:
                self.odd = "mixed_layout" if self.node.mode in "le" else ""
                return self.frame(stack.parent, stack.kind, stack.line_indent, column)
            self.odd = "layout" if column != stack.indent else ""
        return stack

    def cut_off(self) -> None:
        """Add a reading in which the text was cut off at its end.

        Such a reading costs more after a closing bracket, because few texts are cut off there.
        """
        at_bracket = "cut_at_bracket" if self.text.rstrip()[-1:] in "]}" else ""
        self.go(self.end, "$", None, "", "truncated", at_bracket)

    def outside(self) -> None:
        """Add a reading for each way to continue at a position outside of strings."""
        cost, pos, mode, stack, *_ = self.node
        char = self._next(pos)
        if char in {",", ":"} and not self.wide and (to := self.step(mode, stack, char, self.at)):
            # Nothing else is possible here, so the reading continues after the comma or colon.
            pos, mode, stack = self.at + 1, to[0], to[1]
            self.node = Node(cost, pos, mode, stack, self.sig, "", (), self.at, self.node)
            self.wide = self.is_near and bool(self.suspect[pos])
            char = self._next(pos)
        if char == "\\" or not char.isascii():  # It may be white space that JSON does not allow.
            odd = lexis.SPACE.match(self.text, self.at)
            if odd and odd.end() > self.at:
                self.go(odd.end(), mode, stack, "", "odd_space")
                return
        if mode == "z":
            self._behind(char)
        elif not char:
            self._at_end()
        else:
            self._structure(char, stack)

    def _next(self, pos: int) -> str:
        """Move `self.at` from `pos` past white space. Return the next character; "" at the end."""
        space = lexis.STRICT_SPACE.match(self.text, pos)
        self.at = space.end() if space else pos
        return self.text[self.at : self.at + 1]

    def _structure(self, char: str, stack: Frame | None) -> None:
        """Read a mark of JSON's grammar, or another notation in its place."""
        mode, at = self.node.mode, self.at
        column, is_first = self.line(at)
        if stack and is_first:
            stack = self.laid_out(stack, column, char)
        mark = lexis.FULL_WIDTH.get(char, char)
        if char in "/#<" and (comment := lexis.COMMENT.match(self.text, at)):
            self._comment(comment, stack)
        if not self._short_cut(mark, stack) and not (
            self._spelled(mark, stack) or self._take(mark, mark != char, stack)
        ):
            if mode in "fem" and stack:
                self._word(stack)
            elif mode == "c" and _VALUE_AHEAD.match(self.text, at):
                self.go(at, "m", stack, "", "missing_colon")
            elif mode in "ab" and stack:
                self._after(mark, stack)
        if self.wide:
            self._accidents(char, stack)

    def _spelled(self, mark: str, stack: Frame | None) -> bool:
        """Add a reading for each spelling that matches here. Return whether any was added."""
        mode, is_read = self.node.mode, False
        for spelling in lexis.spellings(mode, mark):
            if match := spelling.pattern.match(self.text, self.at):
                text = spelling.written(match)
                if text is not None:
                    text = _BEFORE.get(mode, "") + text if text else ""
                    self.go(match.end(), spelling.follows or mode, stack, text, spelling.row)
                    is_read = True
        return is_read

    def _take(self, mark: str, is_wide: bool, stack: Frame | None) -> bool:
        """Read one mark that strict JSON allows here, or another spelling of it, such as `“`."""
        mode, at, text = self.node.mode, self.at, self.text
        if mark == "(" and mode in "fem":
            self.go(at + 1, *self.opened(mode, stack, mark, at), "tuple")
            self.go(at + 1, mode, self.frame(stack, "g", self.line(at)[0]), "", "tuple")
            return True
        if mode in "el" and stack and stack.kind != "g" and mark == _CLOSE[stack.kind]:
            self.go(at + 1, *self.closed_by(mark, stack), "trailing_comma")
            return True
        to = self.step(mode, stack, mark, at)
        if to is None:
            return False
        row, odd = "full_width" if is_wide else "", ""
        if to[0][0] == "S":
            row = lexis.QUOTE_ROWS.get(mark, "smart_quotes")
            odd = "edge" if text[at + 1 : at + 2] in _EDGE_START else ""
        self.go(at + 1, *to, row, odd)
        return True

    def _short_cut(self, mark: str, stack: Frame | None) -> bool:
        """Read a whole string or value in one step, if no accident is suspected here."""
        mode, at = self.node.mode, self.at
        if self.wide or mode not in "femkl":
            return False
        before, is_key = _BEFORE.get(mode, ""), mode in "kl"
        if mark not in "{[":
            plain = lexis.PLAIN.get((mark if mark in "\"'" else "") + ("k" if is_key else "v"))
            found = plain.match(self.text, at) if plain else None
            if found is None:
                return False
            if mark not in "\"'":
                self.go(found.end(), "a", stack, before + found[0])
            else:
                follows, row = "m" if is_key else "b", lexis.QUOTE_ROWS[mark]
                self.go(found.end(), follows, stack, f'{before}"{found["string"]}"', row)
            return True
        if is_key or self.suspect[at]:
            return False
        suspect = self.suspect.find(1, at, at + JUMP)
        piece = self.text[at : suspect if suspect >= 0 else at + JUMP]
        try:
            _, end = _DECODER.raw_decode(piece)
        except (ValueError, RecursionError) as error:
            self.spend(getattr(error, "pos", JUMP))
            return False
        if has_odd_escape(piece, 0, end):
            return False
        self.go(at + end, "a", stack, before + piece[:end])
        return True

    def _comment(self, comment: re.Match[str], stack: Frame | None) -> None:
        """Skip a comment. Record a loss if the comment may contain data or stand for data."""
        end, mode = comment.end(), self.node.mode
        self.spend(10 * (end - self.at))  # Several patterns search the comment.
        found = lexis.comment_row(comment[0].strip("/*#<!-> \t\r\n"))
        if found == "elided":
            self.go(end, mode, stack, "", "elided")
            return
        if found and comment[0][0] in "/#" and lexis.MEMBER.search(comment[0]):
            self.go(end, mode, stack, "", "data_lost")
        self.go(end, mode, stack, "", "comment", found)

    def _word(self, stack: Frame) -> None:
        """Read a token without quotes: a number, a literal, or a string."""
        text, at, before = self.text, self.at, _BEFORE.get(self.node.mode, "")
        if self.node.mode == "m" and (thousands := lexis.THOUSANDS.match(text, at)):
            digits = thousands[0].replace(",", "").lstrip("+")
            self.go(thousands.end(), "a", stack, before + digits, "number_format")
        match = lexis.TOKEN.match(text, at)
        token = match[0].rstrip(" \t_") if match else ""
        for word in dict.fromkeys([token, *token.split()[:1]]):
            if found := lexis.scalar(word):
                self.go(at + len(word), "a", stack, before + found[1], found[0])
                if word == token:
                    return
        if not token:
            return
        row, odd = lexis.word_row(token)
        if self.is_python and lexis.NAME.match(token):
            self.go(at + len(token), "a", stack, "", "code")
        self.go(at + len(token), "a", stack, f'{before}"{lexis.written(token)}"', row, odd)

    def _after(self, mark: str, stack: Frame) -> None:
        """Read the text after a value, if it is neither a comma nor a closing bracket."""
        (_, pos, mode, *_), text, at = self.node, self.text, self.at
        in_object, is_first, odd = stack.kind == "o", self.line(at)[1], ""
        if mode == "b" and mark == "+":
            is_apart = in_object or text[at - 2 : at] == ' "' or _SPACED.match(text, at)
            self.go(at + 1, "p", stack, "", "concatenation", "" if is_apart else "glued")
        if mode == "b" and mark in lexis.CLOSERS:
            before = text[max(0, at - 200) : at].rstrip(lexis.BLANK + "\n")
            is_spaced = before[-2:-1].isspace() or text[at + 1 : at + 2].isspace()
            is_habit = in_object or is_spaced or not self.price["adjacent_lines"]
            row = "adjacent_lines" if is_first and is_habit else "adjacent"
            self.go(at + 1, f"S{mark}v0", stack, '\0"', row, "" if is_spaced else "glued")
            odd = "edge" if is_spaced else ""
        follows = "l" if in_object else "e"
        ahead = _KEY_AHEAD if in_object else _VALUE_AHEAD
        # A bracket directly after a number or a literal may be at the wrong place.
        odd = (
            "glued"
            if mode == "a" and at == pos and mark in "[{(" and text[at - 1].isalnum()
            else odd
        )
        if stack.kind != "g" and ahead.match(text, at):
            row = "missing_comma_line" if is_first else "missing_comma"
            self.go(pos, follows, stack, "", row, odd)

    def _at_end(self) -> None:
        """Add readings for a text that ends early: it was cut off, or lacks the last bracket."""
        mode, stack = self.node.mode, self.node.stack
        is_last = self.closed and mode in "able" and stack and not stack.parent
        if is_last and stack and stack.kind in "oa" and (stack.kind == "o" or stack.indent > 0):
            comma = "trailing_comma" if mode in "le" else ""
            self.go(self.end, "$", None, "}" if stack.kind == "o" else "]", "last_closer", comma)
        self.cut_off()

    def _behind(self, char: str) -> None:
        """End the document. Record a loss if the text after it cannot be prose."""
        text, at, pos = self.text, self.at, self.node.pos
        if not char:
            self.go(at, "$", None)
            return
        if char in "]}":
            closers = _CLOSERS.match(text, at)
            end = closers.end() if closers else at
            self.go(end, "z", None, "", "extra_closer")
            if end == len(text.rstrip()):
                return
        is_beside = "\n" not in text[pos:at]  # A `#` on the next line is probably a heading.
        if char in "/#" and is_beside and (comment := lexis.COMMENT.match(text, at)):
            self._comment(comment, None)
        if MORE.match(text, pos):
            self.go(pos, "$", None, "", "more")
        else:
            self.odd = "follows" if BRACKETS.search(text, at, at + 500) else "prose"
            self.go(pos, "$", None)

    def _accidents(self, char: str, stack: Frame | None) -> None:
        """Add a reading for each accident: a superfluous, missing, replaced or swapped mark."""
        text, at, mode = self.text, self.at, self.node.mode
        ahead = text[at + 1 : at + 2]
        is_lone = not char.isalnum() or not (ahead.isalnum() or text[at - 1 : at].isalnum())
        in_value = mode == "a" and at == self.node.pos and text[at - 1].isalnum()
        in_value &= char not in "\"'"
        in_value |= char in "-+." or (ahead in {"[", "{"} and char not in _MARKS)
        layout, self.odd = self.odd, ""
        if is_lone:
            is_data = char.isalnum() or in_value
            self.go(at + 1, mode, stack, "", "swallowed" if is_data else "deleted")
        self.odd = layout
        if ahead in {'"', "'"} and ahead != char and (to := self.step(mode, stack, ahead, at)):
            inside = lexis.written(char) or ""
            self.go(at + 2, to[0], to[1], to[2] + inside, "swapped")
        if ahead and ahead in "\"'{}[],:" and (first := self.step(mode, stack, ahead, at)):
            second = self.step(first[0], first[1], char, at) if first[0] != "z" else None
            if second:
                self.go(at + 2, second[0], second[1], first[2] + second[2], "swapped")
        self._marks(char, stack, is_lone=is_lone)
        damaged = _DAMAGED.match(text, at) if mode in "femkl" else None
        if damaged and (mode in "kl" or not lexis.is_word(text, at)):
            bare = "unquoted_key" if mode in "kl" else ""
            self.go(damaged.end(), "c" if bare else "a", stack, "", "unreadable", bare)

    def _marks(self, char: str, stack: Frame | None, *, is_lone: bool) -> None:
        """Add readings that insert a mark that is allowed here, or replace `char` by it."""
        text, at, mode = self.text, self.at, self.node.mode
        quote = _QUOTE_AHEAD.search(text, at, at + 200)
        within = "glued" if (text[at - 1 : at] + text[at + 1 : at + 2]).isalnum() else ""
        is_last, is_last_but_one = (not text[i:].strip("]}) \n") for i in (at, at + 1))
        for mark in _NEEDED[mode].replace('"', quote[0] if quote and quote[0] else '"'):
            to = self.step(mode, stack, mark, at) if mark != char else None
            if to is None or (mark in _OPEN and char in "]}"):
                continue
            if mark in _OPEN and to[1]:
                # A missing bracket has no indentation to compare with.
                self.odd, to = "", (to[0], self.frame(stack, to[1].kind, -1), to[2])
            if mark in _INSERTED and (to[0] != "z" or is_last):
                self.go(at, *to, _INSERTED[mark])  # The document ends only where no data follows.
            if is_lone and (to[0] != "z" or is_last_but_one):
                row = "mismatched" if mark in "]}" and char in "]}" else "replaced"
                self.go(at + 1, *to, row, within)
