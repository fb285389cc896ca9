"""Refuse an answer if the text beside it has data that would be lost, or retracts the answer.

Two questions are asked about every answer, even if it is strict JSON or in a code fence:

- Is the answer only one field of a record in another notation? Then the text has other fields in
  this notation, with short values (`SHAPES`). For example, the answer is `{"a": 1}` in
  `- total: {"a": 1}`, and the next line is `- name: Ada`.
- Does a sentence retract the answer, or say that it is not complete (`REMARKS`)? Any other sentence
  is only recorded in `repairs`.

An answer that is not strict JSON in its own fence or paragraph may also be a piece of other data.
`PIECES` has the signs of this.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from graph_retry.lossless._ground import lazy
from graph_retry.lossless.remarks import remark
from graph_retry.lossless.results import Document, RefusalKind, Unreadable

ANSWER_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a answer answers result results output json list action input response arguments args"
        " parameters antwort ergebnis ausgabe réponse résultat sortie respuesta resultado salida"
        " risposta risultato resposta ответ результат 答案 结果 回答 結果",
    )
)
"""Words that name the answer itself. In a label such as `Final answer`, the last word counts."""
LEADS = frozenset({"here", "below", "sure", "hier", "voici", "voilà", "aquí", "ecco", "以下"})
"""First words of a sentence that announces the answer."""
_BULLET = r"(?P<bullet>(?:[-*•+>]|\d+[.)]|#{1,6})[ \t]+)?"
_EMPHASIS = r"(?:\*{1,3}|_{1,3}|`)?"
_LABEL = r"[\"'“]?(?P<label>[^\W\d][\w.'’/()#-]*(?: [\w.'’/()#-]+){0,2}?)[\"'”]?"
_SEPARATOR = r"(?P<separator>[:：=]>?|[-–—]+>|→|[ \t][-–—](?=[ \t])|\t)"
_FIELD = lazy(
    rf"^(?P<indent>[ \t]*){_BULLET}{_EMPHASIS}{_LABEL}{_EMPHASIS}[ \t]*{_SEPARATOR}{_EMPHASIS}"
    r"[ \t]*(?P<value>.*)$"
)
_HEADING = lazy(
    rf"^(?P<indent>[ \t]*)(?:#{{1,6}}[ \t]+|\d+[.)][ \t]+)?{_EMPHASIS}{_LABEL}{_EMPHASIS}:?"
    rf"{_EMPHASIS}[ \t]*$"
)
_MARKED = lazy(r"^[ \t]*(?:#{1,6}[ \t]|\d+[.)][ \t]|\*\*|__)|:[*_]*[ \t]*$")
_ITEM = lazy(r"^(?P<indent>[ \t]*)(?P<bullet>[-*•+]|\d+[.)])[ \t]+(?P<value>.*)$")
_MARK = lazy(  # Marks of models, of quotations, and of the ends of lines are no part of a notation.
    r"(?m)</?[|｜][^<>\n]{1,40}>|[\r\ufeff]|^(?:[ \t]*>)+[ \t]?"
)
_INLINE = lazy(
    rf"(?:^|[^\w]){_EMPHASIS}[\w ]{{1,30}}{_EMPHASIS}[:=]{_EMPHASIS}[^,;:=\0]{{1,60}}[,;][ \t]*"
    rf"{_EMPHASIS}[\w ]{{1,30}}{_EMPHASIS}[:=]{_EMPHASIS}[ \t]*\0"
    rf"|[:=]{_EMPHASIS}[ \t]*\0[ \t]*[,;][ \t]*{_EMPHASIS}\w[\w ]{{0,30}}{_EMPHASIS}[ \t]*[:=]"
    r"|\w=(?:'[^'\n]*'|\"[^\"\n]*\"|[^\s'\"<>]+)[ \t]+\w+=[ \t]*\0|\w=\0[ \t]+\w+=\S|(?P<sign>--|@"
    r"|:)\w+[ \t]+[^\0]{1,200}(?P=sign)\w+[ \t]+\0|(?P<mark>--|@|:)\w+[ \t]+\0\s+(?P=mark)\w"
)
_TAGGED = lazy(r"<(?P<tag>[A-Za-z][\w.:-]*)(?:\s[^<>]*)?>\s*\0\s*</(?P=tag)>")
_ELEMENT = lazy(
    r"<(?P<tag>[A-Za-z][\w.:-]*)(?:\s[^<>]*)?>(?P<value>[^<>\0]*[^\s<>\0][^<>\0]*)</(?P=tag)>"
)
_NESTED = lazy(r"(?m)^([ \t]*)\S.*:[ \t]*\n\1[ \t]+\S.*\0")
_PROSE = lazy(r".*[.!?。！？…:]\W*$|(?:\S+\s+){8}")
_UNTOLD = lazy(
    r"(?i)(?:b|i|em|strong|code|pre|u|br|think\w*|thought|reason\w*|explanation|summary)$"
)


def _is_answer(label: str) -> bool:
    if label.lower().split()[0] in LEADS:
        return True
    return label.lower().split()[-1].strip("#0123456789.()") in ANSWER_WORDS


def _is_value(text: str) -> bool:
    """Return whether a text is a short value, such as `12 EUR`, and not a sentence."""
    return bool(text.strip(" \t*_`|\0")) and not _PROSE.match(text.strip())


def is_field(flat: str) -> bool:
    """Return whether the answer is one of several fields in another notation.

    In the text `flat`, the character NUL stands in place of the answer.
    """
    flat = _MARK.sub("", flat)
    lines = flat.split("\n")
    for number, line in enumerate(lines):
        if "\0" in line and any(shape(lines, number) for shape in SHAPES):
            return True
    tagged = _TAGGED.search(flat)
    if tagged and not _is_answer(tagged["tag"]):
        return any(not _UNTOLD.match(one["tag"]) for one in _ELEMENT.finditer(flat))
    return _NESTED.search(flat) is not None


def _in_cell(lines: list[str], at: int) -> bool:
    before, _, behind = lines[at].partition("\0")
    for mark in "|\t":
        cells = [*before.split(mark)[:-1], *behind.split(mark)[1:]]
        if any(cell.strip(" \t\0") for cell in cells):
            return True
    low = max(0, at - 1)
    around = "\n".join(
        [*lines[low:at], before[-300:] + "\0" + behind[:300], *lines[at + 1 : at + 2]]
    )
    return bool(_INLINE.search(around))


def _in_row(lines: list[str], at: int) -> bool:
    """Return whether the answer is a cell of CSV: the line before or after it is a row, too.

    Two lines are rows if they have the same number of separators, and no space follows a separator.
    """
    for other in [*lines[max(0, at - 1) : at], *lines[at + 1 : at + 2]]:
        for mark in ",;":
            cells = lines[at].split(mark)
            is_row = len(cells) == other.count(mark) + 1 and f"{mark} " not in lines[at] + other
            if is_row and len(cells) > 1 and any(cell.strip(" \t\0") for cell in cells):
                return True
    return False


def _in_field(lines: list[str], at: int) -> bool:
    own = _FIELD.match(lines[at])
    if (
        own is None
        or not own["value"].lstrip("`*_ \t").startswith("\0")
        or _is_answer(own["label"])
    ):
        return False
    return any(_same(own, other) for other in _fields(lines, at))


def _fields(lines: list[str], at: int) -> Iterator[re.Match[str]]:
    """Yield a match for each line that is a field with a value, except for the line `at`."""
    for number, line in enumerate(lines):
        found = _FIELD.match(line) if number != at else None
        if found and _is_value(found["value"]):
            yield found


def _same(own: re.Match[str], other: re.Match[str]) -> bool:
    kinds = [(bool(one["bullet"]), one["separator"].strip()[:2]) for one in (own, other)]
    return (
        kinds[0] == kinds[1] and own["label"] != other["label"] and not _is_answer(other["label"])
    )


def _in_list(lines: list[str], at: int) -> bool:
    own = _ITEM.match(lines[at])
    if own is None or not own["value"].startswith("\0"):
        return False
    kind = own["bullet"][:1].isdecimal()
    others = (_ITEM.match(line) for number, line in enumerate(lines) if number != at)
    return any(
        one and one["bullet"][:1].isdecimal() == kind and _is_value(one["value"]) for one in others
    )


def _under_heading(lines: list[str], at: int) -> bool:
    above = next((n for n in range(at - 1, -1, -1) if lines[n].strip()), None)
    if above is None or lines[at].split("\0")[0].strip("`*_ \t"):
        return False
    own = _HEADING.match(lines[above])
    if own is None or not _MARKED.search(lines[above]) or _is_answer(own["label"]):
        return False
    kind = lines[above].lstrip()[:1] if lines[above].lstrip()[:1] in "#*_" else ""
    for number, line in enumerate(lines):
        other = _HEADING.match(line) if number != above and "\0" not in line else None
        if other and _MARKED.search(line) and line.lstrip().startswith(kind):
            below = [one for one in lines[number + 1 : number + 5] if one.strip()][:2]
            is_alone = len(below) < 2 or _HEADING.match(below[1]) or below[1].startswith("\0")
            if below and is_alone and _is_value(below[0]) and not _is_answer(other["label"]):
                return True
    if not lines[above].rstrip("*_ \t").endswith(":"):
        return False
    return any(
        not one["bullet"] and one["separator"] == ":" and not _is_answer(one["label"])
        for one in _fields(lines, at)
    )


SHAPES = (_in_cell, _in_row, _in_field, _in_list, _under_heading)


_PIECE = lazy(  # The text before the answer is an unfinished quotation, member, list or call.
    r"(?ma)[\w+-]\Z|[\"'”][ \t]*\Z|[\"'”}]\s*[,:=]\s*\Z|^\W*\"[^\"\n]*\Z"
    r"|(?:^|,)\s*(?:-?\d[\d.]*|true|false|null)\s*,\s*\Z|\([^()\n]*[=,]\s*\Z|[\[{][^\[\]{}\n]*\Z"
)
_LOOSE = lazy(
    r"(?m)^[ \t]*(?:\{|\[(?!\^?\d+\]|/?[A-Za-z_. -]+\])|[\"“'][^\"“”'\n]*[\"”']\s*[:：{\[]"
    r"|(?:\"[^\"\n]*\"|'[^'\n]*'|[-+.]?\d[\w.]*|(?i:true|false|null|none))"
    r"[ \t]*[,;]?[ \t\r]*(?:(?://|#|/\*).*)?$)"
)


class Reason(NamedTuple):
    """A reason to refuse an answer because of the text beside it.

    side: Where to search: `before` the answer, or `around` it.
    kind, told: The kind and the message of the refusal.
    pattern: Matches the text that is the reason.
    """

    side: str
    kind: RefusalKind
    told: str
    pattern: re.Pattern[str]


FIELD = "The answer is one field of data in another notation: write all of it as JSON"
PIECES = (
    Reason("before", "syntax", "The answer is a piece of other data", _PIECE),
    Reason("around", "ambiguous", "Brackets or members stand around the answer", _LOOSE),
)


def judge(before: str, between: str, after: str, one: Document, *, is_block: bool) -> None:
    """Refuse an answer if the text before, between or after its parts gives a reason.

    Raises:
        Unreadable: If there is a reason to refuse the answer. The message states the reason.
    """
    paragraph = before[-200:].rpartition("\n\n")[2]
    for side, text in (("after", after), ("before", paragraph)):
        if said := remark(side, text, one.value):
            raise Unreadable(said.kind, one.start, f"{said.told}.")
    if is_field(f"{before}{between}{after}"):
        raise Unreadable("no_json", one.start, f"{FIELD}.")
    sides = {"before": paragraph, "around": f"{before}\0{after}"}
    for reason in () if is_block else PIECES:
        if reason.pattern.search(sides[reason.side]):
            raise Unreadable(reason.kind, one.start, f"{reason.told}.")
