"""A JSON Schema applied to one value: its alternatives, and the one that the value fits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graph_retry._json import is_array, is_object

_MAX_REFS = 20
_KINDS: dict[Any, str] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
}
_ROLES = {
    "role": ("user", "assistant", "system", "developer", "tool"),
    "type": ("human", "ai", "system", "tool"),
}
"""The roles of chat messages, in the words of providers and of LangChain."""


def alternatives(node: Any, root: dict[str, Any], depth: int = 0) -> list[dict[str, Any]]:
    """List the schemas of which a value must fit one, references and unions resolved.

    Example:
        >>> alternatives({"anyOf": [{"type": "integer"}, {"$ref": "#/$defs/n"}]},
        ...              {"$defs": {"n": {"type": "null"}}})
        [{'type': 'integer'}, {'type': 'null'}]
    """
    if not is_object(node) or depth > _MAX_REFS:
        return [{}]
    if "$ref" in node:
        return alternatives(_target(str(node["$ref"]), root), root, depth + 1)
    branches: Any = node.get("anyOf") or node.get("oneOf") or ()
    if not branches and is_array(node.get("allOf")) and len(node["allOf"]) == 1:
        branches = node["allOf"]
    if branches:
        return [found for part in branches for found in alternatives(part, root, depth + 1)]
    kinds: Any = node.get("type")
    return [{**node, "type": kind} for kind in kinds] if is_array(kinds) else [node]


def branch_of(found: Sequence[dict[str, Any]], value: Any) -> dict[str, Any]:
    """Choose the alternative that a value is of: by its kind, then by the constants it repeats."""
    kind = _KINDS.get(type(value), "object" if is_object(value) else "")
    fitting = [
        node
        for node in found
        if node.get("type", kind) == kind or (kind, node.get("type")) == ("integer", "number")
    ]
    if is_object(value):
        for node in fitting:
            parts: dict[str, Any] = node.get("properties") or {}
            constants = {name: part["const"] for name, part in parts.items() if "const" in part}
            if constants and all(value.get(name) == given for name, given in constants.items()):
                return node
    others = [node for node in found if node.get("type") != "null"]
    return (fitting or (others if len(others) == 1 else []) or [{}])[0]


def item_node(node: dict[str, Any], index: int) -> Any:
    """Return the schema of an item of a list."""
    fixed: Any = node.get("prefixItems")
    return fixed[index] if is_array(fixed) and index < len(fixed) else node.get("items")


def blank(node: Any, root: dict[str, Any], like: Any = None) -> Any:
    """Return the initial value of a new list item: its default, or an empty value of its type.

    A chat message begins without words; one with another role than the last, which speaks next.

    Example:
        >>> blank({"type": "string"}, {}), blank({}, {}, {"role": "user", "content": "Hello"})
        ('', {'role': 'user', 'content': ''})
    """
    (found, *_) = [part for part in alternatives(node, root) if part.get("type") != "null"] or [{}]
    if is_object(node) and "default" in node:
        return node["default"]
    if role := roles_of(like):
        return {role: like[role], "content": ""}
    kind = found.get("type", _KINDS.get(type(like), "object" if is_object(like) else "null"))
    empty: dict[str, Any] = {"string": "", "object": {}, "array": [], "boolean": False}
    return empty.get(kind)


def roles_of(value: Any) -> str:
    """Return the key that tells who speaks in a chat message; empty for anything else.

    Example:
        >>> roles_of({"role": "user", "content": "Hello"}), roles_of({"type": "text", "text": ""})
        ('role', '')
    """
    if not is_object(value) or "content" not in value:
        return ""
    return next((key for key, known in _ROLES.items() if value.get(key) in known), "")


def roles(key: str) -> tuple[str, ...]:
    """List the words that a key of a chat message may have."""
    return _ROLES[key]


def _target(reference: str, root: dict[str, Any]) -> Any:
    target: Any = root
    for token in reference.split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        target = target.get(name) if is_object(target) else None
    return target
