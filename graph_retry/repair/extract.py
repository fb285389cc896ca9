"""Small string helpers: cut out a fence or a JSON block, drop trailing commas."""

import re

from graph_retry.repair.decide import decide
from graph_retry.repair.report import Unreadable
from graph_retry.repair.scan import INVISIBLE

_FENCE = re.compile(
    r"^[ \t]*(?P<fence>`{3,}|~{3,})[ \t]*(?P<lang>[^\s`]*)[^\n`]*\n"
    r"(?P<body>.*?)(?:\n?^[ \t]*(?P=fence)[`~]*[ \t]*$|\Z)",
    re.DOTALL | re.MULTILINE,
)
_WHOLE_FENCE = re.compile(r"(`{3,}|~{3,})[ \t]*[\w+#.\-]*\s(.*?)(?:\1)?", re.DOTALL)
_EDGE = re.compile(rf"[\s{INVISIBLE}]*+")
_STRING_OR_COMMA = re.compile(r"\"(?:[^\"\\]|\\.)*+\"?|,(?=\s*[}\]])", re.DOTALL)


def extract_code_fence(text: str, lang: str | None = None) -> str | None:
    """Return the contents of the first code fence, or of the first one tagged `lang`.

    Example:
        >>> extract_code_fence("Here:\\n```json\\n{}\\n```", "json")
        '{}'
    """
    for match in _FENCE.finditer(text):
        if lang is None or match["lang"].lower() == lang.lower():
            return match["body"]
    return None


def extract_json_block(text: str) -> str | None:
    """Return the one JSON document of `text` as it is written there, repairs not made.

    Example:
        >>> extract_json_block("Sure: {'a': 1,} Anything else?")
        "{'a': 1,}"
    """
    try:
        document = decide(text, complete=None)
    except (Unreadable, RecursionError):
        return None
    return text[document.start : document.end]


def remove_trailing_commas(text: str) -> str:
    """Return `text` without commas before closing brackets; strings are left alone.

    Example:
        >>> remove_trailing_commas('{"a": [1, 2,], "b": ",]",}')
        '{"a": [1, 2], "b": ",]"}'
    """
    return _STRING_OR_COMMA.sub(lambda match: match[0] if match[0] != "," else "", text)


def bounds(text: str) -> tuple[int, int]:
    """Return where the contents of `text` start and end: inside a fence that holds all of it."""
    trimmed = text.rstrip().rstrip("\ufeff\u200b")
    match = _EDGE.match(trimmed)
    low = match.end() if match else 0
    high = len(trimmed)
    if match := _WHOLE_FENCE.fullmatch(trimmed, low):
        low, high = match.span(2)
    return low, high
