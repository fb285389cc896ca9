"""The fields of params by name, for every kind of object."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from graph_retry._texts.json import is_object


def fields_of(params: Any) -> Mapping[str, Any]:
    """Return the fields of a dict, pydantic model or dataclass by name; empty for any other object.

    Example:
        >>> fields_of({"model": "small"})["model"]
        'small'
    """
    if is_object(params):
        return params
    if isinstance(params, BaseModel):
        known = {*type(params).model_fields, *(params.__pydantic_extra__ or ())}
        return {name: value for name, value in params if name in known}
    if dataclasses.is_dataclass(params) and not isinstance(params, type):
        names = [field.name for field in dataclasses.fields(params) if field.init]
        return {name: getattr(params, name, None) for name in names}
    return {}


def hidden_fields(params: Any) -> Mapping[str, Any]:
    """Return a model's private attributes, or a dataclass's fields with `init=False`."""
    if isinstance(params, BaseModel):
        return params.__pydantic_private__ or {}
    if not dataclasses.is_dataclass(params):
        return {}
    return {f.name: getattr(params, f.name, None) for f in dataclasses.fields(params) if not f.init}
