"""Read strict JSON; refuse repeated keys and floats out of range, in which `json` loses data."""

import json
import math
from typing import Any

from pydantic_core import from_json

from graph_retry._patterns import lazy

MAX_DEPTH = 200
_SPACE = " \t\r\n"
_START = lazy(r"(?a)\{[ \t\r\n]*+[\"}]|\[[ \t\r\n]*+[\"{\[\]\-\dtfn]|[\"\-\dtfn]")
_NOT_ZERO = lazy(r"[^eE]*[1-9]")
_LARGE_EXPONENT = lazy(r"e[+-]?[0-9]{3}")
_DIGITS_AS_ZERO = bytes.maketrans(b"123456789", b"000000000")
_SORTING_ENCODER = json.JSONEncoder(sort_keys=True)


def canonical(value: Any) -> str:
    """Return the same text for equal JSON values of equal types: `1` and `1.0` differ."""
    return _SORTING_ENCODER.encode(value)


def same(left: Any, right: Any) -> bool:
    """Return whether two JSON values are equal in value and type."""
    return left is right or canonical(left) == canonical(right)


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make a dict of an object's members.

    Raises:
        ValueError: If two values for one key disagree.
    """
    result = dict(pairs)
    if len(result) != len(pairs):
        for key, value in pairs:
            if not same(result[key], value):
                raise ValueError(f"Two values for the key `{key[:40]}`")
    return result


def finite(token: str) -> float:
    """Return the float that `token` spells.

    Raises:
        ValueError: If a float would be infinite, or zero in place of a tiny number.
    """
    value = float(token)
    # This runs for every float of a text, so the common case is tested first.
    if -math.inf < value < math.inf and (value or not _NOT_ZERO.match(token)):
        return value
    raise ValueError("A number is out of the range of floats")


# `int("NaN")` raises, so that `NaN` is left to the tolerant reader, which reports it.
_DECODER = json.JSONDecoder(object_pairs_hook=unique, parse_constant=int)
_CHECKING = json.JSONDecoder(object_pairs_hook=unique, parse_constant=int, parse_float=finite)


def decode(text: str, start: int) -> tuple[Any, int]:
    """Read the strict JSON value at `start`; return it and its end.

    Raises:
        ValueError: If there is none.
    """
    # Checking a float takes longer than reading it. With many floats, it is faster to search the
    # text for numbers that may be out of range.
    many_floats = text.count(".", start, start + 400) > 10
    value, end = (_DECODER if many_floats else _CHECKING).raw_decode(text, start)
    if many_floats and _may_leave_range(text[start:end]):
        value, end = _CHECKING.raw_decode(text, start)
    # From Python 3.13 on, the standard library's decoder has no limit of depth.
    may_be_deep = end - start > 2 * MAX_DEPTH
    if may_be_deep and text.count("[", start, end) + text.count("{", start, end) > MAX_DEPTH:
        from_json(text[start:end])  # This raises if the value is nested too deeply.
    return value, end


def _may_leave_range(document: str) -> bool:
    """Return whether a number has an exponent of three digits, or hundreds of digits."""
    if "E" in document or _LARGE_EXPONENT.search(document):
        return True
    return b"0" * 200 in document.encode(errors="replace").translate(_DIGITS_AS_ZERO)


def strict_part(text: str, start: int, limit: int) -> tuple[Any, int]:
    """Read the strict JSON value at `start`, before `limit`; return it and its end.

    The standard library counts all lines before an error. Growing pieces are tried, because with
    the whole text, many failing documents would take time quadratic in its length.

    Raises:
        ValueError: If there is none; `pos` tells how far it was read.
    """
    size = 4000
    while True:
        stop = min(limit, start + size)
        piece = text[start:stop]
        try:
            value, end = decode(piece, 0)
        except json.JSONDecodeError as error:
            is_cut = error.pos > len(piece) - 12 or error.msg.startswith("Unterminated")
            if not is_cut or stop == limit:
                raise
        else:
            if end < len(piece) or stop == limit:
                return value, start + end
        size *= 8


def strict_value(text: str) -> Any:
    """Read a text that is strict JSON as a whole.

    Raises:
        ValueError: If it is not.
    """
    start = len(text) - len(text.lstrip(_SPACE)) if text[:1].isspace() else 0
    if not _START.match(text, start):  # This test is faster than decoding.
        raise ValueError("No JSON value begins like this.")
    value, end = decode(text, start)
    if end < len(text) and text[end:].strip(_SPACE):
        raise json.JSONDecodeError("Extra data", text, end)
    return value
