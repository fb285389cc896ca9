"""The rules for the parts of a type, from the core schema that pydantic made of the type.

Pydantic itself validates a settled part, with the part's own schema and its model's config. The
parts of a container have rules only if the container's schema is a plain one. In some cases only
the complete value can be validated, because validation may change it first, or depends on other
values. These cases are unions, validators in the modes `before` and `wrap`, `on_error`, several
aliases of one field, and validators that take `info`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast

from pydantic import ValidationError
from pydantic_core import SchemaError, SchemaValidator

from graph_retry._issues import pydantic_issues
from graph_retry._json import is_array
from graph_retry._output.partial.part import Forbidden, Key, Part
from graph_retry.records import Issue

Schema = Mapping[str, Any]

_PASSED = {
    **dict.fromkeys(("definitions", "nullable", "default", "function-after"), "schema"),
    **dict.fromkeys(("model", "dataclass"), "schema"),
    "json-or-python": "json_schema",
}
"""Kinds of schemas that may surround a container's schema, and the key of the inner schema."""
_FIELDS = frozenset({"model-fields", "typed-dict", "dataclass-args"})
_LISTS = frozenset({"list", "set", "frozenset", "tuple"})
_MAX_PASSED = 50
_OF_THEIR_OWN = frozenset({"model", "typed-dict", "dataclass", "definition-ref"})
_NOT_VALIDATION = frozenset({"serialization", "metadata", "definitions"})

_Validators = dict[tuple[int, int], SchemaValidator | None]
"""Pydantic's validators of parts, by the `id` of their schema and of their model's config."""


@dataclass(frozen=True)
class _Scope:
    """The context of a schema: the definitions that it refers to, and its model's config."""

    strict: bool | None
    definitions: dict[str, Schema] = field(default_factory=dict[str, Schema])
    config: Any = None
    validators: _Validators = field(default_factory=_Validators)

    def within(self, schema: Schema) -> _Scope:
        """Return the scope for the schemas inside a schema."""
        named = {one["ref"]: one for one in schema.get("definitions", ())}
        config = schema.get("config") or self.config
        return replace(self, definitions={**self.definitions, **named}, config=config)

    def validator(self, schema: Schema) -> SchemaValidator | None:
        """Return pydantic's validator for one part, which is made once; None if this fails."""
        key = (id(schema), id(self.config))
        if key not in self.validators:
            self.validators[key] = None if _takes_info(schema) else self._made(schema)
        return self.validators[key]

    def _made(self, schema: Schema) -> SchemaValidator | None:
        named = [*self.definitions.values()]
        whole: Any = {"type": "definitions", "schema": schema, "definitions": named}
        try:
            return SchemaValidator(whole if named else cast("Any", schema), self.config)
        except SchemaError:
            return None


class TypedPart(Part):
    """The rules from one core schema of pydantic."""

    def __init__(self, schema: Schema, scope: _Scope) -> None:
        self._schema, self._scope = schema, scope

    @classmethod
    def of(cls, schema: Schema, *, strict: bool | None) -> TypedPart:
        """Return the rules for a complete type, from its core schema."""
        return cls(schema, _Scope(strict))

    @cached_property
    def _open(self) -> tuple[Schema, _Scope]:
        """The container's schema with its scope; `{}` if it is no plain container."""
        schema, scope = self._schema, self._scope
        for _ in range(_MAX_PASSED):
            kind, scope = schema["type"], scope.within(schema)
            if kind == "definition-ref" and schema["schema_ref"] in scope.definitions:
                schema = scope.definitions[schema["schema_ref"]]
            elif schema.get("on_error", "raise") != "raise" or schema.get("custom_init"):
                break
            elif kind in _PASSED:
                schema = schema[_PASSED[kind]]
            elif kind in _FIELDS | _LISTS | {"dict"}:
                return schema, scope
            else:
                break
        return {}, scope

    @property
    def container(self) -> type[Any] | None:  # type: ignore[override]
        """`dict` or `list`, if the type is such a container; otherwise None."""
        kind = self._open[0].get("type")
        return None if kind is None else list if kind in _LISTS else dict

    @property
    def most(self) -> int | None:  # type: ignore[override]
        """The maximum length of a list or tuple; None for a set, in which equal elements merge."""
        schema, _ = self._open
        if schema.get("type") == "tuple":
            is_fixed = schema.get("variadic_item_index") is None
            return len(schema["items_schema"]) if is_fixed else None
        return schema.get("max_length") if schema.get("type") == "list" else None

    def inner(self, key: Key) -> Part:
        """Return the rules for the field, the dict value or the element at `key`."""
        schema, scope = self._open
        inner: Schema | None = None
        if schema["type"] in _FIELDS:
            if key not in self._fields:
                return self._other
            inner = self._fields[str(key)]
        elif schema["type"] == "tuple":
            items, is_fixed = schema["items_schema"], schema.get("variadic_item_index") is None
            inner = items[key] if is_fixed and int(key) < len(items) else None
        else:
            inner = schema.get("values_schema" if schema["type"] == "dict" else "items_schema")
        return Part() if inner is None else TypedPart(inner, scope)

    def errors(self, value: Any) -> list[Issue]:
        """Validate a value with pydantic, as JSON, and return the errors."""
        validator = self._scope.validator(self._schema)
        if validator is not None:
            try:
                validator.validate_json(json.dumps(value), strict=self._scope.strict)
            except ValidationError as error:
                return pydantic_issues(error, value)
            except Exception:  # noqa: BLE001 - a user's validator; the complete value raises again
                return []
        return []

    @cached_property
    def _fields(self) -> dict[str, Schema | None]:
        """The schemas of the fields by key; None for a field that may have several keys."""
        schema, scope = self._open
        listed: Any = schema["fields"]
        named = [(one["name"], one) for one in listed] if is_array(listed) else listed.items()
        config: Mapping[str, Any] = scope.config or {}
        fields: dict[str, Schema | None] = {}
        for name, one in named:
            by_alias = config.get("validate_by_alias", True) is not False
            alias = one.get("validation_alias") if by_alias else None
            by_name = alias is None or config.get("validate_by_name")
            if by_name or config.get("populate_by_name"):
                is_only = alias is None and one.get("init", True)
                fields[name] = one["schema"] if is_only else None
            if isinstance(alias, str):
                fields[alias] = one["schema"]
            else:  # Only the complete object shows which alias is used.
                fields.update(dict.fromkeys(_strings(alias)))
        return fields

    @cached_property
    def _other(self) -> Part:
        """The rules for a key that is not a field of the type."""
        schema, scope = self._open
        config: Mapping[str, Any] = scope.config or {}
        extra = schema.get("extra_behavior") or config.get("extra_fields_behavior")
        return (
            Forbidden("Extra inputs are not permitted", "extra_forbidden")
            if extra == "forbid"
            else Part()
        )


def _strings(alias: Any) -> list[str]:
    """List the keys in an alias, which may be a text, a path, or a list of paths."""
    if isinstance(alias, str):
        return [alias]
    return [key for part in alias for key in _strings(part)] if is_array(alias) else []


def _takes_info(schema: Any) -> bool:
    """Return whether a validator in a schema takes `info`, with which it sees other fields."""
    if is_array(schema):
        return any(map(_takes_info, schema))
    if not isinstance(schema, Mapping):
        return False
    known = cast("Schema", schema)
    if known.get("type") == "with-info":
        return True
    if known.get("type") in _OF_THEIR_OWN:
        return False
    return any(_takes_info(part) for name, part in known.items() if name not in _NOT_VALIDATION)
