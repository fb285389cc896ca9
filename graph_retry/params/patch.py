"""Changes between two views: RFC 6902 patches for the ledger, a short diff for people."""

import copy
import json
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import jsonpatch

from graph_retry.params.jsonlike import is_array, is_object
from graph_retry.validate.issues import pointer

ABSENT = "(not set)"
"""Stands in a readable diff for a field that is not there."""

_SHOWN_CHARS = 200
_SHOWN_CHANGES = 50


class _Change(NamedTuple):
    op: str
    path: str
    before: Any = None
    after: Any = None


def initial_patch(view: dict[str, Any]) -> list[dict[str, Any]]:
    """Write the patch of the first attempt: the whole view.

    Example:
        >>> initial_patch({"topic": "rain"})
        [{'op': 'replace', 'path': '', 'value': {'topic': 'rain'}}]
    """
    return [{"op": "replace", "path": "", "value": copy.deepcopy(view)}]


def diff_views(old: dict[str, Any], new: dict[str, Any]) -> list[dict[str, Any]]:
    """Write the patch that turns `old` into `new`, in `add`, `remove` and `replace` only.

    Values are told apart strictly by type: `1`, `1.0` and `true` differ. No patch, no change.

    Example:
        >>> diff_views({"tags": ["a"]}, {"tags": ["a", "b"]})
        [{'op': 'add', 'path': '/tags/1', 'value': 'b'}]
    """
    return [
        {"op": change.op, "path": change.path}
        | ({} if change.op == "remove" else {"value": copy.deepcopy(change.after)})
        for change in _changes(old, new, "")
    ]


def apply_patch(view: dict[str, Any], patch: list[dict[str, Any]]) -> dict[str, Any]:
    """Return `view` with the patch applied; both stay as they are.

    Raises:
        ValueError: The patch is not one, or was not made for this view.

    Example:
        >>> apply_patch({"n": 1}, [{"op": "replace", "path": "/n", "value": 2}])
        {'n': 2}
    """
    try:
        patched: Any = jsonpatch.apply_patch(view, copy.deepcopy(patch))
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException, TypeError) as error:
        raise ValueError(
            f"`patch` does not apply to the view ({error}): pass the patches of one ledger, "
            "in its order"
        ) from error
    return cast("dict[str, Any]", patched)


def readable_diff(old: dict[str, Any], new: dict[str, Any]) -> list[dict[str, Any]]:
    """List what changed, for a person: long values are cut, at most 50 changes are told.

    Example:
        >>> readable_diff({"temperature": 0.7}, {"temperature": 0.0, "seed": 1})
        [{'path': '/temperature', 'before': 0.7, 'after': 0.0}, \
{'path': '/seed', 'before': '(not set)', 'after': 1}]
    """
    changes = list(_changes(old, new, ""))
    told = [
        {
            "path": change.path,
            "before": ABSENT if change.op == "add" else _cut(change.before),
            "after": ABSENT if change.op == "remove" else _cut(change.after),
        }
        for change in changes[:_SHOWN_CHANGES]
    ]
    if len(changes) > len(told):
        more = f"… and {len(changes) - len(told)} more changes"
        told.append({"path": "", "before": more, "after": more})
    return told


def _changes(old: Any, new: Any, at: str) -> Iterator[_Change]:
    if is_object(old) and is_object(new):
        for key in old:
            if key not in new:
                yield _Change("remove", at + pointer((key,)), before=old[key])
        for key, value in new.items():
            path = at + pointer((key,))
            if key in old:
                yield from _changes(old[key], value, path)
            else:
                yield _Change("add", path, after=value)
    elif is_array(old) and is_array(new):
        yield from _list_changes(old, new, at)
    elif type(old) is not type(new) or old != new:
        yield _Change("replace", at, old, new)


def _list_changes(old: list[Any], new: list[Any], at: str) -> Iterator[_Change]:
    """Pair what stands between the equal ends, then cut off or fill in the rest."""
    start, stop, shortest = 0, 0, min(len(old), len(new))
    if len(old) != len(new):
        while start < shortest and _same(old[start], new[start]):
            start += 1
        while stop < shortest - start and _same(old[-1 - stop], new[-1 - stop]):
            stop += 1
    paired = shortest - stop
    for i in range(start, paired):
        yield from _changes(old[i], new[i], f"{at}/{i}")
    for i in reversed(range(paired, len(old) - stop)):
        yield _Change("remove", f"{at}/{i}", before=old[i])
    for i in range(paired, len(new) - stop):
        yield _Change("add", f"{at}/{i}", after=new[i])


def _same(old: Any, new: Any) -> bool:
    return next(_changes(old, new, ""), None) is None


def _cut(value: Any) -> Any:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if len(text) <= _SHOWN_CHARS:
        return value
    return f"{text[:_SHOWN_CHARS]}… ({len(text):,} characters)"
