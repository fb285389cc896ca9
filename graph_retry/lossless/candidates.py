"""Find the JSON documents in a text, and rank them by their places in the text."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from graph_retry.lossless._ground import lazy
from graph_retry.lossless.results import Document
from graph_retry.lossless.weighted.document import mask_at, read_document
from graph_retry.lossless.weighted.lexis import EDGES, OPENING_KEY
from graph_retry.lossless.weighted.search import Work

TURN = lazy(  # In a chat transcript, a turn ends or the next turn begins with these marks.
    r"(?m)<\|im_start\|>\s*(?:user|system|human)|\buser<\|end_header_id\|>|<\|user\|>|\[INST\]|^[ "
    r"\t]*#{2,} ?(?:Instruction|Human|User|Input|Question)\b|^(?:Human|User|Instruction|Question"
    r"|Observation):|<\|im_start\|>\s*assistant|<start_of_turn>|\bassistant<\|end_header_id\|>|</s>"
    r"|<\|(?:start_header_id|assistant|eot_id|eom_id|im_end|endoftext|end_of_text)\|>|^#{2,} "
    r"?(?:Response|Assistant)\b|^Assistant:"
)
_FENCE_END = r"[ \t]*\2[`~]*[ \t\r]*$"
# Text without the fence's own character is skipped at once, up to the end of a line.
_INSIDE = rf"(?:(?(3)[^`]++|[^~]++)(?<=\n)|(?!{_FENCE_END})(?:[^\n]*+\n|[^\n]++\Z))*+"
FENCE = lazy(  # If a fence directly surrounds another, both belong to one match.
    r"(?ms)(?:^[ \t]*|(?<=[ \t:：=>*]))(?:(`{3,}|~{3,})[^\n`~]*\n[ \t]*)?((`)`{2,}|~{3,})[ \t]*"
    rf"(?P<tag>[\w+#.\-]*)[ \t\r]*\n(?P<inside>{_INSIDE})"
    rf"(?:{_FENCE_END}(?(1)(?:\s*^[ \t]*\1[ \t\r]*$)?)|\Z)"
)
CALLS = lazy(  # Open models write these tags around tool calls.
    r"</?(?:tool_?calls?|function_?calls?|functions?|tool_use|tool_code|tools?)>|<\|im_start\|>"
    r"|<[|｜]/?(?:tool|function)[\w▁]*[|｜]>|<\|(?:im_end|python_tag|plugin)\|>|\[/?TOOL_CALLS\]"
    r"|\bfunctools(?=\s*(?:\[|\Z))|<!--|-->|<!\[CDATA\[|\]\]>"
)
TAG = r"<[/?|｜]*\w[^<>{}\[\]\n]*>"
LABEL = r"(?:answer|results?|output|json|list|action(?: input)?)"
_SPACE = r"(?:[\s\u200b-\u200f\u2060-\u2064\ufeff\u00ad]|\\[nrt](?![^\W\d]))*"
_QUOTE = "[\"'`“”„‟‘’＂]"
_START = lazy(  # A bracket with such text after it opens a document.
    rf"[{{｛]\{{?{_SPACE}(?:(?:[uU]|[*_]{{1,3}})?{_QUOTE}|[}}｝,]|//|/\*|#|<!--|\.\.\.|…|\Z)"
    rf"|[\[［]{_SPACE}(?:[\"'“‘„＂\[{{(［｛,\]］]|[-+.]?\d|(?i:true|false|null|none|nan)\b|//|/\*|#"
    r"|\.\.\.|…|<|\Z)"
)
_BARE_START = lazy(
    rf"[{{｛]\{{?{_SPACE}[\w$][\w$.\- ]{{0,80}}[\"”']?{_SPACE}[:：=]"
    rf"|\[{_SPACE}[^\W\d]\w[\w ]*,[^\[\]{{}}\"]*\]{_SPACE}(?:\Z|```)"
)
_BEFORE_BARE = lazy(r"(?i)(?:\A|[:=(>\]}`\"']|\bjson)[\s\u200b\ufeff]*\Z")
_NAMED = lazy(rf"(?i)(?:[=>(]|\b{LABEL}(?: is| are)?:?)[\s`*_]*\Z")
_OPEN_TAG = lazy(r"<(\w+)>\s*\Z")
_BRACKET = lazy(r"[{\[｛［]")
_INDEXED = lazy(r"(?i)[\w)\]](?<!json)(?<!functools)(?<!\[TOOL_CALLS\])\Z")
_WORDS = lazy(r"\w[^\w>]*\Z")
_APART_BEFORE = lazy(r"(?:\A|\n[ \t\r]*\n)[ \t\r]*\Z")
_APART_BEHIND = lazy(r"[ \t\r]*(?:\n[ \t\r]*\n|\s*\Z)")
_ASSIGNED, _USED = lazy(r"\w[ \t]*=[ \t]*\Z"), lazy(r"\r?\n[ \t]*[\w.]+\(")
REFUSED = 3
"""Number of unreadable documents after which the search ends, because each one takes time."""
BLOCK, LINE, SENTENCE, BROKEN, CODE, NUMBERS = range(6)
"""The places that a document may have in a text, the likeliest place of the answer first.

BLOCK: The document has its own fence or paragraph.
LINE: No words are before the document on its line.
SENTENCE: Words are before the document on its line.
BROKEN: Words are before the document on its line, and the document cannot be read.
CODE: The document is in code that the text quotes.
NUMBERS: An empty value or a list of numbers in a sentence, after a name or label.
"""


class Candidate(NamedTuple):
    """A JSON document and its place. `start` and `end` include the fence or quotes around it."""

    document: Document
    start: int
    end: int
    place: int

    @property
    def is_block(self) -> bool:
        """Whether the document is strict JSON in a fence or paragraph of its own."""
        return self.place == BLOCK and self.document.is_strict


def candidates(text: str, start: int, complete: bool | None) -> Iterator[Candidate]:
    """Yield the JSON documents of a text in order, up to the next turn of a chat transcript."""
    fences = fences_in(text, start)
    begins = [start, *(fence.start("inside") for fence in fences)]
    keys = [found.end() for at in begins if (found := OPENING_KEY.match(text, at))]
    position, low, refused, fence, work = start, start, 0, None, Work(len(text))
    ahead, looked_at = iter(fences), None
    near = next(ahead, None)
    while refused < REFUSED:
        brackets = (found.start() for found in _BRACKET.finditer(text, position))
        starts = [next((at for at in brackets if _begins(text, at)), -1)]
        starts += [at for at in keys if at >= position][:1]
        at = min((at for at in starts if at >= 0), default=-1)
        if at < 0 or (position > start and TURN.search(text, position, at)):
            return
        while near and at >= near.end("inside"):
            near = next(ahead, None)
        around = near if near and near.start() < at else None
        # A fence belongs only to the first document inside it.
        is_first = around and around is not looked_at and _is_first(text, around, at)
        fence, looked_at = around if is_first or around is fence else None, around
        end, is_whole = _limit(text, at, fence, complete)
        document = read_document(text, at, end, work, complete=is_whole)
        position = max(document.end, at + 1)
        placed = Candidate(document, *fence.span(), BLOCK) if fence else None
        placed = placed or _placed(text, document, low, in_code=around is not None)
        if placed:
            yield placed
            low = position
        if document.refusal:
            refused += 1
            position = fence.end("inside") if fence else position


def fences_in(text: str, start: int) -> list[re.Match[str]]:
    """Return the Markdown code fences of a text, from the position `start` on."""
    marks = [at for mark in ("```", "~~~") if (at := text.find(mark, start)) >= 0]
    low = text.rfind("\n", start, min(marks)) + 1 if marks else len(text)
    return [*FENCE.finditer(text, max(start, low))]


def _is_first(text: str, fence: re.Match[str], at: int) -> bool:
    """Return whether only tags of tool calls come before `at` in a code fence."""
    return not CALLS.sub("", text[fence.start("inside") : at]).strip(EDGES)


def _begins(text: str, at: int) -> bool:
    """Return whether the bracket at `at` begins a document, and is not a remark in a sentence."""
    before = line_before(text, at)
    if CALLS.match(text, at) or (text[at] == "[" and _INDEXED.search(before)):
        return False
    if _START.match(text, at) or mask_at(text, at):
        return True
    return bool(_BARE_START.match(text, at) and _BEFORE_BARE.search(before))


def _limit(
    text: str, at: int, fence: re.Match[str] | None, complete: bool | None
) -> tuple[int, bool | None]:
    """Return the last possible end of a document, and whether the document is complete then."""
    if fence:
        return fence.end("inside"), True if fence.end() > fence.end("inside") else complete
    tag = _OPEN_TAG.search(text, max(0, at - 40), at)
    close = text.find(f"</{tag[1]}>", at) if tag else -1
    if close > at:
        return close, True
    quote = text[at - 1 : at]
    if quote in {"'", '"'} and not text[(close := text.rfind(quote)) + 1 :].strip(EDGES + ";)"):
        return close if close > at else len(text), complete
    return len(text), complete


def _placed(text: str, document: Document, low: int, *, in_code: bool) -> Candidate | None:
    """Return a document with its place; None for a citation (`As [1]`) or a value in a program."""
    line = line_before(text, document.start, low)
    behind = text[document.end : document.end + 200]
    wide = int(line[-1:] == behind[:1] and line[-1:] in {'"', "'", "`"})
    start, end = document.start - wide, document.end + wide
    before = text[max(0, start - 200) : start]
    is_apart = _APART_BEFORE.search(before) and _APART_BEHIND.match(text[end : end + 200])
    has_words = _WORDS.search(line)
    place = SENTENCE if has_words else BLOCK if is_apart else LINE
    if in_code and _ASSIGNED.search(line) and _USED.search(behind):
        return None  # The next line of a program uses the value.
    if in_code or (wide and line[-1] == "`" and line.strip("` \t")):
        place = CODE
    elif document.refusal and has_words:
        place = BROKEN
    if _is_small(document) and re.search(r"\w", line + behind.partition("\n")[0]):
        if not _NAMED.search(line):
            return None
        place = NUMBERS
    return Candidate(document, start, end, place)


def _is_small(document: Document) -> bool:
    """Return whether a value is empty or a list of numbers, like a citation such as `[1]`."""
    value = document.value
    is_list = issubclass(type(value), list)  # `isinstance` would make the item type unknown.
    is_numbers = is_list and all(type(item) in {int, float} for item in value)
    return document.refusal is None and (not value or is_numbers)


def line_before(text: str, at: int, low: int = 0) -> str:
    """Return up to 200 characters from the start of the line (or `low`) to `at`."""
    return text[max(low, at - 200) : at].rpartition("\n")[2]
