"""Write values for people: times, places in a value, and values of any kind."""

from __future__ import annotations

import re
from typing import Any

from graph_retry.plugins import in_words, is_array, is_object, since


def is_deeper(value: Any, most: int) -> bool:
    """Say whether a JSON value has more than `most` levels of lists and objects.

    Example:
        >>> is_deeper([[1]], 2), is_deeper([[1]], 1)
        (False, True)
    """
    level = [value]
    for _ in range(most + 1):
        level = [
            part
            for group in level
            if is_array(group) or is_object(group)
            for part in (group if is_array(group) else group.values())
        ]
        if not level:
            return False
    return True


def ago(moment: str | None) -> str:
    """Write the time since a moment, or until a future moment.

    Example:
        >>> ago("2020-01-01T00:00:00+00:00").endswith("days ago")
        True
    """
    if not moment:
        return ""
    seconds = since(moment)
    if abs(seconds) < 60:
        return "just now" if seconds >= 0 else "in a moment"
    return f"{in_words(seconds)} ago" if seconds >= 0 else f"in {in_words(-seconds)}"


def answered(at: str, author: str) -> str:
    """Say who answered a review, and when.

    Example:
        >>> answered("", "human:ada"), answered("", "human")
        ('ada answered it.', 'Somebody answered it.')
    """
    if author == "system":
        return f"It expired {ago(at)}".rstrip() + "."
    name = author.partition(":")[2] or {"human": "Somebody"}.get(author, author)
    return f"{name} answered it {ago(at)}".rstrip() + "."


def said_role(written: str) -> str:
    """Return a message's role, which the form's list of choices writes as JSON.

    Example:
        >>> said_role('"user"'), said_role("user")
        ('user', 'user')
    """
    return written.strip('"')


def without_type(received: str) -> str:
    """Return the text of a received value without its Python type.

    Example:
        >>> without_type('"EUR 12" (str)')
        '"EUR 12"'
    """
    return re.sub(r" \(\w+\)$", "", received)
