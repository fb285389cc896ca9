"""Write values and their places for people. The page and the console use the same texts."""

from __future__ import annotations

import json
import re
from typing import Any

from graph_retry.plugins import is_array, is_object, pointer_parts
from graph_retry.reviews import Review

_PLURAL = re.compile(r"(?<=[^siu])(?<!ie)(?<![sxz]e)(?<![cs]he)s$")
"""The plural ending `s`, if it alone makes the plural, as in `lines` but not in `boxes`."""


def said(value: Any) -> str:
    """Write a value: texts unchanged, unreadable fields as typed, and other values as JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, indent=2, ensure_ascii=False, default=lambda unread: unread.text)


def spoken(path: str, within: Any = None) -> str:
    """Write a JSON Pointer for people, with list items counted from 1.

    A number is the position of a list item, unless `within`, the whole value, has the number as a
    key.

    Example:
        >>> spoken("/lines/4/price"), spoken("/boxes/0"), spoken("/0/a"), spoken("")
        ('line 5 → price', 'boxes 1', '1 → a', 'the whole value')
        >>> spoken("/sales/2031", {"sales": {"2030": 7}})
        'sales → 2031'
    """
    words, named = list[str](), ""
    for part in pointer_parts(path):
        is_item = part.isdecimal() and not is_object(within)
        if not is_item:
            words.append(part)
        elif named:
            words[-1] = f"{_PLURAL.sub('', named)} {int(part) + 1}"
        else:
            words.append(str(int(part) + 1))
        named = "" if is_item else part
        if is_object(within):
            within = within.get(part)
        elif is_array(within):
            within = within[int(part)] if is_item and int(part) < len(within) else None
    return " → ".join(words) or "the whole value"


def doubts_of(review: Review) -> dict[str, list[str]]:
    """Return the reasons to look at some values of a valid output first, by JSON Pointer."""
    found = dict[str, list[str]]()
    for record in review.history:
        for doubt in record.get("gate", {}).get("doubts", []):
            if record["number"] == review.attempt:
                found.setdefault(doubt["path"], []).append(doubt["why"])
    return found
