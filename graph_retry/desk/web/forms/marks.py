"""Mark places in a text for people: wrong values in a JSON document, and changed words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any

from graph_retry.desk.texts import said, spoken
from graph_retry.plugins import ABSENT, changes, pointer_parts

MAX_WORDS = 4_000
"""Maximum number of words of a text that are compared. Longer texts are shown whole."""

_CONTEXT = 12
"""Number of equal words that are shown on each side of a change."""

_WORDS = re.compile(r"\s+|\w+|[^\w\s]")
_BETWEEN = re.compile(r"[ \t\r\n:,]*")
_DECODER = json.JSONDecoder()


def span_of(text: str, place: str) -> tuple[int, int]:
    """Return the start and end of the value at a JSON Pointer in a JSON document.

    For a missing value, return the span of the object or list that should contain it.

    Raises:
        ValueError: If the text does not begin with a JSON document.

    Example:
        >>> span_of('{"a": [1, 22]}', "/a/1"), span_of('{"a": [1, 22]}', "/a/7")
        ((10, 12), (6, 13))
    """
    at = _after(text, 0)
    found = at, _DECODER.raw_decode(text, at)[1]
    for part in pointer_parts(place):
        inside = dict(_members(text, found[0]))
        if part not in inside:
            break
        found = inside[part]
    return found


def _members(text: str, at: int) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the key and the span of each value in the object or list at `at`."""
    opened, at, number = text[at], _after(text, at + 1), 0
    while opened in "{[" and text[at] not in "}]":
        key: Any = number
        if opened == "{":
            key, at = _DECODER.raw_decode(text, at)
            at = _after(text, at)
        end = _DECODER.raw_decode(text, at)[1]
        yield str(key), (at, end)
        at, number = _after(text, end), number + 1


def _after(text: str, at: int) -> int:
    """Return the position after the white space, colons and commas at `at`."""
    found = _BETWEEN.match(text, at)
    return found.end() if found else at


def marked(text: str, pointers: Sequence[str]) -> list[tuple[str, str]]:
    """Cut a JSON text into pieces. Each piece has the pointer of its fault, or "".

    If a value is missing, the object without the value is marked. A text that is not JSON is one
    piece.

    Example:
        >>> marked('{"a": 1, "b": "x"}', ["/b"])
        [('{"a": 1, "b": ', ''), ('"x"', '/b'), ('}', '')]
    """
    chosen: dict[tuple[int, int], str] = {}
    try:
        json.loads(text)
        for place in pointers:
            chosen.setdefault(span_of(text, place), place)
    except (ValueError, RecursionError):
        return [(text, "")]
    pieces: list[tuple[str, str]] = []
    at = 0
    for start, end in sorted(chosen):
        # If one faulty place contains another, mark the inner one.
        if not any((start, end) != o and start <= o[0] and o[1] <= end for o in chosen):
            pieces += [(text[at:start], ""), (text[start:end], chosen[start, end])]
            at = end
    return [piece for piece in [*pieces, (text[at:], "")] if piece[0]]


def folded(pieces: Sequence[tuple[str, str]], around: int = 5) -> list[tuple[str, str | None]]:
    r"""Fold long pieces without a fault, and keep only the lines next to a fault.

    Example:
        >>> text = "".join(f"{number}\n" for number in range(40))
        >>> [piece for piece in folded([("x", "/a"), (text, "")], 1)][1:]
        [('0\n', ''), ('… 39 lines …\n', None)]
    """
    if len(pieces) < 2:
        return [*pieces]
    told: list[tuple[str, str | None]] = []
    for number, (text, place) in enumerate(pieces):
        lines = text.splitlines(keepends=True)
        before = around if number else 0
        after = around if number < len(pieces) - 1 else 0
        if place or len(lines) <= before + after + 4:
            told.append((text, place))
            continue
        end = len(lines) - after
        fold = f"… {end - before:,} lines …\n"
        told += [("".join(lines[:before]), ""), (fold, None), ("".join(lines[end:]), "")]
    return [piece for piece in told if piece[0]]


def word_diff(before: str, after: str) -> list[tuple[str, str]]:
    """Compare two texts word by word. Return pieces that are `same`, `gone`, `new` or `cut`.

    A `cut` piece stands for a long equal part, and tells the number of its words.

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
        start = i + (_CONTEXT if number else 0)
        stop = j - (_CONTEXT if number < len(codes) - 1 else 0)
        if tag == "equal" and stop - start > 2 * _CONTEXT:
            words = len("".join(old[start:stop]).split())
            yield "same", "".join(old[i:start])
            yield "cut", f"… {words:,} words the same …"
            yield "same", "".join(old[stop:j])
        elif tag == "equal":
            yield "same", "".join(old[i:j])
        else:
            yield "gone", "".join(old[i:j])
            yield "new", "".join(new[k:n])


def compared(old: Any, new: Any) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the changes between two JSON values, each as a place and a comparison of words."""
    found = changes({"": old}, {"": new})
    return [(spoken(where[1:], old), _pieces(before, after)) for where, before, after in found]


def _pieces(before: Any, after: Any) -> list[tuple[str, str]]:
    if isinstance(before, str) and isinstance(after, str):
        return word_diff(before, after)
    both = [("gone", before), ("new", after)]
    return [(kind, said(value)) for kind, value in both if value is not ABSENT]
