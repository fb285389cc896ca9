"""Rules of JSON Schema keywords that end in bounded time, whatever schema and value they meet.

The stock ones match patterns by backtracking and compare items and choices one by one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

import jsonschema
from pydantic_core import SchemaError, core_schema
from pydantic_core import SchemaValidator as CompiledSchema

from graph_retry.params.jsonlike import is_array, is_object
from graph_retry.validate.issues import literal

MAX_STEPS = 1_000_000
"""Keywords applied to values in one check; a large value or an error counts for several."""

_lib: Any = jsonschema  # Its stubs leave much untyped.
_left: ContextVar[list[int]] = ContextVar("steps left")
_PART = re.compile(r"\\[<>]|\\.|(\[\^?)(\]?(?:\\.|[^\\\]])*)\]", re.DOTALL)
_RANGE = re.compile(r"(\\.|.)-(\\.|.)|(\\.|.)", re.DOTALL)


def bounded(draft: Any) -> Any:
    """Return a draft's validator class whose every keyword counts its steps."""
    ours = {
        "type": _type,
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional(draft.VALIDATORS["additionalProperties"]),
        "required": _required,
        "uniqueItems": _unique_items,
        "enum": _enum(),
    }
    rules = {**draft.VALIDATORS, **ours}
    return _lib.validators.extend(draft, {word: _counted(rule) for word, rule in rules.items()})


def start_counting() -> None:
    """Give the check that begins here all its steps."""
    _left.set([MAX_STEPS])


@lru_cache(maxsize=256)
def matcher(pattern: str) -> Callable[[str], bool]:
    r"""Return a search for a pattern that takes linear time.

    `$` is the very end, as in ECMA 262; `.`, `\w` and the like are those of `re`.

    Raises:
        ValueError: If there is no such search: for look-around, back-references, or too many
            repeats.

    Example:
        >>> matcher("(a+)+$")("a" * 100_000 + "b")
        False
    """
    try:
        string = core_schema.str_schema(pattern=_PART.sub(_as_rust, pattern))
        return CompiledSchema(string).isinstance_python
    except SchemaError as error:
        raise ValueError(str(error).strip().splitlines()[-1].strip()) from None


def _as_rust(part: re.Match[str]) -> str:
    """Write a part of a pattern so that Rust sees no operators where `re` has characters."""
    if part[1] is None:
        return part[0][1:] if part[0] in (r"\<", r"\>") else part[0]
    inner = _RANGE.sub(
        lambda m: f"{_plain(m[1])}-{_plain(m[2])}" if m[1] else _plain(m[3]), part[2]
    )
    return f"{part[1]}{inner}]"


def _plain(char: str) -> str:
    return f"\\{char}" if char in "[]&~-" else char


def _spend(steps: int) -> None:
    left = _left.get()
    left[0] -= steps
    if left[0] < 0:
        raise ValueError(
            f"to judge this value by the JSON Schema takes more than {MAX_STEPS:,} steps: make it "
            "smaller, or the schema simpler"
        )


def _counted(rule: Callable[..., Any]) -> Callable[..., Any]:
    def judge(validator: Any, wanted: Any, value: Any, schema: Any) -> Iterator[Any]:
        size = len(wanted) if is_object(wanted) or is_array(wanted) else 0
        size = 0 if wanted is schema.get("enum") else size  # these are looked up, not gone through
        _spend(1 + size // 50 + (len(value) // 250 if isinstance(value, str) else 0))
        for error in rule(validator, wanted, value, schema) or ():
            _spend(5 + len(error.message) // 250)  # it may spell out the whole value
            yield error

    return judge


def _matches(pattern: str, name: str) -> bool:
    _spend(1 + len(name) // 250)
    return matcher(pattern)(name)


def _type(validator: Any, types: Any, value: Any, _: Any) -> Iterator[Any]:
    types = types if is_array(types) else [types]
    if not any(validator.is_type(value, each) for each in types):
        names = ", ".join(map(repr, types))
        yield _lib.ValidationError(f"{literal(value, 80)} is not of type {names}")


def _pattern(validator: Any, pattern: str, text: Any, _: Any) -> Iterator[Any]:
    if validator.is_type(text, "string") and not matcher(pattern)(text):
        yield _lib.ValidationError(f"{text!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, wanted: Any, value: Any, _: Any) -> Iterator[Any]:
    for pattern, below in wanted.items() if validator.is_type(value, "object") else ():
        for name, each in value.items():
            if _matches(pattern, name):
                yield from validator.descend(each, below, path=name, schema_path=pattern)


def _additional(stock: Callable[..., Any]) -> Callable[..., Any]:
    """Return the stock rule for what no pattern matches; it would match by backtracking."""

    def judge(validator: Any, wanted: Any, value: Any, schema: Any) -> Iterator[Any]:
        patterns = schema.get("patternProperties")
        if patterns and validator.is_type(value, "object"):
            schema = {key: each for key, each in schema.items() if key != "patternProperties"}
            value = {
                name: each
                for name, each in value.items()
                if not any(_matches(pattern, name) for pattern in patterns)
            }
        yield from stock(validator, wanted, value, schema)

    return judge


def _required(validator: Any, names: Any, value: Any, _: Any) -> Iterator[Any]:
    """Report a missing property at its own path, where the stock rule names its parent."""
    for name in names if validator.is_type(value, "object") else ():
        if name not in value:
            yield _lib.ValidationError(f"{name!r} is a required property", path=[name])


def _unique_items(validator: Any, wanted: Any, value: Any, _: Any) -> Iterator[Any]:
    if wanted and validator.is_type(value, "array") and len(set(map(_key, value))) < len(value):
        yield _lib.ValidationError(f"{value!r} has non-unique elements")


def _enum() -> Callable[..., Any]:
    """Return the rule with a memory of the choices it has met, which live as long as it does."""
    known: dict[int, tuple[Any, frozenset[str]]] = {}

    def judge(_: Any, choices: Any, value: Any, __: Any) -> Iterator[Any]:
        if id(choices) not in known:
            known[id(choices)] = choices, frozenset(map(_key, choices))
        if _key(value) not in known[id(choices)][1]:
            yield _lib.ValidationError(f"{value!r} is not one of {literal(choices)}")

    return judge


def _key(value: Any) -> str:
    """Write a value so that equal ones read the same: `1` equals `1.0`, and not `true`."""
    text = json.dumps(_whole(value), sort_keys=True)
    _spend(len(text) // 250)
    return text


def _whole(value: Any) -> Any:
    if is_object(value):
        return {name: _whole(each) for name, each in value.items()}
    if is_array(value):
        return [_whole(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
