"""Undo a browser's changes to numbers: `1.0` becomes `1`, and integers above 2**53 lose digits."""

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from graph_retry._json import is_array, is_number, is_object


class LostDigitsError(ValueError):
    """A form rounded a number in a list, and its original cannot be identified."""


def undamaged(value: Any, shown: Any) -> Any:
    """Put back each number of `shown` that `value` repeats in JavaScript's rounding.

    Objects are compared by key, and lists of the same length by position.

    Raises:
        LostDigitsError: If a list of another length contains a rounded number.

    Example:
        >>> undamaged([1152921504606847000, 5], [2**60 + 1, 2])
        [1152921504606846977, 5]
    """
    if is_object(value) and is_object(shown):
        return {k: undamaged(item, shown[k]) if k in shown else item for k, item in value.items()}
    if is_array(value) and is_array(shown):
        if len(value) == len(shown):
            return [undamaged(item, before) for item, before in zip(value, shown, strict=True)]
        exact = set(_numbers(shown))
        if lost := {_rounded(number) for number in exact}.intersection(_numbers(value)) - exact:
            raise LostDigitsError(f"the number {min(lost)} lost digits")
        return value
    is_echo = is_number(value) and is_number(shown) and value in (shown, _rounded(shown))
    return shown if is_echo else value


def identical(one: Any, other: Any) -> bool:
    """Return whether two JSON values are identical; `1`, `1.0` and true differ.

    Example:
        >>> identical({"a": 1}, {"a": 1}), identical(1, 1.0), identical(1, True)
        (True, False, False)
    """
    return written(one) == written(other)


def written(value: Any) -> str:
    """Write a JSON value as a text that is equal only for identical values."""
    return json.dumps(value, sort_keys=True)


def _rounded(number: float) -> float:
    """Return a number as Python reads it after JavaScript has parsed and written it."""
    near = float(number)
    # From 1e21 on, JavaScript writes an exponent.
    whole = near.is_integer() and 2**53 < abs(near) < 1e21
    return int(Decimal(repr(near))) if whole else near


def _numbers(value: Any) -> Iterator[float]:
    """Yield the numbers in a JSON value, at any depth."""
    if is_object(value) or is_array(value):
        for item in value.values() if is_object(value) else value:
            yield from _numbers(item)
    elif is_number(value):
        yield value
