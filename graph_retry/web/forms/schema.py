"""A JSON Schema applied to one value: the alternative that it fits, and what a new item is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graph_retry._json import is_object
from graph_retry._schemas import alternatives, kind_of, kinds

_ROLES = {
    "role": ("user", "assistant", "system", "developer", "tool"),
    "type": ("human", "ai", "system", "tool"),
}
"""The roles of chat messages, in the words of providers and of LangChain."""


def branch_of(found: Sequence[dict[str, Any]], value: Any) -> dict[str, Any]:
    """Choose the alternative that a value is of: by its kind, then by the constants it repeats."""
    kind = kind_of(value)
    fitting = [node for node in found if "type" not in node or kind in kinds(node)]
    if is_object(value):
        for node in fitting:
            parts: dict[str, Any] = node.get("properties") or {}
            constants = {name: part["const"] for name, part in parts.items() if "const" in part}
            if constants and all(value.get(name) == given for name, given in constants.items()):
                return node
    others = [node for node in found if node.get("type") != "null"]
    return (fitting or (others if len(others) == 1 else []) or [{}])[0]


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
    kind = found.get("type", kind_of(like))
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
