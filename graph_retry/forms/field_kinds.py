"""Ask a JSON Schema which kinds of JSON value a field takes."""

from dataclasses import dataclass
from typing import Any, Final

from graph_retry.params.jsonlike import is_array, is_object

ANY_KIND: Final = frozenset({"string", "number", "boolean", "array", "object", "null"})

_MAX_REFS = 20
_WORDING = {
    "number": "a number",
    "boolean": "true or false",
    "array": 'a JSON list such as ["a", "b"]',
    "object": 'a JSON object such as {"a": 1}',
    "string": "text",
    "null": "null",
}


def kind_of(value: Any) -> str:
    """Name the JSON kind of a value; whole numbers and others are both `number`.

    Example:
        >>> kind_of(True), kind_of(1), kind_of(None)
        ('boolean', 'number', 'null')
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if is_array(value) else "object"


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
        kinds &= kinds_of(resolved(node, root), root, depth + 1)
    if "type" in node:
        given = node["type"]
        names: list[Any] = given if is_array(given) else [given]
        kinds &= {"number" if name == "integer" else str(name) for name in names}
    if is_array(node.get("enum")):
        kinds &= {kind_of(value) for value in node["enum"]}
    if "const" in node:
        kinds &= {kind_of(node["const"])}
    for branches in (node.get("anyOf"), node.get("oneOf")):
        if is_array(branches):
            each = [kinds_of(branch, root, depth + 1) for branch in branches]
            kinds &= frozenset[str]().union(*each)
    every: list[Any] = node.get("allOf") or []
    for part in every:
        kinds &= kinds_of(part, root, depth + 1)
    return kinds


@dataclass(frozen=True)
class Inner:
    """The schema nodes below an object; `fixed` tells that its type names the fields."""

    named: dict[str, Any]
    others: Any = None

    @property
    def fixed(self) -> bool:
        """Whether the fields are named, as a model's are."""
        return bool(self.named)

    def of(self, name: str) -> Any:
        """Return the node of one field, None if nothing is known of it."""
        return self.named.get(name, self.others)


def inner_nodes(node: Any, root: dict[str, Any], depth: int = 0) -> Inner:
    """Look up the fields of a schema node, through references and the one object of a union.

    Example:
        >>> inner_nodes({"anyOf": [{"properties": {"a": {}}}, {"type": "null"}]}, {}).named
        {'a': {}}
    """
    if not is_object(node) or depth > _MAX_REFS:
        return Inner({})
    if "$ref" in node:
        return inner_nodes(resolved(node, root), root, depth + 1)
    if "properties" in node or "additionalProperties" in node:
        return Inner(node.get("properties") or {}, node.get("additionalProperties"))
    branches: list[Any] = node.get("anyOf") or node.get("oneOf") or node.get("allOf") or []
    objects = [branch for branch in branches if "object" in kinds_of(branch, root, depth + 1)]
    return inner_nodes(objects[0], root, depth + 1) if len(objects) == 1 else Inner({})


def expectation(kinds: frozenset[str]) -> str:
    """Say in words what a field takes.

    Example:
        >>> expectation(frozenset({"number", "null"}))
        'a number or null'
    """
    return " or ".join(words for kind, words in _WORDING.items() if kind in kinds)


def resolved(node: dict[str, Any], root: dict[str, Any]) -> Any:
    """Return what a local `$ref` points to, None if it points nowhere or outside."""
    path = str(node["$ref"])
    if not path.startswith("#"):
        return None
    found: Any = root
    for token in path[1:].split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        found = found.get(key) if is_object(found) else None
    return found
