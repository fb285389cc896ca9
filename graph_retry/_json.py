"""Narrow untyped data to JSON's two containers; hash JSON values."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from typing_extensions import TypeIs


def is_object(value: object) -> TypeIs[dict[str, Any]]:
    """Tell a JSON object."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeIs[list[Any]]:
    """Tell a JSON array."""
    return isinstance(value, list)


def digest(*parts: Any) -> str:
    """Return a short stable hash of JSON values, for keys and ids."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.blake2s(text.encode(), digest_size=12).hexdigest()
