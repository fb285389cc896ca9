"""Undo what a browser does to numbers: `1.0` becomes `1`, integers beyond 2**53 lose digits."""

import json
from decimal import Decimal
from typing import Any

from graph_retry._json import is_array, is_object


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
        originals: dict[str, dict[str, Any]] = {}
        for each in shown:
            originals.setdefault(_key(_rounded(each)), {})[_key(each)] = each
        return [_original(item, originals.get(_key(item), {})) for item in value]
    echo = _is_number(value) and _is_number(shown) and value in (shown, _rounded(shown))
    return shown if echo else value


def identical(one: Any, other: Any) -> bool:
    """Tell whether two JSON values are the same, where `1`, `1.0` and true are not.

    Example:
        >>> identical({"a": 1}, {"a": 1}), identical(1, 1.0), identical(1, True)
        (True, False, False)
    """
    return _key(one) == _key(other)


def _original(item: Any, candidates: dict[str, Any]) -> Any:
    if len(candidates) > 1 and _key(item) not in candidates:
        either = ", ".join(candidates)[:100]
        raise LostDigitsError(f"a number lost digits and may be one of {either}")
    return candidates.get(_key(item), next(iter(candidates.values()), item))


def _rounded(value: Any) -> Any:
    """Return a JSON value as it reads after JavaScript parsed and wrote it."""
    if is_object(value):
        return {key: _rounded(each) for key, each in value.items()}
    if is_array(value):
        return [_rounded(each) for each in value]
    if not _is_number(value) or (isinstance(value, int) and abs(value) <= 2**53):
        return value
    near = float(value)
    whole = near.is_integer() and abs(near) < 1e21  # from there on it writes an exponent
    return int(Decimal(repr(near))) if whole else near


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _key(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
