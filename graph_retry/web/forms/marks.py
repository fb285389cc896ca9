"""Mark places in a text for people: faulty values in a JSON document, and changed words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any

from graph_retry._issues import pointer

MAX_WORDS = 4_000
"""Maximum number of words of a text that are compared. Longer texts are shown whole."""

_CONTEXT = 12
"""Number of equal words that are shown on each side of a change."""

_WORDS = re.compile(r"\s+|\w+|[^\w\s]")
_SPACE = re.compile(r"[ \t\n\r]*")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"')
_SCALAR = re.compile(r'[^\s,\]}"]+')


def spans(text: str) -> dict[str, tuple[int, int]]:
    """Return the start and end of each value in a JSON document, by JSON Pointer.

    Raises:
        ValueError: If the text is not one JSON document.

    Example:
        >>> spans('{"a": [1, 22]}')["/a/1"]
        (10, 12)
    """
    json.loads(text)
    found: dict[str, tuple[int, int]] = {}
    _walk(text, _end(_SPACE, text, 0), "", found)
    return found


def _walk(text: str, start: int, where: str, found: dict[str, tuple[int, int]]) -> int:
    """Record the span of the value at `start`, and of the values in it; return its end."""
    opened = text[start]
    if opened == '"':
        end = _end(_STRING, text, start)
    elif opened in "{[":
        end, number = _end(_SPACE, text, start + 1), 0
        while text[end] not in "}]":
            key: Any = number
            if opened == "{":
                begin, end = end, _end(_STRING, text, end)
                key = json.loads(text[begin:end])
                end = _end(_SPACE, text, _end(_SPACE, text, end) + 1)
            end = _end(_SPACE, text, _walk(text, end, where + pointer((key,)), found))
            end, number = _end(_SPACE, text, end + 1) if text[end] == "," else end, number + 1
        end += 1
    else:
        end = _end(_SCALAR, text, start)
    found[where] = (start, end)
    return end


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at


def marked(text: str, pointers: Sequence[str]) -> list[tuple[str, str]]:
    """Cut a JSON text into pieces, each with the pointer of its fault, or "" if it is not faulty.

    For a missing value, the object around it is marked. A text that is not JSON is one piece.

    Example:
        >>> marked('{"a": 1, "b": "x"}', ["/b"])
        [('{"a": 1, "b": ', ''), ('"x"', '/b'), ('}', '')]
    """
    try:
        known = spans(text)
    except (ValueError, RecursionError):
        return [(text, "")]
    chosen: dict[tuple[int, int], str] = {}
    for place in pointers:
        where = place
        while where not in known:
            where = where.rpartition("/")[0]
        chosen.setdefault(known[where], place)
    pieces: list[tuple[str, str]] = []
    at = 0
    # If one faulty place contains another, mark the inner one.
    inner = [
        place
        for place in chosen
        if not any(place != o and place[0] <= o[0] and o[1] <= place[1] for o in chosen)
    ]
    for start, end in sorted(inner):
        pieces += [(text[at:start], ""), (text[start:end], chosen[start, end])]
        at = end
    return [piece for piece in [*pieces, (text[at:], "")] if piece[0]]


def word_diff(before: str, after: str) -> list[tuple[str, str]]:
    """Compare two texts word by word; return pieces that are `same`, `gone`, `new` or `cut`.

    A long equal part is replaced by a `cut` piece, which counts its words.

    Example:
        >>> word_diff("Read the bill.", "Read the whole bill.")
        [('same', 'Read the '), ('new', 'whole '), ('same', 'bill.')]
    """
    old, new = _WORDS.findall(before), _WORDS.findall(after)
    if max(len(old), len(new)) > MAX_WORDS:
        return [("gone", before), ("new", after)]
    return [piece for piece in _compared(old, new) if piece[1]]


def _compared(old: list[str], new: list[str]) -> Iterator[tuple[str, str]]:
    codes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    for number, (tag, i, j, k, n) in enumerate(codes):
        if tag == "equal":
            head = _CONTEXT if number else 0
            tail = _CONTEXT if number < len(codes) - 1 else 0
            left_out = j - i - head - tail
            if left_out > 2 * _CONTEXT:
                yield "same", "".join(old[i : i + head])
                yield (
                    "cut",
                    f"… {len(''.join(old[i + head : j - tail]).split()):,} words the same …",
                )
                yield "same", "".join(old[j - tail : j])
            else:
                yield "same", "".join(old[i:j])
        else:
            yield "gone", "".join(old[i:j])
            yield "new", "".join(new[k:n])
