"""Fences around code: where one holds the answer, the text outside it is prose.

Models explain an answer with examples, code and quoted pieces of it. Beside a fence that is tagged
as JSON and is nothing but a document, their brackets and quotes mean nothing.
"""

import re

from graph_retry._output.repair.find import START
from graph_retry._output.repair.mend import read_document
from graph_retry._output.repair.report import Unreadable

# A line that opens or closes a fence, with its tag.
_FENCE_LINE = re.compile(r"(?m)^ *(`{3,}|~{3,}) *([\w+#.-]*) *$")
_JSON_TAGS = {"json", "json5", "jsonc"}
# JavaScript may hold the answer, too: `const data = {"a": 1}`.
_DATA_TAGS = _JSON_TAGS | {"javascript", "js", ""}
# A line of prose that begins like a document, or like a piece of one.
_DATA_LINE = re.compile(r"(?m)^[ \t]*(?:[{\[\]}]|[\"'][^\"'\n]*[\"'][ \t]*:[ \t]*[\"'\d{\[-])")
_MARK = re.compile(r"[{}\[\]\"`“”]|(?<!\w)'|'(?!\w)")
_EDITING = "supplied", "extra_comma", "extra_opener", "extra_closer"


def without_other_fences(text: str, *, complete: bool | None) -> str:
    """Blank what stands outside the one fence that is tagged as JSON and holds a whole document.

    Other code is blanked, and in prose the marks that could be taken for data. Where a line outside
    begins like a document, there may be a second answer: then prose stays as it is. So does all
    text where no fence is the only one with such a tag.
    """
    if text.count("```") + text.count("~~~") < 2:
        return text
    fence_lines = list(_FENCE_LINE.finditer(text))
    openings, closings = fence_lines[::2], fence_lines[1::2]
    tags = [line[2].lower() for line in openings]
    paired = len(openings) == len(closings) and not any(line[2] for line in closings)
    if not paired or sum(tag in _JSON_TAGS for tag in tags) != 1:
        return text
    parts, end = list[str](), 0
    for opening, closing, tag in zip(openings, closings, tags, strict=True):
        inside = text[opening.end() : closing.start()].strip()
        if tag not in _JSON_TAGS and not _is_document(inside, tag):
            parts += [text[end : opening.end()], " " * (closing.start() - opening.end())]
            end = closing.start()
    text = "".join([*parts, text[end:]])
    answer = tags.index(next(tag for tag in tags if tag in _JSON_TAGS))
    low, high = openings[answer].end(), closings[answer].start()
    before, after = text[: openings[answer].start()], text[closings[answer].end() :]
    if _DATA_LINE.search(before + "\n" + after) or not _is_whole(text[low:high], complete):
        return text
    low, high = len(before), len(text) - len(after)
    return _MARK.sub(" ", before) + text[low:high] + _MARK.sub(" ", after)


def _is_document(inside: str, tag: str) -> bool:
    """Tell whether the code in a fence may be data: it may in one without a tag, or JavaScript."""
    has_bracket = START.match(inside) is not None and inside[-1] in "]}"
    return has_bracket or (tag in _DATA_TAGS and inside[:1] in {"{", "["})


def _is_whole(inside: str, complete: bool | None) -> bool:
    """Tell whether `inside` is one document, which nothing was supplied to or left out of."""
    start = len(inside) - len(inside.lstrip())
    if not START.match(inside, start):
        return False
    try:
        document = read_document(inside, start, complete=complete)
    except (Unreadable, RecursionError):
        return False
    return not (document.has_repair(*_EDITING) or inside[document.end :].strip())
