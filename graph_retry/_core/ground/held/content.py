"""Digest Python values and code by content: what is equal has one digest in each process."""

from __future__ import annotations

import hashlib
import inspect
import io
import os
import re
import sys
import types
from abc import ABC
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import cached_property
from mmap import mmap
from pathlib import Path, PurePath
from queue import Queue
from typing import Any, Generic, Protocol, cast
from uuid import UUID
from zoneinfo import ZoneInfo

from langchain_core.callbacks import BaseCallbackHandler, BaseCallbackManager
from langchain_core.language_models import BaseLanguageModel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore
from pydantic import BaseModel, Secret, SecretBytes, SecretStr

from graph_retry._core.ground.functions.calling import is_library
from graph_retry._core.ground.held.code import code_digest

_SPELLED: frozenset[type[Any]] = frozenset({
    type(None), bool, int, float, complex, str, bytes, bytearray, date, datetime, time, timedelta,
    timezone, ZoneInfo, Decimal, Fraction, UUID, range, slice, re.Pattern, type(...),
    type(Path()), type(PurePath()),
})  # fmt: skip
"""Types whose `repr` says all."""

_MEANS = (
    BaseLanguageModel, BaseStore, BaseCheckpointSaver, Runtime, BaseCallbackHandler,
    BaseCallbackManager, SecretStr, SecretBytes, Secret,
)  # fmt: skip
"""Classes of objects by which a call is made. They may be exchanged while a call waits."""

_CONTAINERS = (list, tuple, dict, set, frozenset, deque)
_FLAT = frozenset({type(None), bool, int, float, str, bytes})
_MANY, _MOST, _DEEPEST = 5_000, 50_000, 50
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: the class was made by Python code.


class_of: Callable[[object], type[Any]] = type


class OpaqueError(Exception):
    """A value has no content that can be read."""


class TooLargeError(OpaqueError):
    """A value has more content than is read."""


def is_named(value: Any) -> bool:
    """Return whether a function is found by its module and name, and holds no values."""
    owner = getattr(value, "__self__", None)
    is_free = owner is None or inspect.ismodule(owner) or isinstance(owner, type)
    named = "<" not in getattr(value, "__qualname__", "<")
    return is_free and named and getattr(value, "__closure__", None) is None


def _file(value: Any) -> Any:
    """Return the identity of a file, and its position; a file that is written has no position."""
    place = os.lseek(value.fileno(), 0, os.SEEK_CUR) if value.readable() else None
    return value.name, value.mode, place


_READ_AS: dict[type[Any], Callable[[Any], Any]] = {
    **dict.fromkeys([io.TextIOWrapper, io.BufferedReader, io.BufferedRandom, io.FileIO], _file),
    re.Match: lambda value: (value.re, value.string, value.span()),
    types.MappingProxyType: dict,
    memoryview: lambda value: (value.format, value.shape, value.tobytes()),
    mmap: lambda value: value[:],
    Queue: lambda value: value.queue,
}
"""What classes of Python that cannot be copied consist of. Nothing is changed or used up."""


def copied(value: Any) -> Any:
    """Return the parts from which Python copies an object.

    Raises:
        OpaqueError: If it cannot be copied.
    """
    try:
        if (read := _READ_AS.get(class_of(value))) is not None:
            return read(value)
        made = value.__reduce_ex__(4)
    except Exception as error:  # The class may raise anything.
        raise OpaqueError from error
    if isinstance(made, str):
        raise OpaqueError
    # After a function, its arguments and a state, there may be iterators over entries.
    return [*made[:3], *(None if each is None else [*each] for each in made[3:5])]


class Content:
    """A digest of values that are added one after the other.

    Args:
        salt: Keeps digests of short values from being guessed.
        as_copied: Whether objects whose class says how they are copied are read as copies are made.
    """

    def __init__(self, salt: str, *, as_copied: bool = False) -> None:
        self._as_copied = as_copied
        self._hash = hashlib.blake2b(digest_size=6, key=salt.encode(errors="replace")[:64])
        self._around: list[int] = []
        self._count = 0

    def digest(self) -> str:
        """Return the digest of what was added."""
        return self._hash.hexdigest()

    def add(self, value: Any) -> None:
        """Add a value.

        Raises:
            OpaqueError: If a part has no content that can be read, or the whole is too large.
        """
        self._count += 1
        if id(value) in self._around:
            raise OpaqueError
        if self._count > _MOST or len(self._around) > _DEEPEST:
            raise TooLargeError
        kind: Any = class_of(value)
        if isinstance(value, type | types.ModuleType) or inspect.isroutine(value):
            self._reference(value)
        elif isinstance(value, Enum):
            self._text(kind, value.name)
        elif kind in _SPELLED:
            self._text(kind, hex(value) if kind is int else repr(value))
        else:
            self._around.append(id(value))
            self._text(kind, "(")
            if is_local(kind):
                self.add(kind)
            base: Any = next((each for each in kind.__mro__ if each in _SPELLED), None)
            if base is not None:
                self._text(base, hex(value) if base is int else base.__repr__(value))
            elif isinstance(value, _CONTAINERS):
                self._container(value)
            elif class_of(value) in _READ_AS or self._is_copied(kind):
                self.add(copied(value))
            else:
                self._container(dict(attributes_of(value)))
            if base is not None or isinstance(value, _CONTAINERS):
                self._container(_dict_of(value))
            self._text(kind, ")")
            self._around.pop()

    def _is_copied(self, kind: type[Any]) -> bool:
        """Return whether an object is read as it is copied: one of C, or one that says how."""
        if kind is object or issubclass(kind, _MEANS):
            return False
        if self._as_copied and not is_own(kind):
            names = ("__reduce__", "__reduce_ex__", "__getstate__")
            return any(getattr(kind, name) is not getattr(object, name, None) for name in names)
        return _is_hidden(kind)

    def _text(self, kind: type[Any], text: str) -> None:
        told = f"{kind.__module__}:{kind.__qualname__}:{len(text)}:{text}"
        self._hash.update(told.encode(errors="surrogatepass"))

    def _reference(self, value: Any) -> None:
        if not (isinstance(value, type | types.ModuleType) or is_named(value)):
            raise OpaqueError
        if isinstance(value, type) and is_local(value):
            self._members(value)
        module, kind = getattr(value, "__module__", ""), class_of(value)
        self._text(kind, f"{module}:{getattr(value, '__qualname__', value.__name__)}")

    def _members(self, kind: type[Any]) -> None:
        """Add what a class holds that code has made in a function, perhaps several times."""
        self._around.append(id(kind))
        for name, made in members_of(kind):
            if inspect.isfunction(made):
                self._text(kind, f"{name} {code_digest(made.__code__)}")
                for cell_of, cell in zip(
                    made.__code__.co_freevars, made.__closure__ or (), strict=True
                ):
                    if cell_of != "__class__":
                        self.add(cell.cell_contents)
            else:
                self._text(kind, name)
                self.add(made)
        self._around.pop()

    def _container(self, value: Any) -> None:
        # A copy, because another thread may change the container meanwhile.
        if isinstance(value, dict):
            known: dict[Any, Any] = dict(cast("Any", value))
            keys = [key for _, key in self._sorted(known)]
            if _is_flat(keys):
                self._container(keys)
                self._container([known[key] for key in keys])
                return
            for key in keys:
                self.add(key)
                self.add(known[key])
        elif isinstance(value, set | frozenset):
            for _, item in self._sorted([*cast("set[Any]", value)]):
                self.add(item)
        else:
            items = [*cast("list[Any]", value)]
            if _is_flat(items):
                self._text(list, repr(items))
                return
            for item in items:
                self.add(item)

    def _sorted(self, items: Any) -> list[tuple[str, Any]]:
        """Sort items by their own content, because the order of a set differs between processes."""
        is_flat = _is_flat(items)

        def place(item: Any) -> str:
            if type(item) is str or is_flat:
                return str(item)
            alone = Content("")
            alone.add(item)
            return alone.digest()

        return sorted(((place(item), item) for item in items), key=lambda pair: pair[0])


def _is_flat(items: Any) -> bool:
    """Return whether items are so many that they are read at once, and have a `repr` that tells."""
    return len(items) > _MANY and _FLAT.issuperset(map(type, items))


def members_of(kind: type[Any]) -> Iterator[tuple[str, Any]]:
    """Yield the functions of a class, and the values that it has itself."""
    for name, member in sorted({**vars(kind)}.items()):
        made = inspect.unwrap(getattr(member, "__func__", getattr(member, "fget", member)))
        is_value = not (name.startswith("_") or inspect.isdatadescriptor(member))
        if is_value or inspect.isfunction(made):
            yield name, made if inspect.isfunction(made) else member


def is_local(kind: type[Any]) -> bool:
    """Return whether a class is not found by its name, as one that a function has made."""
    if not kind.__flags__ & _HEAP_TYPE:
        return False
    found: Any = sys.modules.get(kind.__module__)
    for name in kind.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is not kind


def _is_of_python(kind: type[Any]) -> bool:
    """Return whether a class keeps all of its state in attributes. One that C made may not."""
    has_attributes = kind.__dictoffset__ != 0 or "__slots__" in vars(kind)
    return bool(kind.__flags__ & _HEAP_TYPE) and has_attributes


def _is_hidden(kind: type[Any]) -> bool:
    """Return whether objects of a class may have content that their attributes do not show."""
    return any(base is not object and not _is_of_python(base) for base in kind.__mro__)


def items_of(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the entries of a list, tuple, `deque`, dict or set, and its attributes, by place."""
    if isinstance(value, dict):
        for key, item in {**cast("Any", value)}.items():
            yield f"[{key!r}]", item
    elif isinstance(value, list | tuple | deque):
        for number, item in enumerate([*cast("list[Any]", value)]):
            yield f"[{number}]", item
    elif isinstance(value, set):
        flat = [item for item in [*cast("Any", value)] if type(item) in _FLAT]
        yield from ((f"[{item!r}]", item) for item in flat)
    else:
        return
    for name, item in _dict_of(value).items():
        yield f".{name}", item


def is_stream(value: Any) -> bool:
    """Return whether a value yields data that it thereby uses up."""
    kind = class_of(value)
    yields = any(hasattr(kind, name) for name in ("__next__", "__anext__", "__await__"))
    return yields and not (isinstance(value, io.IOBase) and not _is_read(value))


def _is_read(file: io.IOBase) -> bool:
    try:
        return file.readable()
    except ValueError:  # It is closed.
        return False


def is_means(value: Any) -> bool:
    """Return whether a value is known to be that by which a call is made, as a chat model is."""
    return isinstance(value, _MEANS)


def _dict_of(value: Any) -> dict[str, Any]:
    """Return a copy of an object's own attributes, without calling what its class may define."""
    try:
        return {**object.__getattribute__(value, "__dict__")}
    except AttributeError:
        return {}


def attributes_of(value: Any) -> Mapping[str, Any]:
    """Return the attributes of an object by name, without cached ones.

    Raises:
        OpaqueError: If the object may have content that its attributes do not show.
    """
    kind = class_of(value)
    if _is_hidden(kind) or kind is object or isinstance(value, _MEANS):
        raise OpaqueError
    if isinstance(value, BaseModel):
        more = (value.__pydantic_extra__, value.__pydantic_private__)
        return {
            name: item for each in (vars(value), *more) for name, item in {**(each or {})}.items()
        }
    found: dict[str, Any] = {}
    for base in kind.__mro__:
        slots = vars(base).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            member = vars(base).get(name, vars(base).get(f"_{base.__name__.lstrip('_')}{name}"))
            with suppress(AttributeError):  # The slot is empty.
                if inspect.ismemberdescriptor(member):
                    found[name] = member.__get__(value)
    found.update(_dict_of(value))
    return {
        name: item
        for name, item in found.items()
        if not isinstance(inspect.getattr_static(kind, name, None), cached_property)
    }


def shown_of(value: Any) -> Mapping[str, Any]:
    """Return the readable content of an object, which may have more."""
    return {name: item for name, item in _dict_of(value).items() if not _is_nothing(item)}


def _is_nothing(item: Any) -> bool:
    return item is None or (type(item) in _CONTAINERS and not item)


_STATELESS: tuple[Any, ...] = (object, ABC, Generic, Protocol, BaseModel)
"""Classes of libraries whose subclasses declare all of their attributes themselves."""


def is_own(kind: type[Any]) -> bool:
    """Return whether the user's own code defines all attributes of a class."""
    return not any(
        base not in _STATELESS
        and is_library(getattr(sys.modules.get(base.__module__), "__file__", None) or "")
        for base in kind.__mro__
    )
