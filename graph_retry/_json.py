"""Narrow untyped data to JSON's two containers."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypeIs


def is_object(value: object) -> TypeIs[dict[str, Any]]:
    """Tell a JSON object."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeIs[list[Any]]:
    """Tell a JSON array."""
    return isinstance(value, list)
