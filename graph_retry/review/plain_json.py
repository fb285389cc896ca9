"""Read whatever somebody answered as plain JSON: bounded, exact, or refused."""

import json
import math
from collections.abc import Mapping
from dataclasses import is_dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

from pydantic import BaseModel
from pydantic_core import to_jsonable_python
from typing_extensions import TypeIs

from graph_retry.params.jsonlike import is_array, is_object

MAX_DEPTH = 100
MAX_VALUES = 1_000_000
_MAX_BITS = 1_024  # browsers round a whole number of 64 bits to a longer one
_TYPED = (BaseModel, date, time, timedelta, UUID, Decimal, bytes)


class NotJsonError(ValueError):
    """A value is no JSON, or more of it than a person would send; the text says which."""


def read_json(text: str) -> Any:
    """Parse strict JSON: no NaN, no infinity, no key given twice.

    Raises:
        NotJsonError: If `text` is anything else.

    Example:
        >>> read_json('{"a": 1, "a": 2}')
        Traceback (most recent call last):
        ...
        graph_retry.review.plain_json.NotJsonError: the key "a" is given twice
    """
    try:
        return json.loads(
            text, object_pairs_hook=_unique, parse_constant=_refused, parse_float=_finite
        )
    except json.JSONDecodeError as error:
        msg = f"{error.msg} at character {error.pos}"
        raise NotJsonError(msg) from None
    except NotJsonError:
        raise
    except (ValueError, RecursionError):
        msg = "a number is too long or the nesting too deep"
        raise NotJsonError(msg) from None


def plain_json(value: Any) -> Any:
    """Copy a JSON-like value as plain dicts, lists and scalars.

    Models, dataclasses, enums, dates, UUIDs, Decimals and bytes (base64) are written as pydantic
    writes them, so that answers made in Python code may hold them.

    Raises:
        NotJsonError: If something in it is no JSON, too deep, too large or refers to itself.

    Example:
        >>> plain_json({"due": date(2026, 1, 31), "tags": ("a", "b")})
        {'due': '2026-01-31', 'tags': ['a', 'b']}
    """
    left = MAX_VALUES

    def copy(item: Any, depth: int) -> Any:
        nonlocal left
        left -= 1
        if left < 0 or depth > MAX_DEPTH:
            msg = f"it is nested over {MAX_DEPTH} levels deep or holds over {MAX_VALUES:,} values"
            raise NotJsonError(msg)
        if isinstance(item, Enum):
            return copy(item.value, depth + 1)
        if item is None or isinstance(item, bool | str | int | float):
            return _scalar(item)
        if _is_sequence(item):
            return [copy(each, depth + 1) for each in item]
        if _is_mapping(item):
            return {_key(key): copy(each, depth + 1) for key, each in item.items()}
        if isinstance(item, _TYPED) or (is_dataclass(item) and not isinstance(item, type)):
            return copy(to_jsonable_python(item, bytes_mode="base64"), depth + 1)
        msg = f"a value of type {type(item).__name__} is not JSON"
        raise NotJsonError(msg)

    try:
        return copy(value, 0)
    except NotJsonError:
        raise
    except Exception as error:  # noqa: BLE001  an object's own conversion may raise anything
        msg = f"a value in it cannot be read as JSON ({type(error).__name__})"
        raise NotJsonError(msg) from None


def fits_checkpoint(value: Any) -> bool:
    """Tell whether every whole number of a JSON value is within the checkpointers' 64 bits.

    Example:
        >>> fits_checkpoint([2**64 - 1]), fits_checkpoint([2**64])
        (True, False)
    """
    if is_object(value):
        return all(map(fits_checkpoint, value.values()))
    if is_array(value):
        return all(map(fits_checkpoint, value))
    return not isinstance(value, int) or -(2**63) <= value < 2**64


def _is_sequence(value: object) -> "TypeIs[list[Any] | tuple[Any, ...]]":
    return isinstance(value, list | tuple)


def _is_mapping(value: object) -> "TypeIs[Mapping[Any, Any]]":
    return isinstance(value, Mapping)


def _scalar(item: Any) -> Any:
    if item is None or isinstance(item, bool):
        return item
    if isinstance(item, str):
        return _text(item)
    if isinstance(item, float):
        return _finite(item)
    if item.bit_length() > _MAX_BITS:
        msg = "a number in it is too long"
        raise NotJsonError(msg)
    return int(item)


def _text(item: str) -> str:
    try:
        item.encode()
    except UnicodeEncodeError:
        msg = "a text in it holds a lone surrogate, which no checkpointer keeps"
        raise NotJsonError(msg) from None
    return str(item)


def _key(key: Any) -> str:
    if isinstance(key, Enum):
        key = key.value
    if not isinstance(key, str):
        msg = f"a key of type {type(key).__name__} is not text"
        raise NotJsonError(msg)
    return _text(key)


def _finite(number: float | str) -> float:
    value = float(number)
    if not math.isfinite(value):
        msg = "a number in it is not finite"
        raise NotJsonError(msg)
    return value


def _refused(constant: str) -> Any:
    msg = f"{constant} is not JSON"
    raise NotJsonError(msg)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            msg = f"the key {json.dumps(key[:60])} is given twice"
            raise NotJsonError(msg)
        found[key] = value
    return found
