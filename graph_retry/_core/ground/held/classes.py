"""Find out how a class was made: importable or local, in Python or in C, and in which package."""

from __future__ import annotations

import inspect
import struct
import sys
from abc import ABC
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, Generic, Protocol

from pydantic import BaseModel

from graph_retry._core.ground.functions.calling import is_library

_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: the class was made while the program ran.
_POINTER = struct.calcsize("P")

class_of: Callable[[object], type[Any]] = type

is_of: Callable[[type[Any], object], bool] = type.__instancecheck__
"""`isinstance` without calling a metaclass. Older pydantic's metaclass runs code of the object."""


def is_named(value: Any) -> bool:
    """Return whether a function can be imported by its module and name, and holds no values."""
    owner = getattr(value, "__self__", None)
    is_free = owner is None or inspect.ismodule(owner) or isinstance(owner, type)
    named = "<" not in getattr(value, "__qualname__", "<")
    return is_free and named and getattr(value, "__closure__", None) is None


_FUNCTION_OF: Mapping[type[Any], str] = {
    staticmethod: "__func__", classmethod: "__func__", property: "fget", cached_property: "func",
}  # fmt: skip


def members_of(kind: type[Any]) -> Iterator[tuple[str, Any]]:
    """Yield (name, member) for each function and value of a local class and its local bases."""
    for base in filter(is_local, kind.__mro__):
        for name, member in sorted({**vars(base)}.items()):
            place = _FUNCTION_OF.get(class_of(member))
            made = getattr(member, place) if place else member
            made = inspect.unwrap(made) if inspect.isroutine(made) else made
            is_value = not (name.startswith("_") or inspect.isdatadescriptor(member))
            if is_value or inspect.isfunction(made):
                place = name if base is kind else f"{base.__name__}.{name}"
                yield place, made if inspect.isfunction(made) else member


def is_local(kind: type[Any]) -> bool:
    """Return whether a class cannot be imported by its name, such as a class made in a function."""
    if not kind.__flags__ & _HEAP_TYPE:
        return False
    found: Any = sys.modules.get(kind.__module__)
    for name in kind.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is not kind


def _has_only_attributes(kind: type[Any]) -> bool:
    """Return whether objects of a class have no content besides their attributes."""
    base = kind.__base__ or object
    more = kind.__basicsize__ - base.__basicsize__
    if more <= 0:
        return True
    names = vars(kind).get("__slots__", ())
    slots = {*((names,) if isinstance(names, str) else names)} - {"__dict__", "__weakref__"}
    added = [  # An offset of -1 is a place in front of the object.
        offset
        for offset in ("__dictoffset__", "__weakrefoffset__")
        if not getattr(base, offset) and getattr(kind, offset) not in (0, -1)
    ]
    return more <= _POINTER * (len(slots) + len(added))


def is_hidden(kind: type[Any]) -> bool:
    """Return whether objects of a class may have content that their attributes do not show."""
    return not all(map(_has_only_attributes, kind.__mro__))


_STATELESS: tuple[Any, ...] = (object, ABC, Generic, Protocol, BaseModel)
"""Classes of libraries that give their subclasses no attributes of their own."""


def is_own(kind: type[Any]) -> bool:
    """Return whether a class inherits nothing from a library, apart from classes like `object`."""
    return not any(base not in _STATELESS and is_of_library(base) for base in kind.__mro__)


def is_of_library(kind: type[Any]) -> bool:
    """Return whether a class is defined in an installed library or in Python itself."""
    return is_library(getattr(sys.modules.get(kind.__module__), "__file__", None) or "")


def is_of_python(kind: type[Any]) -> bool:
    """Return whether a class is from Python's standard library."""
    return kind.__module__.partition(".")[0] in sys.stdlib_module_names


def is_foreign(kind: type[Any]) -> bool:
    """Return whether a class is defined in an installed library, and not in Python itself."""
    return is_of_library(kind) and not is_of_python(kind)
