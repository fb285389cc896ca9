"""Resolve a JSON Schema into alternatives: schemas without references and without `anyOf`.

A value that fits the schema fits at least one alternative. The alternatives may allow more values
than the schema, because keywords such as `not` and `if` are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import unquote

from jsonpointer import JsonPointerException, resolve_pointer

from graph_retry._core.ground.issues import json_problem
from graph_retry._core.ground.json import is_array, is_object

REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
"""Keywords that refer to a schema."""
_COMBINING = ("allOf", "anyOf", "oneOf")
_MAX_DEPTH = 50
_MAX_STEPS = 1_000
"""The most schemas that are resolved for one schema, which may refer to itself.

Beyond the limits of depth and steps, the result allows any value.
"""

_MAX_COMBINED = 200
"""The most alternatives of one schema. A combination that would make more is ignored."""

_NAMES: dict[Any, str] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
    type(None): "null",
}
ANY_KIND: Final = frozenset(_NAMES.values())
"""The names of all types in JSON Schema."""


def kind_of(value: object) -> str:
    """Return the name of a value's type in JSON Schema; empty for a value that is not JSON.

    Example:
        >>> kind_of(True), kind_of(1), kind_of(None), kind_of({})
        ('boolean', 'integer', 'null', 'object')
    """
    return _NAMES.get(type(value), "")


def alternatives(node: Any, root: Any) -> list[dict[str, Any]]:
    """List the alternatives of a schema. A valid value fits at least one of them.

    Args:
        node: A schema; None allows anything, as True does.
        root: The document to which references in `node` refer.

    Example:
        >>> alternatives({"anyOf": [{"type": "integer"}, {"$ref": "#/$defs/n"}]},
        ...              {"$defs": {"n": {"type": "null"}}})
        [{'type': 'integer'}, {'type': 'null'}]
    """
    return _Walk(root).alternatives(node, 0)


def kinds_of(node: Any, root: Any) -> frozenset[str]:
    """Return the names of the types that a schema may allow. `number` includes `integer`.

    Example:
        >>> sorted(kinds_of({"anyOf": [{"type": "string"}, {"enum": [None]}]}, {}))
        ['null', 'string']
    """
    return frozenset[str]().union(*map(kinds, alternatives(node, root)))


def kinds(alternative: dict[str, Any]) -> frozenset[str]:
    """Return the names of the types that one alternative may allow."""
    name, found = alternative.get("type"), ANY_KIND
    if isinstance(name, str):
        found = frozenset({"number", "integer"} if name == "number" else {name})
    choices = [alternative["const"]] if "const" in alternative else alternative.get("enum")
    return found & frozenset(map(kind_of, choices)) if is_array(choices) else found


def member(alternative: dict[str, Any], key: str) -> Any:
    """Return the schema of the member `key` of an object; None if `alternative` declares none."""
    named = alternative.get("properties")
    if is_object(named) and key in named:
        return named[key]
    is_open = bool(alternative.get("patternProperties"))
    return None if is_open else alternative.get("additionalProperties")


def has_prefix_items(root: Any) -> bool:
    """Return whether the keyword `prefixItems` has an effect, as it does from draft 2020-12 on."""
    return "2020-12" in str(root.get("$schema", "2020-12") if is_object(root) else "2020-12")


def element(alternative: dict[str, Any], index: int, root: Any) -> Any:
    """Return the schema that `alternative` declares for a list's element at `index`, or None.

    Example:
        >>> element({"items": {"type": "integer"}}, 0, {})
        {'type': 'integer'}
    """
    items = alternative.get("items")
    first = alternative.get("prefixItems") if has_prefix_items(root) else None
    if is_array(items):
        first, items = items, alternative.get("additionalItems")
    return first[index] if is_array(first) and index < len(first) else items


def storable(node: Any) -> Any:
    """Return a schema without keywords whose values graph state cannot hold, such as huge numbers.

    The result may allow more than the schema, but never less.

    Example:
        >>> storable({"properties": {"n": {"type": "integer", "maximum": 2**64}}})
        {'properties': {'n': {'type': 'integer'}}}
    """
    if not is_object(node):
        return node
    kept: dict[str, Any] = {}
    for word, value in node.items():
        if word in ("properties", "patternProperties", "$defs") and is_object(value):
            kept[word] = {name: storable(part) for name, part in value.items()}
        elif word in ("allOf", "anyOf", "prefixItems") and is_array(value):
            kept[word] = [storable(part) for part in value]
        elif word in ("items", "additionalProperties") and is_object(value):
            kept[word] = storable(value)
        elif not json_problem(value, (word,)):
            kept[word] = value
    return kept


def has_own_base(node: Any) -> bool:
    """Return whether a schema has an id, to which its references refer instead of to the root."""
    return is_object(node) and any(isinstance(node.get(name), str) for name in ("$id", "id"))


class _Walk:
    def __init__(self, root: Any) -> None:
        self._root, self._steps = root, 0

    def alternatives(self, node: Any, depth: int) -> list[dict[str, Any]]:
        self._steps += 1
        if node is False:
            return []
        if not is_object(node) or depth > _MAX_DEPTH or self._steps > _MAX_STEPS:
            return [{}]
        if node is not self._root and has_own_base(node):
            return [{}]
        if "$ref" in node:
            return self.alternatives(_target(node["$ref"], self._root), depth + 1)
        own = {name: value for name, value in node.items() if name not in _COMBINING}
        names = own.get("type")
        found = [{**own, "type": name} for name in names] if is_array(names) else [own]
        for demand in _demands(node):
            branches = [part for one in demand for part in self.alternatives(one, depth + 1)]
            if len(found) * len(branches) <= _MAX_COMBINED:
                found = [
                    _both(one, other)
                    for one in found
                    for other in branches
                    if kinds(one) & kinds(other)
                ]
        return found


def _demands(node: dict[str, Any]) -> Iterable[list[Any]]:
    """Yield lists of schemas. A valid value fits at least one schema of each list."""
    for name in _COMBINING:
        listed = node.get(name)
        if is_array(listed):
            yield from [[one] for one in listed] if name == "allOf" else [listed]


def _both(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Merge two schemas into one, for values that must fit both.

    `properties` and `required` are combined. Other keywords of both come from `other`, except that
    the type `integer` stays if the other type is `number`.
    """
    joined = {**one, **other}
    if is_object(one.get("properties")) and is_object(other.get("properties")):
        joined["properties"] = {**one["properties"], **other["properties"]}
    if is_array(one.get("required")) and is_array(other.get("required")):
        joined["required"] = [*dict.fromkeys([*one["required"], *other["required"]])]
    if one.get("type") == "integer" and other.get("type") == "number":
        joined["type"] = "integer"
    return joined


def _target(reference: Any, root: Any) -> Any:
    """Return the schema that a reference points to; None if it is not in this document."""
    if not isinstance(reference, str) or (reference != "#" and not reference.startswith("#/")):
        return None
    try:
        return resolve_pointer(root, unquote(reference[1:]), None)
    except JsonPointerException:
        return None
