"""Match JSON Schema's `pattern` and `patternProperties` in linear time.

`jsonschema` uses `re`, which takes exponential time for a pattern such as `^(a+)+$`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import jsonschema
from pydantic_core import SchemaError, core_schema
from pydantic_core import SchemaValidator as CompiledSchema

from graph_retry.lossless._ground import error_text

_lib: Any = jsonschema  # The type stubs of `jsonschema` leave much untyped.
_PART = re.compile(r"\\[<>]|\\.|(\[\^?)(\]?(?:\\.|[^\\\]])*)\]", re.DOTALL)
_RANGE = re.compile(r"(\\.|.)-(\\.|.)|(\\.|.)", re.DOTALL)


def with_linear_patterns(draft: Any) -> Any:
    """Return a draft's validator class that matches every pattern in linear time.

    The class also checks the keyword `dependencies`, which newer drafts ignore.
    """
    known = {"dependencies": _lib.Draft7Validator.VALIDATORS["dependencies"], **draft.VALIDATORS}
    additional = _additional(known["additionalProperties"])
    rules = {"pattern": _pattern, "patternProperties": _pattern_properties}
    return _lib.validators.extend(draft, {**known, **rules, "additionalProperties": additional})


@lru_cache(maxsize=256)
def matcher(pattern: str) -> Callable[[str], bool]:
    r"""Return a function that searches a pattern in a text in linear time.

    `$` matches only at the end of the text, as in ECMA 262. Classes such as `\w` and `.` match the
    same characters as in `re`.

    Raises:
        ValueError: If linear time is impossible, because of look-around, back-references, or too
            many repeats.

    Example:
        >>> matcher("(a+)+$")("a" * 100_000 + "b")
        False
    """
    try:
        string = core_schema.str_schema(pattern=_PART.sub(_as_rust, pattern))
        return CompiledSchema(string).isinstance_python
    except SchemaError as error:
        raise ValueError(error_text(error).strip().splitlines()[-1].strip()) from None


def _as_rust(part: re.Match[str]) -> str:
    """Escape characters that are operators in Rust's patterns, but plain characters in `re`."""
    if part[1] is None:
        return part[0][1:] if part[0] in (r"\<", r"\>") else part[0]
    inner = _RANGE.sub(
        lambda m: f"{_plain(m[1])}-{_plain(m[2])}" if m[1] else _plain(m[3]), part[2]
    )
    return f"{part[1]}{inner}]"


def _plain(char: str) -> str:
    return f"\\{char}" if char in "[]&~-" else char


def _pattern(validator: Any, pattern: str, text: Any, _: Any) -> Iterator[Any]:
    if validator.is_type(text, "string") and not matcher(pattern)(text):
        yield _lib.ValidationError(f"{text!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, wanted: Any, value: Any, _: Any) -> Iterator[Any]:
    for pattern, below in wanted.items() if validator.is_type(value, "object") else ():
        for name, child in value.items():
            if matcher(pattern)(name):
                yield from validator.descend(child, below, path=name, schema_path=pattern)


def _additional(stock: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the rule for `additionalProperties`, which would match patterns with backtracking."""

    def judge(validator: Any, wanted: Any, value: Any, schema: Any) -> Iterator[Any]:
        patterns = schema.get("patternProperties")
        if patterns and validator.is_type(value, "object"):
            schema = {key: rule for key, rule in schema.items() if key != "patternProperties"}
            value = {
                name: child
                for name, child in value.items()
                if not any(matcher(pattern)(name) for pattern in patterns)
            }
        yield from stock(validator, wanted, value, schema)

    return judge
