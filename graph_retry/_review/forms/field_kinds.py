"""Find the kinds of JSON values that a field takes, by its JSON Schema and in a form's words."""

from typing import Any, Final

from graph_retry import _schemas
from graph_retry._json import is_object
from graph_retry._schemas import alternatives, element

_WORDING = {
    "number": "a number",
    "boolean": "true or false",
    "array": 'a JSON list such as ["a", "b"]',
    "object": 'a JSON object such as {"a": 1}',
    "string": "text",
    "null": "null",
}

ANY_KIND: Final = frozenset(_WORDING)


def kind_of(value: object) -> str:
    """Return the JSON kind of a value. Integers and other numbers are both `number`.

    Example:
        >>> kind_of(True), kind_of(1), kind_of(None)
        ('boolean', 'number', 'null')
    """
    return _schemas.kind_of(value).replace("integer", "number")


def kinds_of(node: Any, root: dict[str, Any]) -> frozenset[str]:
    """Return the kinds that a schema node accepts; `ANY_KIND` if the node names none.

    `root` is the whole schema, in which local references of `node` are resolved.

    Example:
        >>> sorted(kinds_of({"anyOf": [{"type": "integer"}, {"type": "null"}]}, {}))
        ['null', 'number']
    """
    return frozenset(name.replace("integer", "number") for name in _schemas.kinds_of(node, root))


def object_branches(node: Any, root: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the branches of a union that accept objects; a schema without a union is one branch.

    Example:
        >>> object_branches({"anyOf": [{"properties": {"a": {}}}, {"type": "null"}]}, {})
        [{'properties': {'a': {}}}]
    """
    return [one for one in alternatives(node, root) if "object" in _schemas.kinds(one)]


def inner_fields(node: Any, root: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    """Return the schema nodes of an object's named fields, and the node for all other fields.

    References are followed. Of a union, the only branch that accepts objects is used.

    Example:
        >>> inner_fields({"anyOf": [{"properties": {"a": {}}}, {"type": "null"}]}, {})
        ({'a': {}}, None)
    """
    objects = object_branches(node, root)
    if len(objects) != 1:
        return {}, None
    named = objects[0].get("properties")
    return named if is_object(named) else {}, objects[0].get("additionalProperties")


def item_nodes(node: Any, root: dict[str, Any]) -> list[Any]:
    """Return the schemas that apply to the items of a list, one for each branch of a union.

    Example:
        >>> item_nodes({"anyOf": [{"items": {"type": "string"}}, {"type": "null"}]}, {})
        [{'type': 'string'}]
    """
    items = [element(one, 0, root) for one in alternatives(node, root) if "items" in one]
    return [item for one in items for item in alternatives(one, root)]


def expectation(kinds: frozenset[str]) -> str:
    """Describe the values that a field takes, for an error message.

    Example:
        >>> expectation(frozenset({"number", "null"}))
        'a number or null'
    """
    return " or ".join(words for kind, words in _WORDING.items() if kind in kinds)
