"""Strict JSON by the standard library, minus the two things it lets pass without a word."""

import json
from typing import Any


def same(left: Any, right: Any) -> bool:
    """Tell whether two JSON values are equal in value and type (`1`, `1.0` and `True` differ).

    Example:
        >>> same({"a": 1, "b": 2}, {"b": 2, "a": 1}), same(1, 1.0)
        (True, False)
    """
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        for key, value in pairs:
            if not same(result[key], value):
                raise ValueError(key)
    return result


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)


# Keys that disagree and `NaN` are left to the tolerant reader, which refuses or reports them.
STRICT = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse_constant)
