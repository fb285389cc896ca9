"""Validate by a JSON Schema with a bounded amount of work, for any value and any schema.

`jsonschema` alone has no such bound, for three reasons. `uniqueItems` compares each item with every
other item. `anyOf`, `if` and others validate a value several times, so that the cost doubles with
each level of a recursive schema. `unevaluatedProperties` and `unevaluatedItems` compare each member
with each evaluated member. Here `uniqueItems` uses hashes, and the steps of all others are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextvars import ContextVar
from itertools import islice
from typing import Any

import jsonschema

from graph_retry._core.ground.issues import literal
from graph_retry._core.ground.json import is_array, is_object

_lib: Any = jsonschema  # The type stubs of `jsonschema` leave much untyped.

_STEPS = 500_000
_STEPS_PER_VALUE = 200
"""The maximum number of steps: a fixed number, and some for each value inside the whole value."""
_COMPARISONS = 20
"""Number of comparisons of members that take as long as one step, which is one keyword."""


class TooMuchWorkError(Exception):
    """The validation took more steps than are allowed for the size of the value."""


_left: ContextVar[list[int] | None] = ContextVar("graph_retry_schema_steps", default=None)


def with_bounded_work(draft: Any) -> Any:
    """Return a draft's validator class that counts its steps while `errors_of` runs."""
    rules = {**draft.VALIDATORS, "uniqueItems": _unique_items}
    return _lib.validators.extend(
        draft, {name: _counted(name, rule) for name, rule in rules.items()}
    )


def errors_of(validator: Any, value: Any, most: int) -> list[Any]:
    """List the first errors of a value.

    Raises:
        TooMuchWorkError: If this takes more steps than are allowed for the size of the value.
    """
    token = _left.set([_STEPS + _STEPS_PER_VALUE * _size(value)])
    try:
        return [*islice(validator.iter_errors(value), most)]
    finally:
        _left.reset(token)


def _counted(name: str, rule: Callable[..., Any]) -> Callable[..., Any]:
    compares_members = name.startswith("unevaluated")

    def judge(validator: Any, wanted: Any, value: Any, schema: Any) -> Any:
        left = _left.get()
        if left is not None:
            is_large = compares_members and (is_object(value) or is_array(value))
            left[0] -= 1 + (len(value) ** 2 // _COMPARISONS if is_large else 0)
            if left[0] < 0:
                raise TooMuchWorkError
        return rule(validator, wanted, value, schema)

    return judge


def _size(value: Any) -> int:
    if is_object(value):
        return 1 + sum(map(_size, value.values()))
    return 1 + sum(map(_size, value)) if is_array(value) else 1


def _unique_items(validator: Any, wanted: Any, value: Any, _: Any) -> Iterator[Any]:
    if not (wanted and validator.is_type(value, "array")):
        return
    first: dict[Hashable, int] = {}
    for position, item in enumerate(value):
        before = first.setdefault(_key(item), position)
        if before != position:
            message = f"items {before} and {position} are equal: {literal(item, 80)}"
            yield _lib.ValidationError(message)
            return


def _key(value: Any) -> Hashable:
    """Return a hashable key that is equal for equal values, as JSON Schema defines this.

    1 and 1.0 are equal, but 1 and true are not.

    Example:
        >>> _key([1, True]) == _key([1.0, True]), _key(1) == _key(True)
        (True, False)
    """
    if is_object(value):
        return "object", frozenset((name, _key(child)) for name, child in value.items())
    if is_array(value):
        return "array", tuple(map(_key, value))
    return ("truth", value) if isinstance(value, bool) else value
