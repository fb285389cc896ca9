"""Compute digests of Python values. Equal content has an equal digest in each process."""

from __future__ import annotations

import hashlib
import inspect
import io
import os
import re
import sqlite3
import struct
import sys
import types
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from contextvars import ContextVar
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import cached_property
from itertools import count
from mmap import mmap
from pathlib import Path, PurePath
from queue import Queue
from ssl import SSLContext
from typing import Any, cast
from uuid import UUID
from zoneinfo import ZoneInfo

from langchain_core.callbacks import BaseCallbackHandler, BaseCallbackManager
from langchain_core.language_models import BaseLanguageModel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore
from pydantic import BaseModel, Secret, SecretBytes, SecretStr

from graph_retry._core.ground.held.classes import (
    class_of,
    is_foreign,
    is_hidden,
    is_local,
    is_named,
    is_of,
    is_of_library,
    is_of_python,
    is_own,
    members_of,
)
from graph_retry._core.ground.held.code import code_digest

_SPELLED: frozenset[type[Any]] = frozenset({
    type(None), bool, int, float, complex, str, bytes, bytearray, date, datetime, time, timedelta,
    timezone, ZoneInfo, Decimal, Fraction, UUID, range, slice, re.Pattern, type(...),
    type(Path()), type(PurePath()),
})  # fmt: skip
"""Types whose `repr` shows the whole value."""

_MEANS = (
    BaseLanguageModel, BaseStore, BaseCheckpointSaver, Runtime, BaseCallbackHandler,
    BaseCallbackManager, SecretStr, SecretBytes, Secret, SSLContext, ContextVar,
)  # fmt: skip
"""Classes of objects that only help to make a call, and may be exchanged while a call waits."""

CONTAINERS, _NAMED = (list, tuple, dict, set, frozenset, deque), (type, types.ModuleType)
_FLAT = frozenset({type(None), bool, int, float, str, bytes})
_MANY, _MOST, _DEEPEST = 5_000, 50_000, 50
_MOST_PAGES = 1_000


class OpaqueError(Exception):
    """A value has no content that can be read."""


class TooLargeError(OpaqueError):
    """A value has more content than is read."""


def _file(value: Any) -> Any:
    """Return the name, mode and position of a file. The position of a write-only file is None."""
    place = os.lseek(value.fileno(), 0, os.SEEK_CUR) if value.readable() else None
    return value.name, value.mode, place


def _databases(value: sqlite3.Connection) -> list[tuple[str, str | bytes]]:
    """Return (name, path) of each database of a connection; (name, content) if it is in memory."""
    cursor = value.cursor()
    cursor.row_factory = None
    found: list[tuple[str, str | bytes]] = []
    for _, name, path in cursor.execute("PRAGMA database_list").fetchall():
        pages = cursor.execute(f'PRAGMA "{name}".page_count').fetchone()[0]
        if not path and pages > _MOST_PAGES:
            raise TooLargeError
        found.append((name, path or (value.serialize(name=name) if pages else b"")))
    return found


READ_AS: dict[type[Any], Callable[[Any], Any]] = {
    **dict.fromkeys([io.TextIOWrapper, io.BufferedReader, io.BufferedRandom, io.FileIO], _file),
    re.Match: lambda value: (value.re, value.string, value.span()),
    types.MappingProxyType: dict,
    memoryview: lambda value: (value.format, value.shape, value.tobytes()),
    mmap: lambda value: value[:],
    Queue: lambda value: value.queue,
    weakref.ReferenceType: lambda value: value(),
    struct.Struct: lambda value: value.format,
    sqlite3.Connection: _databases,
    count: repr,
}
"""How to read objects of Python that cannot be copied. Reading changes and uses up nothing."""


def says_its_copy(kind: type[Any]) -> bool:
    """Return whether a library's class defines how its objects are copied, with all content."""
    names = ("__reduce__", "__reduce_ex__", "__getstate__")
    return not is_own(kind) and any(getattr(kind, n) is not getattr(object, n) for n in names)


def copied(value: Any) -> Any:
    """Return the data from which Python makes a copy of an object.

    Raises:
        OpaqueError: If the object cannot be copied.
    """
    kind = class_of(value)
    if kind is object or is_means(value):
        raise OpaqueError
    try:
        for base in kind.__mro__:
            if (read := READ_AS.get(base)) is not None:
                return read(value)
        made = value.__reduce_ex__(4)
    except Exception as error:  # The class may raise anything.
        raise OpaqueError from error
    if isinstance(made, str):
        raise OpaqueError
    # After a function, its arguments and a state, there may be iterators over entries.
    return [*made[:3], *(None if each is None else [*each] for each in made[3:5])]


class Content:
    """Computes one digest of all values that are added, in their order.

    `salt` is a key for the digest, so that nobody can guess short values. More than `most` values
    are refused. A long text counts as one more value for each 1,000 characters.
    """

    def __init__(self, salt: str, most: int = _MOST) -> None:
        self._hash = hashlib.blake2b(digest_size=6, key=salt.encode(errors="replace")[:64])
        self._around: list[int] = []
        self._foreign, self._count, self._most = 0, 0, most

    def digest(self) -> str:
        """Return the digest of all values that were added."""
        return self._hash.hexdigest()

    def add(self, value: Any) -> None:
        """Add a value to the digest.

        Raises:
            OpaqueError: If a part of the value has no readable content, or the value is too large.
        """
        self._count += 1
        if id(value) in self._around:
            raise OpaqueError
        if self._count > self._most or len(self._around) > _DEEPEST:
            raise TooLargeError
        kind: Any = class_of(value)
        if kind in _SPELLED:
            self._text(kind, hex(value) if kind is int else repr(value))
        elif kind not in CONTAINERS and (isinstance(value, _NAMED) or inspect.isroutine(value)):
            self._reference(value)
        elif isinstance(value, Enum):
            self._text(kind, value.name)
        elif not isinstance(value, CONTAINERS) and is_lock(value):
            if self._foreign:  # The state that another library guards is not read.
                raise OpaqueError
            self._text(kind, "")
        else:
            self._object(kind, value)

    def _object(self, kind: Any, value: Any) -> None:
        """Add a container, or an object: its attributes, or the data of its copy."""
        foreign = is_foreign(kind)
        self._foreign += foreign
        self._around.append(id(value))
        self._text(kind, "(")
        if is_local(kind):
            self.add(kind)
        base: Any = next((each for each in kind.__mro__ if each in _SPELLED), None)
        if base is not None:
            self._text(base, hex(value) if base is int else base.__repr__(value))
        elif isinstance(value, CONTAINERS):
            self._container(value)
        elif is_hidden(kind) or not READ_AS.keys().isdisjoint(kind.__mro__):
            self.add(copied(value))
        else:
            self._container(dict(attributes_of(value)))
        if base is not None or isinstance(value, CONTAINERS):
            self._container(_dict_of(value))
        self._text(kind, ")")
        self._around.pop()
        self._foreign -= foreign

    def _text(self, kind: type[Any], text: str) -> None:
        self._count += len(text) // 1_000
        told = f"{kind.__module__}:{kind.__qualname__}:{len(text)}:{text}"
        self._hash.update(told.encode(errors="surrogatepass"))

    def _reference(self, value: Any) -> None:
        if isinstance(value, types.ModuleType):
            is_found = sys.modules.get(value.__name__) is value
        else:
            is_found = isinstance(value, type) or is_named(value)
        if not is_found:
            raise OpaqueError
        if isinstance(value, type) and is_local(value):
            self._members(value)
        module, kind = getattr(value, "__module__", ""), class_of(value)
        self._text(kind, f"{module}:{getattr(value, '__qualname__', value.__name__)}")

    def _members(self, kind: type[Any]) -> None:
        """Add the members of a local class, because several classes may have its name."""
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
        is_flat, tuples = _is_flat(items), filter(lambda each: type(each) is tuple, items)
        least = len(items) + sum(size for size in map(len, tuples) if size <= _MANY)
        if not is_flat and self._count + least > self._most:  # Sorting first would take longer.
            raise TooLargeError

        def place(item: Any) -> str:
            if type(item) is str or is_flat:
                return str(item)
            alone = Content("", self._most)
            alone._around = self._around
            alone.add(item)
            return alone.digest()

        return sorted(((place(item), item) for item in items), key=lambda pair: pair[0])


def _is_flat(items: Any) -> bool:
    """Return whether items are many and plain, so that one `repr` of all of them is enough."""
    return len(items) > _MANY and _FLAT.issuperset(map(type, items))


def inside_of(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield (place, item) for each item of a value that code can exchange. Hidden values have none.

    The items are the members of a local class, the entries and attributes of a container, the rest
    of an iterator of C, or the attributes of any other object. A place is `[0]`, `.name` or `:0`.
    """
    if isinstance(value, type):
        yield from ((f".{name}", item) for name, item in members_of(value) if is_local(value))
        return
    if isinstance(value, dict):
        yield from ((f"[{key!r}]", item) for key, item in {**cast("Any", value)}.items())
    elif isinstance(value, list | tuple | deque):
        yield from ((f"[{number}]", item) for number, item in enumerate([*cast("Any", value)]))
    elif isinstance(value, set):
        flat = [item for item in [*cast("Any", value)] if type(item) in _FLAT]
        yield from ((f"[{item!r}]", item) for item in flat)
    with suppress(OpaqueError):
        if isinstance(value, CONTAINERS):
            found: Mapping[str, Any] = _dict_of(value)
        elif is_stream(value) and is_hidden(class_of(value)):
            pieces: list[Any] = []
            for item in copied(value):
                pieces += item if isinstance(item, tuple) else (item,)
            yield from ((f":{number}", item) for number, item in enumerate(pieces))
            return
        else:
            found = attributes_of(value)
            if is_local(kind := class_of(value)):
                yield ".__class__", kind
        yield from ((f".{name}", item) for name, item in found.items())


_YIELDING = frozenset({"__next__", "__anext__", "__await__"})


def is_stream(value: Any) -> bool:
    """Return whether reading a value uses it up, as reading an iterator does."""
    kind = class_of(value)
    yields = any(not _YIELDING.isdisjoint(vars(base)) for base in kind.__mro__)
    return yields and not (isinstance(value, io.IOBase) and (value.closed or not value.readable()))


def is_unknown(value: Any) -> bool:
    """Return whether a value, such as a stream, may have data that cannot be read."""
    kind = class_of(value)
    is_known = is_means(value) or isinstance(value, (*CONTAINERS, io.IOBase)) or callable(value)
    if is_known or not any(is_hidden(base) and is_of_python(base) for base in kind.__mro__):
        return is_stream(value)
    return kind is not object


def is_lock(value: Any) -> bool:
    """Return whether a value is a lock, which has no data of a call."""
    kind, held = class_of(value), _dict_of(value)
    for name in ("acquire", "release"):
        if name not in held and not any(name in vars(base) for base in kind.__mro__):
            return False
    return (is_hidden(kind) or is_of_library(kind)) and all(
        type(item) in _FLAT or isinstance(item, CONTAINERS) or callable(item) or is_lock(item)
        for item in held.values()
    )


def is_means(value: Any) -> bool:
    """Return whether a value is an object that only helps to make calls, such as a chat model."""
    return any(is_of(kind, value) for kind in _MEANS)


def _dict_of(value: Any) -> dict[str, Any]:
    """Return a copy of an object's `__dict__`, without running code of its class."""
    try:
        return {**object.__getattribute__(value, "__dict__")}
    except AttributeError:
        return {}


def attributes_of(value: Any) -> Mapping[str, Any]:
    """Return the attributes of an object by name. The value of a `cached_property` is left out.

    Raises:
        OpaqueError: If the object may have content that its attributes do not show.
    """
    kind = class_of(value)
    if is_hidden(kind) or kind is object or is_means(value) or is_lock(value):
        raise OpaqueError
    if is_of(BaseModel, value):
        model: BaseModel = value
        every = (vars(model), model.__pydantic_extra__, model.__pydantic_private__)
        return {name: item for each in every for name, item in {**(each or {})}.items()}
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
    """Return the non-empty attributes in an object's `__dict__`. C code may hold more content."""
    return {
        name: item
        for name, item in _dict_of(value).items()
        if not (item is None or (type(item) in CONTAINERS and not item))
    }
