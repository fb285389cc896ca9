"""Find the changes that validation made to a value: conversions, lost digits, ignored fields.

The ledger lists these changes as repairs, so that a reviewer sees them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import reduce
from itertools import islice
from typing import Any

from jsonpointer import set_pointer
from pydantic import AliasChoices, AliasPath, BaseModel, RootModel
from pydantic.fields import FieldInfo
from pydantic_core import to_jsonable_python

from graph_retry._core.ground.issues import MAX_ISSUES, child_of, cut, describe, issue, listed
from graph_retry._core.ground.json import ABSENT, Digits, is_array, is_object, loses_digits, pointer
from graph_retry.lossless._ground import as_repr, lazy
from graph_retry.records import Issue, Repair

_WHOLE = "(whole value)"
_LONG_NUMBER = lazy(
    r"-?(?=[\d.]{16})\d{1,400}(?:\.\d{1,1000}(?:[eE][+-]?\d{1,4})?|[eE][+-]?\d{1,4})"
)
"""Floats with at least 15 digits. A float keeps all digits of shorter numbers."""

_OF_FUNCTIONS = frozenset({"value_error", "assertion_error", "unexpected_error"})
"""The codes of issues that come from a user's validator, and not from the type."""
_TIMES = (datetime, time, timedelta)
_DIGITS = lazy(r"[+-]?[\d.]+")
_NANOSECONDS = lazy(r"[.,]\d{6}\d*[1-9]")
"""A fraction of a second below a microsecond, which Python's times cannot hold."""


def conversions(
    given: Any,
    accepted: Any,
    dumped: Any,
    refused_strictly: Callable[[Any], list[Issue]],
    *,
    is_strict: bool,
) -> tuple[list[Repair], list[Issue]]:
    """List the conversions and the ignored fields of a validated value, and issues for guesses.

    Args:
        given: The JSON value that was validated.
        accepted: The Python value that validation returned.
        dumped: `accepted` as plain Python data.
        refused_strictly: Returns the issues of a strict validation of a value. Strict validation
            reads dates, enums and sets from their JSON forms, and an `int` for a `float`. Such
            changes are not listed as conversions.
        is_strict: Whether the validation was strict.
    """
    refused = [] if is_strict else refused_strictly(given)
    found = [*islice(_changes(given, dumped, "", every=bool(refused)), MAX_ISSUES)]
    # A strict validation reads a text of digits as a date, but `True` only as a boolean.
    spelled = [path for path, text, now in found if isinstance(text, str) and _is_guess(text, now)]
    if spelled:
        refused = refused_strictly(reduce(_with_true, spelled, given))
    by_type = {each["path"] for each in refused if each["code"] not in _OF_FUNCTIONS}
    guessed = [_guess(*one) for one in found if _is_guess(*one[1:]) and one[0] in by_type]
    changes = [_change(*one) for one in found]
    if refused and not changes:
        changes = [_repair("coerced", f"{_WHOLE}: converted")]
    ignored = [*islice(_ignored(given, accepted, ""), MAX_ISSUES)]
    return [*changes, *(_repair("ignored", field) for field in ignored)], guessed


def _with_true(value: Any, path: str) -> Any:
    return set_pointer(value, path, True, inplace=False)


def rounded_numbers(text: str, value: Any) -> list[Repair]:
    """List the numbers in a text that lost digits when they were read as floats."""
    long = {spelled for spelled in _LONG_NUMBER.findall(text) if loses_digits(spelled)}
    read = {*_floats(value)} if long else set[float]()
    return [
        _repair("rounded", f"{cut(spelled, 200)} → {as_repr(float(spelled))}, which loses digits")
        for spelled in sorted(long)[:MAX_ISSUES]
        if float(spelled) in read
    ]


def with_digits(exact: Any, accepted: Any) -> Any:
    """Return a JSON value that gives `Decimal` and `int` fields all digits of their numbers.

    Floats lose digits of JSON numbers. So a rounded number becomes a text for a `Decimal`, and a
    whole number for an `int`.

    Args:
        exact: The JSON value, in which numbers that lose digits are `Digits`.
        accepted: The Python value that validation returned for the rounded numbers.
    """
    if is_object(exact) or is_array(exact):
        known = {key: after for key, _, after in children_of(exact, accepted)}
        if is_object(exact):
            return {key: with_digits(child, known.get(key)) for key, child in exact.items()}
        return [with_digits(child, known.get(at)) for at, child in enumerate(exact)]
    if not isinstance(exact, Digits):
        return exact
    number = Decimal(exact.spelled)
    if isinstance(accepted, Decimal):
        return exact.spelled
    is_int = type(accepted) is int and number == number.to_integral_value()
    return int(number) if is_int else float(exact)


def _floats(value: Any) -> Iterator[float]:
    if isinstance(value, float):
        yield value
    elif is_object(value) or is_array(value):
        for child in value.values() if is_object(value) else value:
            yield from _floats(child)


def _repair(kind: str, detail: str) -> Repair:
    return Repair(kind=kind, position=None, grade="coerced", detail=cut(detail, 500))


def _is_guess(given: Any, now: Any) -> bool:
    """Return whether validation guessed a meaning that the given value does not state.

    A boolean does not state a number. A number does not state a date or time: people read
    `20250702` as a date, but pydantic reads it as a number of seconds.
    """
    if isinstance(given, bool):
        return isinstance(now, int | float)
    is_number = isinstance(given, int | float)
    is_number |= isinstance(given, str) and _DIGITS.fullmatch(given) is not None
    return is_number and isinstance(now, date | time)


def _guess(path: str, given: Any, now: Any) -> Issue:
    wanted = "a date" if isinstance(now, date) else "a number"
    wanted = "a time" if isinstance(now, time) else wanted
    message = f"{wanted} is wanted, and {describe(given)} does not state one"
    return issue(path, message, "guessed", wanted, describe(given))


def _change(path: str, given: Any, now: Any) -> Repair:
    change = f"{path or _WHOLE}: {describe(given)} → {describe(now)}"
    if _loses_digits(given, now):
        return _repair("rounded", f"{change}, which loses digits")
    return _repair("coerced", change)


def _loses_digits(given: Any, now: Any) -> bool:
    is_cut = isinstance(now, _TIMES) and isinstance(given, str) and _NANOSECONDS.search(given)
    return bool(is_cut) or ((type(given), type(now)) == (int, float) and now != given)


def _changes(given: Any, now: Any, path: str, *, every: bool) -> Iterator[tuple[str, Any, Any]]:
    """Yield each changed value, with its path. With `every`, all conversions are yielded.

    Without `every`, only lost digits, guesses, and conversions from or to `bool` are yielded.
    """
    if is_object(given) or is_array(given):
        now = [*now] if isinstance(now, tuple) else now
        for part, child in given.items() if is_object(given) else enumerate(given):
            if (after := child_of(now, part)) is not ABSENT:
                yield from _changes(child, after, path + pointer([part]), every=every)
        return
    plain: list[Any] = to_jsonable_python([given, now], fallback=str, bytes_mode="base64")
    before, after = map(type, plain)
    is_converted = before is not after and (before, after) != (int, float)
    is_listed = is_converted and (every or bool in (before, after))
    if is_listed or _loses_digits(given, now) or (before is str and _is_guess(given, now)):
        yield path, given, now


def _ignored(given: Any, accepted: Any, path: str) -> Iterator[str]:
    """Describe each key of the given objects that validation left out, with its path.

    If a value has two aliases of a field, pydantic reads only one. The other alias is not listed if
    its value is equal, because nothing was lost.
    """
    if is_object(given) and (known := _known_keys(given, accepted)) is not None:
        for name, value in given.items():
            read = known.get(name)
            if read is None or given[read] != value:
                why = f"`{type(accepted).__name__}` has no such field"
                why = why if read is None else f"the same field was read from `{cut(read, 80)}`"
                yield f"{path}{pointer([name])}: {describe(value)} was left out: {why}"
    for name, child, after in children_of(given, accepted):
        yield from _ignored(child, after, path + pointer([name]))


def unknown_object(given: Any, accepted: Any, path: str = "") -> Issue | None:
    """Describe the first object without a known key, because all of its data would be lost."""
    if is_object(given) and given and _is_unread(given, accepted):
        fields = listed(_fields_of(accepted))
        message = f"none of the keys {listed(given)} is a field: {fields}"
        return issue(path, message, "unknown_keys", f"one of {fields}", describe(given))
    for name, child, after in children_of(given, accepted):
        if found := unknown_object(child, after, path + pointer([name])):
            return found
    return None


def _is_unread(given: dict[str, Any], accepted: Any) -> bool:
    known = _known_keys(given, accepted)
    if known is None or not given.keys().isdisjoint(known):
        return False
    # A validator of the user may have read the keys under other names.
    return bool(_fields_of(accepted)) and not getattr(accepted, "model_fields_set", None)


def _fields_of(accepted: Any) -> list[str]:
    """List the fields of a model or dataclass; the fields of a `TypedDict` are unknown."""
    if is_object(accepted):
        return ["…"]
    fields: Any = accepted.__class__.model_fields if isinstance(accepted, BaseModel) else None
    return [*(fields or (field.name for field in dataclasses.fields(accepted)))]


def _known_keys(given: dict[str, Any], accepted: Any) -> dict[str, str] | None:
    """Map each key that an object's type knows to the key that was read for its field.

    The result is None if the type keeps every key.
    """
    if isinstance(accepted, BaseModel):
        model = type(accepted)
        if model.model_config.get("extra", "ignore") != "ignore" or isinstance(accepted, RootModel):
            return None
        known: dict[str, str] = {}
        for name, field in model.model_fields.items():
            spellings = [
                (key, part) for key, part in _spellings(model, name, field) if key in given
            ]
            for key, is_path in spellings:
                known[key] = key if is_path else next(k for k, part in spellings if not part)
        return known
    if dataclasses.is_dataclass(accepted):
        return {field.name: field.name for field in dataclasses.fields(accepted)}
    if is_object(accepted) and len(accepted) < len(given):  # A `TypedDict` drops unknown keys.
        keys: list[Any] = [*accepted]
        return {key: key for key in keys} if all(isinstance(key, str) for key in keys) else None
    return None


def _spellings(model: type[BaseModel], name: str, field: FieldInfo) -> Iterator[tuple[str, bool]]:
    """Yield the keys from which pydantic reads a field, in pydantic's order.

    The flag is true for the first key of an `AliasPath`, which may hold other fields as well.
    """
    alias = field.validation_alias
    config = model.model_config
    choices: Iterable[Any] = alias.choices if isinstance(alias, AliasChoices) else [alias]
    for choice in choices:
        is_path = isinstance(choice, AliasPath)
        first = choice.path[0] if is_path else choice
        if isinstance(first, str):
            yield first, is_path
    if alias is None or config.get("populate_by_name") or config.get("validate_by_name"):
        yield name, False


def children_of(given: Any, accepted: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Yield the key, the given value and the validated value of each member or element."""
    model: Any = accepted if isinstance(accepted, BaseModel) else None
    if isinstance(accepted, RootModel):
        yield from children_of(given, model.root)
    elif is_object(given) and model is not None:
        for name, field in accepted.__class__.model_fields.items():
            for key, _ in _spellings(accepted.__class__, name, field):
                if key in given:
                    yield key, given[key], getattr(model, name)
    elif is_object(given):
        is_record = dataclasses.is_dataclass(accepted)
        for key, child in given.items():
            after = getattr(accepted, key, ABSENT) if is_record else child_of(accepted, key)
            if after is not ABSENT:
                yield key, child, after
    elif is_array(given) and isinstance(accepted, list | tuple):
        made: list[Any] = [*accepted]
        if len(made) == len(given):
            yield from zip(range(len(given)), given, made, strict=True)
