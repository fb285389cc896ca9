"""Validate by a JSON Schema with a limited number of steps, for any value and any schema.

`jsonschema` alone has no limit. Its `uniqueItems` compares each item with every other item. Its
`unevaluatedProperties` and `unevaluatedItems` compare each member with each evaluated member.
`anyOf` and `if` validate a value several times, so the work doubles with each level of a recursive
schema. Here, `uniqueItems` uses hashes, a keyword checks an object or list only once, and all steps
are counted.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import jsonschema

from graph_retry._core.ground.issues import literal
from graph_retry._core.ground.json import is_array, is_object
from graph_retry._core.ground.schemas import REFERENCES

_lib: Any = jsonschema  # The type stubs of `jsonschema` leave much untyped.

_STEPS = 50_000
_STEPS_PER_VALUE = 200
"""The maximum number of steps is `_STEPS`, and `_STEPS_PER_VALUE` for each inner value."""
_COMPARISONS = 20
"""The number of comparisons of members that count as one step."""
_FRAMES_OF_LOOKUP = 60
"""More frames of the stack than the look-up of a reference takes."""


class TooMuchWorkError(Exception):
    """The validation took more steps than the size of the value allows."""


DYNAMIC = frozenset(REFERENCES) - {"$ref"}
"""Keywords whose result depends on the schemas that led to them."""
_LEADING = frozenset(
    {"$ref", "allOf", "anyOf", "oneOf", "not", "if", "dependentSchemas", "dependencies"}
    | {"properties", "patternProperties", "additionalProperties", "unevaluatedProperties"}
    | {"items", "prefixItems", "additionalItems", "contains", "unevaluatedItems"}
)
"""Keywords that lead to other schemas, and so can double the work."""


@dataclass
class _Work:
    """The steps that one validation has left, and the results of keywords so far."""

    left: int
    known: dict[tuple[str, int, int], _Judged] = field(default_factory=dict[Any, "_Judged"])


class _Judged:
    """The errors that one keyword of a schema finds in one value, stored for later callers.

    The first caller gets the errors themselves. Later callers get copies, because validators write
    a path into an error. The copies lack the inner errors of union branches. `about` keeps the
    schema and the value alive, because their ids are a key of `_Work.known`.
    """

    def __init__(self, found: Iterator[Any], about: tuple[Any, Any]) -> None:
        self._found, self.about = found, about
        self._copies: list[Any] = []
        self._is_running = False

    def errors(self) -> Iterator[Any]:
        """Yield the known errors, then find and yield the others."""
        place = 0
        while True:
            while place < len(self._copies):
                yield _copied(self._copies[place])
                place += 1
            if self._is_running:  # The schema refers to itself for the same value.
                raise RecursionError
            self._is_running = True
            try:
                error = next(self._found, None)
            finally:
                self._is_running = False
            if error is None:
                return
            self._copies.append(_copied(error))
            place += 1
            yield error


def _copied(error: Any) -> Any:
    known = error._contents()  # noqa: SLF001 - it has no other name for them
    known |= {"path": error.relative_path, "schema_path": error.relative_schema_path}
    copy = _lib.ValidationError(**{**known, "context": (), "parent": None})
    copy._set(type_checker=error._type_checker)  # noqa: SLF001
    return copy


_work: ContextVar[_Work | None] = ContextVar("graph_retry_schema_work", default=None)


def with_bounded_work(draft: Any, *, remembers: bool = True) -> Any:
    """Return a draft's validator class that counts its steps while `errors_of` runs.

    With `remembers`, the class also stores the results of keywords. Stored results are correct only
    if a result depends on the schema and the value alone, and if no dict is at two places of the
    schema.
    """
    rules = {**draft.VALIDATORS, "uniqueItems": _unique_items}
    leading = _LEADING if remembers else frozenset[str]()
    counted = {name: _counted(name, rule, leads=name in leading) for name, rule in rules.items()}
    return _lib.validators.extend(draft, counted)


def errors_of(validator: Any, value: Any, most: int) -> list[Any]:
    """List the first errors of a value, at most `most`.

    Raises:
        TooMuchWorkError: If this takes more steps than are allowed for the size of the value.
    """
    token = _work.set(_Work(_STEPS + _STEPS_PER_VALUE * _size(value)))
    try:
        return [*islice(validator.iter_errors(value), most)]
    finally:
        _work.reset(token)


def _counted(name: str, rule: Callable[..., Any], *, leads: bool) -> Callable[..., Any]:
    compares_members, refers = name.startswith("unevaluated"), name in REFERENCES

    def judge(validator: Any, wanted: Any, value: Any, schema: Any) -> Any:
        work = _work.get()
        if work is None:
            return rule(validator, wanted, value, schema)
        has_members, key = is_object(value) or is_array(value), (name, id(schema), id(value))
        work.left -= 1
        if work.left < 0:
            raise TooMuchWorkError
        if refers and _is_deep():
            raise RecursionError
        if (known := work.known.get(key)) is not None:
            return known.errors()
        if compares_members and has_members:
            work.left -= len(value) ** 2 // _COMPARISONS
        found = rule(validator, wanted, value, schema)
        if not (leads and has_members):
            return found
        work.known[key] = known = _Judged(iter(found or ()), (schema, value))
        return known.errors()

    return judge


def _is_deep() -> bool:
    """Return whether the stack is nearly full.

    If the stack ends in the Rust code of `referencing`, this code does not raise `RecursionError`,
    but a `BaseException` of its own.
    """
    depth = sys.getrecursionlimit() - _FRAMES_OF_LOOKUP
    try:
        sys._getframe(depth)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    except ValueError:
        return False
    return True


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
    """Return a hashable key that is equal for JSON values that JSON Schema takes as equal.

    Example:
        >>> _key([1, True]) == _key([1.0, True]), _key(1) == _key(True)
        (True, False)
    """
    if is_object(value):
        return "object", frozenset((name, _key(child)) for name, child in value.items())
    if is_array(value):
        return "array", tuple(map(_key, value))
    return ("truth", value) if isinstance(value, bool) else value
