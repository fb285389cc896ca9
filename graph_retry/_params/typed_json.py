"""A value as plain JSON that a person can read, a map of the types JSON cannot say, and back.

The map is `{JSON Pointer: tag}`; the token `-` stands for every element of a list. A tag is one of
`_TYPES`, `bytes`, `base64`, `message`, or the `module:qualname` of a model, dataclass or enum.
"""

from __future__ import annotations

import base64
import copy
import dataclasses
import json
import math
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import suppress
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import Any, cast
from uuid import UUID
from zoneinfo import ZoneInfo

from langchain_core.messages import BaseMessage, messages_from_dict
from pydantic import BaseModel, PydanticUserError, RootModel, TypeAdapter
from pydantic.types import Secret, SecretBytes, SecretStr
from pydantic_core import PydanticSerializationError, TzInfo, to_jsonable_python

from graph_retry._issues import describe, issue, pointer
from graph_retry._json import is_array, is_object
from graph_retry._params.invalid import ParamsInvalid
from graph_retry.records import Issue

Written = tuple[Any, dict[str, str]]

NO_TYPE = "?"
"""Opens a tag that restores nothing, and says why; a declared type may still be able to."""

NEVER = "!"
"""Opens a tag that says why the value cannot be stored, whatever type declares it."""

VALIDATOR_ERRORS = (TypeError, ValueError, LookupError, ArithmeticError, AttributeError)
"""What a validator or `__post_init__` may raise on odd data, beside what pydantic wraps."""

_TYPES: dict[str, type] = {
    **{kind.__name__: kind for kind in (int, float, tuple, set, frozenset)},
    **{kind.__name__.lower(): kind for kind in (datetime, date, time, timedelta, UUID, Decimal)},
    "path": type(Path()),
}
_TAGS = {kind: tag for tag, kind in _TYPES.items()}
_MAX_DEPTH = 100
_exact_type: Callable[[object], type[Any]] = type


def write(value: Any, *, deep: bool = False, depth: int = 0) -> Written:
    """Write a value as JSON and types; the value itself is left alone.

    A class below the root is trusted to restore its own fields. To compare, `deep` writes all:
    their types, private attributes, and what a message has by default.

    Raises:
        RecursionError: The value is nested deeper than 100 levels, or contains itself.

    Example:
        >>> write({"ids": (1, 2)})
        ({'ids': [1, 2]}, {'/ids': 'tuple'})
    """
    cls = _exact_type(value)
    if value is None or cls in (bool, str, int, float, bytes):
        return _write_scalar(value, cls)
    if depth > _MAX_DEPTH:
        raise RecursionError
    if cls is dict:
        return _write_object(value, deep, depth)
    if cls in (list, tuple, set, frozenset):
        return _write_array(value, cls, deep, depth)
    if cls in _TAGS:
        return _write_scalar(value, cls)
    if isinstance(value, SecretStr | SecretBytes | Secret):
        why = "and graph state is no place for a secret: capture it in the function instead"
        return None, {"": f"{NEVER}is a `{cls.__name__}`, {why}"}
    if isinstance(value, Enum):
        lone = not deep and type(value.value) in (str, int, float, bool)
        return write(value.value)[0] if lone else value.name, {"": _class_tag(cls)}
    fields = _fields_of(value, deep)
    if fields is None:
        return _write_opaque(value, cls)
    tag = _class_tag(cls)
    if not deep and isinstance(value, BaseMessage) and cls.__module__.startswith("langchain_core."):
        tag, new = "message", cls.model_construct().__dict__
        fields = {k: v for k, v in fields.items() if k == "type" or k not in new or new[k] != v}
    inner: Any = fields["root"] if isinstance(value, RootModel) else fields
    plain, types = write(inner, deep=deep, depth=depth + 1)
    if depth and not deep:
        types = {path: why for path, why in types.items() if is_reason(why)}
    return plain, {**types, "": tag}


def is_reason(tag: str) -> bool:
    """Tell a tag that restores nothing, and says why."""
    return tag.startswith((NO_TYPE, NEVER))


def class_label(cls: type[Any]) -> str:
    """Name a class for a sentence."""
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__name__}"


def _write_scalar(value: Any, cls: type[Any]) -> Written:
    if cls is str:
        with suppress(UnicodeEncodeError):
            value.encode()
            return value, {}
        return value, {"": f"{NEVER}holds a lone surrogate, which no checkpointer keeps: clean it"}
    if cls is bytes:
        with suppress(UnicodeDecodeError):
            return value.decode(), {"": "bytes"}
        return base64.b64encode(value).decode(), {"": "base64"}
    # msgpack, the checkpointers' format, ends at 64 bits.
    narrow = cls is int and -(2**63) <= value < 2**64
    if value is None or cls is bool or narrow or (cls is float and math.isfinite(value)):
        return value, {}
    if cls is int or cls is float:
        return json.dumps(value), {"": _TAGS[cls]}
    tag, zone = _TAGS[cls], getattr(value, "tzinfo", None)
    if cls is datetime and isinstance(zone, ZoneInfo) and zone.key:
        tag = f"datetime[{zone.key}]"
    elif getattr(value, "fold", 0) or not isinstance(zone, timezone | TzInfo | None):
        tag = f"{NEVER}has the time zone {zone!r}, which its text does not keep: use a `ZoneInfo`"
    return to_jsonable_python(value), {"": tag}


def _write_opaque(value: Any, cls: type[Any]) -> Written:
    plain = None
    if not isinstance(value, Iterator):  # looking at one would use it up
        with suppress(PydanticSerializationError, PydanticUserError, ValueError, TypeError):
            adapter = _adapter_of(cast("Hashable", cls))
            plain = write(adapter.dump_python(value, mode="json", warnings=False))[0]
    why = f"is a `{class_label(cls)}`, which cannot be stored in graph state: capture it in the"
    return plain, {"": f"{NO_TYPE}{why} function instead, or pass its settings as plain values"}


def _write_object(value: dict[Any, Any], deep: bool, depth: int) -> Written:
    own: dict[str, str] = {}
    if not all(type(key) is str for key in value):
        own[""] = f"{NO_TYPE}has keys that are not `str`: use str keys"
        value = {str(to_jsonable_python(key, fallback=repr)): item for key, item in value.items()}
    for key in value:
        own |= _write_scalar(key, str)[1]
    parts = {key: write(item, deep=deep, depth=depth + 1) for key, item in value.items()}
    return {key: plain for key, (plain, _) in parts.items()}, _joined(parts.items()) | own


def _write_array(value: Any, cls: type[Any], deep: bool, depth: int) -> Written:
    parts = [write(item, deep=deep, depth=depth + 1) for item in value]
    if cls is set or cls is frozenset:
        parts.sort(key=lambda part: (json.dumps(part[0]), part[1].get("", "")))
    first = parts[0][1] if parts else {}
    if all(tags == first and not any(map(is_reason, tags.values())) for _, tags in parts):
        types = _joined([("-", part) for part in parts[:1]])
    else:
        types = _joined((str(i), part) for i, part in enumerate(parts))
    return [plain for plain, _ in parts], types if cls is list else {**types, "": cls.__name__}


def _joined(parts: Iterable[tuple[str, Written]]) -> dict[str, str]:
    return {pointer((key,)) + path: tag for key, (_, tags) in parts for path, tag in tags.items()}


def _fields_of(value: Any, hidden: bool) -> dict[str, Any] | None:
    if isinstance(value, BaseModel):
        held = value.__dict__
        own = {name: held[name] for name in type(value).model_fields if name in held}
        private = value.__pydantic_private__ if hidden else None
        return {**own, **(value.__pydantic_extra__ or {}), **(private or {})}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        named = [field.name for field in dataclasses.fields(value) if field.init or hidden]
        return {name: getattr(value, name, None) for name in named}
    return None


def _class_tag(cls: type[Any]) -> str:
    tag = f"{cls.__module__}:{cls.__qualname__}"
    if _class_of(tag) is cls:
        return tag
    why = "a class that cannot be found again by its name: define it at the top level of a module"
    return f"{NO_TYPE}is a `{class_label(cls)}`, {why}"


def _class_of(tag: str) -> type[Any] | None:
    """Find a model, dataclass or enum among the modules already imported."""
    module, _, path = tag.partition(":")
    # `__dict__`, not `getattr`: a module-level `__getattr__` may import.
    found: Any = sys.modules.get(module)
    for name in path.split("."):
        found = getattr(found, "__dict__", {}).get(name)
    if not isinstance(found, type):
        return None
    cls = cast("type[Any]", found)
    return cls if issubclass(cls, BaseModel | Enum) or dataclasses.is_dataclass(cls) else None


def restore(plain: Any, types: dict[str, str], problems: list[Issue]) -> Any:
    """Put the types back into JSON; where an entry does not fit, add a problem and leave the JSON.

    Raises:
        ParamsInvalid: An entry names a class that is not there.

    Example:
        >>> restore({"ids": [1, 2]}, {"/ids": "tuple"}, [])
        {'ids': (1, 2)}
    """
    whole = {"": copy.deepcopy(plain) if types else plain}
    for path, tag in sorted(types.items(), key=lambda entry: -entry[0].count("/")):
        for holder, key, at in _places(whole, path.split("/")):
            try:
                holder[key] = _revived(tag, holder[key])
            except ImportError as error:
                raise ParamsInvalid([issue(at[1:], str(error), "unknown_type", tag)]) from None
            except (*VALIDATOR_ERRORS, PydanticUserError):
                why, came = f"does not read as a `{tag}`", describe(holder[key])
                problems.append(issue(at[1:], why, "type_entry", tag, came))
    return whole[""]


def validate(adapter: TypeAdapter[Any], data: Any, *, plain: bool) -> Any:
    """Validate by field name; `plain` data is judged as JSON, so that strict models take it."""
    if plain:
        return adapter.validate_json(json.dumps(data), by_alias=False, by_name=True)
    return adapter.validate_python(data, by_alias=False, by_name=True)


def _places(holder: Any, tokens: list[str], at: str = "") -> Iterator[tuple[Any, Any, str]]:
    """Yield what holds each place an entry speaks of, the key there, and its path."""
    keys: list[Any] = []
    token = tokens[0].replace("~1", "/").replace("~0", "~")
    if is_object(holder):
        keys = [token] if token in holder else []
    elif is_array(holder):
        keys = [i for i in range(len(holder)) if token in ("-", str(i))]
    for key in keys:
        path = at + pointer((key,))
        if tokens[1:]:
            yield from _places(holder[key], tokens[1:], path)
        else:
            yield holder, key, path


def _revived(tag: str, value: Any) -> Any:
    if tag == "bytes":
        return value.encode()
    if tag == "base64":
        return base64.b64decode(value, validate=True)
    if tag == "message":
        return messages_from_dict([{"type": value["type"], "data": value}])[0]
    if tag.startswith("datetime["):
        zone = ZoneInfo(tag.removeprefix("datetime[").removesuffix("]"))
        moment = datetime.fromisoformat(value)
        return moment.astimezone(zone) if moment.tzinfo else moment.replace(tzinfo=zone)
    cls = _TYPES.get(tag) or _class_of(tag)
    if cls is None:
        raise ImportError(
            f"is a `{tag}`, which is no model, dataclass or enum among the imported modules: "
            "import it in this process, and define it at the top level of a module"
        )
    if issubclass(cls, Enum):
        try:
            return cls(value)
        except ValueError:
            return cls[value]
    if cls is int and type(value) is float:
        return value
    return validate(_adapter_of(cast("Hashable", cls)), value, plain=not write(value)[1])


@lru_cache(maxsize=256)
def _adapter_of(cls: Hashable) -> TypeAdapter[Any]:
    return TypeAdapter(cast("Any", cls))
