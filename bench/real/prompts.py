"""The first prompt of a case, and the ways to ask again after a refused answer."""

import json
from typing import Any

from pydantic import TypeAdapter

from bench.real.families import Case


def schema_of(case: Case) -> Any:
    """Return the JSON Schema of the answer, without titles and descriptions."""
    return _bare(TypeAdapter(case.output).json_schema())


def _bare(value: Any, *, names: bool = False) -> Any:
    if isinstance(value, list):
        return [_bare(each) for each in value]
    if not isinstance(value, dict):
        return value
    left_out = () if names else ("title", "description")
    return {
        key: _bare(each, names=key in ("properties", "$defs"))
        for key, each in value.items()
        if key not in left_out
    }


def bare(case: Case) -> str:
    """Return the task and the text, for decoding that is constrained to the schema."""
    return f"{case.prompt}\n\n{case.text}"


def first(case: Case) -> str:
    """Return the first prompt: the task, the text, and the schema."""
    schema = json.dumps(schema_of(case), separators=(",", ":"))
    ask = "Answer with one JSON object, on one line. Its JSON Schema:"
    return f"{bare(case)}\n\n{ask}\n{schema}"
