"""The type that a JSON Schema wants in one place of a value, for formats without types."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast
from urllib.parse import unquote

import jsonpointer

from graph_retry._json import is_array, is_object

_MAX_SCHEMAS = 100
_KINDS: dict[Any, str] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
}


class Place:
    """The schemas that may apply in one place; without any, everything is possible there."""

    def __init__(self, schemas: Iterable[Any], root: Any) -> None:
        self._root = root
        self._schemas = _alternatives(list(schemas), root)

    @classmethod
    def of(cls, schema: dict[str, Any] | None) -> Place:
        """Return the place of the whole value."""
        return cls([] if schema is None else [schema], schema)

    @property
    def kinds(self) -> set[str]:
        """JSON Schema's names of the kinds of values that are wanted; empty if any may be."""
        wanted: set[str] = set()
        for schema in self._schemas:
            kinds = _kinds(schema)
            if not kinds:
                return set()
            wanted |= kinds
        return wanted

    @property
    def fields(self) -> set[str]:
        """The names of the members that are declared."""
        named = [schema.get("properties") for schema in self._schemas]
        return {name for members in named if is_object(members) for name in members}

    @property
    def excludes_text(self) -> bool:
        """Whether no text is wanted here."""
        return bool(self.kinds) and "string" not in self.kinds

    def wants_text_only(self, kind: str) -> bool:
        """Return whether text is wanted here, and a value of this kind is not."""
        wanted = self.kinds
        return "string" in wanted and not {kind, "number" if kind == "integer" else kind} & wanted

    def member(self, key: str) -> Place:
        """Return the place of a member."""
        schemas: list[Any] = []
        for schema in self._schemas:
            named = schema.get("properties")
            members = named if is_object(named) else {}
            schemas.append(members.get(key, schema.get("additionalProperties")))
        return Place(filter(is_object, schemas), self._root)

    def element(self, index: int) -> Place:
        """Return the place of an element."""
        schemas: list[Any] = []
        for schema in self._schemas:
            first: Any = schema.get("prefixItems")
            is_first = is_array(first) and index < len(first)
            schemas.append(first[index] if is_first else schema.get("items"))
        return Place(filter(is_object, schemas), self._root)


def _alternatives(pending: list[Any], root: Any) -> list[dict[str, Any]]:
    """List schemas with their references followed and their unions taken apart."""
    plain: list[dict[str, Any]] = []
    seen = 0
    while pending and seen < _MAX_SCHEMAS:
        schema, seen = pending.pop(0), seen + 1
        if not is_object(schema):
            continue
        reference = schema.get("$ref")
        if isinstance(reference, str) and reference.startswith("#/"):
            pointer = unquote(reference[1:])
            pending.append(cast("Any", jsonpointer).resolve_pointer(root, pointer, None))
            continue
        unions = [
            schema[name] for name in ("anyOf", "oneOf", "allOf") if is_array(schema.get(name))
        ]
        for branches in unions:
            pending += branches
        if not unions:
            plain.append(schema)
    return plain


def _kinds(schema: dict[str, Any]) -> set[str]:
    given = schema.get("type")
    if isinstance(given, str):
        return {given}
    if is_array(given):
        return {str(kind) for kind in given}
    choices: list[Any] = [schema["const"]] if "const" in schema else schema.get("enum") or []
    return {_KINDS.get(type(choice), "object") for choice in choices}
