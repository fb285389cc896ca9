"""Read a text as plain JSON: exact, or refused."""

import json
import math
from typing import Any


class NotJsonError(ValueError):
    """A text is not JSON that state can hold; the message says why."""


def read_json(text: str) -> Any:
    """Parse JSON whose numbers are finite, whose keys are unique and whose text can be written.

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
        json.dumps(value, ensure_ascii=False).encode()  # a lone surrogate raises here
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
