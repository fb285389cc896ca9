"""Open containers of a type that pydantic validates, by the core schema pydantic made of it.

A settled part is validated by pydantic itself, with the part's own schema and its model's config.
An open one is looked into only where its schema is a plain one. What may change a value before it
is validated, give another one in its place, or depends on the values beside it, is not judged
before the whole is there: model validators in the modes `before` and `wrap`, `on_error`, several
aliases for one field, validators that take `info`, and whatever schema is not named here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from pydantic import ValidationError
from pydantic_core import SchemaError, SchemaValidator

from graph_retry._issues import describe, issue, pydantic_issues
from graph_retry._json import is_array, is_object
from graph_retry._output.partial.open_part import Container, Key, OneOfParts, OpenPart, under
from graph_retry.records import Issue

Schema = Mapping[str, Any]

_NO_CONTAINER = frozenset(
    {"int", "float", "str", "bool", "none", "literal", "date", "time", "datetime", "timedelta"}
    | {"uuid", "bytes", "url"}
)
_FIELDS = frozenset({"model-fields", "typed-dict", "dataclass-args"})
_SEQUENCES = frozenset({"list", "set", "frozenset"})
_OF_THEIR_OWN = frozenset({"model", "typed-dict", "dataclass", "definition-ref"})
_NOT_VALIDATION = frozenset({"serialization", "metadata", "definitions"})


_Validators = dict[tuple[int, int], SchemaValidator | None]
"""Pydantic's validators of parts, by the identity of their schema and of its model's config."""


@dataclass(frozen=True)
class _Scope:
    """The context of a schema: the definitions that it refers to, and its model's config."""

    strict: bool | None
    definitions: dict[str, Schema] = field(default_factory=dict[str, Schema])
    config: Any = None
    validators: _Validators = field(default_factory=_Validators)
    of_any_length: dict[int, Schema] = field(default_factory=dict[int, Schema])

    def without_lengths(self, schema: Schema) -> Schema:
        """Return a container's schema for one that may have any number of members, made once."""
        if id(schema) not in self.of_any_length:
            lengths = ("min_length", "max_length")
            plain = {name: schema[name] for name in schema if name not in lengths}
            self.of_any_length[id(schema)] = plain
        return self.of_any_length[id(schema)]

    def validator(self, schema: Schema) -> SchemaValidator | None:
        """Return pydantic's validator for one part, made once; None where there can be none."""
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

    def errors(self, schema: Schema, value: Any) -> ValidationError | None:
        """Validate a value as JSON by one part of the schema."""
        validator = self.validator(schema)
        if validator is None:
            return None
        try:
            validator.validate_json(json.dumps(value), strict=self.strict)
        except ValidationError as error:
            return error
        except Exception:  # noqa: BLE001 - a validator is anybody's code: the whole will raise it
            return None
        return None


class TypedParts:
    """The parts of one type; pydantic's validators for them are made once."""

    def __init__(self, schema: Schema, *, strict: bool | None) -> None:
        self._schema, self._scope = schema, _Scope(strict)

    def opened(self) -> OpenPart | None:
        """Return the validator of a value of the type that is still being written."""
        return _opened(self._schema, self._scope)


def _opened(schema: Schema, scope: _Scope) -> OpenPart | None:
    kind = schema["type"]
    if kind == "definitions":
        named = {definition["ref"]: definition for definition in schema["definitions"]}
        return _opened(schema["schema"], replace(scope, definitions=scope.definitions | named))
    if kind == "definition-ref":
        target = scope.definitions.get(schema["schema_ref"])
        return None if target is None else _opened(target, scope)
    if kind in {"nullable", "function-after"}:
        return _opened(schema["schema"], scope)
    if kind == "default":
        is_plain = schema.get("on_error", "raise") == "raise"
        return _opened(schema["schema"], scope) if is_plain else None
    if kind == "json-or-python":
        return _opened(schema["json_schema"], scope)
    if kind in {"model", "dataclass"} and not schema.get("custom_init"):
        # A model's config is for its own fields, not for the schema around it.
        own = replace(scope, config=schema.get("config") or scope.config)
        return _opened(schema["schema"], own)
    if kind in {"union", "tagged-union"}:
        return OneOfParts([_opened(choice, scope) for choice in _choices(schema)])
    parts = {**dict.fromkeys(_FIELDS, _Fields), **dict.fromkeys(_SEQUENCES, _Sequence)}
    parts |= {**dict.fromkeys(_NO_CONTAINER, _Typed), "tuple": _Tuple, "dict": _Dict}
    return parts[kind](schema, scope) if kind in parts else None


def _choices(schema: Schema) -> list[Schema]:
    choices: Any = schema["choices"]
    listed: list[Any] = [*choices.values()] if is_object(choices) else [*choices]
    return [choice[0] if isinstance(choice, tuple) else choice for choice in listed]


class _Typed(OpenPart):
    """A schema of a kind that is known, be it of a container or not."""

    def __init__(self, schema: Schema, scope: _Scope) -> None:
        super().__init__()
        self.schema, self.scope = schema, scope
        self.wants_container = schema["type"] not in _NO_CONTAINER

    def wrong_kind(self, value: Container) -> list[Issue]:
        error = self.scope.errors(self.schema, value)
        kinds = () if error is None else error.errors(include_url=False)
        # Of a container that is wanted, all but its kind may still be mended.
        wrong = any(
            not detail["loc"] and (detail["type"].endswith("_type") or not self.wants_container)
            for detail in kinds
        )
        return pydantic_issues(error, value) if error is not None and wrong else []

    def part_schema(self, key: Key) -> Schema | None:  # noqa: ARG002
        """Return the schema of the member or element at `key`; None where nothing is known."""
        return None

    def wrong_part(self, key: Key, child: Any) -> list[Issue]:
        schema = self.part_schema(key)
        error = None if schema is None else self.scope.errors(schema, child)
        return [] if error is None else under(key, pydantic_issues(error, child))

    def opened(self, key: Key) -> OpenPart | None:
        schema = self.part_schema(key)
        return None if schema is None else _opened(schema, self.scope)


class _Sequence(_Typed):
    def part_schema(self, key: Key) -> Schema | None:  # noqa: ARG002
        return self.schema.get("items_schema")

    def wrong_number(self, value: Container, settled: int) -> list[Issue]:
        most = self.schema.get("max_length")
        # Equal elements of a set count once.
        if self.schema["type"] != "list" or most is None or settled <= most:
            return []
        return [_too_long(value, most)]


class _Tuple(_Typed):
    def part_schema(self, key: Key) -> Schema | None:
        items, variadic = self.schema["items_schema"], self.schema.get("variadic_item_index")
        index = cast("int", key)
        if variadic is not None and index >= variadic:  # later items are counted from the end
            return items[variadic] if variadic == len(items) - 1 else None
        return items[index] if index < len(items) else None

    def wrong_number(self, value: Container, settled: int) -> list[Issue]:
        most = len(self.schema["items_schema"])
        if self.schema.get("variadic_item_index") is not None or settled <= most:
            return []
        return [_too_long(value, most)]


class _Dict(_Typed):
    def part_schema(self, key: Key) -> Schema | None:  # noqa: ARG002
        return self.schema.get("values_schema")

    def wrong_part(self, key: Key, child: Any) -> list[Issue]:
        # In a dict of its own: JSON's keys are text, which pydantic reads as keys even when strict.
        error = self.scope.errors(self.scope.without_lengths(self.schema), {key: child})
        return [] if error is None else pydantic_issues(error, {key: child})

    def wrong_number(self, value: Container, settled: int) -> list[Issue]:
        most = self.schema.get("max_length")
        return [] if most is None or settled <= most else [_too_long(value, most)]


class _Fields(_Typed):
    """The fields of a model, dataclass or `TypedDict`, by the key that each is read from."""

    def __init__(self, schema: Schema, scope: _Scope) -> None:
        super().__init__(schema, replace(scope, config=schema.get("config") or scope.config))
        config: Mapping[str, Any] = self.scope.config or {}
        fields: Any = schema["fields"]
        if is_array(fields):
            fields = {one["name"]: one for one in fields}
        self._by_key: dict[str, Schema] = {}
        self._uncertain: set[str] = set()
        for name, one in cast("dict[str, Schema]", fields).items():
            self._add(name, one, config)
        behaviour = schema.get("extra_behavior") or config.get("extra_fields_behavior")
        self._is_closed = behaviour == "forbid"

    def _add(self, name: str, one: Schema, config: Mapping[str, Any]) -> None:
        by_alias = config.get("validate_by_alias", True) is not False
        alias = one.get("validation_alias") if by_alias else None
        by_name = config.get("validate_by_name") or config.get("populate_by_name")
        if isinstance(alias, str):
            self._by_key[alias] = one["schema"]
        elif alias is None and one.get("init", True):
            self._by_key[name] = one["schema"]
        else:  # only the end shows which alias is used
            self._uncertain |= set(_strings(alias))
        if alias is None or by_name:
            self._uncertain.add(name)

    def wrong_part(self, key: Key, child: Any) -> list[Issue]:
        is_known = key in self._by_key or key in self._uncertain
        if self._is_closed and not is_known:
            message = "Extra inputs are not permitted"
            return [issue((key,), message, "extra_forbidden", None, describe(child))]
        return super().wrong_part(key, child)

    def part_schema(self, key: Key) -> Schema | None:
        return self._by_key.get(cast("str", key))


def _strings(alias: Any) -> list[str]:
    """List the keys in an alias that is a path, or a list of paths."""
    if isinstance(alias, str):
        return [alias]
    return [key for part in alias for key in _strings(part)] if is_array(alias) else []


def _too_long(value: Container, most: int) -> Issue:
    message = f"there should be at most {most} items, and more have come"
    return issue("", message, "too_long", f"at most {most}", describe(len(value)))


def _takes_info(schema: Any) -> bool:
    """Return whether a validator in a schema may look at the values beside it."""
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
