"""Where in a text documents begin: past reasoning, fences and prose, never inside one another."""

import json
import re

from graph_retry.records import Repair
from graph_retry.repair.mend import Document, edited, read_document
from graph_retry.repair.report import Edit, Unreadable
from graph_retry.repair.scan import OPENING_KEY, QUOTE, SPACE

_TAGS = r"(?:think|thinking|thoughts?|reasoning|reflection|scratchpad|analysis|plan)"
_REASONING = rf"<{_TAGS}\b[^>]*>|\[THINK\]|◁think▷|<\|channel\|>(?:analysis|commentary)"
_ANSWER = rf"</{_TAGS}>|\[/THINK\]|◁/think▷|<\|channel\|>final(?:<\|message\|>)?"
_LANDMARK = re.compile(
    rf"(?P<reasoning>{_REASONING})|(?P<answer>{_ANSWER})|(?P<fence>(?:`{{3,}}|~{{3,}})[\w+#.\- \t]*)"
    r"|(?P<cdata><!\[CDATA\[)|(?P<open>[{\[｛［])",
    re.IGNORECASE,
)
_ANSWER_AHEAD = re.compile(rf"(?:{_ANSWER})(?![\"'\\])", re.IGNORECASE)
_COMMENT = r"//|/\*|#|<!--|\.\.\.|…"
# How a document starts. A bracket that goes on otherwise belongs to prose.
_OBJECT = re.compile(rf"[{{｛]\{{?{SPACE}(?:{QUOTE}|[}}｝]|,|{_COMMENT})")
_BARE_OBJECT = re.compile(rf"[{{｛]\{{?{SPACE}[\w$][\w$.\- ]{{0,80}}[\"”']?{SPACE}[:：=]")
_ARRAY = re.compile(
    rf"[\[［]{SPACE}(?:[\"'“‘„＂\[{{(［｛,\]］]|[-+.]?\d|(?:true|false|null|none|nan)\b"
    rf"|{_COMMENT})",
    re.IGNORECASE,
)
_BARE_ARRAY = re.compile(rf"\[{SPACE}[^\W\d][\w ]*,[^\[\]{{}}\"]*\]{SPACE}(?:\Z|```)")
_LABEL = re.compile(r"(?:[:=(>\]}`\"']|\bjson)\s*\Z", re.IGNORECASE)
_ESCAPED = re.compile(r"[{\[](?:[\s{\[]|\\+[nrt])*\\+\"")
_BODY = re.compile(r"(?:[^\"\\]|\\.)*+", re.DOTALL)
_PIECE = re.compile(
    r"\\u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w|\\u[0-9a-fA-F]{4}|\\[\"\\/bfnrt]|.", re.DOTALL
)
_HEAD_LIST = re.compile(rf"(?:\"[^\"\n]*\"|-?\d[\d.]*){SPACE},")
_HEAD = re.compile(SPACE)


def find_documents(text: str, *, complete: bool | None) -> tuple[int, list[Document]]:
    """List the documents of `text`, and say where the answer begins.

    Raises:
        Unreadable: something began like a document and cannot be read as one.
    """
    begin = 0
    documents = _headless(text, 0, complete)
    position = documents[-1].end if documents else 0
    while match := _LANDMARK.search(text, position):
        position = match.end()
        if match.lastgroup in {"reasoning", "answer"}:
            answer = _ANSWER_AHEAD.search(text, match.start())
            if answer is None:
                raise Unreadable("truncated", match.start(), "The reasoning never ends.")
            begin = position = answer.end()
            documents = []
        if match.lastgroup in {"reasoning", "answer", "fence"}:
            found = _headless(text, position, complete)
        elif match.lastgroup == "open" and _begins(text, match.start(), begin):
            try:
                found = [_document(text, match.start(), complete)]
            except Unreadable:
                # Reasoning without an opening tag may hold any draft.
                answer = _ANSWER_AHEAD.search(text, position)
                if answer is None:
                    raise
                found, position = [], answer.start()
        else:
            continue
        documents += found
        position = documents[-1].end if found else position
    return begin, documents


def _begins(text: str, start: int, begin: int) -> bool:
    """Tell whether the bracket at `start` opens a document; in prose it may mean anything."""
    if _OBJECT.match(text, start) or _ARRAY.match(text, start) or _ESCAPED.match(text, start):
        return True
    line = text[max(begin, text.rfind("\n", 0, start) + 1) : start]
    if line.strip() and not _LABEL.search(line):
        return False
    return bool(_BARE_OBJECT.match(text, start) or _BARE_ARRAY.match(text, start))


def _document(text: str, start: int, complete: bool | None) -> Document:
    """Read the document at `start`, behind one level of escaping or more."""
    if not _ESCAPED.match(text, start):
        return read_document(text, start, complete=complete)
    body = _BODY.match(text, start)
    pieces = _PIECE.findall(text, start, body.end() if body else len(text))
    inner = "".join(json.loads(f'"{p}"') if p[0] == "\\" and p[1:] else p for p in pieces)
    document = _document(inner, 0, complete)
    end = start + sum(map(len, pieces[: document.end]))
    repair = Repair(
        kind="escaped", position=start, grade="format", detail="escaped like a string's inside"
    )
    moved = [Repair(**{**r, "position": start}) for r in document.repairs]
    return Document(document.value, start, end, [repair, *moved], document.json)


def _headless(text: str, position: int, complete: bool | None) -> list[Document]:
    """Read a document whose opening bracket is missing, where an answer may begin."""
    match = _HEAD.match(text, position)
    start = match.end() if match else position
    is_object = OPENING_KEY.match(text, start) is not None
    if not is_object and not _HEAD_LIST.match(text, start):
        return []
    edits = (Edit(start, 0, "{" if is_object else "["),)
    error = Unreadable("syntax", start, "The opening bracket is missing.", edits)
    try:
        return [edited(text, start, error, complete=complete)]
    except Unreadable:
        if is_object:
            raise
        return []
