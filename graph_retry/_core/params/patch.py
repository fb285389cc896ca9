"""Encoded params and their changes: as a patch for the ledger, and as a diff for people."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import jsonpatch

from graph_retry._core.ground.json import ABSENT, as_text, is_array, is_object, pointer
from graph_retry._core.ground.pictures import noted
from graph_retry._core.ground.wording import SENTENCE_END, counted, whole_sentences
from graph_retry.lossless._ground import error_text, identical

_SHOWN_CHARS = 1_000
"""Maximum characters of a value in a diff of at most `_FEW` changes."""

_FEW = 10
"""A diff with more changes than this shows shorter values."""

_SHOWN_CHANGES = 50
"""Maximum number of changes in a diff."""


class Encoded(NamedTuple):
    """Params as graph state holds them.

    view: The params as a JSON object.
    types: The Python types that JSON cannot show, as `{JSON Pointer: type}`.
    """

    view: dict[str, Any]
    types: dict[str, str]


def initial_patch(view: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the patch that sets the whole view, for the first attempt of a ledger.

    Example:
        >>> initial_patch({"topic": "rain"})
        [{'op': 'replace', 'path': '', 'value': {'topic': 'rain'}}]
    """
    return [{"op": "replace", "path": "", "value": copy.deepcopy(view)}]


def diff_views(old: dict[str, Any], new: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the JSON Patch that turns `old` into `new`. If they are equal, it is empty.

    The patch uses only `add`, `remove` and `replace`. The values `1`, `1.0` and `true` differ.

    Example:
        >>> diff_views({"tags": ["a"]}, {"tags": ["a", "b"]})
        [{'op': 'add', 'path': '/tags/1', 'value': 'b'}]
    """
    return [
        {"op": "remove", "path": path}
        if after is ABSENT
        else {"op": "add" if before is ABSENT else "replace", "path": path}
        | {"value": copy.deepcopy(after)}
        for path, before, after in changes(old, new)
    ]


def apply_patch(view: dict[str, Any], patch: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a copy of a view with a JSON Patch applied.

    Raises:
        ValueError: If the patch is malformed, or was not made for this view.

    Example:
        >>> apply_patch({"n": 1}, [{"op": "replace", "path": "/n", "value": 2}])
        {'n': 2}
    """
    try:
        patched: Any = jsonpatch.apply_patch(view, copy.deepcopy(patch))
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException, TypeError) as error:
        raise ValueError(
            f"`patch` cannot be applied to `view` ({error_text(error)}): begin with the first "
            "patch of a ledger, and apply each next patch to the result of the patch before it"
        ) from error
    return cast("dict[str, Any]", patched)


def readable_diff(old: dict[str, Any], new: dict[str, Any]) -> list[dict[str, Any]]:
    """List the changes between two views for a person, but at most 50 of them.

    A long value is cut after 1,000 characters, or after 200 if there are more than ten changes. If
    two long texts begin alike, both are shown from the first different sentence, or from 100
    characters before the difference. A note replaces each picture.

    Example:
        >>> readable_diff({"temperature": 0.7}, {"temperature": 0.0, "seed": 1})
        [{'path': '/temperature', 'before': 0.7, 'after': 0.0}, \
{'path': '/seed', 'before': '(not set)', 'after': 1}]
    """
    all_changes = list(changes(old, new))
    most = _SHOWN_CHARS if len(all_changes) <= _FEW else _SHOWN_CHARS // 5
    lines: list[dict[str, Any]] = []
    for path, *pair in all_changes[:_SHOWN_CHANGES]:
        before, after = (noted(value) for value in pair)
        start = _unlike_from(before, after)
        lines.append(
            {"path": path}
            | {"before": _shown(before, start, most), "after": _shown(after, start, most)}
        )
    if len(all_changes) > len(lines):
        more = f"… and {counted(len(all_changes) - len(lines), 'more change')}"
        lines.append({"path": "", "before": more, "after": more})
    return lines


def _unlike_from(before: Any, after: Any) -> int:
    """Return the index of the first different sentence of two long texts; 0 for other values."""
    if not (isinstance(before, str) and isinstance(after, str)) or len(before + after) <= 120:
        return 0
    pairs = enumerate(zip(before, after, strict=False))
    same = next((n for n, (a, b) in pairs if a != b), min(len(before), len(after)))
    shared = before[:same]
    begins = [found.end() for found in SENTENCE_END.finditer(shared) if same - found.end() <= 200]
    # If a text has no spaces, such as base64, show the text from a little before the difference.
    word = shared.rfind(" ", 0, max(0, same - 15)) + 1
    return begins[-1] if begins else max(word, same - 100, 0)


def _shown(value: Any, start: int, most: int) -> Any:
    if value is ABSENT:
        return "(not set)"
    if isinstance(value, str):
        value = f"…{value[start:]}" if start else value
    text = as_text(value)
    return value if len(text) <= most else whole_sentences(text, most)


def changes(old: Any, new: Any, at: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield each change as (path, old value, new value), in the order of a patch.

    Example:
        >>> list(changes({"a": 1, "b": [1]}, {"a": 2, "b": [1]}))
        [('/a', 1, 2)]
    """
    if is_object(old) and is_object(new):
        for key in {**old, **new}:
            before, after = old.get(key, ABSENT), new.get(key, ABSENT)
            if before is not after:
                yield from changes(before, after, at + pointer((key,)))
    elif is_array(old) and is_array(new):
        # Skip the equal elements at both ends. Compare the elements in between in pairs, and remove
        # or add the surplus. Removals go backwards, so that earlier indices stay valid.
        start, stop, shortest = 0, 0, min(len(old), len(new))
        while start < shortest and identical(old[start], new[start]):
            start += 1
        while stop < shortest - start and identical(old[-1 - stop], new[-1 - stop]):
            stop += 1
        for i in range(start, shortest - stop):
            yield from changes(old[i], new[i], f"{at}/{i}")
        for i in reversed(range(shortest - stop, len(old) - stop)):
            yield f"{at}/{i}", old[i], ABSENT
        for i in range(shortest - stop, len(new) - stop):
            yield f"{at}/{i}", ABSENT, new[i]
    elif type(old) is not type(new) or old != new:
        yield at, old, new
