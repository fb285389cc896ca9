"""Find one mistake that causes many issues of a refused answer, and describe it in one issue.

For example, the model put keys into the wrong object, or returned the JSON Schema itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any, NamedTuple, cast

from jsonpointer import resolve_pointer

from graph_retry._core.ground.issues import issue, listed
from graph_retry._core.ground.json import is_array, is_object, pointer, pointer_parts
from graph_retry._core.ground.schemas import (
    ANY_KIND,
    alternatives,
    element,
    kind_of,
    kinds,
    kinds_of,
    member,
)
from graph_retry.records import Issue

Path = tuple[str | int, ...]
_COMBINING = ("anyOf", "allOf", "oneOf", "enum", "const")
_DEPTH = 20


class Move(NamedTuple):
    """The keys of the object at `source` that belong in the object at `target`."""

    keys: tuple[str, ...]
    source: Path
    target: Path


def retold(value: Any, schema: dict[str, Any] | None, issues: Sequence[Issue]) -> list[Issue]:
    """Return the issues of a refused value. A mistake that concerns many fields becomes one issue.

    Example:
        >>> schema = {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}}
        >>> retold(schema, schema, [issue("/a", "missing", "required")])[0]["code"]
        'schema_returned'
    """
    if schema is None:
        return [*issues]
    if is_schema_of(value, schema):
        message = "the answer is the JSON Schema itself: fill in values for its fields"
        fields = f"values for {listed(_fields(schema))}"
        return [issue("", message, "schema_returned", fields, "the JSON Schema")]
    left = [*issues]
    told = list[Issue]()
    for move in moves(value, schema):
        known = {pointer((*move.source, key)) for key in move.keys}
        known |= {pointer((*move.target, key)) for key in move.keys}
        # If the whole object is missing, validation made no issues for its fields.
        is_missing = resolve_pointer(value, pointer(move.target), None) is None
        known |= {pointer(move.target)} if is_missing else set()
        left = [each for each in left if each["path"] not in known]
        told.append(_issue_of(move))
    return [*told, *left]


def _issue_of(move: Move) -> Issue:
    place = pointer(move.target) if move.target else "the outermost object"
    verb, them = ("belongs", "it") if len(move.keys) == 1 else ("belong", "them")
    message = f"{listed(move.keys)} {verb} in {place}: move {them} there"
    source = pointer(move.source) if move.source else "the outermost object"
    return issue(move.target, message, "misplaced", None, f"{listed(move.keys)} in {source}")


def is_schema_of(value: Any, schema: dict[str, Any]) -> bool:
    """Return whether a value holds the schemas of the output's fields, not their values."""
    wanted = _fields(schema)
    if not is_object(value) or not wanted:
        return False
    inner = value.get("properties") if "properties" not in wanted else value
    found: Any = inner if is_object(inner) else value
    if not found or not found.keys() <= wanted.keys() or not all(map(_is_schema, found.values())):
        return False
    return any("object" not in kinds_of(wanted[key], schema) for key in found)


def has_fields(value: Any, schema: dict[str, Any]) -> bool:
    """Return whether a value is an object with one of the fields of the output."""
    return is_object(value) and not _fields(schema).keys().isdisjoint(value)


def _is_schema(value: Any) -> bool:
    if not is_object(value):
        return False
    named = value.get("type")
    names = named if is_array(named) else [named]
    if all(isinstance(name, str) and name in ANY_KIND for name in names):
        return True
    return str(value.get("$ref", "")).startswith("#") or any(key in value for key in _COMBINING)


def _fields(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of the only object that a schema allows; empty if it allows several."""
    known = _object(schema, schema)
    return {} if known is None else cast("dict[str, Any]", known["properties"])


def _object(node: Any, root: Any) -> dict[str, Any] | None:
    """Return a schema's only branch that is an object with named properties, or None."""
    found = [each for each in alternatives(node, root) if "object" in kinds(each)]
    if len(found) != 1 or not is_object(found[0].get("properties")):
        return None
    return found[0]


def moves(value: Any, schema: dict[str, Any]) -> list[Move]:
    """Return the keys of a value that belong in another object of the value.

    A key is moved only if its present object has no place for the key, and if exactly one other
    object fits. The fitting object requires the key, lacks it, and wants a value of this type. One
    of the two objects must contain the other.
    """
    unknown, wanted = list[tuple[str, Path, Any]](), defaultdict[str, list[tuple[Path, Any]]](list)
    for found in _walk(value, schema, schema, (), 0):
        if found.is_wanted:
            wanted[found.key].append((found.path, found.node))
        else:
            unknown.append((found.key, found.path, found.node))
    grouped = defaultdict[tuple[Path, Path], list[str]](list)
    for key, source, held in unknown:
        fitting = [
            target
            for target, node in wanted[key]
            if (_begins(target, source) or _begins(source, target))
            and kind_of(held) in kinds_of(node, schema)
        ]
        if len(fitting) == 1:
            grouped[source, fitting[0]].append(key)
    return [Move(tuple(keys), *between) for between, keys in grouped.items()]


def _begins(path: Path, start: Path) -> bool:
    return path[: len(start)] == start


def moved(value: Any, schema: dict[str, Any]) -> Any:
    """Return a copy of a value in which each misplaced key is in the right object.

    Example:
        >>> inner = {"type": "object", "required": ["n"], "properties": {"n": {}}}
        >>> moved({"n": 1}, {"type": "object", "required": ["at"], "properties": {"at": inner}})
        {'at': {'n': 1}}
    """
    copy = deepcopy(value)
    for move in moves(copy, schema):
        source: Any = resolve_pointer(copy, pointer(move.source))
        target: Any = copy
        for part in move.target:
            if isinstance(part, str) and target.get(part) is None:
                target[part] = {}
            target = target[part]
        for key in move.keys:
            target[key] = source.pop(key)
    return copy


class _Found(NamedTuple):
    key: str
    path: Path
    node: Any
    """The schema of a wanted key, or the value of an unknown key."""
    is_wanted: bool


def _walk(value: Any, node: Any, root: Any, path: Path, depth: int) -> Iterator[_Found]:
    """Yield the required keys that the objects of a value lack, and the unknown keys."""
    if depth > _DEPTH:
        return
    if is_array(value):
        for index, each in enumerate(value[:100]):
            for one in alternatives(node, root):
                yield from _walk(each, element(one, index, root), root, (*path, index), depth + 1)
        return
    known = _object(node, root)
    if known is None or not (value is None or is_object(value)):
        return
    required: Any = known.get("required")
    present: dict[str, Any] = value or {}
    for key, inner in known["properties"].items():
        if key in present:
            if present[key] is not None:
                yield from _walk(present[key], inner, root, (*path, key), depth + 1)
        elif is_array(required) and key in required:
            yield _Found(key, path, inner, is_wanted=True)
            yield from _walk(None, inner, root, (*path, key), depth + 1)
    for key, held in present.items():
        if key not in known["properties"] and member(known, key) in (None, False):
            yield _Found(key, path, held, is_wanted=False)


def under(path: Sequence[str], issues: Sequence[Issue]) -> list[Issue]:
    """Return the issues of the inner value at `path`, with paths from the outermost object."""
    return [
        cast("Issue", {**each, "path": pointer([*path, *pointer_parts(each["path"])])})
        for each in issues
    ]
