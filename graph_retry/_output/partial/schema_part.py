"""Open containers of a JSON Schema: the keywords that later text cannot satisfy any more.

These are `type`, `properties`, `patternProperties`, `additionalProperties`, `propertyNames`,
`maxProperties`, `items`, `prefixItems`, `additionalItems`, `maxItems`, `allOf`, `anyOf`, `oneOf`
and references inside the schema. Any other keyword waits for the whole.
"""

from __future__ import annotations

from typing import Any, cast
from urllib.parse import unquote

import jsonpointer

from graph_retry._issues import MAX_ISSUES, issue, schema_issue
from graph_retry._json import is_array, is_object
from graph_retry._output.bounded_work import errors_of
from graph_retry._output.partial.open_part import (
    AllOfParts,
    Container,
    Key,
    OneOfParts,
    OpenPart,
    under,
)
from graph_retry.records import Issue

_MEMBERS = ("properties", "patternProperties", "additionalProperties", "propertyNames")
_NAMED = "$id", "id", "$anchor", "$dynamicRef", "$recursiveRef"
_MAX_REFERENCES = 50
"""References that are followed one into another: one may lead back to itself."""


def open_schema(validator: Any) -> OpenPart | None:
    """Return the validator of an unfinished value by a `jsonschema` validator's schema."""
    return _opened(validator.schema, validator, validator.schema, 0)


def _opened(schema: Any, validator: Any, root: Any, followed: int) -> OpenPart | None:
    if not is_object(schema) or followed > _MAX_REFERENCES:
        return None
    if any(name in schema for name in _NAMED) and schema is not root:
        return None  # its references start at another schema
    if isinstance(schema.get("$ref"), str):
        target = _target(schema["$ref"], root)
        return _opened(target, validator, root, followed + 1)
    demands: list[OpenPart] = [_SchemaPart(schema, validator, root)]
    for name in ("anyOf", "oneOf"):
        if is_array(schema.get(name)):
            branches = [_opened(one, validator, root, followed + 1) for one in schema[name]]
            demands.append(OneOfParts(branches))
    listed = schema.get("allOf")
    for one in listed if is_array(listed) else []:
        part = _opened(one, validator, root, followed + 1)
        demands += [] if part is None else [part]
    return demands[0] if len(demands) == 1 else AllOfParts(demands)


def _target(reference: str, root: Any) -> Any:
    """Find what a reference inside the schema refers to; None for any other one."""
    if reference == "#":
        return root
    if not reference.startswith("#/"):
        return None
    return cast("Any", jsonpointer).resolve_pointer(root, unquote(reference[1:]), None)


class _SchemaPart(OpenPart):
    def __init__(self, schema: dict[str, Any], validator: Any, root: Any) -> None:
        super().__init__()
        self._schema, self._validator, self._root = schema, validator, root
        kinds = schema.get("type", [])
        self.wants_container = bool(
            {"object", "array"} & {*([kinds] if isinstance(kinds, str) else kinds)}
        )

    def wrong_kind(self, value: Container) -> list[Issue]:
        wanted = self._schema.get("type")
        return [] if wanted is None else self._errors({"type": wanted}, value)

    def wrong_part(self, key: Key, child: Any) -> list[Issue]:
        if isinstance(key, int):
            items = self._items(key)
            return [] if items is None else under(key, self._errors(items, child))
        keywords = {name: self._schema[name] for name in _MEMBERS if name in self._schema}
        return self._errors(keywords, {key: child})

    def wrong_number(self, value: Container, settled: int) -> list[Issue]:
        name = "maxItems" if is_array(value) else "maxProperties"
        most = self._schema.get(name)
        if most is None or settled <= most:
            return []
        message = f"there should be at most {most} items, and more have come"
        return [issue("", message, name, f"at most {most}", len(value))]

    def opened(self, key: Key) -> OpenPart | None:
        if isinstance(key, int):
            return _opened(self._items(key), self._validator, self._root, 0)
        if self._schema.get("patternProperties"):
            return None
        named = self._schema.get("properties")
        members = named if is_object(named) else {}
        inner = members.get(key, self._schema.get("additionalProperties"))
        return _opened(inner, self._validator, self._root, 0)

    def _items(self, index: int) -> Any:
        """Return the schema of an element, in the words of the older drafts or the newer ones."""
        items = self._schema.get("items")
        # A word that the schema's draft does not know means nothing in it.
        knows_prefix = "prefixItems" in self._validator.VALIDATORS
        first = self._schema.get("prefixItems") if knows_prefix else None
        if is_array(items):
            first, items = items, self._schema.get("additionalItems")
        if is_array(first) and index < len(first):
            return first[index]
        return items

    def _errors(self, schema: Any, value: Any) -> list[Issue]:
        try:
            judge = self._validator.evolve(schema=schema)
            return [schema_issue(error) for error in errors_of(judge, value, MAX_ISSUES)]
        except Exception:  # noqa: BLE001 - what cannot be judged in part, the whole will tell
            return []
