"""Make a type for a node's params, from some keys of a state or some fields of a model."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cache, lru_cache
from typing import Any, cast, get_type_hints

from langchain_core.messages import AnyMessage, BaseMessage
from pydantic import BaseModel, TypeAdapter, create_model
from typing_extensions import TypedDict

from graph_retry.calls import ParamsCodec
from graph_retry.output import build_validator, parse_output
from graph_retry.plugins import WrongArgumentError, as_repr


def types_in(*schemas: Any) -> dict[str, Any]:
    """Return the annotations of the fields of some classes. Other values are skipped.

    A type that pydantic cannot check becomes `Any`, as `typing.TypedDict` before Python 3.12.
    """
    given = [schema for schema in schemas if isinstance(schema, type)]
    hints = [get_type_hints(schema, include_extras=True) for schema in given]
    types = {key: kind for each in hints for key, kind in each.items()}
    if _are_checked(types):
        return types
    return {key: checked_type(kind) for key, kind in types.items()}


def checked_type(kind: Any) -> Any:
    """Return a type, or `Any` if pydantic cannot check it."""
    return kind if _are_checked({"value": kind}) else Any


def _are_checked(types: dict[str, Any]) -> bool:
    try:
        build_validator(typed_dict("update", tuple(types.items())))
    except TypeError:
        return False
    return True


def type_for(value: Any, declared: Any) -> Any:
    """Return the type for a param with this value; None if JSON cannot hold the value.

    The result is the declared type if the value fits it, and `Any` otherwise. A graph does not
    check its state, so a dict may be in the place of a declared model.
    """
    for kind in (declared, Any):
        try:
            ParamsCodec[Any](typed_dict("params", (("value", kind),))).encode({"value": value})
        except (TypeError, ValueError):
            continue
        return kind
    return None


def plain_type(annotation: Any) -> Any:
    """Return a type without the metadata of `Annotated`."""
    return getattr(annotation, "__origin__", annotation) if annotation is not None else None


def typed_dict(name: str, fields: tuple[tuple[str, Any], ...]) -> Any:
    """Make a `TypedDict` in which each key may be missing and no other key is allowed."""
    try:
        return _known_typed_dict(name, fields)
    except TypeError:  # The metadata of an annotation may have no hash.
        return _typed_dict(name, fields)


def _typed_dict(name: str, fields: tuple[tuple[str, Any], ...]) -> Any:
    make = cast("Callable[..., type[Any]]", TypedDict)
    made: Any = make(name, dict(fields), total=False)
    made.__pydantic_config__ = {"extra": "forbid"}
    return made


_known_typed_dict = lru_cache(maxsize=1_000)(_typed_dict)


@lru_cache(maxsize=1_000)
def part_of(name: str, model: type[BaseModel], names: tuple[str, ...]) -> Any:
    """Make a pydantic model from some fields of another model."""
    fields: Any = {key: (f.annotation, f) for key, f in model.model_fields.items() if key in names}
    return create_model(name, **fields)


def read_text(value: Any) -> Any:
    """Read the JSON in a text. Return any other value unchanged.

    Raises:
        ValueError: If no JSON can be read.
    """
    if not isinstance(value, str):
        return value
    read = parse_output(value)
    if read.failure is not None:
        raise ValueError(read.failure["message"])
    return read.value


def check_known(what: str, names: Collection[str] | None, known: Collection[str]) -> None:
    """Raise if a name is not a key of the state."""
    if isinstance(names, str):
        raise WrongArgumentError(f"`{what}` is {as_repr(names, 100)}: give a list of state keys.")
    for name in names or ():
        if known and name not in known:
            raise WrongArgumentError(
                f"`{what}` names `{name}`, which is not a state key: choose from "
                f"{', '.join(sorted(known))}."
            )


def with_message_classes(value: Any) -> Any:
    """Replace each plain `BaseMessage` by a message of the class for its type, also in a list.

    A person's response contains plain messages if a state declares `list[BaseMessage]`.
    """
    if isinstance(value, list):
        items: list[Any] = cast("Any", value)
        return [with_message_classes(each) for each in items]
    if type(value) is not BaseMessage:
        return value
    try:
        return _any_message().validate_python(value.model_dump())
    except (ValueError, KeyError, TypeError):  # For example, a tool message lacks its id.
        return value


@cache
def _any_message() -> TypeAdapter[Any]:
    return TypeAdapter(AnyMessage)
