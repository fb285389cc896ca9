"""Read a text as JSON exactly, or refuse it."""

import json
import math
from typing import Any


class NotJsonError(ValueError):
    """A text is not JSON that graph state can hold; the message tells why."""


def read_json(text: str) -> Any:
    """Parse JSON that has finite numbers, unique keys, and only text that UTF-8 can encode.

    Raises:
        NotJsonError: If `text` is not such JSON.

    Example:
        >>> read_json('{"a": 1, "a": 2}')
        Traceback (most recent call last):
        ...
        graph_retry._review.forms.strict_json.NotJsonError: the key "a" is given twice
    """
    try:
        value = json.loads(
            text,
            object_pairs_hook=_unique,
            parse_constant=_finite,
            parse_float=_finite,
            parse_int=_finite,
        )
        json.dumps(value, ensure_ascii=False).encode()  # A lone surrogate raises here.
    except (ValueError, RecursionError) as error:
        raise NotJsonError(str(error)) from None
    return value


def _finite(text: str) -> float:
    if not math.isfinite(float(text)):
        raise NotJsonError(f"{text[:40]} is not a finite number")
    return int(text) if text.removeprefix("-").isdecimal() else float(text)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for key, value in pairs:
        if key in fields:
            raise NotJsonError(f"the key {json.dumps(key[:60])} is given twice")
        fields[key] = value
    return fields
