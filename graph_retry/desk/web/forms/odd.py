"""Find fields of a value that are unlike those of many similar values, and say why.

A value is odd if it lacks a property that most other values share. Very few values are not
compared.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from graph_retry.desk.texts import spoken
from graph_retry.plugins import is_array, is_number, is_object, pointer

FEWEST = 6
"""Minimum number of values for a comparison."""

SHARED, COMMON = 0.8, 0.6
"""The minimum share of values with the same kind, and of texts with a common word."""

FAR = 8
"""A number is odd if it is this many times farther from the median than numbers usually are."""


def odd_ones(values: Sequence[Any]) -> list[list[str]]:
    """Describe, for each value, the fields that differ from the other values.

    Example:
        >>> letters = [{"text": f"Dear {name}, your parcel is here."} for name in "ABCDEFG"]
        >>> [each for each in odd_ones([*letters, {"text": "ur parcel is LOST lol"}]) if each]
        [['text: other words']]
    """
    told: list[list[str]] = [[] for _ in values]
    if len(values) < FEWEST:
        return told
    leaves = [dict(_leaves(value, "")) for value in values]
    for place in dict.fromkeys(place for each in leaves for place in each):
        own = [each.get(place) for each in leaves]
        for number, why in _odd(own).items():
            told[number].append(f"{spoken(place)}: {why}")
    return told


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield the simple values by JSON Pointer. A list counts only by its length."""
    if is_object(value):
        for name, part in value.items():
            yield from _leaves(part, path + pointer([name]))
    else:
        yield path, len(value) if is_array(value) else value


def _odd(values: Sequence[Any]) -> dict[int, str]:
    kinds = [_kind(value) for value in values]
    kind, count = Counter(kinds).most_common(1)[0]
    if count < SHARED * len(values):
        return {}
    odd = {
        number: "missing" if values[number] is None else "another kind"
        for number, own in enumerate(kinds)
        if own != kind
    }
    like = {number: values[number] for number, own in enumerate(kinds) if own == kind}
    if kind == "text":
        return odd | _odd_texts(like)
    return odd | _odd_numbers(like) if kind == "number" else odd


def _kind(value: Any) -> str:
    return "text" if isinstance(value, str) else "number" if is_number(value) else repr(value)


def _odd_texts(texts: dict[int, str]) -> dict[int, str]:
    words = {number: set(re.findall(r"\w+", text)) for number, text in texts.items()}
    counts = Counter(word for own in words.values() for word in own)
    common = {word for word, count in counts.items() if count >= COMMON * len(texts)}
    if len(common) < 3:
        return {}
    return {n: "other words" for n, own in words.items() if len(common & own) < len(common) / 2}


def _odd_numbers(numbers: dict[int, float]) -> dict[int, str]:
    middle = median(numbers.values())
    usual = median(abs(number - middle) for number in numbers.values())
    return {
        n: f"far from the usual {middle:g}"
        for n, number in numbers.items()
        if usual and abs(number - middle) > FAR * usual
    }
