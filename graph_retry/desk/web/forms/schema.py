"""Choose the branch of a union that a value has, and make the value of a new list item."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graph_retry.plugins import is_object, kind_of
from graph_retry.reviews import alternatives

ROLES = {
    "role": ("user", "assistant", "system", "developer", "tool"),
    "type": ("human", "ai", "system", "tool"),
}
"""The roles of chat messages: `role` as providers name them, `type` as LangChain does."""


def tags_of(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the members, with their schemas, whose constants choose the branch of a union.

    Example:
        >>> tags_of([{"properties": {"kind": {"const": one}}} for one in ("card", "bank")])
        {'kind': {'anyOf': [{'const': 'card'}, {'const': 'bank'}]}}
    """
    parts = [node["properties"] for node in found if is_object(node.get("properties"))]
    if len(parts) < 2:
        return {}
    shared = [name for name in parts[0] if all("const" in (one.get(name) or {}) for one in parts)]
    return {name: {"anyOf": [one[name] for one in parts]} for name in shared}


def blank(node: Any, root: dict[str, Any], like: Any = None) -> Any:
    """Return the initial value of a new list item: its default, or an empty value of its type.

    If the last item (`like`) is a chat message, the new item is an empty message of the same role.

    Example:
        >>> blank({"type": "string"}, {}), blank({}, {}, {"role": "user", "content": "Hello"})
        ('', {'role': 'user', 'content': ''})
    """
    (found, *_) = [part for part in alternatives(node, root) if part.get("type") != "null"] or [{}]
    if is_object(node) and "default" in node:
        return node["default"]
    if role := role_of(like):
        return {role: like[role], "content": ""}
    kind = found.get("type", kind_of(like))
    empty: dict[str, Any] = {"string": "", "object": {}, "array": [], "boolean": False}
    return empty.get(kind)


def role_of(value: Any) -> str:
    """Return the key of a chat message that holds its role; "" for any other value.

    Example:
        >>> role_of({"role": "user", "content": "Hello"}), role_of({"type": "text", "text": ""})
        ('role', '')
    """
    if not is_object(value) or "content" not in value:
        return ""
    return next((key for key, known in ROLES.items() if value.get(key) in known), "")
