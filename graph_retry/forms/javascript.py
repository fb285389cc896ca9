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
        if len(value) == len(shown):
            return [undamaged(each, other) for each, other in zip(value, shown, strict=True)]
        return _recognised(value, shown)
    return shown if _is_echo(value, shown) else value


def identical(one: Any, other: Any) -> bool:
    """Tell whether two JSON values are the same, where `1`, `1.0` and true are not.

    Example:
        >>> identical({"a": 1}, {"a": 1}), identical(1, 1.0), identical(1, True)
        (True, False, False)
    """
    return _key(one) == _key(other)


def _recognised(items: list[Any], shown: list[Any]) -> list[Any]:
    exact = {_key(each): each for each in shown}
    originals: dict[str, list[Any]] = {}
    for each in exact.values():
        originals.setdefault(_key(rounded(each)), []).append(each)
    found = [
        [item] if (key := _key(item)) in exact else originals.get(key, [item]) for item in items
    ]
    lost = next((candidates for candidates in found if len(candidates) > 1), None)
    if lost:
        raise LostDigitsError(f"a number lost digits and may be one of {_key(lost)[:100]}")
    return [candidates[0] for candidates in found]


def rounded(value: Any) -> Any:
    """Return a JSON value as it reads after JavaScript parsed and wrote it.

    Example:
        >>> rounded([1.0, 2**60 + 1])
        [1, 1152921504606847000]
    """
    if is_object(value):
        return {key: rounded(each) for key, each in value.items()}
    if is_array(value):
        return [rounded(each) for each in value]
    if not _is_number(value) or (isinstance(value, int) and abs(value) <= _SAFE):
        return value
    near = float(value)
    whole = near.is_integer() and abs(near) < _EXPONENT
    return int(Decimal(repr(near))) if whole else near


def _is_echo(value: Any, shown: Any) -> bool:
    if not (_is_number(value) and _is_number(shown)):
        return False
    if isinstance(shown, float) and math.isfinite(shown):
        return value == shown or float(value) == shown
    return value in (shown, rounded(shown), int(float(shown)) if abs(shown) > _SAFE else shown)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _key(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
