"""Find the places in a text where a JSON document may begin, and read a document at each."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from graph_retry._output.reading import Document
from graph_retry._output.reading.document import mask_at, read_document
from graph_retry._output.reading.lexis import EDGES, OPENING_KEY
from graph_retry._patterns import lazy

TURN = lazy(  # In a chat transcript, a turn ends or the next turn begins with these marks.
    r"(?m)<\|im_start\|>\s*(?:user|system|human)|\buser<\|end_header_id\|>|<\|user\|>|\[INST\]"
    r"|^#{2,} ?(?:Instruction|Human|User|Input|Question)\b"
    r"|^(?:Human|User|Instruction|Question|Observation):"
    r"|<\|im_start\|>\s*assistant|<start_of_turn>|\bassistant<\|end_header_id\|>|</s>"
    r"|<\|(?:start_header_id|assistant|eot_id|eom_id|im_end|endoftext|end_of_text)\|>"
    r"|^#{2,} ?(?:Response|Assistant)\b|^Assistant:"
)
FENCE = lazy(  # If a fence directly surrounds another, both belong to one match.
    r"(?ms)(?:^[ \t]*|(?<=[ :>*]))(?:(`{3,}|~{3,})[^\n`~]*\n[ \t]*)?"
    r"(`{3,}|~{3,})[ \t]*[\w+#.\-]*[ \t]*\n(?P<inside>.*?)"
    r"(?:^[ \t]*\2[`~]*[ \t]*$(?(1)(?:\s*^[ \t]*\1[ \t]*$)?)|\Z)"
)
CALLS = lazy(  # Open models write these tags around tool calls.
    r"</?(?:tool_?calls?|function_?calls?|functions?|tool_use|tool_code|tools?)>|<\|im_start\|>"
    r"|<[|｜]/?(?:tool|function)[\w▁]*[|｜]>|<\|(?:im_end|python_tag|plugin)\|>|\[/?TOOL_CALLS\]"
    r"|\bfunctools(?=\s*(?:\[|\Z))|<!--|-->"
)
_SPACE = r"(?:[\s\u200b-\u200f\u2060-\u2064\ufeff\u00ad]|\\[nrt](?![^\W\d]))*"
_QUOTE = "[\"'`“”„‟‘’＂]"
_START = lazy(  # A bracket before such text opens data. Others may be part of a sentence.
    rf"[{{｛]\{{?{_SPACE}(?:(?:[uU]|[*_]{{1,3}})?{_QUOTE}|[}}｝,]|//|/\*|#|<!--|\.\.\.|…|\Z)"
    rf"|[\[［]{_SPACE}(?:[\"'“‘„＂\[{{(［｛,\]］]|[-+.]?\d|(?i:true|false|null|none|nan)\b|//|/\*|#"
    r"|\.\.\.|…|<|\Z)"
)
_BARE_START = lazy(
    rf"[{{｛]\{{?{_SPACE}[\w$][\w$.\- ]{{0,80}}[\"”']?{_SPACE}[:：=]"
    rf"|\[{_SPACE}[^\W\d]\w[\w ]*,[^\[\]{{}}\"]*\]{_SPACE}(?:\Z|```)"
)
_LABEL = lazy(r"(?i)(?:[:=(>\]}`\"']|\bjson)\s*\Z")
_IN_ADDRESS = lazy(r"\w://\S*\Z")
_TAG = lazy(r"<(\w+)>\s*\Z")
_BRACKET = lazy(r"[{\[｛［]")
_OPENING = frozenset("{[｛［")
REFUSED = 3
"""The search stops after this number of unreadable documents, because each one takes work."""


class Candidate(NamedTuple):
    """A document that may be the answer, with the span of the fence or quotes around it.

    `in_fence` is true if the document begins a fence, and `is_quoted` if prose quotes it as code.
    """

    document: Document
    start: int
    end: int
    in_fence: bool = False
    is_quoted: bool = False


def candidates(text: str, start: int, complete: bool | None) -> Iterator[Candidate]:
    """Yield each JSON document of a text in order; stop at the next turn of a chat transcript."""
    fences = [(each, _data_start(text, each)) for each in FENCE.finditer(text, start)]
    position, refused, is_first = start, 0, True
    while refused < REFUSED:
        fences = [pair for pair in fences if pair[0].end("inside") > position]
        at = _next_start(text, position, is_first=is_first)
        data = next((begin for _, begin in fences if begin is not None and begin >= position), -1)
        at = data if at < 0 or 0 <= data <= at else at
        if at < 0 or (not is_first and TURN.search(text, position, at)):
            return
        around = next(
            (pair for pair in fences if pair[0].start() < at < pair[0].end("inside")), None
        )
        fence = around[0] if around and around[1] is not None else None
        end, is_whole = _limit(text, at, fence, complete)
        document = read_document(text, at, end, complete=is_whole)
        position, is_first = max(document.end, at + 1), False
        if fence:
            yield Candidate(document, *fence.span(), in_fence=True)
        else:
            is_code = bool(around) or _in_backticks(text, document)
            mark = text[at - 1 : at]
            wide = int(mark in {'"', "'", "`"} and mark == text[document.end :][:1])
            yield Candidate(document, at - wide, document.end + wide, is_quoted=is_code)
        if document.refusal:
            refused += 1
            position = fence.end("inside") if fence else position


def _next_start(text: str, position: int, *, is_first: bool) -> int:
    """Return the position where the next document begins, or -1 if there is no other."""
    if is_first and (opening := OPENING_KEY.match(text, position)):
        return opening.end()
    while found := _BRACKET.search(text, position):
        if _begins(text, found.start()):
            return found.start()
        position = found.end()
    return -1


def _begins(text: str, at: int) -> bool:
    """Return whether the bracket at `at` opens a document, and does not open a remark in prose."""
    before = line_before(text, at)
    if text[at] == "[" and (before[-1:].isalnum() or before[-1:] in {"_", ")", "]"}):
        return before.lower().endswith(("json", "functools"))
    if CALLS.match(text, at):
        return False
    if _START.match(text, at) or mask_at(text, at):
        return not _IN_ADDRESS.search(before) and not before.endswith("<!")
    return bool(_BARE_START.match(text, at)) and (not before.strip() or bool(_LABEL.search(before)))


def _data_start(text: str, fence: re.Match[str]) -> int | None:
    """Return the position of a document in a fence; None if the fence begins with other text."""
    at = fence.end("inside") - len(fence["inside"].lstrip(EDGES))
    if opening := OPENING_KEY.match(text, at, fence.end("inside")):
        return opening.end()
    return at if text[at : at + 1] in _OPENING and _begins(text, at) else None


def _limit(
    text: str, at: int, fence: re.Match[str] | None, complete: bool | None
) -> tuple[int, bool | None]:
    """Return the last possible end of a document, and whether the document is complete there."""
    if fence:
        return fence.end("inside"), True if fence.end() > fence.end("inside") else complete
    tag = _TAG.search(text, max(0, at - 40), at)
    close = text.find(f"</{tag[1]}>", at) if tag else -1
    if close > at:
        return close, True
    quote = text[at - 1 : at]
    if quote in {"'", '"'} and not text[(close := text.rfind(quote)) + 1 :].strip(EDGES + ";)"):
        return close if close > at else len(text), complete
    return len(text), complete


def _in_backticks(text: str, document: Document) -> bool:
    line, after = line_before(text, document.start), text[document.end :][:1]
    return line[-1:] == after == "`" and bool(line.strip("` \t"))


def in_sentence(text: str, found: Candidate) -> bool:
    """Return whether words precede a document on its line."""
    line = line_before(text, found.document.start)
    return not found.in_fence and bool(re.search(r"\w\W*\Z|[\"`]", line))


def line_before(text: str, at: int) -> str:
    """Return the text before a position on its line, but at most 200 characters."""
    return text[max(0, at - 200) : at].rpartition("\n")[2]
