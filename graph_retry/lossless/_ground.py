"""Small tools that the reader of JSON needs everywhere, such as escaping texts for messages."""

from __future__ import annotations

import json
import re
import reprlib
from collections.abc import Callable
from importlib import import_module
from typing import Any, Literal, cast

from typing_extensions import TypedDict

_SPACES, _JOINERS = "\u00a0\u202f\u3000", "\u200c\u200d"
"""Characters that ordinary texts contain, although Python does not count them as printable."""


class EscapedText(Exception):
    """A base class of errors whose message quotes text from outside, such as a model's answer.

    `str` escapes control characters in the message. `args` keep the message as it is.
    """

    def __str__(self) -> str:
        return escaped(self.as_told(), lines=True)

    def as_told(self) -> str:
        """Return the message before it is escaped."""
        return super().__str__()


def escaped(text: str, *, lines: bool = False) -> str:
    r"""Escape characters that control a terminal or the direction of a text.

    With `lines`, line breaks and tabs stay as they are.

    Example:
        >>> escaped("a\x1b[2J\nb\u202e"), escaped("a\nb", lines=True)
        ('a\\x1b[2J\\nb\\u202e', 'a\nb')
    """
    kept = f"{_SPACES}{_JOINERS}\n\t" if lines else f"{_SPACES}{_JOINERS}"
    return "".join(
        each if each.isprintable() or each in kept else repr(each)[1:-1] for each in text
    )


_REPR = reprlib.Repr()
_REPR.maxdict = _REPR.maxlist = _REPR.maxtuple = _REPR.maxset = _REPR.maxfrozenset = 20
_REPR.maxstring = _REPR.maxother = 1_000


def as_repr(value: Any, limit: int = 200) -> str:
    r"""Write any value as `repr` does, but escaped and in at most `limit` characters.

    In a message, write each value of a user or a model with this function. The value's own
    `__repr__` may raise, be huge, or contain characters that control a terminal.

    Example:
        >>> as_repr("a\x1b[2J"), as_repr({"a": "b" * 100}, 20)
        ("'a\\x1b[2J'", "{'a': 'bbbbbbbbbbbb…")
    """
    try:
        text = _REPR.repr(value)
    except Exception:  # noqa: BLE001 - what a value says of itself may raise anything
        text = f"<{type(value).__name__} that cannot be written>"
    return shortened(escaped(text[: limit + 1]), limit)


def text_of(error: BaseException) -> str:
    """Return the message of an exception. If its `__str__` raises, return a text that says so."""
    try:
        return str(error)
    except Exception as failed:  # noqa: BLE001  an exception is anybody's class
        return f"(its text failed with {type(failed).__name__})"


def error_text(error: BaseException, limit: int = 500) -> str:
    r"""Return the message of an exception for use in another message: escaped, and cut to `limit`.

    Example:
        >>> error_text(ValueError("no\x1b[2J"))
        'no\\x1b[2J'
    """
    return shortened(escaped(text_of(error)[: limit + 1], lines=True), limit)


def shortened(text: str, limit: int) -> str:
    """Cut a text after `limit` characters. The last of them is then `…`."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


class _Lazy:
    def __init__(self, source: str, flags: int) -> None:
        self._source, self._flags = source, flags

    def __getattr__(self, name: str) -> Any:
        method = getattr(re.compile(self._source, self._flags), name)
        setattr(self, name, method)  # The next use finds this method without `__getattr__`.
        return method


def lazy(source: str, flags: int = 0) -> re.Pattern[str]:
    """Return a regular expression that is compiled at its first use, so that imports are fast."""
    return cast("re.Pattern[str]", _Lazy(source, flags))


def on_demand(package: str, *modules: str, home: str = "") -> Callable[[str], Any]:
    """Return a `__getattr__` for a package that imports a module when its names are first used.

    A name in the package's `__all__` is searched in the `modules`, in their order. The modules are
    in the package itself, or in the package `home`.
    """

    def load(name: str) -> Any:
        if name in import_module(package).__all__:
            for module in modules:
                found = import_module(f"{home or package}.{module}")
                if hasattr(found, name):
                    return getattr(found, name)
        raise AttributeError(f"module {as_repr(package)} has no attribute {as_repr(name)}")

    return load


def identical(one: Any, other: Any) -> bool:
    """Return whether two JSON values are identical. The values `1`, `1.0` and true are different.

    Example:
        >>> identical({"a": 1}, {"a": 1}), identical(1, 1.0), identical(1, True)
        (True, False, False)
    """
    return written(one) == written(other)


_WRITER = json.JSONEncoder(sort_keys=True)


def written(value: Any) -> str:
    """Write a JSON value as text, with sorted keys. Equal texts mean identical values."""
    return _WRITER.encode(value)


RepairLevel = Literal["none", "minimal", "standard", "aggressive"]


class Repair(TypedDict):
    """One change that the reader made to a text, or one conversion of a value to its type.

    kind: The kind of change, such as `trailing_comma`.
    position: Character offset in the raw text; None if the change has no position there.
    grade: How certain the change is. `format`: only the syntax changed. `assumed`: a missing piece
        was supplied, on evidence. `guessed`: a piece was guessed, which only the level `aggressive`
        does. `coerced`: a value was converted to its type.
    detail: The change in words.
    """

    kind: str
    position: int | None
    grade: Literal["format", "assumed", "guessed", "coerced"]
    detail: str
