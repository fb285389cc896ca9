"""Read a function into parts: the values that it holds, each with a digest of its content.

A function holds the cells of its closure, its defaults and attributes, the arguments of a
`partial`, the attributes of the object whose method it is, and what the functions among these hold.
A value without content to read, such as a lock or a socket, has no digest: it is a means by which
a call is made, unless it yields data as it is used.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import types
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import date, time
from enum import Enum
from typing import Any, NamedTuple, cast
from uuid import UUID, uuid4

from langchain_core.language_models import BaseLanguageModel
from langchain_core.runnables import Runnable

from graph_retry._core.ground.held.code import PYTHON, code_digest, file_digest
from graph_retry._core.ground.held.content import (
    Content,
    OpaqueError,
    TooLargeError,
    attributes_of,
    class_of,
    copied,
    is_local,
    is_means,
    is_named,
    is_own,
    is_stream,
    items_of,
    members_of,
    shown_of,
)


class Part(NamedTuple):
    """A captured value: its digest, if it has one, and the object that has it.

    The object is the value itself, or what holds a value that cannot change in place. `state_of`
    is the function or object that has the value, if a program may change the value while it stays
    the same, as with a list, a number or a flag. `piece_of` is the part of which this is a piece.
    """

    digest: str | None
    owner: Any
    state_of: str = ""
    piece_of: str = ""


class Reading:
    """One reading of a function; `parts` and the others are those of `Captured`."""

    def __init__(self, function: Any, salt: str) -> None:
        self.parts: dict[str, Part] = {}
        self.objects: dict[str, str] = {}
        self.shown: dict[str, str] = {}
        self.uncertain: set[str] = set()
        self._salt = salt
        self._codes, self._files = [PYTHON], set[str]()
        self._seen: set[int] = set()
        self._depth = 0
        self._function(function, "")

    def code(self) -> str:
        """Return a digest of the code of all functions."""
        return self._digest(self._codes)

    def source(self) -> str:
        """Return a digest of the code's files, or an empty text if a file is not found."""
        files = [file_digest(path) for path in sorted(self._files)]
        return self._digest(files) if files and all(files) else ""

    def _digest(self, value: Any, *, as_copied: bool = False) -> str:
        content = Content(self._salt, as_copied=as_copied)
        content.add(value)
        return content.digest()

    def _function(self, function: Any, path: str) -> None:
        """Read a function, a method, a partial or an object that can be called."""
        if id(function) in self._seen:
            return
        self._seen.add(id(function))
        if isinstance(function, functools.partial):
            self._function(function.func, path)
            for place, value in enumerate(function.args):
                self._value(f"{path}argument {place + 1}", value, function)
            for name, value in function.keywords.items():
                self._value(f"{path}{name}", value, function)
        elif inspect.ismethod(function):
            self._function(function.__func__, path)
            self._own(function.__self__, f"{path}self")
        elif inspect.isfunction(function):
            self._plain(function, path)
        elif inspect.isroutine(function) or isinstance(function, type):
            owner = getattr(cast("Any", function), "__self__", None)
            # A cache of a `partial` has no name.
            name = getattr(function, "__qualname__", class_of(cast("Any", function)).__qualname__)
            self._codes.append(f"{getattr(function, '__module__', '')}:{name}")
            if owner is not None and not inspect.ismodule(owner):
                self._value(f"{path}self", owner, function)
            if (wrapped := getattr(function, "__wrapped__", None)) is not None:
                self._function(wrapped, path)
        else:
            kind = class_of(function)
            self._codes.append(f"{kind.__module__}:{kind.__qualname__}")
            if inspect.isfunction(call := kind.__call__) and not isinstance(function, Runnable):
                self._plain(call, path)
            self._own(function, f"{path}self")

    def _plain(self, function: types.FunctionType, path: str) -> None:
        code = function.__code__
        self._codes.append(code_digest(code))
        self._files.add(code.co_filename)
        place = self._object(f"{path}function", function)
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            with suppress(ValueError):  # The cell is still empty.
                self._value(f"{path}{name}", cell.cell_contents, cell, place)
        # The defaults of a function that is made once belong to its code.
        if "<" in function.__qualname__:
            names, defaults = inspect.getargs(code).args, function.__defaults__ or ()
            given = dict(zip(names[len(names) - len(defaults) :], defaults, strict=True))
            for name, value in {**given, **(function.__kwdefaults__ or {})}.items():
                self._value(f"{path}{name}", value, function, place)
        for name, value in {**vars(function)}.items():
            if name != "__wrapped__":
                self._value(f"{path}{name}", value, function, place)

    def _own(self, owner: Any, name: str, state_of: str = "") -> None:
        """Read the attributes of an object that is called, or whose class the user defines."""
        self._seen.add(id(owner))
        if isinstance(owner, type):
            self._value(name, owner, owner)
            return
        try:
            attributes = attributes_of(owner)
        except OpaqueError:
            try:
                self._content(name, owner, owner, state_of)
            except OpaqueError:
                self._unread(name, owner, state_of)
            return
        place = self._object(name, owner, state_of)
        if is_local(class_of(owner)):
            self._value(f"{name}.__class__", class_of(owner), owner)
        self._depth += 1
        for each, value in attributes.items():
            # The methods of a client among them would lead into all of it.
            is_plain = not callable(value) or isinstance(
                value, types.FunctionType | functools.partial
            )
            if is_plain or isinstance(value, type | Runnable):
                self._value(f"{name}.{each}", value, owner, place)
            else:
                self._unread(f"{name}.{each}", value, place)
        self._depth -= 1

    def _unread(self, name: str, value: Any, state_of: str = "") -> None:
        """Note a value without a digest, such as a client, and what it shows."""
        place = self._object(name, value, state_of)
        self.parts[name] = Part(None, value, place)
        if is_stream(value):
            self.uncertain.add(name)
        for each, item in shown_of(value).items():
            with suppress(OpaqueError):
                self.shown[f"{name}.{each}"] = self._digest(item)
            if is_stream(item) and not is_means(value):
                self._value(f"{name}.{each}", item, value, place)

    def _object(self, place: str, owner: Any, around: str = "") -> str:
        """Follow an object, and return its place, or the outer object's place if that fails."""
        if token := token_of(owner):
            self.objects[place] = token
        return place if token else around

    def _value(self, name: str, value: Any, holder: Any, state_of: str = "") -> None:
        if _is_function(value):
            self._function(value, f"{name}.")
            return
        try:
            self._content(name, value, holder, state_of)
            return
        except OpaqueError as error:
            is_data = isinstance(error, TooLargeError) and isinstance(value, list | tuple | dict)
        if isinstance(value, Runnable) and not isinstance(value, BaseLanguageModel):
            self._function(value, f"{name}.")
            return
        value = cast("Any", value)
        pieces = {} if isinstance(value, type) else dict(items_of(value))
        is_new = id(value) not in self._seen and self._depth < _DEEPEST
        if is_new and isinstance(value, type) and is_local(value):
            self._seen.add(id(value))
            for each, member in members_of(value):
                self._value(f"{name}.{each}", member, value)
        elif is_new and (0 < len(pieces) <= _MOST_ITEMS or any(map(_is_function, pieces.values()))):
            self._seen.add(id(value))
            self._depth += 1
            for each, item in pieces.items():
                self._value(f"{name}{each}", item, value, state_of)
            self._depth -= 1
        elif is_new and not pieces and is_own(class_of(value)):
            self._own(value, name, state_of)
        else:
            try:
                digest = self._digest(value, as_copied=True)
            except OpaqueError:
                self._unread(name, value, state_of)
                if is_data:
                    self.uncertain.add(name)
            else:
                self.parts[name] = Part(digest, value, self._object(name, value, state_of))
                self.uncertain.add(name)

    def _content(
        self,
        name: str,
        value: Any,
        holder: Any,
        state_of: str = "",
        piece_of: str = "",
        depth: int = 0,
    ) -> None:
        """Read a value whole, and the pieces of one that may change in place."""
        digest = self._digest(value)
        is_fixed = isinstance(value, _FIXED)
        inner = self._object(name, value, state_of) if is_followed(value) else state_of
        if isinstance(value, type) and is_local(value):  # Its content was read, and may change.
            holder, is_fixed, state_of = value, False, self._object(name, value)
        elif not (value is None or isinstance(value, (*_FIXED, int, float))):
            holder = value
        self.parts[name] = Part(digest, holder, "" if is_fixed else state_of, piece_of)
        if isinstance(value, Enum) and is_local(class_of(value)):
            self._value(f"{name}.value", value.value, value)
        if holder is value and depth < _PIECES_OF_PIECES:
            for each, item in itertools.islice(_pieces_of(value), _MOST_ITEMS):
                with suppress(OpaqueError):  # Another thread has changed it meanwhile.
                    self._content(f"{name}{each}", item, value, inner, name, depth + 1)


_MOST_ITEMS, _DEEPEST, _PIECES_OF_PIECES = 100, 6, 2
_FIXED = (str, bytes, tuple, frozenset, type, Enum, date, time, UUID)


def _pieces_of(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the exchangeable parts of a value that was read whole."""
    if isinstance(value, list | dict | deque | set):
        yield from items_of(value)
        return
    if is_stream(value):
        made: list[Any] = []
        for each in copied(value):
            made += each if isinstance(each, tuple) else (each,)
        yield from ((f":{number}", each) for number, each in enumerate(made))
        return
    with suppress(OpaqueError):
        for name, item in attributes_of(value).items():
            yield f".{name}", item


def _is_function(value: Any) -> bool:
    """Return whether a value is called, and may hold values itself."""
    if isinstance(value, type | Runnable) or not callable(value):
        return False
    return not (inspect.isroutine(value) and is_named(value))


_PROCESS = uuid4().hex[:12]
_tokens: dict[int, tuple[Callable[[], Any], str]] = {}
_numbers = itertools.count(1)
_kept: list[int] = []
_MOST_KEPT = 50


def _forgetting(place: int) -> Callable[[Any], None]:
    def forget(_: Any) -> None:
        _tokens.pop(place, None)

    return forget


def _itself(owner: Any) -> Any:
    return owner


def is_followed(value: Any) -> bool:
    """Return whether a value that calls use or extend is known again by itself in its process."""
    return is_stream(value) or class_of(value) is list


def token_of(owner: Any, *, kept: bool = False) -> str | None:
    """Return a name that only this object of this process has; None if it cannot be followed.

    A list or an iterator can only be followed if it is kept. Only the last few are.
    """
    known = _tokens.get(id(owner))
    if known is None or known[0]() is not owner:
        try:
            followed: Callable[[], Any] = weakref.ref(owner, _forgetting(id(owner)))
        except TypeError:
            if not kept:
                return None
            _kept.append(id(owner))
            if len(_kept) > _MOST_KEPT:
                _tokens.pop(_kept.pop(0), None)
            followed = functools.partial(_itself, owner)
        known = _tokens[id(owner)] = (followed, f"{_PROCESS}.{next(_numbers)}")
    return known[1]
