"""Read one JSON document in two passes, and judge whether its value is certain.

The first pass prices each notation as a habit. It shows which habits the text really has, and where
an accident, such as a lost quote, may explain the text as well. The second pass uses the real costs
and looks for accidents at these places. It also returns the other readings within `MARGIN`. If one
of these has another value, or loses data, the text is refused.
"""

import json
from collections import Counter
from itertools import pairwise
from typing import Any

from graph_retry._output.reading import Document, Grade, Unreadable, lexis, merged, repair
from graph_retry._output.reading.costs import (
    ACCIDENT,
    ACCIDENTS,
    COSTS,
    DOUBTED,
    LOSSES,
    MARGIN,
    NOTATIONS,
    SURPRISES,
    prices,
)
from graph_retry._output.reading.moves import BRACKETS, MORE, Moves
from graph_retry._output.reading.search import CEILING, Mean, Node
from graph_retry._output.reading.strict import same, strict_part, unique
from graph_retry.records import Repair

LARGE = 20_000
"""In a text of at least this length, accidents are only searched where the reading stops."""
PIECE = 4_000
"""Characters of the first piece that is tried for a document with an unknown end."""
WINDOW = 100
"""Costs within this number of characters are added up, and compared with an accident's cost."""
_BRACKET_ROWS = frozenset(
    {"missing_bracket", "missing_opener", "mismatched", "extra_closer", "last_closer"}
)


class _Doubtful(Exception):
    """The reading has several possible values: keys that disagree, or an ambiguous escape."""


def strict_document(text: str, start: int, end: int) -> Document | None:
    """Read a document that is strict JSON and followed by prose only; None for any other."""
    try:
        value, stop = strict_part(text, start, end)
    except (ValueError, RecursionError):
        return None
    tail = text[stop : min(end, stop + 500)]
    is_next = tail[:1] == "{" and text[stop - 1] == "}"
    is_prose = tail[:1] in {*" \t\r\n`<;).!*~'\""} and not (
        MORE.match(tail) or BRACKETS.match(tail)
    )
    is_end = is_next or is_prose or not tail.strip() or tail.startswith("]]>")
    is_plain = is_end and not lexis.COMMENT.match(tail.lstrip(" \t"))
    return Document(start, stop, value) if is_plain else None


def read_document(text: str, start: int, end: int, *, complete: bool | None) -> Document:
    """Read the document that begins at `start`; its opening brace may be missing.

    Growing pieces are tried, because many short documents may follow one another in a long text.
    """
    size = PIECE
    while start + size < end:
        document = _read(text, start, start + size, complete=False)
        if document.refusal is None and document.end < start + size * 3 // 4:
            return document
        size *= 8
    return _read(text, start, end, complete=complete)


def _read(text: str, start: int, end: int, *, complete: bool | None) -> Document:
    """Read a document twice: first with each notation as a habit, then at its real costs."""
    part, whole = text[start:end], complete is True
    cheap = prices(complete=whole)
    moves = Moves(part, cheap, bytearray(len(part) + 2), closed=whole)
    found = moves.run(moves.first())
    if not moves.too_deep:
        path = _path(found[0]) if found else []
        price = prices(complete=whole, used=Counter(node.row for node in path))
        paid = [
            (after.pos, after.cost - before.cost + price[after.row] - cheap[after.row])
            for before, after in pairwise(path)
        ]
        lost = next(iter(_losses(path)), None)
        suspect = _suspect(paid, len(part), moves.furthest, is_lost=lost is not None)
        if lost and not any(suspect):
            return Document(start, start + _stop(path, len(part)), refusal=_lost(*lost, start))
        most = CEILING if found else DOUBTED
        del moves, found, path, paid  # The second pass needs as much memory as the first.
        moves = Moves(part, price, suspect, closed=whole)
        found = moves.run(moves.first(), most)
    place = start + moves.furthest
    if moves.too_deep:
        return Document(start, end, refusal=Unreadable("too_deep", place, "Nested too deeply."))
    if not found:
        message = "Too many marks are wrong to be sure of one reading."
        return Document(start, end, refusal=Unreadable("ambiguous", place, message))
    nodes = _path(found[0])
    stop = start + _stop(nodes, len(part))
    try:
        value = None if _losses(nodes) else _build(nodes)
        refusal = _doubt(found, value, start)
    except _Doubtful as error:
        refusal, value = Unreadable("ambiguous", start, str(error)), None
    if refusal:
        return Document(start, stop, refusal=refusal)
    return Document(start, stop, value, _records(nodes, start))


def _records(nodes: list[Node], start: int) -> list[Repair]:
    made: list[Repair] = []
    for node in nodes:
        if node.row and node.row not in SURPRISES:
            row = COSTS[node.row]
            grade: Grade = "format" if node.row in NOTATIONS else "assumed"
            made.append(repair(row.kind or node.row, start + node.at, row.told, grade))
    return merged(made)


def _suspect(paid: list[tuple[int, int]], size: int, furthest: int, *, is_lost: bool) -> bytearray:
    """Mark the places where an accident may explain a text about as cheaply as the first pass.

    Every place is marked if the first pass found no reading, or an expensive one that lost data. No
    place is marked if a cheap one lost data. Otherwise the places of high costs are marked.
    """
    suspect = bytearray(size + 2)
    spans = list[tuple[int, int]]()
    if not paid or (is_lost and sum(cost for _, cost in paid) >= ACCIDENT):
        spans = [(0, size + 2) if size < LARGE else (furthest - 2000, furthest + 500)]
    elif not is_lost:
        paid = [each for each in paid if each[1]]
        low = high = total = 0
        for place, cost in paid:  # Two pointers keep the sum of the costs in a sliding window.
            total += cost
            while paid[low][0] < place - WINDOW:
                total -= paid[low][1]
                low += 1
            if total + MARGIN >= ACCIDENT and place > high - WINDOW:
                spans.append((max(paid[low][0] - 2 * WINDOW, high), place + WINDOW))
                high = place + WINDOW
    for first, last in spans:
        span = slice(max(0, first), min(size + 2, last))
        suspect[span] = b"\1" * max(0, span.stop - span.start)
    return suspect


def _doubt(found: list[Node], value: Any, start: int) -> Unreadable | None:
    """Return the reason to refuse the cheapest reading, or None if it is certain."""
    best, nodes = found[0], _path(found[0])
    made = _rows(nodes)
    for name, at in _losses(nodes):
        return _lost(name, at, start)
    for rival in found[1:]:
        others = _path(rival)
        lost = _losses(others)
        if lost or not _is_value(others, value):
            theirs = _rows(others)
            at = next((at for row, at in theirs if row not in dict(made)), 0)
            name, at = lost[0] if lost else ("", at)
            other = LOSSES[name].told.lower() if lost else _told(theirs)
            message = f"Two readings are about as likely: {_told(made)}; or {other}."
            return Unreadable("ambiguous", start + at, message)
    if best.cost > DOUBTED and not ACCIDENTS.keys().isdisjoint(dict(made)):
        return Unreadable("syntax", start, f"{_told(made)}: too much is wrong to be sure.")
    if best.pos >= LARGE and not _BRACKET_ROWS.isdisjoint(dict(made)):
        return Unreadable("syntax", start, "A bracket is wrong, far from where it shows.")
    return Unreadable("ambiguous", start, "Nothing is left.") if made and not value else None


def _lost(name: str, at: int, start: int) -> Unreadable:
    kind: Any = LOSSES[name].kind
    return Unreadable(kind, start + at, f"{LOSSES[name].told}.")


def _rows(nodes: list[Node]) -> list[tuple[str, int]]:
    return [(node.row, node.at) for node in nodes if node.row]


def _told(rows: list[tuple[str, int]]) -> str:
    return ", ".join(dict.fromkeys(COSTS[row].told for row, _ in rows)) or "as it stands"


def _path(node: Node) -> list[Node]:
    nodes: list[Node] = []
    step: Node | None = node
    while step is not None:
        nodes.append(step)
        step = step.parent
    return nodes[::-1]


def _stop(nodes: list[Node], size: int) -> int:
    return next((node.pos for node in reversed(nodes) if node.mode == "z"), size)


def _losses(nodes: list[Node]) -> list[tuple[str, int]]:
    return [(node.mean[1], node.mean[2]) for node in nodes if node.mean[:1] == ("!",)]


def _is_value(nodes: list[Node], value: Any) -> bool:
    try:
        return same(_build(nodes), value)
    except _Doubtful:
        return False


def _build(nodes: list[Node]) -> Any:
    """Build the value of a reading from the meanings of its nodes."""
    builder = _Builder()
    for node in nodes:
        if node.mean:
            builder.read(node.mean)
    return builder.open[0][0]


class _Builder:
    """Builds a value; holds the open containers, their pending keys, and the present string."""

    def __init__(self) -> None:
        self.open: list[Any] = [[]]
        self.keys: list[str] = []
        self.raw = ""
        self.joined: Any = ""

    def read(self, mean: Mean) -> None:
        """Apply the meaning of one node."""
        kind, *parts = mean
        if kind == "2":
            for part in filter(None, parts):
                self.read(part)
        elif kind in "{[":
            self.open.append({} if kind == "{" else [])
            self.keys.append("")
        elif kind in "]1":
            box = self.open.pop()
            self.keys.pop()
            self.add(box[0] if kind == "1" and len(box) == 1 else box)
        elif kind == "+":
            box = self.open[-1]
            self.joined = box.pop() if isinstance(box, list) else box.pop(self.keys[-1])
        elif kind == "s":
            self._string(*parts)
        elif kind in "t=wj":
            self.add(_value(kind, parts[0]))

    def _string(self, piece: str, role: str) -> None:
        self.raw += piece
        if role:
            text, self.raw = _decoded(self.raw), ""
            if role == "k":
                self.keys[-1] = text
            else:
                text, self.joined = self.joined + text, ""
                self.add(text)

    def add(self, value: Any) -> None:
        """Add a value to the innermost container."""
        box = self.open[-1]
        if isinstance(box, list):
            box.append(value)
        elif self.keys[-1] in box and not same(box[self.keys[-1]], value):
            raise _Doubtful(f"Two values for the key `{self.keys[-1][:40]}`.")
        else:
            box[self.keys[-1]] = value


def _value(kind: str, token: str) -> Any:
    if kind == "t":
        return _decoded(token)
    if kind == "j":
        try:
            return json.loads(token, object_pairs_hook=unique)
        except ValueError as error:
            raise _Doubtful(f"{error}.") from None
    found = lexis.scalar(token) if kind == "=" else ("", token)
    return found[1] if found else None


def _decoded(raw: str) -> str:
    value = lexis.decode(raw)
    if value is None:
        raise _Doubtful("Some backslashes are escapes, others may not be.")
    return value
