"""Values without parts: how each type is written as JSON, and which are refused outright."""

import base64
import math
from collections.abc import Callable, Iterator
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from pydantic import Secret, SecretBytes, SecretStr
from pydantic_core import TzInfo, to_jsonable_python

from graph_retry.params.node import Node, Shape

_REFUSED = (
    *(FunctionType, BuiltinFunctionType, MethodType, ModuleType, type),
    *(Iterator, BaseException),
)
_SECRETS = (SecretStr, SecretBytes, Secret)


class Unstorable(Exception):
    """A value that cannot stand in graph state; `tokens` is the way to it, root first."""

    def __init__(self, reason: str, error: type[TypeError] | type[ValueError] = TypeError) -> None:
        """Keep the rest of the sentence and the class of error to raise."""
        super().__init__(reason)
        self.reason = reason
        self.error = error
        self.tokens: list[str] = []


def cannot_store(value: object) -> str:
    """Say by its class alone that a value cannot be stored, and what to do instead."""
    return (
        f"is a `{class_label(type(value))}`, which cannot be stored in graph state: "
        "capture it in the function instead, or pass its settings as plain values"
    )


def class_label(cls: type[Any]) -> str:
    """Name a class for a sentence."""
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__name__}"


def is_secret(kind: type) -> bool:
    """Tell pydantic's secret types."""
    return issubclass(kind, _SECRETS)


def is_refused(kind: type) -> bool:
    """Tell the types that no declaration can make storable: secrets, code, streams."""
    return issubclass(kind, (*_SECRETS, *_REFUSED))


def storable_text(text: str) -> str:
    """Return the text, refusing a lone surrogate: checkpointers turn it into `?`."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise Unstorable(
                "holds a lone surrogate, which no checkpointer keeps: clean the text first",
                ValueError,
            ) from None
    return text


def _text(value: str) -> Shape:
    return Shape(storable_text(value))


def _int(value: int) -> Shape:
    # msgpack, the checkpointers' format, ends at 64 bits.
    return Shape(value) if -(2**63) <= value < 2**64 else Shape(str(value), Node("int"))


def _float(value: float) -> Shape:
    if math.isfinite(value):
        return Shape(value)
    word = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return Shape(word, Node("float"))


def _bytes(value: bytes) -> Shape:
    try:
        return Shape(value.decode(), Node("bytes"))
    except UnicodeDecodeError:
        return Shape(base64.b64encode(value).decode(), Node("base64"))


def _datetime(value: datetime) -> Shape:
    zone = value.tzinfo
    if isinstance(zone, ZoneInfo) and zone.key:
        return Shape(value.isoformat(), Node(f"datetime[{zone.key}]"))
    return _moment(value, "datetime")


def _moment(value: datetime | time, tag: str) -> Shape:
    if value.fold or type(value.tzinfo) not in (type(None), timezone, TzInfo):
        raise Unstorable(
            f"has the time zone {value.tzinfo!r} (fold {value.fold}), which its text does not "
            "keep: use a datetime with a `zoneinfo.ZoneInfo` or a fixed offset",
            ValueError,
        )
    return Shape(value.isoformat(), Node(tag))


def _worded(tag: str, write: Callable[[Any], str]) -> Callable[[Any], Shape]:
    return lambda value: Shape(write(value), Node(tag))


SCALARS: dict[type, Callable[[Any], Shape]] = {
    str: _text,
    int: _int,
    float: _float,
    bool: Shape,
    type(None): Shape,
    bytes: _bytes,
    datetime: _datetime,
    date: _worded("date", date.isoformat),
    time: lambda value: _moment(value, "time"),
    timedelta: _worded("timedelta", to_jsonable_python),
    UUID: _worded("uuid", str),
    Decimal: _worded("decimal", str),
    type(Path()): _worded("path", str),
}
"""How a value of exactly this type is written."""
