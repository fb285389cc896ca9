"""Which values a lax validation converted, as repairs."""

import dataclasses
from collections.abc import Sequence
from typing import Any, cast

from pydantic import BaseModel, ValidationError
from pydantic_core import to_jsonable_python

from graph_retry.records import Repair
from graph_retry.validate.issues import describe, pointer
from graph_retry.validate.plain import ABSENT, is_dict, is_list, same
from graph_retry.validate.pydantic_issues import child_of, real_path

MAX_COERCIONS = 100


def coercions(refusal: ValidationError, given: Any, validated: Any) -> list[Repair]:
    """List what was converted, the first 100, from what a strict validation refuses in `given`.

    A strict validation reads JSON: it takes dates, enums and sets from their JSON forms and an
    `int` for a `float`, so none of these is listed. Nor is what looks the same afterwards.
    """
    found: dict[str, Repair] = {}
    for error in refusal.errors(include_url=False):
        path = real_path(error, given)
        before = _at(given, path)
        after = _at(validated, path)
        place = pointer(path)
        # No container is converted: it is one of several union members that did not fit.
        if before is ABSENT or is_dict(before) or is_list(before):
            continue
        if after is not ABSENT and same(before, to_jsonable_python(after, fallback=str)):
            continue
        became = "converted" if after is ABSENT else f"→ {describe(after)}"
        detail = f"{place or '(whole value)'}: {describe(before)} {became}"
        found[place] = {"kind": "coerced", "position": None, "grade": "coerced", "detail": detail}
        if len(found) == MAX_COERCIONS:
            break
    return list(found.values())


def _at(node: Any, path: Sequence[int | str]) -> Any:
    for part in path:
        child = child_of(node, part)
        node = _field(node, part) if child is ABSENT else child
        if node is ABSENT:
            break
    return node


def _field(node: Any, part: int | str) -> Any:
    """Look up a field of a model or dataclass by its name or its alias."""
    if isinstance(node, BaseModel):
        for name, field in type(node).model_fields.items():
            if part in (name, field.alias, field.validation_alias):
                return getattr(node, name)
    elif dataclasses.is_dataclass(node):
        return getattr(cast(Any, node), str(part), ABSENT)
    return ABSENT
