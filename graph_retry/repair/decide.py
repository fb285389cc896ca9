"""Which of the documents found is the answer, and whether what surrounds it leaves any doubt."""

import re
from dataclasses import replace
from itertools import pairwise

from graph_retry.records import Repair
from graph_retry.repair.find import find_documents
from graph_retry.repair.mend import STRAY, Document
from graph_retry.repair.report import Unreadable
from graph_retry.repair.scan import SPACE
from graph_retry.repair.strict import same

_SEPARATOR = re.compile(rf"(?:{SPACE},?{SPACE})\Z")
_STRAY_ARRAY_END = re.compile(rf"{SPACE}\]{SPACE}(?:`{{3,}}\s*)?\Z")
_ANSWER_LABEL = re.compile(
    r"(?:\A|=|\b(?:answer|results?|output|json|response|list|array|data|here\b.*)\s*:)[\s`*_]*\Z",
    re.IGNORECASE,
)
_ASSIGNED = re.compile(
    r"(?:\A|\n)[\s>$]*(?:(?:export|const|let|var|final|auto|my|local)\s+)*[\w.$@]+"
    r"(?:\s*:\s*[\w\[\], .|<>]+)?\s*:?=>?\s*\Z"
)
_CONTINUES = re.compile(r"[\"\d\]}]\s*[,，]\s*\Z|[\"'”]\s*[:：]\s*\Z|[\"'”]\s+\Z")
_MEMBER = re.compile(r"[\"“][^\"“”\n]*[\"”]\s*[:：]\s*(?:[\"“{\[\d-]|true|false|null)")
_PROSE_BRACKETS = re.compile(r"\[[^\[\]{}\n]*\]|\{[^\[\]{}\n]*\}")
_LEFTOVER = re.compile(r"[\]}]|(?:\A|\n)[ \t]*[\[{]")
_LEFT_OUT = re.compile(
    r"\b(?:truncated|omitted|abbreviated|shortened|for brevity|excerpt|snip(?:ped)?|\d+ more"
    r"|the rest|remaining|remainder|to be continued|continued in|(?:me to|shall i) continue"
    r"|only (?:showing|the first)|first \d+ of|and so on|etc)\b|^\W*(?:\.\.\.|…)\W*$",
    re.IGNORECASE | re.MULTILINE,
)
_CODE = re.compile(
    r"^\s*(?:def \w+\(|class \w+[:({]|return\b|function\b|SELECT\b|interface \w|type \w+ ="
    r"|for .+:\s*$|if .+:\s*$|#include\b|public \w)",
    re.MULTILINE,
)
_FIELD = re.compile(r"^\s*(?:-\s+)?[\w.\-]+\s*[:=](?:\s+\S|\s*$)|^\s*-\s+\S", re.MULTILINE)
_FIELD_BEFORE = re.compile(r"(?:\A|\n)\s*(?:-\s+)?[\w.\-]+\s*[:=]\s+\Z")
_QUOTES = {'"': '"', "'": "'", "`": "`", "“": "”", "‘": "’"}


def decide(text: str, *, complete: bool | None) -> Document:
    """Read the one answer `text` holds.

    Raises:
        Unreadable: there is none, or more than one, or it is not all there.
    """
    begin, found = find_documents(text, complete=complete)
    documents = [d for d in found if not _in_passing(text, d, begin)]
    if not documents:
        raise Unreadable("no_json", begin, "There is no JSON document in the text.")
    answers = _join(text, documents, begin, complete=complete)
    for other in answers[1:]:
        if not same(other.value, answers[0].value):
            raise Unreadable("ambiguous", other.start, "There are two answers, and they differ.")
    places = [begin, *(p for a in answers for p in (a.start, a.end)), len(text)]
    gaps = [text[low:high] for low, high in zip(places[::2], places[1::2], strict=True)]
    _check_surroundings(text, answers, gaps)
    answer = answers[0]
    repairs = list(answer.repairs)
    for kind, met in {
        "reasoning": begin > 0,
        "code_fence": any("```" in gap or "~~~" in gap for gap in gaps),
        "repeated": len(answers) > 1,
        "surroundings": any(re.search(r"\w", gap) for gap in gaps),
    }.items():
        if met:
            repairs.append(Repair(kind=kind, position=0, grade="format", detail=_DETAIL[kind]))
    return replace(answer, repairs=repairs)


_DETAIL = {
    "reasoning": "reasoning before the answer left out",
    "code_fence": "taken out of a code fence",
    "repeated": "the same answer given more than once",
    "surroundings": "text around the answer left out",
}


def _in_passing(text: str, document: Document, begin: int) -> bool:
    """Tell whether brackets like `[1]` or `{}` only occur in a sentence: a citation, not data."""
    value = document.value
    if value and not (
        isinstance(value, list) and all(type(item) in {int, float} for item in value)
    ):
        return False
    before = text[max(begin, text.rfind("\n", begin, document.start) + 1) : document.start]
    after = text[document.end :].partition("\n")[0]
    return bool(after.strip(" \t\r`.;)")) or not _ANSWER_LABEL.search(before)


def _join(
    text: str, documents: list[Document], begin: int, *, complete: bool | None
) -> list[Document]:
    """Join documents that follow one another with nothing between into one list: JSON lines."""
    groups = [[documents[0]]]
    for left, right in pairwise(documents):
        if _SEPARATOR.match(text[left.end : right.start]):
            groups[-1].append(right)
        else:
            groups.append([right])
    return [_sequence(text, group, complete=complete) for group in groups]


def _sequence(text: str, group: list[Document], *, complete: bool | None) -> Document:
    first, last = group[0], group[-1]
    if all(same(first.value, other.value) for other in group[1:]):
        if len(group) > 1:
            detail = _DETAIL["repeated"]
            repair = Repair(kind="repeated", position=last.start, grade="format", detail=detail)
            return replace(first, end=last.end, repairs=[*first.repairs, repair])
        return first
    if complete is False:
        raise Unreadable("truncated", last.end, "More of the sequence may be missing.")
    if len({type(document.value) for document in group}) > 1:
        raise Unreadable("ambiguous", last.start, "Values of different kinds follow one another.")
    repairs = [repair for document in group for repair in document.repairs]
    values = [document.value for document in group]
    end = last.end
    detail = f"{len(group)} values in a row read as a list"
    if match := _STRAY_ARRAY_END.match(text, end):
        end += match[0].index("]") + 1
        detail += ", its opening bracket supplied"
    grade = "format" if end == last.end else "assumed"
    repairs.append(Repair(kind="sequence", position=first.start, grade=grade, detail=detail))
    return Document(values, first.start, end, repairs)


def _check_surroundings(text: str, answers: list[Document], gaps: list[str]) -> None:
    """Refuse an answer that looks like a piece of something, or of which more was announced."""
    for answer, before, after in zip(answers, gaps, gaps[1:], strict=False):
        opened, closed = before[-1:], after[:1]
        if opened in _QUOTES and closed == _QUOTES[opened]:
            before, after = before[:-1], after[1:]
            if opened in "\"'" and "\\" in text[answer.start : answer.end]:
                raise Unreadable("ambiguous", answer.start, "Escapes inside a quoted document.")
        elif opened in {'"', "'"} or _CONTINUES.search(before):
            raise Unreadable("syntax", answer.start, "This looks like a part of something else.")
        if STRAY.match(after):
            raise Unreadable("syntax", answer.end, "More follows than one document.")
        if before.rstrip().endswith("=") and not _ASSIGNED.search(before):
            raise Unreadable("no_json", answer.start, "This is an argument in other code.")
        if re.match(r"\s*(?:\.\.\.|…)", after):
            raise Unreadable("elided", answer.end, "Something was left out.")
    start, around = answers[0].start, "\n".join(gaps)
    if _LEFT_OUT.search(around):
        raise Unreadable("elided", start, "The text says that something was left out.")
    if _MEMBER.search(around) or _LEFTOVER.search(_PROSE_BRACKETS.sub("", around)):
        raise Unreadable("ambiguous", start, "What surrounds the answer looks like JSON, too.")
    if _CODE.search(around) or (
        _FIELD_BEFORE.search(gaps[0]) and len(_FIELD.findall(around)) > 1
    ):
        raise Unreadable("no_json", start, "The brackets belong to code or to another format.")
