"""Where in a text documents begin: past reasoning, fences and prose, never inside one another."""

import re
from dataclasses import dataclass, field

from graph_retry.records import Repair
from graph_retry.repair.mend import Document, edited, read_document
from graph_retry.repair.report import Edit, Unreadable
from graph_retry.repair.scan import OPENING_KEY, QUOTE, SPACE
from graph_retry.repair.strings import decode_whole

_TAGS = r"(?:think|thinking|thoughts?|reasoning|reflection|scratchpad|analysis|plan)"
_LANDMARK = re.compile(
    rf"(?P<think><{_TAGS}\b[^>]*>|\[THINK\]|◁think▷|<\|channel\|>(?:analysis|commentary))"
    rf"|(?P<answer></{_TAGS}>|\[/THINK\]|◁/think▷|<\|channel\|>final)"
    r"|(?P<fence>`{3,}|~{3,})|(?P<cdata><!\[CDATA\[)|(?P<open>[{\[｛［])",
    re.IGNORECASE,
)
_ANSWER = re.compile(
    rf"</{_TAGS}>|\[/THINK\]|◁/think▷|<\|channel\|>final(?:<\|message\|>)?", re.IGNORECASE
)
_COMMENT = r"//|/\*|#|<!--|\.\.\.|…"
_OBJECT = re.compile(rf"[{{｛]\{{?{SPACE}(?:{QUOTE}|[}}｝]|,|{_COMMENT})")
_BARE_OBJECT = re.compile(rf"[{{｛]\{{?{SPACE}[\w$][\w$.\- ]{{0,80}}[\"”']?{SPACE}[:：=]")
_ARRAY = re.compile(
    rf"[\[［]{SPACE}(?:[\"'“‘„＂\[{{(［｛,\]］]|[-+.]?\d|(?:true|false|null|None|NaN|nan)\b"
    rf"|{_COMMENT}|[\w ]+{SPACE}(?:,|\]{SPACE}\Z))",
    re.IGNORECASE,
)
_ESCAPED = re.compile(r"[{\[](?:\s|\\+[nrt])*\\+\"")
_BODY = re.compile(r"(?:[^\"\\]|\\.)*+", re.DOTALL)
_PAIR = re.compile(r"\\u[0-9a-fA-F]{4}|\\.|[^\\]", re.DOTALL)
_HEAD_LIST = re.compile(rf"{SPACE}(?:\"[^\"\n]*\"|-?\d[\d.]*){SPACE},")
_LABEL = re.compile(r"(?:\A|[:=(>\]}`\"']|\bjson|\breturn)\s*\Z", re.IGNORECASE)
_MOST_LEVELS = 3


@dataclass(slots=True)
class Survey:
    """The documents of one text in order, what stands before the first, and passed landmarks."""

    documents: list[Document] = field(default_factory=list[Document])
    fenced: list[int] = field(default_factory=list[int])
    begin: int = 0
    repairs: list[Repair] = field(default_factory=list[Repair])


def survey(text: str, *, complete: bool | None) -> Survey:
    """Find every document of `text`.

    Raises:
        Unreadable: something began like a document and cannot be read as one.
    """
    found = Survey()
    fence, number = "", 0
    position = 0
    if document := _without_opener(text, 0, complete):
        found.documents.append(document)
        found.fenced.append(number)
        position = document.end
    while match := _LANDMARK.search(text, position):
        position = match.end()
        kind = match.lastgroup
        if kind == "think" or kind == "answer":
            answer = _ANSWER.search(text, match.start())
            if answer is None:
                raise Unreadable("truncated", match.start(), "The reasoning never ends.")
            found = Survey(begin=answer.end())
            found.repairs.append(_note("reasoning", match.start(), "reasoning left out"))
            position = answer.end()
        elif kind == "fence":
            if not fence:
                fence, number = match[0], number + 1
                line = re.compile(r"[ \t]*[\w+#.\-]*[ \t]*").match(text, position)
                position = line.end() if line else position
                document = _without_opener(text, position, complete)
                if document:
                    found.documents.append(document)
                    found.fenced.append(number)
                    position = document.end
            elif match[0].startswith(fence):
                fence, number = "", number + 1
        elif kind == "open" and _begins(text, match.start(), found.begin):
            try:
                document = _document(text, match.start(), complete)
            except Unreadable:
                answer = _ANSWER.search(text, position)
                if answer is None or text[answer.end() : answer.end() + 1] in {'"', "'", "\\"}:
                    raise
                position = match.start()
                found = Survey(begin=answer.end())
                position = answer.end()
                continue
            found.documents.append(document)
            found.fenced.append(number)
            position = document.end
    return found


def _note(kind: str, position: int, detail: str) -> Repair:
    return Repair(kind=kind, position=position, grade="format", detail=detail)


def _begins(text: str, start: int, begin: int) -> bool:
    """Tell whether the bracket at `start` opens a document; in prose it may mean anything."""
    if _OBJECT.match(text, start) or _ARRAY.match(text, start) or _ESCAPED.match(text, start):
        return True
    line = text[max(begin, text.rfind("\n", 0, start) + 1) : start]
    return bool(_BARE_OBJECT.match(text, start) and (not line.strip() or _LABEL.search(line)))


def _document(text: str, start: int, complete: bool | None) -> Document:
    if not _ESCAPED.match(text, start):
        return read_document(text, start, complete=complete)
    body = _BODY.match(text, start)
    end = body.end() if body else len(text)
    pieces = _PAIR.findall(text[start:end])
    inner = "".join(map(decode_whole, pieces))
    level = 0
    ...
