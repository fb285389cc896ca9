"""Read and replace one field of params, whatever kind of object they are."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, cast

from pydantic import BaseModel

from graph_retry._json import is_object


def fields_of(params: Any) -> Mapping[str, Any]:
    """Return the fields by name: of a dict, a pydantic model or a dataclass; else there are none.

    Example:
        >>> fields_of({"model": "small"})["model"]
        'small'
    """
    if is_object(params):
        return params
    if isinstance(params, BaseModel):
        return dict(params)
    if dataclasses.is_dataclass(params) and not isinstance(params, type):
        return {field.name: getattr(params, field.name) for field in dataclasses.fields(params)}
    return {}


def with_fields(params: Any, changes: Mapping[str, Any]) -> Any:
    """Return a copy of params with some fields replaced.

    Raises:
        ValueError: If the params lack one of the fields.

    Example:
        >>> with_fields({"model": "small", "seed": 1}, {"model": "large"})
        {'model': 'large', 'seed': 1}
    """
    require_fields(params, changes, "the hook")
    if isinstance(params, BaseModel):
        return params.model_copy(update=changes)
    if dataclasses.is_dataclass(params) and not isinstance(params, type):
        return dataclasses.replace(params, **changes)
    return {**cast("dict[str, Any]", params), **changes}


def require_fields(params: Any, names: Iterable[str], owner: str) -> None:
    """Refuse params that lack a field which `owner`, a hook, is to change.

    Raises:
        ValueError: If they do; it names the field.
    """
    fields = fields_of(params)
    for name in names:
        if name not in fields:
            known = ", ".join(f"`{field}`" for field in list(fields)[:20]) or "none"
            raise ValueError(
                f"`{owner}` changes the field `{name}`, which the params do not have (they have "
                f"{known}): add it to the params, so that it can be seen and edited, or leave it "
                "out of the hook."
            )
