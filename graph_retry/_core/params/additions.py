"""The parts of a prompt that automation added, kept apart from the text that the caller gave.

Feedback, comments, lessons and corrections are added to a field of the params. Each such part is
known by its place in the params, and never by its looks, because any text may contain the same
words. If somebody edits the field, a part is still known if its exact text occurs once before the
edit and once after it. Otherwise it counts as the text of the person who edited, and stays.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from graph_retry._core.ground.json import digest, is_array, is_object
from graph_retry._core.params.fields import fields_of
from graph_retry.records import Addition, Sealed

BARE = "value"
"""The name of the field for params that are one text, as in their JSON."""


@dataclass
class Added:
    """The fields of some params, and the parts in them that automation added.

    A hook gets it with its error, and writes the parts that it added itself.
    """

    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    parts: Sequence[Addition] = ()

    def still_in(self, fields: Mapping[str, Any]) -> list[Addition]:
        """Return the parts that are still in other params, with their places there."""
        found: list[Addition] = []
        for name in dict.fromkeys(part["field"] for part in self.parts):
            here = [part for part in self.parts if part["field"] == name]
            before, after = self.fields.get(name), fields.get(name)
            if _has_parts(before) and type(before) is type(after):
                found += _kept(before, here, after)
        return found


def named_fields(params: Any) -> Mapping[str, Any]:
    """Return the fields of params by name; a text is the field `value`."""
    return {BARE: params} if isinstance(params, str) else fields_of(params)


def seal(view: Mapping[str, Any], parts: Sequence[Addition]) -> Sealed:
    """Return the parts for state, with a hash of the fields that have parts."""
    return {"of": _hash(view, parts), "parts": list(parts)}


def unsealed(view: Mapping[str, Any], sealed: Sealed | None) -> list[Addition] | None:
    """Return the parts in the params in state; None if they are unknown.

    They are unknown if no step has sealed any, or if somebody has edited the fields.
    """
    if sealed is None or (sealed["parts"] and sealed["of"] != _hash(view, sealed["parts"])):
        return None
    return sealed["parts"]


def without(value: Any, parts: Sequence[Addition]) -> Any:
    """Return a text or a list of messages without these parts of it.

    Example:
        >>> without("Who? No.", [{"by": "comment", "field": "prompt", "start": 4, "end": 8}])
        'Who?'
    """
    for part in sorted(parts, key=lambda part: part["start"], reverse=True):
        value = value[: part["start"]] + value[part["end"] :]
    return value


def moved(parts: Sequence[Addition], at: int, by: int) -> list[Addition]:
    """Return parts whose places move by a number if they begin at a place or behind it."""
    return [
        {**part, "start": part["start"] + by, "end": part["end"] + by}
        if part["start"] >= at
        else part
        for part in parts
    ]


def removed(parts: Sequence[Addition], by: Collection[str]) -> list[Addition]:
    """Return the places of the other parts when a field loses its parts by these authors."""
    kept = [part for part in parts if part["by"] not in by]
    for gone in sorted(parts, key=lambda part: part["start"], reverse=True):
        if gone["by"] in by:
            kept = moved(kept, gone["start"], gone["start"] - gone["end"])
    return kept


def _has_parts(value: Any) -> bool:
    return isinstance(value, str) or is_array(value)


def _hash(view: Mapping[str, Any], parts: Sequence[Addition]) -> str:
    names = sorted({part["field"] for part in parts})
    return digest([view.get(name) for name in names]) if names else ""


def _kept(before: Any, parts: Sequence[Addition], after: Any) -> list[Addition]:
    """Return the parts of one field that are still in its new value."""
    if before is after or (len(before) == len(after) and _is_at(before, after, 0)):
        return list(parts)
    found: list[Addition] = []
    for part in parts:
        start, end = part["start"], part["end"]
        # A person may have removed one of the turns that feedback consists of.
        pieces = [before[start:end]]
        if not isinstance(before, str) and _place(before, after, pieces[0]) is None:
            pieces = [before[at : at + 1] for at in range(start, end)]
        for piece in pieces:
            at = _place(before, after, piece)
            if at is not None:
                found.append({**part, "start": at, "end": at + len(piece)})
    found.sort(key=lambda part: part["start"])
    ends = [0, *(part["end"] for part in found)]
    return [part for part, end in zip(found, ends, strict=False) if part["start"] >= end]


def _place(before: Any, after: Any, piece: Any) -> int | None:
    """Return the place of a piece in the new value; None if it is not the only one, or is gone."""
    places = _places(after, piece)
    is_certain = piece and len(places) == 1 and len(_places(before, piece)) == 1
    return places[0] if is_certain else None


def _places(value: Any, piece: Any) -> list[int]:
    """Return the first two places of a piece, which may overlap."""
    if isinstance(value, str):
        first = value.find(piece)
        second = -1 if first < 0 else value.find(piece, first + 1)
        return [at for at in (first, second) if at >= 0]
    places = (at for at in range(len(value) - len(piece) + 1) if _is_at(piece, value, at))
    return [at for at, _ in zip(places, range(2), strict=False)]


def _is_at(piece: Any, value: Any, at: int) -> bool:
    if isinstance(value, str):
        return value.startswith(piece, at)
    return all(_same(one, value[at + place]) for place, one in enumerate(piece))


def _same(one: Any, other: Any) -> bool:
    """Return whether two messages are equal, without comparing objects of unknown types."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if is_object(one) or is_array(one):
        pairs = one.items() if is_object(one) else enumerate(one)
        fits = len(one) == len(other) and (is_array(one) or one.keys() == other.keys())
        return fits and all(_same(item, other[key]) for key, item in pairs)
    if isinstance(one, str | int | float | None):
        return bool(one == other)
    fields = fields_of(one)
    return bool(fields) and _same(dict(fields), dict(fields_of(other)))
