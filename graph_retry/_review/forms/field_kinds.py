"""Ask a JSON Schema which kinds of JSON value a field takes."""

from typing import Any, Final

from graph_retry._json import is_array, is_object

_WORDING = {
    "number": "a number",
    "boolean": "true or false",
    "array": 'a JSON list such as ["a", "b"]',
    "object": 'a JSON object such as {"a": 1}',
    "string": "text",
    "null": "null",
}
_NAMES: dict[object, str] = {bool: "boolean", int: "number", float: "number", str: "string"}
_MAX_REFS = 20

ANY_KIND: Final = frozenset(_WORDING)


def kind_of(value: object) -> str:
    """Name the JSON kind of a value; whole numbers and others are both `number`.

    Example:
        >>> kind_of(True), kind_of(1), kind_of(None)
        ('boolean', 'number', 'null')
    """
    other = "null" if value is None else "array" if is_array(value) else "object"
    return _NAMES.get(type(value), other)


def kinds_of(node: Any, root: dict[str, Any], depth: int = 0) -> frozenset[str]:
    """Return the kinds a schema node accepts, `ANY_KIND` where it does not say.

    `root` is the schema that local references of `node` point into.

    Example:
        >>> sorted(kinds_of({"anyOf": [{"type": "integer"}, {"type": "null"}]}, {}))
        ['null', 'number']
    """
    if not is_object(node) or depth > _MAX_REFS:
        return ANY_KIND
    kinds = ANY_KIND
    if "$ref" in node:
        kinds &= kinds_of(_target(node, root), root, depth + 1)
    if "type" in node:
        names: list[str] = node["type"] if is_array(node["type"]) else [node["type"]]
        kinds &= {"number" if name == "integer" else name for name in names}
    if "enum" in node:
        kinds &= {kind_of(value) for value in node["enum"]}
    if branches := _branches(node):
        kinds &= frozenset[str]().union(*(kinds_of(branch, root, depth + 1) for branch in branches))
    return kinds


def inner_fields(node: Any, root: dict[str, Any], depth: int = 0) -> tuple[dict[str, Any], Any]:
    """Return the nodes of an object's named fields, and the node of all others.

    They are looked up through references and through the one object of a union.

    Example:
        >>> inner_fields({"anyOf": [{"properties": {"a": {}}}, {"type": "null"}]}, {})
        ({'a': {}}, None)
    """
    if not is_object(node) or depth > _MAX_REFS:
        return {}, None
    if "$ref" in node:
        return inner_fields(_target(node, root), root, depth + 1)
    objects = [branch for branch in _branches(node) if "object" in kinds_of(branch, root)]
    if len(objects) == 1:
        return inner_fields(objects[0], root, depth + 1)
    return node.get("properties") or {}, node.get("additionalProperties")


def item_nodes(node: Any, root: dict[str, Any], depth: int = 0) -> list[Any]:
    """Return the nodes that the items of a list may follow, the branches of a union by themselves.

    Example:
        >>> item_nodes({"anyOf": [{"items": {"type": "string"}}, {"type": "null"}]}, {})
        [{'type': 'string'}]
    """
    if not is_object(node) or depth > _MAX_REFS:
        return []
    if "$ref" in node:
        return item_nodes(_target(node, root), root, depth + 1)
    if "items" in node:
        return _branches(node["items"]) or [node["items"]]
    return [item for branch in _branches(node) for item in item_nodes(branch, root, depth + 1)]


def expectation(kinds: frozenset[str]) -> str:
    """Describe in words the values that a field takes.

    Example:
        >>> expectation(frozenset({"number", "null"}))
        'a number or null'
    """
    return " or ".join(words for kind, words in _WORDING.items() if kind in kinds)


def _branches(node: Any) -> list[Any]:
    return (node.get("anyOf") or node.get("oneOf") or []) if is_object(node) else []


def _target(node: dict[str, Any], root: dict[str, Any]) -> Any:
    target: Any = root
    for token in str(node["$ref"]).split("/")[1:]:
        target = target.get(token) if is_object(target) else None
    return target
