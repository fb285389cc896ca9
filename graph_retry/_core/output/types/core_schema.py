"""Walk through the core schema that pydantic makes of a type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, cast

from graph_retry._core.ground.json import is_array, is_object

Schema = Mapping[str, Any]

_OF_FIELDS = frozenset({"model-fields", "typed-dict", "dataclass-args"})
_OTHER_CONTAINERS = frozenset(
    {"list", "set", "frozenset", "deque", "dict", "ordered-dict"}
    | {"tuple", "named-tuple", "call", "arguments"}
)
_NOT_VALIDATION = frozenset({"serialization", "metadata", "default", "computed_fields", "config"})
_REWRITING = frozenset({"function-before", "function-wrap", "chain"})
_CHANGING = frozenset(
    {"strip_whitespace", "to_lower", "to_upper"}
    | {"str_strip_whitespace", "str_to_lower", "str_to_upper", "coerce_numbers_to_str"}
)
"""The settings for texts that may turn two keys into one."""
_BY_INDEX = frozenset({"tuple", "named-tuple", "call", "arguments"})


class Node(NamedTuple):
    """One schema inside the schema of a type."""

    schema: Schema
    key: str | None
    """The key of the field that contains this schema; None outside of any field."""
    config: Schema
    """The config of the model that contains this schema."""

    @property
    def kind(self) -> Any:
        """Pydantic's name for the kind of schema."""
        return self.schema.get("type")


class CoreSchema:
    """The schema of a type, with the definitions that its parts refer to."""

    def __init__(self, schema: Schema) -> None:
        self.definitions: dict[str, Schema] = {}
        self._root = schema

    def nodes(self) -> Iterator[Node]:
        """Yield each inner schema, once for each field that contains it."""
        return self._nodes(self._root, None, {}, set())

    def has_container(self, schema: Any) -> bool:
        kinds = {node.kind for node in self._nodes(schema, None, {}, set())}
        return not kinds.isdisjoint(_OF_FIELDS | _OTHER_CONTAINERS)

    def _nodes(
        self, given: Any, key: str | None, config: Schema, seen: set[tuple[str, str | None]]
    ) -> Iterator[Node]:
        if is_array(given) or isinstance(given, tuple):
            for part in cast("list[Any]", given):
                yield from self._nodes(part, key, config, seen)
            return
        if not isinstance(given, Mapping):
            return
        schema = cast("Schema", given)
        node = Node(schema, key, schema.get("config") or config)
        yield node
        inner: list[Any] = []
        match node.kind:
            case "definitions":
                self.definitions.update({one["ref"]: one for one in schema["definitions"]})
                inner = [schema["schema"]]
            case "definition-ref":
                place = (schema["schema_ref"], key)
                inner = [] if place in seen else [self.definitions.get(place[0])]
                seen.add(place)
            case "json-or-python":
                inner = [schema["json_schema"]]
            case "tagged-union":
                inner = [*schema["choices"].values()]
            case _:
                inner = [part for name, part in schema.items() if name not in _NOT_VALIDATION]
        if node.kind in _OF_FIELDS:
            for name, one in fields_of(schema):
                yield from self._nodes(
                    one["schema"], keys_of(name, one, node.config)[0], node.config, seen
                )
            inner = [schema.get("extras_schema")]
        yield from self._nodes(inner, key, node.config, seen)


def fields_of(schema: Schema) -> list[tuple[str, Schema]]:
    """List the fields of a model, a typed dict or a dataclass, by name; empty for other schemas."""
    if schema.get("type") not in _OF_FIELDS:
        return []
    fields: Any = schema["fields"]
    return [(one["name"], one) for one in fields] if is_array(fields) else [*fields.items()]


def may_be_defaults(schema: Schema) -> bool:
    """Return whether a type contains a model, typed dict or dataclass without required keys."""
    return any(
        node.kind in _OF_FIELDS and not any(_is_required(one) for _, one in fields_of(node.schema))
        for node in CoreSchema(schema).nodes()
    )


def _is_required(field: Schema) -> bool:
    return bool(field.get("required", field["schema"].get("type") != "default"))


def has_recursive_unions(schema: Schema) -> bool:
    """Return whether a type has unions, and parts that refer to parts around them."""
    return {"union", "definition-ref"} <= {node.kind for node in CoreSchema(schema).nodes()}


def has_class_unions(schema: Schema) -> bool:
    whole = CoreSchema(schema)
    return any(
        node.kind == "union" and len(_branches(node.schema, whole) - {""}) > 1
        for node in whole.nodes()
    )


def may_merge_keys(schema: Schema) -> bool:
    """Return whether validation may change two keys of a mapping into the same key."""
    return any(_may_merge(node) for node in CoreSchema(schema).nodes())


def _may_merge(node: Node) -> bool:
    """Return whether a schema is a user's function, or a mapping whose keys may change."""
    if node.kind != "dict":
        return str(node.kind).startswith("function-")
    keys = node.schema.get("keys_schema", {"type": "str"})
    changes = {*node.config, *keys} & _CHANGING
    return keys["type"] not in {"str", "any"} or any(
        {**node.config, **keys}[name] for name in changes
    )


def keys_of(name: str, field: Schema, config: Schema) -> list[str]:
    """List the keys that a field is read from; the first one wins."""
    aliases = _strings(field.get("validation_alias"))
    if not aliases or config.get("validate_by_alias") is False:
        return [name]
    by_name = config.get("validate_by_name") or config.get("populate_by_name")
    return [*aliases, name] if by_name else aliases


def _strings(alias: Any) -> list[str]:
    """List the keys in an alias. An alias is a text, a path, or a list of paths."""
    if isinstance(alias, str):
        return [alias]
    return [key for part in alias for key in _strings(part)] if is_array(alias) else []


def unsure_keys(schema: Schema) -> set[Any]:
    """Return the keys at which an error may disappear when more of the value arrives.

    - A validator may change an object before its parts are validated, or may look at other fields.
      Then the key of the nearest field is unsure. Outside of any field, the result contains None.
    - A field may be read from another key that has not arrived yet.
    - In an open union, another branch may be the right one. The names of branches are returned,
      because pydantic puts them among the keys of an error's path.
    """
    whole, unsure = CoreSchema(schema), set[Any]()
    for node in whole.nodes():
        is_rewriting = node.kind in _REWRITING and whole.has_container(node.schema)
        if is_rewriting or node.kind == "with-info" or node.schema.get("custom_init"):
            unsure.add(node.key)
        for name, field in fields_of(node.schema):
            unsure.update(keys_of(name, field, node.config)[1:])
            if not isinstance(field.get("validation_alias"), str | None):
                unsure.update(keys_of(name, field, node.config))
        if node.kind in ("union", "tagged-union"):
            unsure.update(_branches(node.schema, whole))
    return unsure


def counts_elements(schema: Schema) -> bool:
    """Return whether a type limits the length of a list, or has a type for each index."""
    return any(
        node.kind in _BY_INDEX
        or (node.kind not in ("str", "bytes", "url") and "max_length" in node.schema)
        for node in CoreSchema(schema).nodes()
    )


def _branches(union: Schema, whole: CoreSchema) -> set[Any]:
    """Return the names of a union's branches, if these are classes with plain names."""
    if union["type"] == "tagged-union":
        return {*union["choices"]}
    names, choices = set[Any](), cast("list[Any]", union["choices"])
    for choice in choices:
        one = choice if is_object(choice) else choice[0]  # A choice may be a pair with a label.
        schema = whole.definitions.get(one.get("schema_ref", ""), one)
        names.add(schema.get("cls_name") or getattr(schema.get("cls"), "__name__", ""))
    return names
