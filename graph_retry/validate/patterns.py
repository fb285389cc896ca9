"""The `pattern` keyword of JSON Schema, matched without backtracking where that is possible."""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Annotated, Any

from jsonschema import ValidationError as SchemaViolation
from pydantic import Field, TypeAdapter, ValidationError
from pydantic_core import SchemaError

MAX_CHARS = 10_000
_OTHER_MEANING = re.compile(r"\[[^\]]*(\[|&&|--|~~)|\\[<>]")
"""What the linear engine reads in its own way: sets in sets, set operations, word edges."""


def match_pattern(validator: Any, pattern: str, text: Any, _: Any) -> Iterator[SchemaViolation]:
    """Check one string, as a keyword function of `jsonschema`."""
    if not validator.is_type(text, "string"):
        return
    linear = _linear(pattern)
    if linear is None and len(text) > MAX_CHARS:
        yield SchemaViolation(f"text over {MAX_CHARS:,} characters is not tried on {pattern!r}")
    elif not (linear(text) if linear else re.search(pattern, text)):
        yield SchemaViolation(f"{text!r} does not match {pattern!r}")


@lru_cache(maxsize=256)
def _linear(pattern: str) -> Callable[[str], bool] | None:
    """Compile `pattern` for pydantic's engine; `None` for one it cannot read, or not the same."""
    if _OTHER_MEANING.search(pattern):
        return None
    try:
        adapter: TypeAdapter[str] = TypeAdapter(Annotated[str, Field(pattern=pattern)])
    except SchemaError:
        return None

    def matches(text: str) -> bool:
        try:
            adapter.validate_python(text)
        except ValidationError:
            return False
        return True

    return matches
