"""The settings of a reviewed node, and its calls: their params are a part of the node's input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, cast

from langchain_core.messages import BaseMessage
from langgraph.types import Command
from pydantic import BaseModel, BeforeValidator, TypeAdapter

from graph_retry.calls import Call, ParamsCodec
from graph_retry.hooks import fields_of, with_fields
from graph_retry.nodes._types import (
    check_known,
    part_of,
    plain_type,
    read_text,
    type_for,
    typed_dict,
    with_message_classes,
)
from graph_retry.options import OnRetry, RetryOptions, settle
from graph_retry.output import build_validator
from graph_retry.plugins import WrongArgumentError, as_repr


class NodeOptions(RetryOptions, total=False):
    """The options of one node: those of a call, and the state keys to edit and to validate.

    params: The keys of the node's input that a person may change (default: all keys with JSON
        values).
    on_retry: Hooks, as in `retry_llm_call`.
    output: The keys of the node's update to validate, with their types, such as `{"person":
        Person}`. If the value under such a key is a text or a message, its JSON is read first.
    """

    params: Sequence[str] | None
    on_retry: OnRetry[Any]
    output: Mapping[str, Any] | None


def with_params(given: Any, params: Any) -> Any:
    """Return a node's input with new params. An input without fields is replaced as a whole."""
    return with_fields(given, fields_of(params)) if fields_of(given) else params


@dataclass(frozen=True, kw_only=True)
class Kind:
    """The settings that all calls of one node share.

    name: The name of the node.
    types: The types of the keys of the node's input and update.
    params: The keys that a person may change; None for all keys with JSON values.
    output: The keys of the node's update to validate, with their types.
    returns: The type of a `@task`'s result, which is no update of a state; None for a node.
    """

    name: str
    types: Mapping[str, Any]
    params: tuple[str, ...] | None
    on_retry: OnRetry[Any]
    output: Mapping[str, Any]
    options: RetryOptions = field(default_factory=RetryOptions)
    returns: Any = None

    def call(self, function: Any, given: Any) -> Call:
        """Return the call that runs `function` with params from `given`, the node's whole input."""
        values = fields_of(given)
        if not values and given not in ({}, None) and not isinstance(given, BaseModel):
            return self._made(function, given, ParamsCodec[Any].for_value(given))
        wanted = self.params if self.params is not None else self.types or values
        kinds = {key: self.types.get(key, Any) for key in wanted if key in values}
        try:
            return self._made(function, *self._part(given, kinds))
        except (TypeError, ValueError):
            # A graph does not check its state: a value may be of another type, or be no JSON.
            found = {key: type_for(values[key], kind) for key, kind in kinds.items()}
            fits = {k: found[k] or Any for k in found if found[k] is not None or self.params}
            return self._made(function, *self._part(given, fits))

    def _made(self, function: Any, shown: Any, codec: ParamsCodec[Any]) -> Call:
        # A run of a node makes one call, even if its params differ, such as the steps left.
        options: RetryOptions = {**self.options, "key": self.name}
        read = {
            key: Annotated[kind, BeforeValidator(read_text)] for key, kind in self.output.items()
        }
        update = typed_dict(f"update of {self.name}", tuple({**self.types, **read}.items()))
        made = Call(function, shown, self.on_retry, update if self.output else None, options, codec)
        known = (update if self.types else Any) if self.returns is None else self.returns
        return made.of_node(None if known is Any else build_validator(known))

    def _part(self, given: Any, kinds: Mapping[str, Any]) -> tuple[Any, ParamsCodec[Any]]:
        """Return the params (the fields of the input that `kinds` names) and their codec."""
        values = fields_of(given)
        shown: dict[str, Any] = {key: values[key] for key in kinds}
        if isinstance(given, BaseModel):
            part = part_of(self.name, type(given), tuple(kinds))
            return part.model_construct(**shown), ParamsCodec[Any](part)
        return shown, ParamsCodec[Any](typed_dict(self.name, tuple(kinds.items())))

    def texts_in(self, value: Any) -> Any:
        """Return a node's update with texts in place of the messages that are to be validated."""
        if self.output and isinstance(value, Command):
            raise WrongArgumentError(
                f"`{self.name}` returns a `Command`, and `output` validates an update: return the "
                "update, and choose the next node by an edge."
            )
        if not self.output or not isinstance(value, Mapping):
            return value
        update = cast("Mapping[str, Any]", value)
        messages = {k: m for k, m in update.items() if isinstance(m, BaseMessage)}
        return {**update, **{k: str(messages[k].text) for k in messages.keys() & self.output}}

    def update_of(self, value: Any) -> Any:
        """Return the node's update, with plain JSON where the state declares a different type."""
        if not isinstance(value, dict):
            return with_message_classes(value)
        given = cast("dict[str, Any]", value)
        update = {key: with_message_classes(each) for key, each in given.items()}
        for key, kind in self.output.items():
            if key in update and plain_type(self.types.get(key)) != kind:
                update[key] = TypeAdapter(kind).dump_python(update[key], mode="json")
        return update


def kind_of(name: str, types: Mapping[str, Any], own: NodeOptions) -> Kind:
    options: Any = {"name": name, **own}
    params, on_retry = options.pop("params", None), options.pop("on_retry", None)
    given = options.pop("output", None)
    if given is not None and not isinstance(given, Mapping):
        raise WrongArgumentError(
            f"`output` is {as_repr(given, 100)}: give a mapping of state keys to types."
        )
    output = cast("Mapping[str, Any]", given or {})
    check_known("params", params, types)
    check_known("output", output, types)
    if "key" in options:
        raise WrongArgumentError("`key` is not allowed for a node, which makes one call.")
    settle(name, "function", options, output or None)
    kept = None if params is None else tuple(params)
    return Kind(
        name=name, types=types, params=kept, on_retry=on_retry, output=output, options=options
    )
