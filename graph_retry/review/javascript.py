"""Undo what a browser does to numbers: `1.0` becomes `1`, integers beyond 2**53 lose digits."""

import json
import math
from decimal import Decimal
from typing import Any

from graph_retry.params.jsonlike import is_array, is_object

_SAFE = 2**53
_EXPONENT = 1e21  # from here on JavaScript writes an exponent


class LostDigitsError(ValueError):
    """A number came back rounded, and several shown ones round to it."""


def undamaged(value: Any, shown: Any) -> Any:
    """Put back every number of `shown` that `value` holds as JavaScript would have rounded it.

    Objects are compared key by key, lists of one length item by item; in a list that was
    shortened or lengthened, whole items are recognised wherever they stand.

    Raises:
        LostDigitsError: If such an item may be one of several.

    Example:
        >>> undamaged([1152921504606847000, 5], [2**60 + 1, 2])
        [1152921504606846977, 5]
    """
    if is_object(value) and is_object(shown):
        return {k: undamaged(v, shown[k]) if k in shown else v for k, v in value.items()}
    if is_array(value) and is_array(shown):
        return _undamaged_list(value, shown)
    return shown if _is_echo(value, shown) else value


def identical(one: Any, other: Any) -> bool:
    """Tell whether two JSON values are the same, where `1`, `1.0` and true are not.

    Example:
        >>> identical({"a": 1}, {"a": 1}), identical(1, 1.0), identical(1, True)
        (True, False, False)
    """
    return _key(one) == _key(other)


def _undamaged_list(values: list[Any], shown: list[Any]) -> list[Any]:
    if len(values) == len(shown):
        return [undamaged(value, each) for value, each in zip(values, shown, strict=True)]
    exact = {_key(each) for each in shown}
    originals: dict[str, list[Any]] = {}
    for each in {_key(each): each for each in shown}.values():
        originals.setdefault(_key(_rounded(each)), []).append(each)
    found: list[Any] = []
    for value in values:
        candidates = [value] if _key(value) in exact else originals.get(_key(value), [value])
        if len(candidates) > 1:
            msg = f"{json.dumps(value)[:60]} lost digits in the browser and may be one of several"
            raise LostDigitsError(msg)
        found.append(candidates[0])
    return found


def _rounded(value: Any) -> Any:
    """Write a value as JavaScript would after reading it."""
    if is_object(value):
        return {key: _rounded(each) for key, each in value.items()}
    if is_array(value):
        return [_rounded(each) for each in value]
    return _rounded_number(value) if _is_number(value) else value


def _rounded_number(number: Any) -> Any:
    if isinstance(number, int) and abs(number) <= _SAFE:
        return number
    near = _as_float(number)
    if not math.isfinite(near) or abs(near) >= _EXPONENT or not near.is_integer():
        return near
    return int(Decimal(repr(near)))


def _is_echo(value: Any, shown: Any) -> bool:
    if not (_is_number(value) and _is_number(shown)):
        return False
    if value in (shown, _rounded_number(shown)):
        return True
    if isinstance(shown, float):
        return _as_float(value) == shown
    near = _as_float(shown)
    return abs(shown) > _SAFE and math.isfinite(near) and value in (near, int(near))


def _as_float(number: float) -> float:
    """Convert to float; the codec keeps whole numbers of a view within 64 bits."""
    try:
        return float(number)
    except OverflowError:
        return math.inf


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _key(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
