"""Read what somebody sent as plain JSON: exact, bounded, or refused."""

import json
import math
from typing import Any

from graph_retry.params.typed_json import is_reason, write

_MAX_DEPTH = 100
_MAX_DIGITS = 300  # browsers round a whole number of 64 bits to a longer one


class NotJsonError(ValueError):
    """Something is no JSON, or more of it than a person would send; the text says what."""


def read_json(text: str) -> Any:
    """Parse JSON that has no NaN, no infinity and no key given twice.

    Raises:
        NotJsonError: If `text` is anything else.

    Example:
        >>> read_json('{"a": 1, "a": 2}')
        Traceback (most recent call last):
        ...
        graph_retry.forms.strict_json.NotJsonError: the key "a" is given twice
    """
    try:
        return json.loads(
            text,
            object_pairs_hook=_unique,
            parse_constant=_finite,
            parse_float=_finite,
            parse_int=_whole,
        )
    except json.JSONDecodeError as error:
        raise NotJsonError(f"{error.msg} at character {error.pos}") from None
    except NotJsonError:
        raise
    except RecursionError:
        raise NotJsonError("the nesting is too deep") from None


def plain_json(value: Any, depth: int = 0) -> Any:
    """Copy a JSON-like value as plain JSON; models, dates and such as params show them.

    Raises:
        NotJsonError: If something in it cannot be written, is too deep or too large.

    Example:
        >>> from datetime import date
        >>> plain_json({"due": date(2026, 1, 31), "tags": ("a", "b")})
        {'due': '2026-01-31', 'tags': ['a', 'b']}
    """
    kind = _class_of(value)
    if depth > _MAX_DEPTH:
        raise NotJsonError(f"it is nested deeper than {_MAX_DEPTH} levels or contains itself")
    if kind in (list, tuple):
        return [plain_json(each, depth + 1) for each in value]
    if issubclass(kind, dict):
        return {_key(key): plain_json(each, depth + 1) for key, each in value.items()}
    if kind is float:
        return _finite(value)
    if kind is int:
        return _whole(value)
    try:
        plain, tags = write(value, deep=True)
    except Exception as error:  # noqa: BLE001  an object's own methods may raise anything
        raise NotJsonError(f"a value in it cannot be read ({type(error).__name__})") from None
    for tag in filter(is_reason, tags.values()):
        raise NotJsonError(f"a value in it {tag[1:]}")
    return plain


def _class_of(value: object) -> type:
    return type(value)


def _key(key: Any) -> str:
    text = plain_json(key)
    if isinstance(text, str):
        return text
    raise NotJsonError(f"a key of type {type(key).__name__} is not text")


def _finite(number: float | str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise NotJsonError(f"{number} is not a JSON number"[:80])
    return value


def _whole(number: int | str) -> int:
    long = len(number) > _MAX_DIGITS if isinstance(number, str) else abs(number) >= 10**_MAX_DIGITS
    if long:
        raise NotJsonError("a number in it is too long")
    return int(number)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise NotJsonError(f"the key {json.dumps(key[:60])} is given twice")
        found[key] = value
    return found
