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
# Where reasoning ends, in the notations of several models.
_ANSWER = rf"</{_TAGS}>|\[/THINK\]|◁/think▷|<\|channel\|>final(?:<\|message\|>)?"
_ANSWER_AHEAD = re.compile(rf"(?:{_ANSWER})(?![\"'\\])", re.IGNORECASE)
# What is looked at in a text, from left to right: where reasoning begins or ends, the line that
# opens or closes a fence, and brackets, except those of CDATA.
_LANDMARK = re.compile(
    rf"(?i)(?P<reasoning><{_TAGS}\b[^>]*>|\[THINK\]|◁think▷|<\|channel\|>(?:analysis|commentary)"
    rf"|{_ANSWER})"
    r"|(?P<fence>(?:`{3,}|~{3,})[^\n`~{}\[\]｛［]*)|<!\[CDATA\[|(?P<bracket>[{\[｛［])"
)
# A document whose quotes are escaped, `{\"a\": 1}`, and one written with entities, `{&quot;a`.
_ESCAPED = re.compile(r"[{\[](?:\s++|[{\[]|\\+[nrt]){0,40}+\\+\"")
_ENTITIES = re.compile(r"[{\[](?:\s++|[{\[]|&nbsp;){0,40}+&(?:quot|apos|#34|#39|#x22|#x27);")
_BROKEN_ENTITY = re.compile(r"(?<![&\w])(?:quot|apos|#x?\d{2});|&(?:quot|apos|#x?\d{2})\b")
_EMPTY_ESCAPED = re.compile(r"\[[\s\[]*+\\\"\\\"")
_JUDGEMENTS = (
    "supplied", "colon", "missing_colon", "missing_comma", "extra_comma", "extra_opener",
    "extra_closer",
)  # fmt: skip
_HEX = "[0-9a-fA-F]"
# One character as such a document has it. An escaped one ends where a quote is not escaped.
_ESCAPED_CHARACTER = re.compile(
    rf"(?s)\\u[dD][89abAB]{_HEX}{{2}}\\u[dD][c-fC-F]{_HEX}{{2}}|\\u{_HEX}{{4}}|\\[\"\\/bfnrt]|."
)
_ENTITY_CHARACTER = re.compile(r"(?is)&(?:[a-z]\w{1,31}|#\d{1,6}|#x[\da-f]{1,5});|.")
_ESCAPED_TEXT = re.compile(r"(?:[^\"\\]|\\.)*+", re.DOTALL)
# How a document starts. A bracket that goes on otherwise belongs to prose.
_COMMENT = r"//|/\*|#|<!--|\.\.\.|…"
_MARK = r"(?:[uU]|[*_]{1,3})?"  # before a string: the prefix of Python 2, or Markdown
START = re.compile(
    rf"[{{｛]\{{?{SPACE}(?:{_MARK}{QUOTE}|[}}｝,]|{_COMMENT}|\Z)"
    rf"|{_ESCAPED.pattern}|(?i:{_ENTITIES.pattern})"
    rf"|[\[［]{SPACE}(?:{_MARK}[\"'“‘„＂\[{{(［｛,\]］]|[-+.]?\d|(?i:true|false|null|none|nan)\b"
    rf"|{_COMMENT}|\Z)"
)
# The same without a quote in sight, `{a: 1}` or `[red, blue]`: only where a value may be expected.
_BARE_START = re.compile(
    rf"[{{｛]\{{?{SPACE}[\w$][\w$.\- ]{{0,80}}[\"”']?{SPACE}[:：=]"
    rf"|\[{SPACE}[^\W\d]\w[\w ]*,[^\[\]{{}}\"]*\]{SPACE}(?:\Z|```)"
)
# The end of what announces a value: `answer: `, `x = `, `<data>`.
_LABEL = re.compile(r"(?:[:=(>\]}`\"']|\bjson)\s*\Z", re.IGNORECASE)
_IN_ADDRESS = re.compile(r"\w://\S*\Z")
# A key where a document should begin: its opening brace is missing.
_OPENING_KEY = re.compile(rf"(?!`){QUOTE}[^\n\"“”＂:,{{}}\[\]]{{0,200}}{QUOTE}{SPACE}[:：]")


def find_documents(text: str, *, complete: bool | None) -> tuple[int, list[Document]]:
    """List the documents of `text`, and say where the answer begins.

    Raises:
        Unreadable: something began like a document and cannot be read as one.
    """
    answer_start = 0
    documents = _without_opening(text, 0, complete)
    position = documents[-1].end if documents else 0
    while landmark := _LANDMARK.search(text, position):
        start, position = landmark.span()
        if landmark["reasoning"]:
            answer = _ANSWER_AHEAD.search(text, start)
            if answer is None:
                raise Unreadable("truncated", start, "The reasoning never ends.")
            answer_start = position = answer.end()
            documents = _without_opening(text, position, complete)
        elif landmark["fence"]:
            documents += _without_opening(text, position, complete)
        elif landmark["bracket"] and _begins(text, start, answer_start):
            try:
                documents.append(_document(text, start, complete))
            except Unreadable:
                # Reasoning without an opening tag may hold any draft.
                answer = _ANSWER_AHEAD.search(text, position)
                if answer is None:
                    raise
                position = answer.start()
        if documents:  # what stands inside a document is a part of it
            position = max(position, documents[-1].end)
    return answer_start, documents


def _begins(text: str, start: int, answer_start: int) -> bool:
    """Tell whether the bracket at `start` opens a document; in prose it may mean anything."""
    # `x[0]` and `f(x)[0]` have an index, which is no list; `json[0]` has a tag and a list.
    before = text[max(answer_start, start - 4) : start].lower().removesuffix("\\n")
    if text[start] == "[" and (before[-1:].isalnum() or before[-1:] in {"_", ")"}):
        return before == "json"
    is_clear = START.match(text, start)
    if not is_clear and not _BARE_START.match(text, start):
        return False
    line_before = text[max(answer_start, start - 100) : start].rpartition("\n")[2]
    if is_clear:
        return not _IN_ADDRESS.search(line_before)
    return bool(ANY_SPACE.fullmatch(line_before) or _LABEL.search(line_before))


def _document(text: str, start: int, complete: bool | None) -> Document:
    """Read the document at `start`, behind one level of escaping or more."""
    is_escaped = _ESCAPED.match(text, start) is not None
    if not is_escaped and not _ENTITIES.match(text, start):
        return read_document(text, start, complete=complete)
    # Of an empty string, the quote and the backslash before it may have changed places.
    refuse_if(_EMPTY_ESCAPED.match(text, start), "ambiguous", start, "Escaped, or a quote swapped.")
    decode = _unescape if is_escaped else html.unescape
    size = 800
    while True:  # In steps: many short documents may follow one another.
        limit = min(start + size, len(text))
        characters = _characters(text, start, limit, is_escaped=is_escaped)
        decoded = "".join([decode(char) if len(char) > 1 else char for char in characters])
        try:
            # A step may end inside the document: no edit may close it there.
            document = _document(decoded, 0, complete if limit == len(text) else False)
            break
        except Unreadable:
            if limit == len(text):
                raise
            size *= 4
    # `\"x\y\"`: such a backslash is too many, or one is missing. `\name\"`: the quote behind it is.
    # `&quot;"`: a quote that is not written like the others is missing before, or it is too many.
    stray = "\\" if is_escaped else '"'
    has_judgement = document.has_repair(*_JUDGEMENTS)
    broken_entity = not is_escaped and _BROKEN_ENTITY.search(decoded, 0, document.end)
    has_judgement = has_judgement or (is_escaped and document.has_repair("odd_quotes"))
    is_doubtful = has_judgement or broken_entity or stray in characters[: document.end]
    refuse_if(is_doubtful, "ambiguous", start, "Escapes, and something else is wrong.")
    end = start + sum(map(len, characters[: document.end]))
    if text[start - 1 : start] == text[end : end + 1] == '"':
        start, end = start - 1, end + 1
    for record in document.repairs:
        record["position"] = start
    detail = "escaped like the inside of a string" if is_escaped else "written with HTML entities"
    decoding = repair("escaped" if is_escaped else "html_entities", start, detail)
    return replace(document, start=start, end=end, repairs=[decoding, *document.repairs], json="")


def _characters(text: str, start: int, limit: int, *, is_escaped: bool) -> list[str]:
    """Cut what is written with escapes or entities into characters, up to `limit` at most."""
    if not is_escaped:
        return _ENTITY_CHARACTER.findall(text, start, limit)
    escaped = _ESCAPED_TEXT.match(text, start, limit)
    return _ESCAPED_CHARACTER.findall(text, start, escaped.end() if escaped else limit)


@lru_cache(1000)
def _unescape(escape: str) -> str:
    character: str = json.loads(f'"{escape}"')
    return character


def _without_opening(text: str, position: int, complete: bool | None) -> list[Document]:
    """Read a document whose opening brace is missing, where an answer may begin."""
    space = ANY_SPACE.match(text, position)
    start = space.end() if space else position
    if not _OPENING_KEY.match(text, start):
        return []
    error = Unreadable("syntax", start, "The opening brace is missing.", Edit(start, 0, "{"))
    return [edited(text, start, error, complete=complete)]
