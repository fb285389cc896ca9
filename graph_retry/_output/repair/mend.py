"""Read one document; where it breaks, try single edits and accept only an undisputed one."""

import re
from dataclasses import dataclass, field, replace
from typing import Any

from graph_retry._output.repair.frame import CLOSE, column, spare_brace
from graph_retry._output.repair.read import Reader
from graph_retry._output.repair.report import Unreadable, refuse_if, repair
from graph_retry._output.repair.scan import SPACE, same, strict_part
from graph_retry.records import Repair

# What cannot follow a complete document: it would be a piece of it, or of another one.
STRAY = re.compile(
    rf"{SPACE}(?:[,，]{SPACE}(?:/\*[^*]*\*/{SPACE}|(?://|#)[^\n]*\n{SPACE})?(?:[\"'{{\[\d\]}}]|-\d|(?i:true|false|null|none)\b|[^\W\d]\w*\s*:)|(?!\]\]>)[:：\]}}]|\d)|[\"'“”‘’\w]"
)
# A string at the end that a brace closes, if the last quote changed places with it.
_OPEN_STRING = re.compile(r"\{[^{}\"]*(?:\\.[^{}\"\\]*)*\"[\s}\]]*\Z")
_JUDGED = {
    "missing_comma",
    "extra_comma",
    "colon",
    "inner_quotes",
    "unquoted_value",
    "number_format",
}
_SWAPPED = {quote + bracket for quote in "\"'" for bracket in "{["}
_EXTRA_BRACES = re.compile(rf"(?:{SPACE}}})+")


@dataclass(slots=True)
class Document:
    """One value with its place in the text; `json` is its text where that is strict JSON."""

    value: Any
    start: int
    end: int
    repairs: list[Repair] = field(default_factory=list[Repair])
    json: str = ""

    def has_repair(self, kind: str) -> bool:
        """Tell whether a repair of this kind was made."""
        return any(made["kind"] == kind for made in self.repairs)


def read_document(text: str, start: int, *, complete: bool | None) -> Document:
    """Read the document that opens at `start`.

    Raises:
        Unreadable: it breaks, and no single edit explains why, or more than one does.
    """
    try:
        value, end = strict_part(text, start)
        return _without_extra_braces(text, Document(value, start, end, [], text[start:end]))
    except RecursionError:
        raise Unreadable("too_deep", start, "Nested too deeply.") from None
    except ValueError:
        reader = Reader(text)
    try:
        value, end = reader.read(start)
    except Unreadable as error:
        if not error.edits or _is_cut_off(text, error, complete):
            raise
        try:  # Without short cuts, for all the edits that may explain it.
            Reader(text, all_edits=True).read(start)
        except Unreadable as explained:
            return edited(text, start, explained, complete=complete)
        raise
    return _without_extra_braces(text, Document(value, start, end, reader.notes.records()))


def _is_cut_off(text: str, error: Unreadable, complete: bool | None) -> bool:
    """Tell whether the text may just end too early: then an edit would make up its end."""
    at_end = error.refusal["position"] >= len(text.rstrip())
    return error.refusal["kind"] == "truncated" and at_end and not complete


def edited(text: str, start: int, error: Unreadable, *, complete: bool | None) -> Document:
    """Read the document with each edit `error` suggests; raise it unless they make one value."""
    position = error.refusal["position"]
    if complete is False or _is_cut_off(text, error, complete):
        raise error
    mended: Document | None = None
    for edit in dict.fromkeys(error.edits):
        low, high = edit.position, edit.position + edit.length
        # A bracket and the quote beside it may have changed places.
        if edit.token in CLOSE and text[high : high + 2] in _SWAPPED:
            continue
        attempt = text[:low] + edit.token + text[high:]
        reader = Reader(attempt, trial=True)
        try:
            value, end = reader.read(start)
        except Unreadable:
            continue
        if STRAY.match(attempt, end) or attempt[end : end + 9].lstrip().startswith(","):
            continue
        # Here the bracket may stand in the place of the quote.
        in_place = edit.token in {'"', "'"} and text[low - 1] in "]}"
        differs = in_place or (mended and not same(mended.value, value))
        refuse_if(differs, "ambiguous", position, "More than one change would explain this.")
        shift = edit.length - len(edit.token)
        detail = f"`{edit.token}` supplied" if edit.token else f"`{text[low:high]}` left out"
        reader.notes.add("supplied", low, detail, "assumed")
        repairs = reader.notes.records()
        for moved in repairs:
            moved["position"] = (moved["position"] or 0) + shift * ((moved["position"] or 0) > low)
        mended = mended or Document(value, start, end + shift, repairs)
    if mended is None:
        raise error
    return mended


def _without_extra_braces(text: str, document: Document) -> Document:
    """Leave out closing braces after a whole document, unless an earlier one may be the extra."""
    start, end = document.start, document.end
    match = _EXTRA_BRACES.match(text, end)
    if match is None or STRAY.match(text, match.end()):
        return document
    # On lines of their own, or where the layout shows it, they were added at the end.
    own_lines = "\n" in match[0] and "\n" not in text[start:end]
    laid_out = column(text, end - 1) == max(column(text, start), 0)
    unclear = spare_brace(document.value) and not own_lines and not laid_out
    refuse_if(unclear, "ambiguous", end, "One of several closing braces is too many.")
    judgements = any(r["kind"] in _JUDGED for r in document.repairs)
    judged = judgements or _OPEN_STRING.search(text, max(start, end - 200), end)
    refuse_if(judged, "ambiguous", end, "One of several closing braces is too many.")
    extra = repair("extra_closer", end, "closing braces too many left out", "assumed")
    return replace(document, end=match.end(), repairs=[*document.repairs, extra])
