"""Count the steps of a validation in advance, because recursive unions multiply the steps.

If a union has no tag, pydantic tries each branch, and each branch validates its parts again. In a
recursive union, the number of steps doubles with each level of the value. Counting takes linear
time, because this module visits each part once for each schema.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from graph_retry._core.ground.json import is_array, is_object
from graph_retry._core.output.types.core_schema import CoreSchema, Schema, fields_of, keys_of

_STEPS = 100_000
_STEPS_PER_VALUE = 100
"""The maximum number of steps is `_STEPS`, and `_STEPS_PER_VALUE` for each inner value."""

_INNER = ("schema", "json_schema", "lax_schema", "items_schema", "values_schema", "extras_schema")


class UnionWork:
    """The work that a type's recursive unions may cause.

    Args:
        schema: The core schema that pydantic made of the type.
    """

    def __init__(self, schema: Schema) -> None:
        self._root, whole = schema, CoreSchema(schema)
        for _ in whole.nodes():  # This finds the definitions.
            pass
        self._definitions = whole.definitions

    def is_too_much(self, value: Any) -> bool:
        """Return whether the validation of a value takes more steps than its size allows."""
        steps, size = self._counted(value)
        return steps > _STEPS + _STEPS_PER_VALUE * size

    def _counted(self, value: Any) -> tuple[int, int]:
        """Return the number of validations, and the number of values inside the value."""
        known, begun = dict[tuple[int, int], int](), set[tuple[int, int]]()
        first = (id(self._root), id(value))
        pending: list[tuple[Schema, Any]] = [(self._root, value)]
        while pending:
            schema, given = pending[-1]
            key = (id(schema), id(given))
            parts = [*self._parts(schema, given)] if key not in known else []
            keys = [(id(inner), id(part)) for inner, part in parts]
            if key in known or key in begun:
                known.setdefault(key, 1 + sum(known.get(one, 1) for one in keys))
                pending.pop()
                continue
            begun.add(key)
            pending += [part for part, one in zip(parts, keys, strict=True) if one not in begun]
        return known[first], len({place for _, place in known})

    def _parts(self, schema: Schema, value: Any) -> Iterator[tuple[Schema, Any]]:
        """Yield (schema, part) for each schema that next validates the value or a part of it."""
        kind = schema.get("type")
        if kind == "definition-ref":
            yield self._definitions[schema["schema_ref"]], value
        elif kind == "union":
            for choice in schema["choices"]:
                yield (choice if is_object(choice) else choice[0]), value
        elif kind == "tagged-union":
            tag = schema["discriminator"]
            given = value.get(tag) if is_object(value) and isinstance(tag, str) else None
            known = schema["choices"].get(given) if isinstance(given, str | int) else None
            yield from [(one, value) for one in ([known] if known else schema["choices"].values())]
        elif kind == "chain":
            yield from ((step, value) for step in schema["steps"])
        elif fields := fields_of(schema):
            for name, one in fields if is_object(value) else ():
                given = [value[key] for key in keys_of(name, one, {}) if key in value]
                yield from ((one["schema"], part) for part in given[:1])
        else:
            yield from self._inner(schema, value)

    def _inner(self, schema: Schema, value: Any) -> Iterator[tuple[Schema, Any]]:
        for name in _INNER:
            inner = schema.get(name)
            is_of_parts = name in ("items_schema", "values_schema", "extras_schema")
            parts: list[Any] = [value]
            if is_of_parts:
                parts = [*value.values()] if is_object(value) else value if is_array(value) else []
            for one in inner if is_array(inner) else [inner]:
                yield from ((one, part) for part in parts if is_object(one))
