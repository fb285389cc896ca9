"""Turn a posted form back into a JSON value. Input that is not valid stays as typed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from graph_retry.plugins import (
    ABSENT,
    NotJsonError,
    is_array,
    is_number,
    is_object,
    pointer_parts,
    read_json,
)

ALTERED = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069"
    "\ud800-\udfff\ufeff\ufff9-\uffff]"
)
"""Characters that a text box changes, that are invisible, or that change the text direction."""

_NO_ZERO = re.compile(r"(?<![^-])(?=\.\d)")  # People write `.5`, which is no JSON.
DAY = re.compile(r"\d{4}-\d\d-\d\d")
_WHY = {
    "number": "Write a number, such as 3 or 0.5.",
    "flag": "Choose yes or no.",
    "date": "Choose a day.",
}


class Sparse(dict[int, Any]):
    """Some items of a long list, by index. The form has no fields for the other items."""


@dataclass(frozen=True)
class Unread:
    """A typed text that is not valid in its field. The form shows it again with the reason."""

    kind: str
    text: str
    why: str


def read_form(posted: Iterable[tuple[str, str]]) -> Any:
    """Read the value of a posted form. An unreadable field becomes an `Unread` in the value.

    Returns:
        The value; `ABSENT` if the form has no field, or if the person left the value out.

    Example:
        >>> read_form([("object:", ""), ("number:/n", "0.5"), ("list:/tags", ""),
        ...            ("text:/tags/0", "a"), ("flag:/on", "true")])
        {'n': 0.5, 'tags': ['a'], 'on': True}
        >>> read_form([("object:", ""), ("number:/n", "half")])
        {'n': Unread(kind='number', text='half', why='Write a number, such as 3 or 0.5.')}
    """
    controls: dict[str, tuple[str, str]] = {}
    ticks: dict[str, str] = {}
    for name, text in posted:
        kind, _, where = name.partition(":")
        if kind == "none":
            ticks[where] = text
        elif kind in _READERS:
            controls[where] = (kind, text)
    below: dict[str, list[tuple[str, str]]] = {}
    for where in controls:
        if parts := pointer_parts(unquote(where, errors="surrogatepass")):
            below.setdefault(where.rpartition("/")[0], []).append((parts[-1], where))
    return _read("", controls, ticks, below)


def _read(
    where: str,
    controls: Mapping[str, tuple[str, str]],
    ticks: Mapping[str, str],
    below: Mapping[str, list[tuple[str, str]]],
) -> Any:
    if where not in controls:
        return ABSENT
    kind, text = controls[where]
    parts = [(key, _read(at, controls, ticks, below)) for key, at in below.get(where, ())]
    there = [(key, part) for key, part in parts if part is not ABSENT]
    was, _, empty = ticks.get(where, "").rpartition("-")
    is_group = kind in ("object", "list", "some")
    if empty and not (was and (there if is_group else text.strip())):
        return None if empty == "null" else ABSENT
    if kind == "some":
        return Sparse({int(key): part for key, part in there if key.isdecimal()})
    if is_group:
        return dict(there) if kind == "object" else [part for _, part in there]
    if empty:
        return Unread(kind, text, "There is a value here, and “no value” is ticked: choose one.")
    return _READERS[kind](kind, text)


def _read_text(kind: str, text: str) -> Any:
    text = text.replace("\r\n", "\n")
    return text.replace("\n", "\r\n") if kind == "crlf" else text


def _read_number(kind: str, text: str) -> Any:
    value = _read_json(kind, _NO_ZERO.sub("0", text.strip()))
    return value if is_number(value) else Unread(kind, text, _WHY[kind])


def _read_flag(kind: str, text: str) -> Any:
    return {"true": True, "false": False}.get(text, Unread(kind, text, _WHY[kind]))


def _read_date(kind: str, text: str) -> Any:
    return text if DAY.fullmatch(text) else Unread(kind, text, _WHY[kind])


def _read_choice(kind: str, text: str) -> Any:
    return _read_json(kind, text) if text else ABSENT  # The choice "leave out" has an empty value.


def _read_json(kind: str, text: str) -> Any:
    try:
        return read_json(text)
    except NotJsonError as error:
        return Unread(kind, text, _WHY.get(kind, f"This is not JSON: {error}."))


_READERS: dict[str, Any] = {
    "text": _read_text,
    "crlf": _read_text,
    "number": _read_number,
    "flag": _read_flag,
    "date": _read_date,
    "choice": _read_choice,
    "json": _read_json,
    "object": None,
    "list": None,
    "some": None,
}


def filled(value: Any, whole: Any) -> Any:
    """Return the value of a form, with the list items of `whole` that the form did not show.

    Example:
        >>> filled({"a": Sparse({1: "new"})}, {"a": ["x", "y", "z"]})
        {'a': ['x', 'new', 'z']}
    """
    if isinstance(value, Sparse):
        items: list[Any] = whole if is_array(whole) else []
        return [filled(value.get(number, item), item) for number, item in enumerate(items)]
    if is_object(value):
        known: dict[str, Any] = whole if is_object(whole) else {}
        return {name: filled(part, known.get(name)) for name, part in value.items()}
    if is_array(value):
        known_items: list[Any] = whole if is_array(whole) else []
        return [
            filled(part, known_items[number] if number < len(known_items) else None)
            for number, part in enumerate(value)
        ]
    return value


def read_control(kind: str, text: str) -> Any:
    """Read the text of one control that is not a group."""
    return _READERS[kind](kind, text)


def has_unread(value: Any) -> bool:
    """Say whether a value contains an `Unread`."""
    if is_object(value) or is_array(value):
        return any(map(has_unread, value.values() if is_object(value) else value))
    return isinstance(value, Unread)


def visible(value: Any) -> Any:
    r"""Write invisible characters, and those that change the text direction, as JSON escapes.

    Example:
        >>> print(visible("price\u202e05"))
        price\u202e05
    """
    if not isinstance(value, str):
        return value
    return ALTERED.sub(lambda found: json.dumps(found[0])[1:-1], value)
