"""Read calls that name a class of the output: `{"name": "Reject", "arguments": {…}}`.

If the output is one of several classes, or a list of them, a tool call says by its name which one
it is. Its arguments alone may fit several classes, and pydantic would take the first.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property
from types import GenericAlias, UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

from pydantic import BaseModel, Field, TypeAdapter
from typing_extensions import TypedDict

from graph_retry._core.ground.json import is_array, is_object

_KEYS = {"name", "arguments"}


class NamedCalls:
    """The calls that may take the place of values of one type.

    Args:
        output: The type. If it is neither a union nor a list, no class of it needs a name. Then
            `names` is empty, and so it is if a class has the fields of a call itself.
    """

    def __init__(self, output: Any) -> None:
        whole = _plain(output)
        self._is_list = get_origin(whole) is list
        item = _plain(get_args(whole)[0]) if self._is_list else whole
        is_union = get_origin(item) in (Union, UnionType)
        kinds = [_plain(one) for one in get_args(item)] if is_union else [item]
        named = {_tool_name(one): one for one in kinds if _fields(one) is not None}
        is_clear = not any((_fields(one) or set()) >= _KEYS for one in named.values())
        self._classes: dict[str, Any] = named if is_clear and (self._is_list or is_union) else {}
        self.names = frozenset(self._classes)

    @cached_property
    def adapter(self) -> TypeAdapter[Any]:
        """Pydantic's validation of a call, or of a list of calls."""
        make: Any = TypedDict
        calls = [
            make("Call", {"name": Literal[name], "arguments": one})
            for name, one in self._classes.items()
        ]
        union: Any = Union
        one: Any = union[tuple(calls)]
        if len(calls) > 1:
            one = Annotated[one, Field(discriminator="name")]
        whole: Any = GenericAlias(list, one) if self._is_list else one
        return TypeAdapter(whole)

    def are_in(self, value: Any) -> bool:
        """Return whether a JSON value has the shape of calls, of which one names a class."""
        calls: list[Any] = value if self._is_list and is_array(value) else [value]
        is_shaped = all(is_object(one) and one.keys() == _KEYS for one in calls)
        is_whole = self._is_list == is_array(value)
        return is_whole and is_shaped and any(str(one["name"]) in self.names for one in calls)

    def arguments(self, calls: Any) -> Any:
        """Return the arguments of a call, or of each call in a list."""
        return [one["arguments"] for one in calls] if self._is_list else calls["arguments"]

    def inside(self, value: Any) -> Any:
        """Return the arguments of calls; any other value is returned as it is."""
        return self.arguments(value) if self.are_in(value) else value

    def of(self, accepted: Any, dumped: Any) -> Any:
        """Return calls for validated values and their JSON; None for values of other classes."""
        names = {one: name for name, one in self._classes.items()}
        values: list[Any] = accepted if self._is_list else [accepted]
        if not names or not all(type(one) in names for one in values):
            return None
        made = [
            {"name": names[type(one)], "arguments": form}
            for one, form in zip(values, dumped if self._is_list else [dumped], strict=True)
        ]
        return made if self._is_list else made[0]


def _plain(kind: Any) -> Any:
    """Return a type without its annotations and its alias."""
    while get_origin(kind) is Annotated or hasattr(kind, "__value__"):
        kind = get_args(kind)[0] if get_origin(kind) is Annotated else kind.__value__
    return kind


def _fields(kind: Any) -> set[str] | None:
    """Return the names of the fields of a model or a dataclass; None for other types."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return {*kind.model_fields}
    is_dataclass = isinstance(kind, type) and dataclasses.is_dataclass(cast("Any", kind))
    return {one.name for one in dataclasses.fields(kind)} if is_dataclass else None


def _tool_name(kind: Any) -> str:
    """Return the name that LangChain gives a tool for this class."""
    config: Any = getattr(kind, "model_config", {})
    return str(config.get("title") or kind.__name__)
