"""Split a function into parts: the values that it holds, each with a digest of its content.

A function holds the cells of its closure, its defaults and its attributes. A `partial` also holds
its arguments, and a method holds the attributes of its object. If a held value is itself a
function, the values of this function are parts as well. A value without readable content has no
digest. Such a value counts as an object that only helps to make a call, such as a client, unless
reading uses it up.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import types
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import date, time
from enum import Enum
from typing import Any, NamedTuple, cast
from uuid import UUID, uuid4

from langchain_core.runnables import Runnable

from graph_retry._core.ground.held.classes import (
    class_of,
    is_foreign,
    is_local,
    is_named,
    is_own,
)
from graph_retry._core.ground.held.code import PYTHON, code_digest, file_digest
from graph_retry._core.ground.held.content import (
    CONTAINERS,
    READ_AS,
    Content,
    OpaqueError,
    TooLargeError,
    copied,
    inside_of,
    is_means,
    is_stream,
    is_unknown,
    says_its_copy,
    shown_of,
)

_MOST_ITEMS, _DEEPEST = 100, 6
_SHOWN = 500
"""The most values to read from a client's attribute, which may hold a whole storage."""
_FIXED = (str, bytes, tuple, frozenset, type, Enum, date, time, UUID)
"""Types whose values no program changes in place, so that a different value is different data."""


class Part(NamedTuple):
    """One value that a function holds.

    digest: A digest of the content; None if the content cannot be read.
    state_of: The place of the function or object that owns the value, if the value is a state of
        the owner. A state is a value that a program may change, such as a list, a number or a flag.
    piece_of: The name of the part that contains this part; empty for a part of the function itself.
    """

    digest: str | None
    value: Any
    state_of: str = ""
    piece_of: str = ""


class Reading:
    """The code of a function and the values that it holds, at one moment.

    code: A digest of the code of the function, and of the functions that it holds.
    source: A digest of the files with this code; empty if a file is not found.
    parts: The values that the function holds, and the pieces of values that may change in place.
    objects: A token for each function and object that owns parts, by place (see `token_of`).
    shown: Digests of the attributes of values that have no digest, such as a client's model name.
    uncertain: The names of parts whose content cannot be read for certain.
    places: The names of all values that were looked at.

    If there is an earlier reading `before`, only values with a digest in `before` are read again.
    """

    def __init__(self, function: Any, salt: str, before: Reading | None = None) -> None:
        self.function, self.salt, self._before = function, salt, before
        self.parts: dict[str, Part] = {}
        self.objects: dict[str, str] = {}
        self.shown: dict[str, str] = {}
        self.uncertain: set[str] = set()
        self.places: set[str] = set()
        self._codes, self._files = [PYTHON], set[str]()
        self._seen: set[int] = set()
        self._depth = 0
        self._function(function, "")
        if before is not None:
            return
        files = [file_digest(path) for path in sorted(self._files)]
        self.code = self._digest(self._codes)
        self.source = self._digest(files) if files and all(files) else ""

    def _digest(self, value: Any, **limit: int) -> str:
        content = Content(self.salt, **limit)
        content.add(value)
        return content.digest()

    def _function(self, function: Any, path: str) -> None:
        if id(function) in self._seen:
            return
        self._seen.add(id(function))
        kind = class_of(function)
        if isinstance(function, functools.partial):
            self._function(function.func, path)
            given = {f"argument {place}": each for place, each in enumerate(function.args, 1)}
            self._values(path, {**given, **function.keywords})
        elif inspect.ismethod(function):
            self._function(function.__func__, path)
            self._self(f"{path}self", function.__self__)
        elif inspect.isfunction(function):
            self._plain(function, path)
        elif inspect.isroutine(function) or isinstance(function, type):
            owner = getattr(function, "__self__", None)
            # The result of `functools.cache` for a `partial` has no name.
            name = getattr(function, "__qualname__", kind.__qualname__)
            self._codes.append(f"{getattr(function, '__module__', '')}:{name}")
            if owner is not None and not inspect.ismodule(owner):
                self._value(f"{path}self", owner)
            if (wrapped := getattr(function, "__wrapped__", None)) is not None:
                self._function(wrapped, path)
        else:
            self._codes.append(f"{kind.__module__}:{kind.__qualname__}")
            if inspect.isfunction(call := kind.__call__) and not isinstance(function, Runnable):
                self._plain(call, path)
            self._self(f"{path}self", function)

    def _plain(self, function: types.FunctionType, path: str) -> None:
        code = function.__code__
        self._codes.append(code_digest(code))
        self._files.add(code.co_filename)
        held: dict[str, Any] = {}
        if not file_digest(code.co_filename):  # Code of `exec` holds its globals.
            given = function.__globals__
            held.update({name: given[name] for name in code.co_names if name in given})
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            with suppress(ValueError):  # The cell is still empty.
                held[name] = cell.cell_contents
        # A function at module level is made once, so its defaults belong to its code.
        if "<" in function.__qualname__:
            names, defaults = inspect.getargs(code).args, function.__defaults__ or ()
            held.update(zip(names[len(names) - len(defaults) :], defaults, strict=True))
            held.update(function.__kwdefaults__ or {})
        held.update({name: each for name, each in vars(function).items() if name != "__wrapped__"})
        self._values(path, held, self._object(f"{path}function", function))

    def _values(self, path: str, values: Mapping[str, Any], state_of: str = "") -> None:
        for name, value in values.items():
            self._value(f"{path}{name}", value, state_of)

    def _self(self, name: str, owner: Any) -> None:
        """Read the object of a method or a callable object, by its attributes if it has any."""
        inside = {} if isinstance(owner, type) else dict(inside_of(owner))
        if inside:
            self._open(name, owner, inside)
        else:
            self._read(name, owner)

    def _value(self, name: str, value: Any, state_of: str = "") -> None:
        if _is_function(value):
            self._function(value, f"{name}.")
        else:
            self._read(name, value, state_of)

    def _read(self, name: str, value: Any, state_of: str = "", piece_of: str = "") -> None:
        """Read a value as one part, and also its pieces if the value may change in place.

        If the value has no content as a whole, its attributes or entries are read one by one.
        """
        before = self._before
        if before and name not in before.places:
            return
        self.places.add(name)
        known = before.parts.get(name) if before else None
        try:
            if before and not (known and known.digest):
                raise OpaqueError
            digest = self._digest(value)
        except OpaqueError as error:
            if piece_of:  # Another thread has changed the piece.
                return
            if isinstance(value, Runnable) and not is_means(value):
                self._function(value, f"{name}.")
            elif inside := self._openable(value):
                self._open(name, value, inside, state_of)
            else:
                is_data = isinstance(error, TooLargeError) and isinstance(value, CONTAINERS)
                self._unread(name, value, state_of, is_data=is_data)
            return
        is_changing = is_followed(value) or (isinstance(value, type) and is_local(value))
        place = self._object(name, value, state_of) if is_changing else state_of
        is_fixed = isinstance(value, _FIXED)
        self.parts[name] = Part(digest, value, "" if is_fixed else state_of, piece_of)
        if isinstance(value, Enum) and is_local(class_of(value)):
            self._value(f"{name}.value", value.value)
        if known and known.digest == digest:
            return
        if not is_fixed and not (piece_of and self.parts[piece_of].piece_of):
            for sign, item in itertools.islice(inside_of(value), _MOST_ITEMS):
                self._read(f"{name}{sign}", item, place, name)

    def _openable(self, value: Any) -> dict[str, Any]:
        """Return the attributes or entries to read if a value has no content as a whole."""
        if id(value) in self._seen or self._depth >= _DEEPEST:
            return {}
        if class_of(value) in READ_AS and not is_stream(value):
            with suppress(OpaqueError):
                return self._openable(copied(value))
        is_container = isinstance(value, CONTAINERS)
        if not (is_container or isinstance(value, type) or is_own(class_of(value))):
            return {}
        inside = dict(inside_of(value))
        is_small = len(inside) <= _MOST_ITEMS or not is_container
        return inside if is_small or any(map(_is_function, inside.values())) else {}

    def _open(self, name: str, value: Any, inside: dict[str, Any], state_of: str = "") -> None:
        self._seen.add(id(value))
        place, kind = self._object(name, value, state_of), class_of(value)
        is_of_others = is_foreign(kind)
        self._depth += 1
        for sign, item in inside.items():
            owner = getattr(item, "__self__", item)
            # The methods of a client would lead to everything in the client.
            if callable(item) and not (_is_plain(item) or is_own(class_of(owner))):
                self._read(f"{name}{sign}", item, place)
            else:
                self._value(f"{name}{sign}", item, place)
            if is_of_others and is_unknown(item) and not is_stream(item):
                # A library's private values are not data of the user.
                self.uncertain.discard(f"{name}{sign}")
        self._depth -= 1

    def _unread(self, name: str, value: Any, state_of: str, *, is_data: bool = False) -> None:
        """Add a part for an unreadable value, with a digest of its copy or of its attributes."""
        place = self._object(name, value, state_of)
        digest = None
        if says_its_copy(class_of(value)):
            with suppress(OpaqueError):
                digest = self._digest(copied(value))
        self.parts[name] = Part(digest, value, place)
        if digest or is_data or is_unknown(value):
            self.uncertain.add(name)
        if digest is None:
            for each, item in shown_of(value).items():
                is_code, inside = isinstance(item, types.FunctionType), f"{name}.{each}"
                if self._before is None or inside in self._before.shown:
                    with suppress(OpaqueError):
                        self.shown[inside] = self._digest(
                            code_digest(item.__code__) if is_code else item, most=_SHOWN
                        )
                if is_stream(item) and not (callable(item) or is_means(value)):
                    self._value(inside, item, place)

    def _object(self, place: str, owner: Any, around: str = "") -> str:
        """Record a token for an object, and return its place. Without a token, return `around`."""
        if token := token_of(owner):
            self.objects[place] = token
        return place if token else around


def _is_function(value: Any) -> bool:
    """Return whether a value is a function or a callable object that may itself hold values."""
    if isinstance(value, type | Runnable) or not callable(value):
        return False
    return not (inspect.isroutine(value) and is_named(value))


def _is_plain(value: Any) -> bool:
    return isinstance(value, types.FunctionType | functools.partial | type | Runnable)


_PROCESS = uuid4().hex[:12]
_tokens: dict[int, tuple[Callable[[], Any], str]] = {}
_numbers = itertools.count(1)
_kept: list[int] = []
_MOST_KEPT = 50


def _itself(owner: Any) -> Any:
    return owner


def is_followed(value: Any) -> bool:
    """Return whether a value is compared by identity, because calls use it up or extend it."""
    return is_stream(value) or class_of(value) is list


def token_of(owner: Any, *, kept: bool = False) -> str | None:
    """Return a token that identifies one object of this process; None if there can be none.

    A token needs a weak reference, which Python does not allow for lists and iterators. With
    `kept=True`, such an object gets a token nevertheless, and this module keeps the last 50 of
    these objects in memory.
    """
    place = id(owner)
    known = _tokens.get(place)
    if known is None or known[0]() is not owner:
        try:
            followed: Callable[[], Any] = weakref.ref(owner, lambda _: _tokens.pop(place, None))
        except TypeError:
            if not kept:
                return None
            _kept.append(place)
            if len(_kept) > _MOST_KEPT:
                _tokens.pop(_kept.pop(0), None)
            followed = functools.partial(_itself, owner)
        known = _tokens[place] = (cast("Any", followed), f"{_PROCESS}.{next(_numbers)}")
    return known[1]
