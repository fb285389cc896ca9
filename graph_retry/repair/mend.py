"""Read one document; where it breaks, try single edits and accept only an undisputed one."""

import re
from dataclasses import dataclass, field, replace
from typing import Any

from graph_retry.records import Repair
from graph_retry.repair.read import Reader
from graph_retry.repair.report import Edit, Unreadable
from graph_retry.repair.scan import SPACE
from graph_retry.repair.strict import STRICT, same

# What cannot follow a complete document: it would be a piece of it, or of another one.
STRAY = re.compile(rf"{SPACE}(?:[,，]{SPACE}[\"'{{\[\d\]}}]|[:：\]}}]|\d)|[\"'“”‘’]")
_EXTRA_BRACES = re.compile(rf"(?:{SPACE}}})+")


@dataclass(frozen=True, slots=True)
class Document:
    """One value with its place in the text; `json` is its text where that is strict JSON."""

    value: Any
    start: int
    end: int
    repairs: list[Repair] = field(default_factory=list[Repair])
    json: str = ""


def read_document(text: str, start: int, *, complete: bool | None) -> Document:
    """Read the document that opens at `start`.

    Raises:
        Unreadable: it breaks, and no single edit explains why, or more than one does.
    """
    try:
        value, end = STRICT.raw_decode(text, start)
        return _without_extra_braces(text, Document(value, start, end, [], text[start:end]))
    except RecursionError:
        raise Unreadable("too_deep", start, "Nested too deeply.") from None
    except ValueError:
        reader = Reader(text)
    try:
        value, end = reader.read(start)
    except Unreadable as error:
        return edited(text, start, error, complete=complete)
    return _without_extra_braces(text, Document(value, start, end, reader.notes.records()))


def edited(text: str, start: int, error: Unreadable, *, complete: bool | None) -> Document:
    """Read the document with each edit that `error` suggests; raise `error` unless one value fits."""
    if error.at_end and (
        complete is False or (complete is None and error.position >= len(text.rstrip()))
    ):
        raise error
    found: Document | None = None
    for edit in dict.fromkeys(error.edits):
        attempt = edit.apply(text)
        reader = Reader(attempt, careful=True)
        try:
            value, end = reader.read(start)
        except Unreadable:
            continue
        if STRAY.match(attempt, end):
            continue
        if found is not None:
            if not same(found.value, value):
                message = "More than one single change would explain what is wrong here."
                raise Unreadable("ambiguous", error.position, message)
            continue
        shift = edit.length - len(edit.token)
        reader.notes.add("supplied", edit.position, edit.describe(), "assumed")
        found = Document(value, start, end + shift, reader.notes.records(shift, edit.position))
    if found is None:
        raise error
    return found


def _without_extra_braces(text: str, document: Document) -> Document:
    """Leave out closing braces after a whole document, unless an earlier one may be the extra."""
    match = _EXTRA_BRACES.match(text, document.end)
    if match is None or STRAY.match(text, match.end()):
        return document
    appended = "\n" in match[0] and "\n" not in text[document.start : document.end]
    if _shifted(document.value) and not appended and not _in_line(text, document):
        message = "One of several closing braces is too many."
        raise Unreadable("ambiguous", document.end, message)
    detail = "closing braces too many left out"
    repair = Repair(kind="extra_closer", position=document.end, grade="assumed", detail=detail)
    return replace(document, end=match.end(), repairs=[*document.repairs, repair])


def _shifted(value: Any) -> bool:
    """Tell whether some closing brace inside `value` could be left out instead of the last one."""
    while isinstance(value, dict) and value:
        *others, last = value.values()
        if any(isinstance(other, dict) and other for other in others):
            return True
        value = last
    return False


def _in_line(text: str, document: Document) -> bool:
    """Tell whether the last bracket starts a line that is indented like the first one's."""
    opening = text[text.rfind("\n", 0, document.start) + 1 : document.start]
    line = text[text.rfind("\n", 0, document.end) + 1 : document.end - 1]
    return "\n" in document.json and not line.strip() and line == opening[: len(line)]
