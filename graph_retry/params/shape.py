"""Take a value apart: plain JSON a person can read, and the types that JSON cannot say."""

import dataclasses
import json
from collections.abc import Callable, Hashable, Iterable, Iterator
from enum import Enum
from functools import cached_property, lru_cache
from typing import Any, cast

from langchain_core.messages import BaseMessage
from pydantic import BaseModel, RootModel
from pydantic_core import PydanticSerializationError, to_jsonable_python

from graph_retry.params.jsonlike import is_array, is_object
from graph_retry.params.leaves import (
    SCALARS,
    Unstorable,
    cannot_store,
    is_refused,
    is_secret,
    storable_text,
)
from graph_retry.params.node import OPAQUE, Node, Shape, equal

_MAX_DEPTH = 100


def shape_of(value: object, depth: int = 0) -> Shape:
    """Take a value apart without changing it.

    Raises:
        Unstorable: A part can never be stored, whatever type declares it.

    Example:
        >>> shape_of({"ids": (1, 2)})
        Shape(json={'ids': [1, 2]}, node=Node(tag=None, children={'ids': Node(tag='tuple', \
children={}, hidden={})}, hidden={}))
    """
    kind = type(value)
    scalar = SCALARS.get(kind)
    if scalar is not None:
        return scalar(value)
    if depth > _MAX_DEPTH:
        raise Unstorable(
            f"is nested deeper than {_MAX_DEPTH} levels or contains itself: make it a flat tree",
            ValueError,
        )
    return _way(cast("Hashable", kind))(value, depth)


def class_name(cls: type[Any]) -> str:
    """Name a class as `module:qualname`, the form the types map records."""
    return f"{cls.__module__}:{cls.__qualname__}"


@lru_cache(maxsize=1024)
def _way(cls: Hashable) -> Callable[[Any, int], Shape]:
    """Choose how values of exactly this class are taken apart."""
    kind = cast("type[Any]", cls)
    if is_refused(kind):
        return _refuse
    if kind is dict:
        return _shape_dict
    if kind is list or kind is tuple:
        return _shape_items
    if kind is set or kind is frozenset:
        return _shape_set
    if issubclass(kind, Enum):
        return _shape_enum
    if issubclass(kind, RootModel):
        return _shape_root
    if issubclass(kind, BaseModel):
        # A subclass defined elsewhere is recorded by its own name.
        own = kind.__module__.startswith("langchain_core.") and issubclass(kind, BaseMessage)
        return _shape_message if own else _shape_model
    return _shape_dataclass if dataclasses.is_dataclass(kind) else _shape_opaque


def _parts(items: Iterable[tuple[str, Any]], depth: int) -> Iterator[tuple[str, Shape]]:
    for token, item in items:
        try:
            yield token, shape_of(item, depth + 1)
        except Unstorable as error:
            error.tokens.insert(0, token)
            raise


def _children(parts: Iterable[tuple[str, Shape]]) -> dict[str, Node]:
    return {token: part.node for token, part in parts if part.node is not None}


def _shape_items(value: list[Any] | tuple[Any, ...], depth: int) -> Shape:
    parts = list(_parts(((str(i), item) for i, item in enumerate(value)), depth))
    children = _children(parts)
    tag = "tuple" if type(value) is tuple else None
    return Shape([part.json for _, part in parts], Node(tag, children) if tag or children else None)


def _shape_set(value: set[Any] | frozenset[Any], depth: int) -> Shape:
    shapes = [part for _, part in _parts((("", item) for item in value), depth)]
    shapes.sort(key=lambda part: (json.dumps(part.json), part.node.tag or "" if part.node else ""))
    children = _children((str(i), part) for i, part in enumerate(shapes))
    return Shape([part.json for part in shapes], Node(type(value).__name__, children))


def _shape_dict(value: dict[Any, Any], depth: int) -> Shape:
    tag = None
    if not all(type(key) is str for key in value):
        tag = (
            "dict["
            + ",".join(sorted({class_name(type(key)) for key in cast("dict[object, Any]", value)}))
            + "]"
        )
        keys = {_key_text(key): key for key in value}
        if len(keys) < len(value):
            raise Unstorable("has two keys that read the same as JSON: use str keys", ValueError)
        value = {text: value[key] for text, key in keys.items()}
    parts = list(_parts(value.items(), depth))
    children = _children(parts)
    node = Node(tag, children) if tag or children else None
    return Shape({storable_text(token): part.json for token, part in parts}, node)


def _key_text(key: Any) -> str:
    reason = f"has a key of type `{type(key).__name__}`: use str keys"
    try:
        plain = shape_of(key).json
    except Unstorable:
        raise Unstorable(reason) from None
    if not isinstance(plain, str | int | float):
        raise Unstorable(reason)
    return str(plain)


def _fields(
    items: Iterable[tuple[str, Any]], tag: str, hidden: dict[str, Any], depth: int
) -> Shape:
    parts = list(_parts(items, depth))
    node = Node(tag, _children(parts), hidden)
    return Shape({storable_text(token): part.json for token, part in parts}, node)


def _model_items(value: BaseModel) -> Iterator[tuple[str, Any]]:
    held = value.__dict__
    for name in type(value).model_fields:
        if name in held:
            yield name, held[name]
    yield from (value.__pydantic_extra__ or {}).items()


def _shape_model(value: BaseModel, depth: int) -> Shape:
    private: dict[str, Any] | None = getattr(value, "__pydantic_private__", None)
    return _fields(_model_items(value), class_name(type(value)), dict(private or {}), depth)


def _shape_root(value: RootModel[Any], depth: int) -> Shape:
    root = shape_of(value.root, depth + 1)
    node = root.node or Node()
    # Model and root share one place in the view, so the root's own type is only compared.
    hidden = {"": (node.tag, node.hidden)}
    return Shape(root.json, Node(class_name(type(value)), node.children, hidden))


def _shape_message(value: BaseModel, depth: int) -> Shape:
    fields = type(value).model_fields
    told = (
        (name, item)
        for name, item in _model_items(value)
        if name == "type"
        or name not in fields
        or fields[name].is_required()
        or not equal(item, fields[name].get_default(call_default_factory=True, validated_data={}))
    )
    return _fields(told, "message", {"": type(value)}, depth)


def _shape_dataclass(value: Any, depth: int) -> Shape:
    cls: type[Any] = value.__class__
    fields = {field.name: field.init for field in dataclasses.fields(value)}
    hidden: dict[str, Any] = {
        name: item
        for name, item in getattr(value, "__dict__", {}).items()
        if name not in fields and not isinstance(getattr(cls, name, None), cached_property)
    }
    hidden |= {name: getattr(value, name, None) for name, init in fields.items() if not init}
    items = ((name, getattr(value, name)) for name, init in fields.items() if init)
    return _fields(items, class_name(cls), hidden, depth)


def _shape_enum(value: Enum, depth: int) -> Shape:
    try:
        plain = shape_of(value.value, depth + 1)
    except Unstorable:
        plain = Shape(None, Node(OPAQUE))
    lone = plain.node is None and not (is_object(plain.json) or is_array(plain.json))
    # The name of one member may read like the value of another: compared, too.
    node = Node(class_name(type(value)), {}, {"": value.name})
    return Shape(plain.json if lone else value.name, node)


def _shape_opaque(value: Any, depth: int) -> Shape:
    del depth
    try:
        plain = to_jsonable_python(value)
    except (PydanticSerializationError, ValueError):
        plain = None
    return Shape(plain, Node(OPAQUE, {}, {"": value}))


def _refuse(value: object, depth: int) -> Shape:
    del depth
    if is_secret(type(value)):
        raise Unstorable(
            f"is a `{type(value).__name__}`, and graph state is no place for a secret: "
            "capture it in the function instead",
            ValueError,
        )
    raise Unstorable(cannot_store(value))
