"""Equality for tests: what `==` forgives between types is a difference here."""

import dataclasses
from collections import deque
from typing import Any

from pydantic import BaseModel


def same(one: Any, other: Any) -> bool:
    """Compare two values to the type: `True` is not `1`, and `1` is not `1.0`."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple | deque):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, BaseModel) or dataclasses.is_dataclass(one):
        return one == other and same(vars(one), vars(other))
    return one == other
