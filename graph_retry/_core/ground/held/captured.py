"""What a function holds beside its code: the values by which two equal calls can be told apart.

A function holds the cells of its closure, its defaults and attributes, the arguments of a
`partial`, the attributes of the object whose method it is, and what the functions among these hold.
Each value is digested by its content, so that another process finds the same digest. A value that
has no content to read, such as a lock, a socket or a chat model, can only be compared with `is`.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import types
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, time
from enum import Enum
from typing import Any, Literal, NamedTuple, cast
from uuid import UUID, uuid4

from langchain_core.language_models import BaseLanguageModel
from langchain_core.runnables import Runnable

from graph_retry._core.ground.held.content import (
    PYTHON,
    Content,
    OpaqueError,
    attributes_of,
    class_of,
    code_digest,
    file_digest,
    is_local,
    is_named,
    is_own,
    shown_of,
)
from graph_retry.records import SavedFunction

Likeness = Literal["same", "other", "unknown"]


class Part(NamedTuple):
    """A captured value: its digest, if it has one, and the object that has it.

    The object is the value itself, or what holds a value that cannot change in place. `state_of`
    is the function or object that has the value, if a program may change the value while it stays
    the same, as with a list, a number or a flag.
    """

    digest: str | None
    owner: Any
    state_of: str = ""


@dataclass(eq=False)
class Captured:
    """A function as a call begins with it.

    function: The function. The parts are of the moment in which they were read.
    shown: Digests of what the values without a digest show, such as the name of a client's model.
    changed: The names of the parts that the function has changed during a call.
    """

    function: Any
    salt: str
    code: str = ""
    source: str = ""
    parts: dict[str, Part] = field(default_factory=dict[str, Part])
    changed: set[str] = field(default_factory=set[str])
    objects: dict[str, str] = field(default_factory=dict[str, str])
    shown: dict[str, str] = field(default_factory=dict[str, str])

    def saved(self) -> SavedFunction:
        """Return the form for graph state."""
        parts = {
            name: None if name in self.changed else part.digest for name, part in self.parts.items()
        }
        shown = {name: each for name, each in self.shown.items() if name not in self.changed}
        known = {"code": self.code, "source": self.source, "shown": shown}
        return cast("SavedFunction", {**known, "parts": parts, "objects": self.objects})

    @property
    def digests(self) -> dict[str, str]:
        """All digests by name."""
        parts = {name: part.digest for name, part in self.parts.items() if part.digest}
        return {**self.shown, **parts}

    def note_changes(self) -> None:
        """Note which captured values the call that has just ended changed in place.

        Such a value, such as a counter of calls, does not tell what the call is about.
        """
        before = self.digests
        if before:
            after = captured_by(self.function, self.salt).digests
            self.changed.update(name for name in before if after.get(name) != before[name])

    def like(self, other: Captured) -> Likeness:
        """Compare the functions of two equal calls that one run of a node makes."""
        if self.code != other.code or self.parts.keys() != other.parts.keys():
            return "other"
        changed = self.changed | other.changed
        found = {
            _alike(part, other.parts[name], is_changed=name in changed)
            for name, part in self.parts.items()
        }
        return "other" if "other" in found else "unknown" if "unknown" in found else "same"

    def like_saved(self, saved: SavedFunction | None) -> Likeness:
        """Compare this function with that of a saved call. Without a record, it is unknown."""
        if saved is None:
            return "unknown"
        differing = self.differing(saved)
        if not differing and saved["code"] == self.code:
            return "same"
        if not all(self._may_change(name, saved) for name in differing):
            return "other"
        if saved["code"] == self.code:
            return "unknown"
        # In unchanged files, other code is another function. In changed ones, it may be an edit.
        is_known = bool(self.source) and saved["source"] == self.source
        return "other" if is_known else "unknown"

    def without_state(self, saved: SavedFunction | None) -> SavedFunction | None:
        """Return a saved function without the values that may have changed in its objects."""
        if saved is None:
            return None
        parts = saved["parts"].items()
        kept = {name: each for name, each in parts if not self._may_change(name, saved)}
        return {**saved, "parts": kept}

    def _may_change(self, name: str, saved: SavedFunction) -> bool:
        """Return whether a part is a state of the object that the saved call had as well."""
        part = self.parts.get(name)
        token = self.objects.get(part.state_of) if part is not None else None
        return (
            part is not None and token is not None and token == saved["objects"].get(part.state_of)
        )

    def differing(self, saved: SavedFunction) -> list[str]:
        """Return the names of the captured values that are known to differ from a saved call's."""
        mine = {name: part.digest for name, part in self.parts.items()}
        return [
            name
            for name, digest in saved["parts"].items()
            if digest is not None and mine.get(name) not in (None, digest)
        ]


def exchanged(saved: SavedFunction | None, function: Captured) -> list[str]:
    """Return what shows that a function holds another client, model or such than a saved call's."""
    if saved is None:
        return []
    before, objects = saved.get("shown", {}), saved["objects"]
    same = [place for place, token in function.objects.items() if objects.get(place) == token]
    return [
        name
        for name, digest in function.shown.items()
        if before.get(name, digest) != digest and name.rpartition(".")[0] not in same
    ]


def unread_in(saved: SavedFunction | None) -> list[str]:
    """Return the names of the captured values that a saved call does not compare."""
    return [name for name, digest in (saved["parts"] if saved else {}).items() if digest is None]


def _alike(one: Part, other: Part, *, is_changed: bool) -> Likeness:
    if is_changed or (one.digest is None and other.digest is None):
        return "same" if one.owner is other.owner else "unknown"
    return "same" if one.digest == other.digest else "other"


def captured_by(function: Any, salt: str) -> Captured:
    """Read what a function holds. `salt` keeps digests of short values from being guessed.

    Example:
        >>> def about(text):
        ...     return lambda params: f"{text} {params}"
        >>> [captured_by(about(each), "1").saved()["parts"] for each in "aab"]
        [{'text': '82eea262b2f5'}, {'text': '82eea262b2f5'}, {'text': '9ff285e7cee6'}]
    """
    found = Captured(function, salt)
    reading = _Reading(found)
    reading.function(function, "")
    found.code = reading.digest(*reading.codes)
    files = [file_digest(path) for path in sorted(reading.files)]
    found.source = reading.digest(*files) if files and all(files) else ""
    return found


class _Reading:
    """One reading of a function: the codes and files that it met, and the parts so far."""

    def __init__(self, found: Captured) -> None:
        self._found = found
        self._seen: set[int] = set()
        self._depth = 0
        self.codes: list[str] = [PYTHON]
        self.files: set[str] = set()

    def digest(self, *texts: str) -> str:
        content = Content(self._found.salt)
        content.add(list(texts))
        return content.digest()

    def function(self, function: Any, path: str) -> None:
        """Read a function, a method, a partial or an object that can be called."""
        if id(function) in self._seen:
            return
        self._seen.add(id(function))
        if isinstance(function, functools.partial):
            self.function(function.func, path)
            for place, value in enumerate(function.args):
                self._value(f"{path}argument {place + 1}", value, function)
            for name, value in function.keywords.items():
                self._value(f"{path}{name}", value, function)
        elif inspect.ismethod(function):
            self.function(function.__func__, path)
            self._own(function.__self__, f"{path}self")
        elif inspect.isfunction(function):
            self._plain(function, path)
        elif inspect.isroutine(function) or isinstance(function, type):
            owner = getattr(cast("Any", function), "__self__", None)
            # A cache of a `partial` has no name.
            name = getattr(function, "__qualname__", class_of(cast("Any", function)).__qualname__)
            self.codes.append(f"{getattr(function, '__module__', '')}:{name}")
            if owner is not None and not inspect.ismodule(owner):
                self._value(f"{path}self", owner, function)
            if (wrapped := getattr(function, "__wrapped__", None)) is not None:
                self.function(wrapped, path)
        else:
            kind = class_of(function)
            self.codes.append(f"{kind.__module__}:{kind.__qualname__}")
            if inspect.isfunction(call := kind.__call__) and not isinstance(function, Runnable):
                self._plain(call, path)
            self._own(function, f"{path}self")

    def _plain(self, function: types.FunctionType, path: str) -> None:
        code = function.__code__
        self.codes.append(code_digest(code))
        self.files.add(code.co_filename)
        place = self._object(f"{path}function", function)
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            try:
                value = cell.cell_contents
            except ValueError:  # The cell is still empty.
                continue
            self._value(f"{path}{name}", value, cell, place)
        # The defaults of a function that is made once belong to its code.
        if "<" in function.__qualname__:
            names, defaults = inspect.getargs(code).args, function.__defaults__ or ()
            given = dict(zip(names[len(names) - len(defaults) :], defaults, strict=True))
            for name, value in {**given, **(function.__kwdefaults__ or {})}.items():
                self._value(f"{path}{name}", value, function, place)
        for name, value in {**vars(function)}.items():
            if name != "__wrapped__":
                self._value(f"{path}{name}", value, function, place)

    def _own(self, owner: Any, name: str) -> None:
        """Read the attributes of an object: one that is called, or that is of the user's code."""
        self._seen.add(id(owner))
        if isinstance(owner, type):
            self._value(name, owner, owner)
            return
        try:
            attributes = attributes_of(owner)
        except OpaqueError:
            self._unread(name, owner)
            return
        place = self._object(name, owner)
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
                self._unread(f"{name}.{each}", value)
        self._depth -= 1

    def _unread(self, name: str, value: Any) -> None:
        """Note a value that is no part of the identity, such as a client, and what it shows."""
        self._found.parts[name] = Part(None, value)
        self._object(name, value)
        for each, item in shown_of(value).items():
            content = Content(self._found.salt)
            with suppress(OpaqueError):
                content.add(item)
                self._found.shown[f"{name}.{each}"] = content.digest()

    def _object(self, place: str, owner: Any) -> str:
        if token := _token(owner):
            self._found.objects[place] = token
        return place

    def _value(self, name: str, value: Any, holder: Any, state_of: str = "") -> None:
        if _is_function(value):
            self.function(value, f"{name}.")
            return
        content = Content(self._found.salt)
        with suppress(OpaqueError):
            content.add(value)
            owner = holder if value is None or isinstance(value, (*_FIXED, int, float)) else value
            is_fixed = isinstance(value, _FIXED)
            if isinstance(value, type) and is_local(value):  # Its content was read, and may change.
                owner, is_fixed, state_of = value, False, self._object(name, value)
            self._found.parts[name] = Part(content.digest(), owner, "" if is_fixed else state_of)
            return
        if isinstance(value, Runnable) and not isinstance(value, BaseLanguageModel):
            self.function(value, f"{name}.")
            return
        place = id(cast("Any", value))
        items: dict[Any, Any] = {**cast("Any", value)} if isinstance(value, dict) else {}
        if isinstance(value, list | tuple):
            items = dict(enumerate(cast("list[Any]", value)))
        is_new = place not in self._seen and self._depth < _DEEPEST
        if is_new and (0 < len(items) <= _MOST_ITEMS or any(map(_is_function, items.values()))):
            self._seen.add(place)
            self._depth += 1
            for key, item in items.items():
                self._value(f"{name}[{key!r}]", item, value)
            for each, item in {**getattr(cast("Any", value), "__dict__", {})}.items():
                self._value(f"{name}.{each}", item, value)
            self._depth -= 1
        elif is_new and not items and is_own(class_of(cast("Any", value))):
            self._own(value, name)
        else:
            self._unread(name, value)


_MOST_ITEMS, _DEEPEST = 100, 6
_FIXED = (str, bytes, tuple, frozenset, type, Enum, date, time, UUID)


def _is_function(value: Any) -> bool:
    """Return whether a value is called, and may hold values itself."""
    if isinstance(value, type | Runnable) or not callable(value):
        return False
    return not (inspect.isroutine(value) and is_named(value))


_PROCESS = uuid4().hex[:12]
_tokens: dict[int, tuple[weakref.ref[Any], str]] = {}
_numbers = itertools.count(1)


def _forgetting(place: int) -> Callable[[Any], None]:
    def forget(_: Any) -> None:
        _tokens.pop(place, None)

    return forget


def _token(owner: Any) -> str | None:
    """Return a name that only this object of this process has; None if it cannot be followed."""
    known = _tokens.get(id(owner))
    if known is None or known[0]() is not owner:
        try:
            followed = weakref.ref(owner, _forgetting(id(owner)))
        except TypeError:
            return None
        known = _tokens[id(owner)] = (followed, f"{_PROCESS}.{next(_numbers)}")
    return known[1]
