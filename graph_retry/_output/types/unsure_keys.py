"""Find the keys at which an error in an incomplete value may still disappear."""

from __future__ import annotations

from typing import Any, cast

from graph_retry._output.types.core_schema import CoreSchema, Schema, fields_of, keys_of
from graph_retry._texts.json import is_object

_REWRITING = frozenset({"function-before", "function-wrap", "chain"})
_BY_INDEX = frozenset({"tuple", "named-tuple", "call", "arguments"})


def unsure_keys(schema: Schema) -> set[Any]:
    """Return the keys at which an error may disappear when more of the value arrives.

    - A validator may change an object before its parts are validated, or may look at other fields.
      Then the key of the nearest field is unsure. Outside of any field the result contains None.
    - A field may be read from another key that has not arrived yet.
    - In an open union, another branch may be the right one. The names of branches are returned,
      because pydantic puts them among the keys of an error's place.
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
    """Return whether a type limits the length of a list, or types an element by its index."""
    return any(
        node.kind in _BY_INDEX
        or (node.kind not in ("str", "bytes", "url") and "max_length" in node.schema)
        for node in CoreSchema(schema).nodes()
    )


def _branches(union: Schema, whole: CoreSchema) -> set[Any]:
    """Return the names of a union's branches. Only branches that are classes have plain names."""
    if union["type"] == "tagged-union":
        return {*union["choices"]}
    names, choices = set[Any](), cast("list[Any]", union["choices"])
    for choice in choices:
        one = choice if is_object(choice) else choice[0]  # A choice may be a pair with a label.
        schema = whole.definitions.get(one.get("schema_ref", ""), one)
        names.add(schema.get("cls_name") or getattr(schema.get("cls"), "__name__", ""))
    return names
