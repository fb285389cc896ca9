"""Read calls that name a class of the output: `{"name": "Reject", "arguments": {…}}`.

If the output type is a union of classes, or a list of objects, the name of a tool call says which
class the model means. The arguments alone may fit several classes, and pydantic would take the
first of them.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property
from types import GenericAlias, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, cast, get_args, get_origin

from pydantic import BaseModel, Field, TypeAdapter
from typing_extensions import TypedDict

from graph_retry._core.ground.issues import attempt, issue
from graph_retry._core.ground.json import ABSENT, is_array, is_object
from graph_retry._core.output.types.type_validator import TypedValidator, read_with
from graph_retry._core.output.validator import Checked
from graph_retry.records import Issue

_KEYS = {"name", "arguments"}
_ALIKE = (
    "this fits `{0}` and `{1}` alike: name the class that is meant, as in "
    '{{"name": "{1}", "arguments": {{…}}}}, or give the classes a field that tells them apart'
)


class NamedClasses(NamedTuple):
    """The classes of a type that tool calls choose by their names."""

    is_list: bool
    kinds: list[Any]
    """The branches of the union, or the one class of a list."""
    by_name: dict[str, Any]


def named_classes(output: Any) -> NamedClasses | None:
    """Return the classes of a type that a tool call must name; None for other types.

    The type is a union or a list, and none of its classes has the fields `name` and `arguments`.
    """
    whole = _plain(output)
    is_list = get_origin(whole) is list
    item = _plain(get_args(whole)[0]) if is_list and get_args(whole) else whole
    is_union = get_origin(item) in (Union, UnionType)
    kinds = [_plain(one) for one in get_args(item)] if is_union else [item]
    named = {_tool_name(one): one for one in kinds if _fields(one) is not None}
    is_clear = not any((_fields(one) or set()) >= _KEYS for one in named.values())
    is_needed = bool(named) and is_clear and (is_list or is_union)
    return NamedClasses(is_list, kinds, named) if is_needed else None


class CallsValidator(TypedValidator):
    """Validate values of a type. A call of a class in `named` may take the place of an object."""

    def __init__(self, output: Any, named: NamedClasses, *, strict: bool) -> None:
        super().__init__(output, strict=strict)
        self._is_list, self._kinds, self._classes = named
        self._names = {one: name for name, one in self._classes.items()}
        self.call_names = frozenset(self._classes)

    def reads_calls(self, value: Any) -> bool:
        """Return whether a value consists of valid calls that name classes of the type."""
        return self._are_calls(value) and self.has_place(value)

    @cached_property
    def _calls(self) -> TypeAdapter[Any]:
        make: Any = TypedDict
        calls = [
            make("Call", {"name": Literal[name], "arguments": one})
            for name, one in self._classes.items()
        ]
        union: Any = Union
        one: Any = union[tuple(calls)]
        return self._adapter_of(
            Annotated[one, Field(discriminator="name")] if len(calls) > 1 else one
        )

    @cached_property
    def _other_way(self) -> TypeAdapter[Any]:
        """The union in reverse order. Pydantic then takes another class if two classes fit."""
        union: Any = Union
        return self._adapter_of(union[tuple(reversed(self._kinds))])

    def _adapter_of(self, one: Any) -> TypeAdapter[Any]:
        whole: Any = GenericAlias(list, one) if self._is_list else one
        return TypeAdapter(whole)

    def _checked(self, value: Any, accepted: Any, issues: list[Issue]) -> Checked:
        return super()._checked(value, accepted, issues or self._alike(value, accepted))

    def _alike(self, value: Any, accepted: Any) -> list[Issue]:
        """Return an issue for each object that fits two classes, if only their order decides."""
        if len(self._classes) < 2 or self._are_calls(value):
            return []
        other, failed = attempt(read_with, self._other_way, value, self._strict)
        if failed:
            return []
        names = self._names
        pairs = zip(accepted, other, strict=True) if self._is_list else [(accepted, other)]
        return [
            issue(
                [at] * self._is_list, _ALIKE.format(*(names[type(each)] for each in pair)), "alike"
            )
            for at, pair in enumerate(pairs)
            if len({*map(type, pair)} & names.keys()) > 1
        ]

    def _are_calls(self, value: Any) -> bool:
        """Return whether a value has the form of calls, and at least one call names a class."""
        if is_array(value) is not self._is_list:
            return False
        calls: list[Any] = value if self._is_list else [value]
        is_shaped = all(is_object(one) and one.keys() == _KEYS for one in calls)
        return is_shaped and any(str(one["name"]) in self._classes for one in calls)

    def _read(self, value: Any, strict: bool | None) -> Any:
        if not self._are_calls(value):
            return super()._read(value, strict)
        return self._arguments(read_with(self._calls, value, strict))

    def _arguments(self, calls: Any) -> Any:
        return [one["arguments"] for one in calls] if self._is_list else calls["arguments"]

    def _judged(self, value: Any) -> Any:
        return self._arguments(value) if self._are_calls(value) else value

    def _placed(self, accepted: Any, value: Any) -> Any:
        return self._called(accepted, accepted) if self._are_calls(value) else accepted

    def _forms(self, accepted: Any, given: Any, dumped: Any) -> list[Any]:
        values: list[Any] = accepted if self._is_list else [accepted]
        if dumped is ABSENT or not self._names.keys() >= {*map(type, values)}:
            return [dumped, given]
        first, failed = attempt(self._read, dumped, self._strict)
        is_plain = bool(failed) or not self._alike(dumped, first)
        return [*([dumped] if is_plain else []), given, self._called(accepted, dumped)]

    def _called(self, accepted: Any, arguments: Any) -> Any:
        """Return calls that name the classes of validated values, with the given arguments."""
        values, given = (accepted, arguments) if self._is_list else ([accepted], [arguments])
        made = [
            {"name": self._names[type(value)], "arguments": one}
            for value, one in zip(values, given, strict=True)
        ]
        return made if self._is_list else made[0]


def _plain(kind: Any) -> Any:
    """Return a type without its annotations and its alias."""
    while get_origin(kind) is Annotated or hasattr(kind, "__value__"):
        kind = get_args(kind)[0] if get_origin(kind) is Annotated else kind.__value__
    return kind


def _fields(kind: Any) -> set[str] | None:
    """Return the field names of a model or a dataclass; None for other types."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return {*kind.model_fields}
    is_dataclass = isinstance(kind, type) and dataclasses.is_dataclass(cast("Any", kind))
    return {one.name for one in dataclasses.fields(kind)} if is_dataclass else None


def _tool_name(kind: Any) -> str:
    """Return the name that LangChain gives a tool for this class."""
    config: Any = getattr(kind, "model_config", {})
    return str(config.get("title") or kind.__name__)
