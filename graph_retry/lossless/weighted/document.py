"""Read one JSON document in up to two searches, and judge whether its value is certain.

The first search assumes that each notation, such as `'` for quotes, is a habit of the model, and
therefore costs little. It finds the notations in use, and the places where a mark may be lost or
wrong. The second search uses the real costs, and assumes lost or wrong marks only at these places.

The text is refused if data would be lost, or if another value costs at most `MARGIN` points more.
"""

import html
import json
import re
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from graph_retry.lossless._ground import Repair, lazy, text_of
from graph_retry.lossless.results import Document, Grade, Unreadable, merged, refuse_if, repair
from graph_retry.lossless.strict import finite, has_odd_escape, strict_part, unique
from graph_retry.lossless.weighted import lexis
from graph_retry.lossless.weighted.costs import (
    ACCIDENT,
    ACCIDENTS,
    COSTS,
    DOUBTED,
    HABIT,
    LOSSES,
    MARGIN,
    NOTATIONS,
    SURPRISES,
    prices,
)
from graph_retry.lossless.weighted.moves import BRACKETS, MORE
from graph_retry.lossless.weighted.search import CEILING, CHARACTERS, DOCUMENT, Node, Work
from graph_retry.lossless.weighted.strings import Reader

PIECE = 4_000
"""Number of characters that are tried first if the length of a document is unknown."""
ALTERNATIVES = 12
"""A document with this many about equally likely readings, or more, is refused."""
_STRING = r"\"(?:[^\"\\]|\\.)*+\"|'(?:[^'\\]|\\.)*+'"


class Reading:
    """One reading of a text, as the chain of its steps, with the rows of `costs` that it needs."""

    def __init__(self, last: Node) -> None:
        step: Node | None = last
        self.cost, self.nodes = last.cost, list[Node]()
        while step is not None:
            self.nodes.append(step)
            step = step.parent
        self.nodes.reverse()
        marked = [node for node in self.nodes if node.rows]
        self.rows = [(row, node.at) for node in marked for row in node.rows if row]
        self.made = [each for each in self.rows if each[0] not in SURPRISES]
        self.names = dict.fromkeys(row for row, _ in self.made)
        self.losses = [each for each in self.rows if each[0] in LOSSES]

    def stop(self, size: int) -> int:
        """Return the position of the document's end in a text of `size` characters."""
        return next((node.pos for node in reversed(self.nodes) if node.mode == "z"), size)

    def told(self) -> str:
        """Describe the departures from strict JSON, or the `SURPRISES` if there are none."""
        names = self.names or dict.fromkeys(row for row, _ in self.rows)
        return ", ".join(COSTS[row].told for row in names) or "as it stands"

    def value(self) -> Any:
        """Return the value of the strict JSON that the reading has written.

        Raises:
            ValueError: If a key occurs twice with different values, or a number is out of range.
        """
        written = "".join(node.written for node in self.nodes).replace('"\0"', "")
        return json.loads(written, object_pairs_hook=unique, parse_float=finite)

    def repairs(self, start: int) -> list[Repair]:
        """Return the records of the repairs. `start` is the document's position in the text."""
        made: list[Repair] = []
        for name, at in self.made:
            grade: Grade = "format" if name in NOTATIONS else "assumed"
            made.append(repair(COSTS[name].kind or name, start + at, COSTS[name].told, grade))
        return merged(made)


def _strict(text: str, start: int, end: int) -> Document | None:
    """Read a strict JSON document that has only prose after it; None for any other document."""
    try:
        value, stop = strict_part(text, start, end)
    except (ValueError, RecursionError):
        return None
    if has_odd_escape(text, start, stop):
        return None
    tail = text[stop : min(end, stop + 500)]
    is_next = tail[:1] == "{" and text[stop - 1] == "}"
    is_prose = tail[:1] in {*" \t\r\n`<;).!*~'\""} and not (
        MORE.match(tail) or BRACKETS.match(tail)
    )
    is_end = is_next or is_prose or not tail.strip() or tail.startswith("]]>")
    is_plain = is_end and not lexis.COMMENT.match(tail.lstrip(" \t"))
    return Document(start, stop, value) if is_plain else None


class Mask(NamedTuple):
    r"""One way to escape a whole document, such as `{&quot;a&quot;: 1}` or `{\"a\": 1}`.

    start: Matches the beginning of an escaped document.
    inside: Matches an escaped document up to its end.
    escape: Matches one escape, such as `&quot;`.
    plain: Returns the character that an escape stands for.
    """

    kind: str
    told: str
    start: re.Pattern[str]
    inside: re.Pattern[str]
    escape: re.Pattern[str]
    plain: Callable[[str], str]


def _resolved(escape: str) -> str:
    if escape in {r"\b", r"\f"}:
        raise Unreadable("ambiguous", 0, "Some backslashes may not be escapes.")
    return str(json.loads(f'"{escape}"'))


def _halved(token: str) -> str:
    return token[0] if token in {"{{", "}}"} else token


MASKS = (
    Mask("html_entities", "written with HTML entities",
        lazy(r"[{\[](?:\s|[{\[]|&nbsp;){0,40}+&(?:quot|apos|#34|#39|#x22|#x27);"),
        lazy(r"[^\"]*+\Z"), lazy(r"&#?\w+;"), html.unescape),
    Mask("escaped", "escaped like the inside of a string",
        lazy(r"[{\[](?:\s|[{\[]|\\+[nrt]){0,40}+\\+\""),
        lazy(r"(?:[^\"\\]|\\.)*+", re.DOTALL),
        lazy(r"\\(?:u[dD][89abAB]\w\w\\u\w{4}|u\w{4}|.)", re.DOTALL),
        _resolved),
    Mask("doubled_braces", "braces written twice",
        lazy(r"[\[\s]{0,40}+\{\{\s*+(?:[\"'“]|[\w$]+\s*+:|\}\})"),
        lazy(rf"(?:[^\"'{{}}]|\{{\{{|\}}\}}|{_STRING})*(?<=\}}\}})[\s\]]*+", re.DOTALL),
        lazy(rf"{_STRING}|\{{\{{|\}}\}}", re.DOTALL),
        _halved),
)  # fmt: skip


def mask_at(text: str, at: int) -> Mask | None:
    """Return the mask of an escaped document that may begin at `at`, or None."""
    return next((mask for mask in MASKS if mask.start.match(text, at)), None)


def read_document(
    text: str, start: int, end: int, work: Work, *, complete: bool | None
) -> Document:
    """Read the document that begins at `start`: strict JSON, an escaped or a broken document."""
    if document := _strict(text, start, end):
        return document
    mask = mask_at(text, start)
    inside = mask.inside.match(text, start, end) if mask else None
    if mask and inside:
        return _unmasked(text, start, inside.end(), mask, work, complete)
    return _broken(text, start, end, work, complete)


def _unmasked(
    text: str, at: int, stop: int, mask: Mask, work: Work, complete: bool | None
) -> Document:
    """Replace the escapes of a document by their characters, and read the resulting text.

    If the resulting text lacks a piece, the document is refused, because the escapes may be wrong.
    """
    try:
        plain = mask.escape.sub(lambda escape: mask.plain(escape[0]), text[at:stop])
    except Unreadable as error:
        return Document(at, stop, refusal=Unreadable("ambiguous", at, str(error)))
    except ValueError:
        return Document(at, stop, refusal=Unreadable("syntax", at, "The escapes are broken."))
    found = read_document(plain, 0, len(plain), work, complete=complete)
    end = at + found.end
    for escape in mask.escape.finditer(text, at, stop):
        if escape.start() < end:
            end += len(escape[0]) - len(mask.plain(escape[0]))
    made = [Repair({**each, "position": at}) for each in found.repairs]
    refusal = found.refusal and Unreadable(found.refusal.refusal["kind"], at, str(found.refusal))
    if any(each["grade"] != "format" for each in made):
        message = f"The document is {mask.told}, and something else is wrong."
        refusal = Unreadable("ambiguous", at, message)
    return Document(at, end, found.value, [repair(mask.kind, at, mask.told), *made], refusal)


def _broken(text: str, start: int, end: int, work: Work, complete: bool | None) -> Document:
    """Read a document that is not strict JSON. Its opening brace may be missing.

    A short piece of the text is tried first, because a long piece takes longer.
    """
    if start + PIECE < end:
        document = _weighed(text, start, start + PIECE, work, complete=False)
        if document.refusal is None and document.end < start + PIECE * 3 // 4:
            return document
    return _weighed(text, start, end, work, complete=complete)


def _weighed(text: str, start: int, end: int, work: Work, *, complete: bool | None) -> Document:
    """Read a document in up to two searches. The first assumes that all notations are habits."""
    part, whole = text[start:end], complete is True
    cheap = prices(complete=whole)
    work.left -= DOCUMENT + len(part) // CHARACTERS
    reader = Reader(part, cheap, work, bytearray(len(part) + 2), closed=whole)
    found = reader.run(reader.first())
    first = Reading(found[0]) if found else None
    used = Counter(row for row, _ in first.rows) if first else Counter[str]()
    habits = frozenset(row for row, count in used.items() if count >= HABIT)
    price = prices(habits, complete=whole)
    suspect = _suspect(first, reader, price)
    # If the costs of habits leave only one reading, the real, higher costs leave only one, too.
    is_known = first and all(price[row] == cheap[row] for row in used) and len(found) == 1
    is_final = not any(suspect) and (is_known or (first and first.losses))
    if not reader.too_deep and not is_final:
        most = CEILING if found else DOUBTED
        del reader, found, first  # The second search needs as much memory as the first.
        reader = Reader(part, price, work, suspect, closed=whole)
        found = reader.run(reader.first(), most)
    place = start + reader.furthest
    if reader.too_deep:
        return Document(start, end, refusal=Unreadable("too_deep", place, "Nested too deeply."))
    if not found:
        message = "Too many marks are wrong to be sure of one reading."
        return Document(start, end, refusal=Unreadable("ambiguous", place, message))
    best, *others = map(Reading, found)
    stop = start + best.stop(len(part))
    try:
        value = _certain(best, others[0] if others else None, start)
    except Unreadable as error:
        if others and not best.losses:
            again = partial(Reader, part, price, Work(len(part)), suspect, closed=whole)
            error.readings = partial(_readings, again, start)
        return Document(start, stop, refusal=error)
    return Document(start, stop, value, best.repairs(start))


def _readings(again: Callable[[], Reader], start: int) -> list[Document]:
    """Return a document for each likely reading; none if one loses data or if there are many."""
    reader = again()
    found = [*map(Reading, reader.run(reader.first(), keep=ALTERNATIVES))]
    if len(found) == ALTERNATIVES or any(each.losses for each in found):
        return []
    made = list[Document]()
    for each in found:
        with suppress(ValueError):  # This reading has two values for one key.
            stop = start + each.stop(len(reader.text))
            made.append(Document(start, stop, each.value(), each.repairs(start)))
    return made


def _suspect(first: Reading | None, reader: Reader, price: dict[str, int]) -> bytearray:
    """Mark the places where the second search assumes lost or wrong marks.

    If the first reading loses no data, the places are around its expensive steps. If there is no
    reading, or if the reading loses data at a high cost, they are around the furthest position that
    was read. If the reading loses data at a low cost, no place is marked.
    """
    size = len(reader.text) + 2
    suspect = bytearray(size)
    nodes = first.nodes if first else []
    paid = [(node.pos, sum([price[row] for row in node.rows])) for node in nodes if node.rows]
    spans = [(at - 200, at + 100) for at, cost in paid if cost + MARGIN >= ACCIDENT]
    if first is None or first.losses:
        is_cheap = first and sum(cost for _, cost in paid) < ACCIDENT
        spans = [] if is_cheap else [(reader.furthest - 2000, reader.furthest + 500)]
    for begin, end in spans:
        span = slice(max(0, begin), min(size, end))
        suspect[span] = b"\1" * max(0, span.stop - span.start)
    return suspect


def _certain(best: Reading, rival: Reading | None, start: int) -> Any:
    """Return the value of the reading `best`, if this value is certain.

    Raises:
        Unreadable: If data is lost, if too much is wrong, or if there is a `rival`. This is a
            reading that is about as cheap and wrote another text.
    """
    if best.cost > DOUBTED and best.names.keys() & ACCIDENTS.keys():
        raise Unreadable("ambiguous", start, f"{best.told()}: too much is wrong to be sure.")
    if best.losses:
        name, at = best.losses[0]
        kind: Any = LOSSES[name].kind
        raise Unreadable(kind, start + at, f"{LOSSES[name].told}.")
    try:
        value = best.value()
    except ValueError as error:
        raise Unreadable("ambiguous", start, f"{text_of(error)}.") from None
    if rival:
        at = next((at for row, at in rival.made if row not in best.names), 0)
        name, at = rival.losses[0] if rival.losses else ("", at)
        other = LOSSES[name].told.lower() if name else rival.told()
        is_same = other == best.told()
        other = "the same at another place" if is_same else other
        message = f"Two readings are about as likely: {best.told()}; or {other}."
        raise Unreadable("ambiguous", start + at, message)
    refuse_if(best.made and not value, "ambiguous", start, "Nothing is left.")
    return value
