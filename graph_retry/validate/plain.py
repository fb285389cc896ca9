"""What plain JSON is, and when two values are the same down to their types."""

import dataclasses
from collections import deque
from collections.abc import Iterable
from itertools import zip_longest
from typing import Any, TypeGuard, cast

from pydantic import BaseModel

from graph_retry.records import Issue
from graph_retry.validate.issues import describe, issue

MAX_DEPTH = 200
"""Levels of nesting; pydantic's JSON parser and the checkpointers stop soon after."""

NOT_JSON = "not_json"
TOO_DEEP = "too_deep"
BAD_NUMBERS = ("finite_number", "int_range")
"""Codes of numbers that a type may still turn into something plain, such as a string."""

_SEQUENCES: Any = (list, tuple, deque)

ABSENT: Any = object()
"""Stands for a value that is not there, where `None` would be one."""


def is_dict(value: object) -> TypeGuard[dict[Any, Any]]:
    """Tell whether `value` is a dict, of whatever it holds."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Tell whether `value` is a list, of whatever it holds."""
    return isinstance(value, list)


def json_problem(value: Any) -> Issue | None:
    """Find what keeps `value` from being JSON that graph state can hold; bad numbers come last.

    Plain are `dict` with `str` keys, `list`, `str` without lone surrogates, `int` of 64 bits,
    finite `float`, `bool` and `None`, themselves and not subclasses, at most 200 levels deep.
    """
    bad_number: Issue | None = None
    pending: list[tuple[Any, tuple[Any, ...]]] = [(value, ())]
    while pending:
        node, path = pending.pop()
        kind = cast(Any, type(node))
        if kind is dict or kind is list:
            if len(path) >= MAX_DEPTH:
                return issue(path[:8], f"nested deeper than {MAX_DEPTH} levels", TOO_DEEP)
            for key, child in node.items() if kind is dict else enumerate(node):
                if kind is dict and type(key) is not str:
                    return issue(path, "a key is not text", NOT_JSON, "text", describe(key))
                if kind is dict and not _encodes(key):
                    return issue(path, "a key has lone surrogates", "string_unicode", "text")
                pending.append((child, (*path, key)))
        elif kind is str:
            if not _encodes(node):
                return issue(path, "lone surrogates are not text", "string_unicode", "text")
        elif kind is float:
            if node - node != 0:
                bad_number = issue(
                    path, "JSON has no such number", BAD_NUMBERS[0], "a number", describe(node)
                )
        elif kind is int:
            if not -(2**63) <= node < 2**64:
                bad_number = issue(
                    path, "graph state holds integers of 64 bits", BAD_NUMBERS[1], "64 bits"
                )
        elif not (node is None or kind is bool):
            return issue(path, "this is not plain JSON", NOT_JSON, "JSON", describe(node))
    return bad_number


def _encodes(text: Any) -> bool:
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


def same(one: Any, other: Any) -> bool:
    """Compare two values to the type: `True` is not `1`, `1` is not `1.0`, and NaN equals NaN."""
    if type(one) is not type(other):
        return False
    if is_dict(one):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, _SEQUENCES):
        return _all_same(one, other)
    if isinstance(one, BaseModel):
        return same(_content(one), _content(other))
    if dataclasses.is_dataclass(one):
        names = [field.name for field in dataclasses.fields(one)]
        return _all_same(*([getattr(each, name) for name in names] for each in (one, other)))
    return bool(one == other) or (isinstance(one, float) and one != one and other != other)  # noqa: PLR0124


def _all_same(ones: Iterable[Any], others: Iterable[Any]) -> bool:
    pairs = zip_longest(ones, others, fillvalue=ABSENT)
    return all(same(one, other) for one, other in pairs)


def _content(model: BaseModel) -> dict[str, Any]:
    """Take the fields and extras of a model, without what its properties have cached."""
    fields = {name: getattr(model, name) for name in type(model).model_fields}
    return {**fields, **(model.model_extra or {})}
