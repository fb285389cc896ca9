"""Apply the option `redact`, a user's function that hides private texts, to JSON and to records."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Any, cast

from graph_retry._core.ground.json import is_array, is_object, pointer, pointer_parts
from graph_retry._core.ground.wording import passed_as
from graph_retry.lossless._ground import lazy
from graph_retry.records import Issue

Redact = Callable[[str], str]


def redacted(value: Any, redact: Redact | None, names: Collection[str] = ()) -> Any:
    """Return a JSON value with `redact` applied to all texts and keys. Numbers stay as they are.

    Keys in `names`, such as a type's field names, are not redacted. An object keeps the number and
    the order of its keys.

    Example:
        >>> redacted({"to": ["Ada", 1], "Ada": 2}, lambda text: "***", names=("to",))
        {'to': ['***', 1], '***': 2}
    """
    if redact is None:
        return value
    if isinstance(value, str):
        return _redacted_text(value, redact)
    if is_array(value):
        return [redacted(item, redact, names) for item in value]
    if is_object(value):
        items = (redacted(item, redact, names) for item in value.values())
        return dict(zip(_redacted_keys(value, redact, names), items, strict=True))
    return value


def redacted_in_logs(text: str | None, redact: Redact | None) -> str | None:
    """Redact a text for a log or a span. If `redact` raises, hide the text instead of raising.

    An exception would lose a model call that is paid and not saved.
    """
    try:
        shown: str | None = redacted(text, redact)
    except Exception as error:  # noqa: BLE001 - whatever the user's function raises
        return f"(hidden, because `redact` raised `{type(error).__name__}`)"
    return shown


def _redacted_text(text: str, redact: Redact) -> str:
    """Redact a text, and also private parts that are written with escapes such as `%C3%BC`."""
    shown = _shown(text, redact)
    for json_too in (False, True):
        plain = _unescaped(text, json_too=json_too)
        again = shown if plain == text else _shown(plain, redact)
        if again != _unescaped(shown, json_too=json_too):
            shown = again
    return shown


def _shown(text: str, redact: Redact) -> str:
    with passed_as("redact"):
        shown: Any = redact(text)
    if not isinstance(shown, str):
        raise TypeError(f"`redact` returned a `{type(shown).__name__}` for a text: return a text.")
    return shown


_ESCAPES = lazy(
    r"(?<!\\)(?:\\++u[0-9a-fA-F]{4})+|(?<!\\)(?:\\++x[0-9a-fA-F]{2})+|"
    r"(?:%[0-9a-fA-F]{2})+|(?<!\\)\\++[\"'/nrt]"
)
"""Escapes of characters in JSON (also inside JSON), Python and URLs: `\\u00fc`, `%C3%BC`."""

_CONTROL = {"n": "\n", "r": "\r", "t": "\t"}


def _unescaped(text: str, *, json_too: bool) -> str:
    """Replace the escapes in a text. Without `json_too`, the escapes that JSON requires stay."""

    def plain(match: re.Match[str]) -> str:
        escape = match[0]
        digits = re.sub(r"\\+[ux]|%", "", escape)
        if digits == escape:
            said = _CONTROL.get(escape[-1], escape[-1])
        elif "u" in escape:
            said = bytes.fromhex(digits).decode("utf-16-be", "replace")
        else:
            said = _read_bytes(bytes.fromhex(digits))
        return said if json_too or (said.isprintable() and not set('"\\') & {*said}) else escape

    return _ESCAPES.sub(plain, text)


def _read_bytes(encoded: bytes) -> str:
    try:
        return encoded.decode()
    except UnicodeDecodeError:
        return encoded.decode("latin-1")


def _redacted_keys(keys: Collection[str], redact: Redact, names: Collection[str]) -> list[str]:
    """Redact the keys of an object. Equal results get numbers, as in `***` and `*** #2`."""
    shown: list[str] = []
    like = Counter(name.partition(" #")[0] for name in names)
    for key in keys:
        text = key if key in names else _redacted_text(key, redact)
        is_unlike = key in names or not like[text]
        shown.append(text if is_unlike else f"{text} #{like[text] + 1}")
        like[shown[-1].partition(" #")[0]] += 1
    return shown


def redacted_path(path: str, redact: Redact | None, names: Collection[str] = ()) -> str:
    """Redact the keys in a JSON Pointer. Keys in `names` and indices of lists stay as they are.

    Example:
        >>> redacted_path("/people/Ada/age", lambda text: "***", names=("people", "age"))
        '/people/***/age'
    """
    if redact is None or not path:
        return path
    return pointer(
        key if key in names or key.isdecimal() else _redacted_text(key, redact)
        for key in pointer_parts(path)
    )


def property_names(schema: Any) -> frozenset[str]:
    """Return the names of the properties that a JSON Schema declares, at any depth.

    Example:
        >>> sorted(property_names({"properties": {"to": {"properties": {"name": {}}}}}))
        ['name', 'to']
    """
    if is_array(schema):
        return frozenset(name for part in schema for name in property_names(part))
    if not is_object(schema):
        return frozenset()
    declared: Any = schema.get("properties")
    own = frozenset(declared) if is_object(declared) else frozenset[str]()
    return own.union(*map(property_names, schema.values()))


def redacted_issue(issue: Issue, redact: Redact | None, names: Collection[str] = ()) -> Issue:
    """Redact an issue: its texts, and the keys in its path that are not in `names`."""
    texts = {key: redacted(issue[key], redact) for key in ("message", "expected", "received")}
    return cast("Issue", {**issue, **texts, "path": redacted_path(issue["path"], redact, names)})


def redacted_fields(
    record: Mapping[str, Any], redact: Redact | None, names: Collection[str] = ()
) -> dict[str, Any]:
    """Return the redacted fields of an attempt's result, as an update for its record.

    If `redact` is None, the update is empty.

    Example:
        >>> redacted_fields({"raw": {"text": "Ada"}}, lambda text: "***")["raw"]
        {'text': '***'}
    """
    if redact is None:
        return {}

    def with_redacted(entry: Mapping[str, Any], *fields: str) -> dict[str, Any]:
        return {**entry, **{name: redacted(entry[name], redact) for name in fields}}

    def output(entry: Mapping[str, Any] | None) -> Any:
        return entry and {key: redacted(value, redact, names) for key, value in entry.items()}

    failure, repairs = record.get("failure"), record.get("repairs", [])
    return {
        **{name: output(record.get(name)) for name in ("raw", "repaired", "parsed")},
        "finish_reason": redacted(record.get("finish_reason"), redact),
        "failure": failure and with_redacted(failure, "message"),
        "issues": [redacted_issue(issue, redact, names) for issue in record.get("issues", [])],
        "repairs": [with_redacted(repair, "detail") for repair in repairs],
    }
