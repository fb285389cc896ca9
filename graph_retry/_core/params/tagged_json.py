"""Write Python values as readable JSON with tags, and restore the values.

A tag names a type that JSON lacks. The tags are a dict `{JSON Pointer: tag}`. The part `-` in a
pointer means every element of a list. Example: `(1, 2)` becomes `[1, 2]` with the tags `{"":
"tuple"}`.
"""

from __future__ import annotations

import base64
import copy
import dataclasses
import json
import math
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import suppress
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, cast
from uuid import UUID
from zoneinfo import ZoneInfo

from langchain_core.messages import BaseMessage, messages_from_dict
from langchain_core.messages.base import TextAccessor
from pydantic import BaseModel, PydanticUserError, RootModel, TypeAdapter
from pydantic.types import Secret, SecretBytes, SecretStr
from pydantic_core import PydanticSerializationError, TzInfo, to_jsonable_python

from graph_retry._core.ground.issues import describe, issue, json_problem
from graph_retry._core.ground.json import is_array, is_object, is_text, pointer, pointer_parts
from graph_retry._core.ground.wording import quoted_with_article
from graph_retry._core.params.fields import class_label, fields_of, hidden_fields, spelled
from graph_retry._core.params.patch import changes
from graph_retry.lossless._ground import as_repr
from graph_retry.records import Issue

Tagged = tuple[Any, dict[str, str]]

VALIDATOR_ERRORS = (TypeError, ValueError, LookupError, ArithmeticError, AttributeError)
"""Exceptions of a validator or a `__post_init__`, some of which pydantic does not wrap."""

TYPES: dict[str, type] = {
    **{kind.__name__: kind for kind in (int, float, tuple, set, frozenset)},
    **{kind.__name__.lower(): kind for kind in (datetime, date, time, timedelta, UUID, Decimal)},
    "path": type(Path()),
}
_TAGS = {kind: tag for tag, kind in TYPES.items()}
NO_BASE64 = "no_base64"
"""The code of an issue about a text with the tag `base64` that is not base64."""

_MAX_DEPTH = 100
_exact_type: Callable[[object], type[Any]] = type


class Writer(NamedTuple):
    """Writes values as JSON and tags, without changing the values.

    owner: The words by which errors name the value.
    typed: Whether a declared type will rebuild the value. If so, the value may contain models,
        dataclasses and enums, which get no tag.
    complete: Whether to write also the default fields of LangChain messages, private attributes,
        and the names of classes (as tags). This is for comparing values.
    given: Whether to write only the fields of models that were set explicitly.

    Example:
        >>> Writer("params").write({"ids": (1, 2)})
        ({'ids': [1, 2]}, {'/ids': 'tuple'})
    """

    owner: str
    typed: bool = False
    complete: bool = False
    given: bool = False

    def write(self, value: Any, path: tuple[str, ...] = ()) -> Tagged:
        """Return a value as JSON, and its tags. `path` is the place of the value, for errors.

        Raises:
            TypeError: If a part cannot be stored.
            ValueError: If a part is a secret, is text that no checkpointer keeps, or is nested too
                deeply.
        """
        if isinstance(value, TextAccessor):  # The `text` of a message, which is a kind of `str`.
            value = str(value)
        cls = _exact_type(value)
        if len(path) > _MAX_DEPTH:
            why = f"nested deeper than {_MAX_DEPTH} levels, or contains itself: make it a flat tree"
            raise ValueError(f"a part of {self.owner} is {why}")
        if cls is dict:
            return self._object(value, path)
        if cls in (list, tuple, set, frozenset):
            return self._array(value, cls, path)
        if value is None or cls in (bool, str, bytes) or cls in _TAGS:
            return self._scalar(value, cls, path)
        if isinstance(value, SecretStr | SecretBytes | Secret):
            why = "and graph state is no place for a secret: capture it in the function instead"
            self._refuse(path, f"is {quoted_with_article(cls.__name__)}, {why}", ValueError)
        langchains = cls.__module__.startswith("langchain_core.")
        if isinstance(value, BaseMessage) and langchains and not self.complete:
            return self._message(value, path)
        plain, tags = self._instance(value, cls, path)
        return plain, {
            **tags,
            "": f"{cls.__module__}:{cls.__qualname__}",
        } if self.complete else tags

    def _scalar(self, value: Any, cls: type[Any], path: tuple[str, ...]) -> Tagged:
        if cls is str:
            if not is_text(value):
                why = "holds a lone surrogate, which no checkpointer keeps: clean it"
                self._refuse(path, why, ValueError)
            return value, {}
        if cls is bytes:
            with suppress(UnicodeDecodeError):
                return value.decode(), {"": "bytes"}
            return base64.b64encode(value).decode(), {"": "base64"}
        # Checkpointers store msgpack, whose integers have at most 64 bits.
        narrow = cls is int and -(2**63) <= value < 2**64
        if value is None or cls is bool or narrow or (cls is float and math.isfinite(value)):
            return value, {}
        if cls is int or cls is float:
            return json.dumps(value), {"": _TAGS[cls]}
        tag, zone = _TAGS[cls], getattr(value, "tzinfo", None)
        if cls is datetime and isinstance(zone, ZoneInfo) and zone.key:
            tag = f"datetime[{zone.key}]"
        elif getattr(value, "fold", 0) or not isinstance(zone, timezone | TzInfo | None):
            why = (
                f"has the time zone {as_repr(zone)}, which its text does not keep: use a `ZoneInfo`"
            )
            self._refuse(path, why, ValueError)
        return to_jsonable_python(value), {"": tag}

    def _object(self, value: dict[Any, Any], path: tuple[str, ...]) -> Tagged:
        own: dict[str, str] = {}
        if not all(type(key) is str for key in value):
            if not self.typed:
                wrong = next(key for key in value if type(key) is not str)
                why = f"has keys that are not `str`, such as {as_repr(wrong, 80)}: use str keys"
                self._refuse(path, why, TypeError)
            if self.complete:
                own[""] = f"keys: {', '.join(class_label(_exact_type(key)) for key in value)}"
            value = {str(to_jsonable_python(k, fallback=repr)): item for k, item in value.items()}
        if not is_text("".join(value)):
            for key in value:
                self._scalar(key, str, (*path, key))
        parts = {key: self.write(item, (*path, key)) for key, item in value.items()}
        return {key: plain for key, (plain, _) in parts.items()}, _joined(parts.items()) | own

    def _array(self, value: Iterable[Any], cls: type[Any], path: tuple[str, ...]) -> Tagged:
        parts = [self.write(item, (*path, str(i))) for i, item in enumerate(value)]
        if cls is set or cls is frozenset:
            parts.sort(key=lambda part: (json.dumps(part[0]), part[1].get("", "")))
        if all(tags == parts[0][1] for _, tags in parts):
            tags = _joined([("-", part) for part in parts[:1]])
        else:
            tags = _joined((str(i), part) for i, part in enumerate(parts))
        return [plain for plain, _ in parts], tags if cls is list else {**tags, "": cls.__name__}

    def _message(self, message: BaseMessage, path: tuple[str, ...]) -> Tagged:
        default = message.__class__.model_construct().__dict__
        fields = {
            name: value
            for name, value in fields_of(message).items()
            if name == "type" or name not in default or default[name] != value
        }
        plain, tags = self._object(fields, path)
        return plain, {**tags, "": "message"}

    def _instance(self, value: Any, cls: type[Any], path: tuple[str, ...]) -> Tagged:
        if not self.typed:
            why = (
                f"is {quoted_with_article(class_label(cls))}, which cannot be saved: annotate "
                "the function's parameter with its type (a retry node takes `params_type`), pass "
                "plain values, or capture it in the function"
            )
            self._refuse(path, why, TypeError)
        if isinstance(value, Enum):
            return self.write(value.value, path)
        if isinstance(value, RootModel):
            return self.write(cast("Any", value).root, path)
        if isinstance(value, BaseModel) or dataclasses.is_dataclass(value):
            fields = dict(fields_of(value))
            if self.given and isinstance(value, BaseModel):
                fields = {name: fields[name] for name in fields if name in value.model_fields_set}
            if self.complete:
                fields.update(hidden_fields(value))
            return self._object(fields, path)
        # Pydantic would consume an iterator by writing it.
        if not isinstance(value, Iterator):
            with suppress(PydanticSerializationError, PydanticUserError, ValueError, TypeError):
                adapter = adapter_of(cast("Hashable", cls))  # The class may be a URL, for example.
                plain = adapter.dump_python(value, mode="json", warnings=False)
                return self.write(plain, path)[0], {}
        if self.complete:
            return None, {}
        why = (
            f"is {quoted_with_article(class_label(cls))}, which cannot be stored in graph state: "
            "capture it in the function instead, or pass its settings as plain values"
        )
        return self._refuse(path, why, TypeError)

    def _refuse(self, path: tuple[str, ...], why: str, error: type[Exception]) -> NoReturn:
        raise error(f"{part_of(pointer(path), self.owner)} {why}")


def differences(old: Any, new: Any) -> list[tuple[str, Any, Any]]:
    """List the differences of two values as (path, old, new). Values of different types differ.

    Objects without a JSON form, such as clients, count as equal if their classes are equal.

    Example:
        >>> differences({"ids": (1, 2)}, {"ids": [1, 2]})
        [('/ids', 'tuple', None)]
    """
    writer = Writer("the params", typed=True, complete=True)
    (before, tags), (after, others) = writer.write(old), writer.write(new)
    retyped = [path for path in {**tags, **others} if tags.get(path) != others.get(path)]
    return [*changes(before, after), *((p, tags.get(p), others.get(p)) for p in retyped)]


def part_of(path: str, owner: str) -> str:
    """Return words that name a part of the params in an error, such as "`params.ids[0]`"."""
    return f"`{spelled(path)}`{'' if owner == 'params' else f' in {owner}'}"


def _joined(parts: Iterable[tuple[str, Tagged]]) -> dict[str, str]:
    return {pointer((key,)) + path: tag for key, (_, tags) in parts for path, tag in tags.items()}


def restore(
    plain: Any,
    tags: dict[str, str],
    problems: list[Issue],
    type_of: Callable[[str], type[Any] | None] = TYPES.get,
) -> Any:
    """Return a copy of JSON in which the tagged values have their types again.

    A value that does not fit its tag stays as it is, and an issue is added to `problems`.

    Example:
        >>> restore({"ids": [1, 2]}, {"/ids": "tuple"}, [])
        {'ids': (1, 2)}
    """
    whole = {"": copy.deepcopy(plain) if tags else plain}
    # Restore inner values first, because a restored outer value (such as a set) has no JSON path.
    for path, tag in sorted(tags.items(), key=lambda entry: -entry[0].count("/")):
        for holder, key, at in _places(whole, ["", *pointer_parts(path)]):
            try:
                holder[key] = _revived(tag, holder[key], type_of)
            except (*VALIDATOR_ERRORS, PydanticUserError):
                why, came = f"does not read as {quoted_with_article(tag)}", describe(holder[key])
                code = "type_tag"
                if tag == "base64" and isinstance(holder[key], str):
                    code, why = NO_BASE64, "is not base64, as which the bytes are shown"
                problems.append(issue(at[1:], why, code, tag, came))
    return whole[""]


def _places(holder: Any, tokens: list[str], at: str = "") -> Iterator[tuple[Any, Any, str]]:
    """Yield the parts that a tag's pointer names, as (container, key in the container, path)."""
    keys: list[Any] = []
    if is_object(holder):
        keys = [tokens[0]] if tokens[0] in holder else []
    elif is_array(holder):
        keys = [i for i in range(len(holder)) if tokens[0] in ("-", str(i))]
    for key in keys:
        path = at + pointer((key,))
        if tokens[1:]:
            yield from _places(holder[key], tokens[1:], path)
        else:
            yield holder, key, path


def _revived(tag: str, value: Any, type_of: Callable[[str], type[Any] | None]) -> Any:
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
    if tag == "int" and type(value) is float:  # A reviewer may have edited the number.
        return value
    cls = type_of(tag)
    if cls is None:
        raise LookupError(tag)
    return validate(adapter_of(cast("Hashable", cls)), value, plain=not json_problem(value))


def validate(adapter: TypeAdapter[Any], data: Any, *, plain: bool) -> Any:
    """Validate data by the names of its fields.

    With `plain`, the data is validated as JSON text. Only then do strict models accept the JSON
    form of a type, such as a date as a text.
    """
    if plain:
        return adapter.validate_json(json.dumps(data), by_alias=False, by_name=True)
    return adapter.validate_python(data, by_alias=False, by_name=True)


@lru_cache(maxsize=256)
def adapter_of(cls: Hashable) -> TypeAdapter[Any]:
    """Return pydantic's validator of a class, from a cache, because building one is slow."""
    return TypeAdapter(cast("Any", cls))
