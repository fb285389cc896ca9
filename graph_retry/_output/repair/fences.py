"""Where a fence or a paragraph is the answer, the text outside it is prose.

Models explain an answer with examples, code and quoted pieces of it. Beside one fence that is
tagged as JSON and is nothing but a document, or one paragraph of strict JSON, their brackets and
quotes mean nothing. Damage to the answer itself cannot look like that: more of it would touch it.
"""

import re

from graph_retry._output.repair.find import START
from graph_retry._output.repair.mend import read_document
from graph_retry._output.repair.report import Unreadable
from graph_retry._output.repair.scan import strict_value
from graph_retry._output.repair.taken_back import is_taken_back

# A line that opens or closes a fence, with its tag.
_FENCE_LINE = re.compile(r"(?m)^ *(`{3,}|~{3,}) *([\w+#.-]*) *$")
_JSON_TAGS = {"json", "json5", "jsonc"}
# JavaScript may hold the answer, too: `const data = {"a": 1}`.
_DATA_TAGS = _JSON_TAGS | {"javascript", "js", ""}
# Lines between blank ones.
_PARAGRAPH = re.compile(r"(?:[ \t]*+[^\s][^\n]*+\n?)++")
# A line of prose that begins like a document, or like a piece of one.
_DATA_LINE = re.compile(r"(?m)^[ \t]*(?:[{\[\]}]|[\"'][^\"'\n]*[\"'][ \t]*:[ \t]*[\"'\d{\[-])")
# `The answer is {"a": 2}`: then the prose holds another answer.
_ANNOUNCED = re.compile(
    r"(?i)(?:\b(?:answer|results?|output|json|response|data|corrected(?: version)?|instead)\b"
    r"[^\w\n:]{0,3}(?::|is\b|are\b|becomes\b)|\b(?:should|must) be\b|\bhere\b[^\n:]{0,40}:)"
    r"[^\w\n{\[]*[{\[]"
)
# A key: `Or {"a": 2}` and `replace {"a": 2 with …` are about the same data if the answer has it.
_KEY = re.compile(r"[\"'“]([^\"'“”\n]*)[\"'”]\s*:|[{,]\s*([\w$]+)\s*:")
_FIRST_KEY = re.compile(r"\{\s*+[\"'“]?([\w$ .-]*)[\"'”]?\s*:")
# `Continued: "b": 3}`: the end of an object.
_END_OF_OBJECT = re.compile(r"[\"'”]\s*:[^{}\n]*\}")
_OBJECT = re.compile(r"\{[^{}\n]*\}")
# `And [3, 4]`: a list of values, where the answer is a list. `[1]` is a footnote.
_LIST = re.compile(r"\[\s*(?:[\"'{]|-?[\d.]+\s*,|(?:true|false|null)\b)")
_MARK = re.compile(r"[{}\[\]\"`“”]|(?<!\w)'|'(?!\w)")
_EDITING = "supplied", "extra_comma", "extra_opener", "extra_closer"


def without_prose_marks(text: str, *, complete: bool | None) -> str:
    """Blank, outside the one fence or paragraph that is the answer, what could be taken for data.

    That is code in other fences, and brackets and quotes in prose. The text stays as it is where no
    fence or paragraph is the only one, or where a line outside begins like a document, or another
    one is announced: there may be a second answer.
    """
    text, fences = _without_code(text)
    if fences:
        answers = [span for span in fences if _is_whole(text[slice(*span)], complete)]
    else:
        paragraphs = [match.span() for match in _PARAGRAPH.finditer(text)]
        answers = [span for span in paragraphs if _is_strict(text[slice(*span)])]
    if len(answers) != 1 or len(fences) > 1:
        return text
    low, high = answers[0]
    before, after = text[:low], text[high:]
    outside = before + "\n" + after
    answer = text[low:high]
    if _holds_data(outside, answer) or is_taken_back((before, after)):
        return text
    return _MARK.sub(" ", before) + answer + _MARK.sub(" ", after)


def _holds_data(prose: str, answer: str) -> bool:
    """Tell whether prose has what may be another answer, or more of this one."""
    is_list = "[" in answer.partition("{")[0]
    marked = _DATA_LINE.search(prose) or _ANNOUNCED.search(prose)
    ends_object = _END_OF_OBJECT.search(_OBJECT.sub("", prose))
    if marked or ends_object or (is_list and _LIST.search(prose)):
        return True
    keys = {name for names in _KEY.findall(answer) for name in names if name}
    return not keys.isdisjoint(_FIRST_KEY.findall(prose))


def _without_code(text: str) -> tuple[str, list[tuple[int, int]]]:
    """Blank the contents of fences that hold code; return where those tagged as JSON stand."""
    fence_lines = list(_FENCE_LINE.finditer(text))
    openings, closings = fence_lines[::2], fence_lines[1::2]
    if len(openings) != len(closings) or any(line[2] for line in closings):
        return text, []
    parts, end = list[str](), 0
    answers = list[tuple[int, int]]()
    for opening, closing in zip(openings, closings, strict=True):
        tag, inside = opening[2].lower(), text[opening.end() : closing.start()].strip()
        if tag in _JSON_TAGS:
            answers.append((opening.start(), closing.end()))
        elif not (START.match(inside) or (tag in _DATA_TAGS and inside[:1] in {"{", "["})):
            parts += [text[end : opening.start()], " " * (closing.end() - opening.start())]
            end = closing.end()
    return "".join([*parts, text[end:]]), answers


def _is_whole(fence: str, complete: bool | None) -> bool:
    """Tell whether a fence holds one document, which nothing was supplied to or left out of."""
    inside = fence.strip().partition("\n")[2].rpartition("\n")[0]
    start = len(inside) - len(inside.lstrip())
    if not START.match(inside, start):
        return False
    try:
        document = read_document(inside, start, complete=complete)
    except (Unreadable, RecursionError):
        return False
    return not (document.has_repair(*_EDITING) or inside[document.end :].strip())


def _is_strict(paragraph: str) -> bool:
    """Tell whether a paragraph is an object or a list in strict JSON, and not empty."""
    if paragraph.lstrip()[:1] not in {"{", "["}:
        return False
    try:
        return bool(strict_value(paragraph))
    except (ValueError, RecursionError):
        return False
