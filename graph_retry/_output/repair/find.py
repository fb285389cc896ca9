"""Where in a text documents begin: past reasoning, fences and prose, never inside one another."""

import html
import json
import re
from dataclasses import replace
from functools import lru_cache

from graph_retry._output.repair.mend import Document, edited, read_document
from graph_retry._output.repair.report import Edit, Unreadable, refuse_if, repair
from graph_retry._output.repair.scan import ANY_SPACE, QUOTE, SPACE

_TAGS = r"(?:think|thinking|thoughts?|reasoning|reflection|scratchpad|analysis|plan)"
_ANSWER = rf"</{_TAGS}>|\[/THINK\]|◁/think▷|<\|channel\|>final(?:<\|message\|>)?"
_LANDMARK = re.compile(
    rf"(?i)(?P<turn><{_TAGS}\b[^>]*>|\[THINK\]|◁think▷|<\|channel\|>(?:analysis|commentary)|{_ANSWER})"
    r"|(?P<fence>(?:`{3,}|~{3,})[^\n`~{}\[\]｛［]*)|<!\[CDATA\[|(?P<open>[{\[｛［])"
)
_ANSWER_AHEAD = re.compile(rf"(?:{_ANSWER})(?![\"'\\])", re.IGNORECASE)
# How a document starts. A bracket that goes on otherwise belongs to prose.
_COMMENT = r"//|/\*|#|<!--|\.\.\.|…"
_ESCAPED = re.compile(r"[{\[](?:\s++|[{\[]|\\+[nrt]){0,40}+\\+\"")
_EMPTY_ESCAPED = re.compile(r"\[\s*\\\"\\\"")
_ENTITIES = re.compile(r"[{\[](?:\s++|[{\[]|&nbsp;){0,40}+&(?:quot|apos|#34|#39|#x22|#x27);")
_ENTITY = re.compile(r"(?is)&(?:[a-z]\w{1,31}|#\d{1,6}|#x[\da-f]{1,5});|.")
_START = re.compile(
    rf"[{{｛]\{{?{SPACE}(?:(?:[uU]|[*_]{{1,3}})?{QUOTE}|[}}｝,]|{_COMMENT}|\Z)|{_ESCAPED.pattern}"
    rf"|(?i:{_ENTITIES.pattern})"
    rf"|[\[［]{SPACE}(?:(?:[uU]|[*_]{{1,3}})?[\"'“‘„＂\[{{(［｛,\]］]|[-+.]?\d|(?i:true|false|null|none|nan)\b|{_COMMENT}|\Z)"
)
# The same without a quote in sight: only where a value may be expected.
_BARE_START = re.compile(
    rf"[{{｛]\{{?{SPACE}[\w$][\w$.\- ]{{0,80}}[\"”']?{SPACE}[:：=]"
    rf"|\[{SPACE}[^\W\d]\w[\w ]*,[^\[\]{{}}\"]*\]{SPACE}(?:\Z|```)"
)
_LABEL = re.compile(r"(?:[:=(>\]}`\"']|\bjson)\s*\Z", re.IGNORECASE)
_BODY = re.compile(r"(?:[^\"\\]|\\.)*+", re.DOTALL)
_PIECE = re.compile(r"(?is)\\u[d][89ab]\w\w\\ud[c-f]\w\w|\\u[\da-f]{4}|\\[\"\\/bfnrt]|.")
_OPENING_KEY = re.compile(rf"{QUOTE}[^\n\"“”＂:,{{}}\[\]]{{0,200}}{QUOTE}{SPACE}[:：]")


def find_documents(text: str, *, complete: bool | None) -> tuple[int, list[Document]]:
    """List the documents of `text`, and say where the answer begins.

    Raises:
        Unreadable: something began like a document and cannot be read as one.
    """
    begin = 0
    documents = added = _headless(text, 0, complete)
    position = documents[-1].end if documents else 0
    while match := _LANDMARK.search(text, position):
        position = match.end()
        if match["turn"]:
            answer = _ANSWER_AHEAD.search(text, match.start())
            if answer is None:
                raise Unreadable("truncated", match.start(), "The reasoning never ends.")
            begin = position = answer.end()
            documents = []
        if match["turn"] or match["fence"]:
            added = _headless(text, position, complete)
        elif match["open"] and _begins(text, match.start(), begin):
            try:
                added = [_document(text, match.start(), complete)]
            except Unreadable:
                # Reasoning without an opening tag may hold any draft.
                answer = _ANSWER_AHEAD.search(text, position)
                if answer is None:
                    raise
                added, position = [], answer.start()
        else:
            continue
        documents += added
        position = added[-1].end if added else position
    return begin, documents


def _begins(text: str, start: int, begin: int) -> bool:
    """Tell whether the bracket at `start` opens a document; in prose it may mean anything."""
    # An index is no list.
    before = text[max(begin, start - 4) : start].lower()
    if text[start] == "[" and (before[-1:].isalnum() or before[-1:] in {"_", ")"}):
        return before == "json"
    if _START.match(text, start):
        return True
    if not _BARE_START.match(text, start):
        return False
    line = text[max(begin, start - 100) : start].rpartition("\n")[2]
    return ANY_SPACE.fullmatch(line) is not None or _LABEL.search(line) is not None


def _document(text: str, start: int, complete: bool | None) -> Document:
    """Read the document at `start`, behind one level of escaping or more."""
    escaped, entities = _ESCAPED.match(text, start), _ENTITIES.match(text, start)
    if not escaped and not entities:
        return read_document(text, start, complete=complete)
    # Of an empty string, the quote and the backslash before it may have changed places.
    refuse_if(_EMPTY_ESCAPED.match(text, start), "ambiguous", start, "Escaped, or a quote swapped.")
    size, document, pieces = 800, None, list[str]()
    while document is None:  # In steps: many short documents may follow one another.
        limit = min(start + size, len(text))
        if escaped:
            body = _BODY.match(text, start, limit)
            pieces = _PIECE.findall(text, start, body.end() if body else limit)
            plain = [_unescape(piece) if piece[1:] else piece for piece in pieces]
        else:
            pieces = _ENTITY.findall(text, start, limit)
            plain = [html.unescape(piece) if piece[1:] else piece for piece in pieces]
        is_whole = limit == len(text)
        try:
            # A step may end inside the document: no edit may close it there.
            document = _document("".join(plain), 0, complete if is_whole else False)
        except Unreadable:
            if is_whole:
                raise
            size *= 4
    end = start + sum(map(len, pieces[: document.end]))
    if text[start - 1 : start] == text[end : end + 1] == '"':
        start, end = start - 1, end + 1
    for moved in document.repairs:
        moved["position"] = start
    detail = "escaped like the inside of a string" if escaped else "written with HTML entities"
    decoded = repair("escaped" if escaped else "html_entities", start, detail)
    return replace(document, start=start, end=end, repairs=[decoded, *document.repairs], json="")


@lru_cache(1000)
def _unescape(piece: str) -> str:
    character: str = json.loads(f'"{piece}"')
    return character


def _headless(text: str, position: int, complete: bool | None) -> list[Document]:
    """Read a document whose opening bracket is missing, where an answer may begin."""
    match = ANY_SPACE.match(text, position)
    start = match.end() if match else position
    if not _OPENING_KEY.match(text, start):
        return []
    error = Unreadable("syntax", start, "The opening brace is missing.", Edit(start, 0, "{"))
    return [edited(text, start, error, complete=complete)]
