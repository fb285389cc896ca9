"""What a call is known by: its first params, or its `key`; pure rules, no LangGraph.

Calls of one name are told apart by content. Where no saved call was made with the same params, one
of them may still be the same call, made from params that change from run to run, such as a prompt
with the time of day in it. `drift` tells how far two params differ in that respect, and `choose`
decides.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, cast

from graph_retry._json import digest, is_array, is_number, is_object

CLOCK, IDS = 1, 2
"""Levels of drift: only times differ; also dates, ids and order. At level 0 nothing differs."""

_CLOCK = re.compile(
    r"""
    \d{4}-\d\d-\d\d[T\ ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?  # ISO 8601
    | \b\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?(?:\s?[ap]\.?m\b\.?)?               # time of day
    | \b1\d{9}(?:\d{3}){0,3}(?:\.\d+)?\b                                      # seconds to ns
    | \b(?:morning|afternoon|evening|night|noon|midnight)\b
    """,
    re.VERBOSE | re.IGNORECASE,
)
_IDS = re.compile(
    r"""
    \b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b                           # UUID
    | \b\d{4}-\d\d-\d\d\b | \b\d{1,2}[./]\d{1,2}[./]\d{2,4}\b                 # dates
    | \b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b
    | \b(?:january|february|march|april|june|july|august|september|october|november|december)\b
    | (?<![\w-])(?=[a-z_-]*\d)[\w-]{16,}(?![\w-])                             # random tokens
    | \b(?=[a-f]*\d)[0-9a-f]{8,}\b                                            # hexadecimal
    """,
    re.VERBOSE | re.IGNORECASE,
)
_TIME = re.compile(r"(?:^|_)(?:now|time|timestamp|clock|date|today|at|on)$", re.IGNORECASE)
"""Names of fields whose numbers are times, whatever they count."""

_SECONDS = (1e9, 2e9)
"""Seconds since 1970 that are taken for a time: from 2001 to 2033."""


_MANY = 10
"""So many calls of one name that wait and are never made again are no accident."""


class Saved(NamedTuple):
    """A call that the same task has saved: its identity and the params it was first made with.

    One that `waits` has asked a person.
    """

    identity: str
    params: Mapping[str, Any]
    waits: bool = False


class Choice(NamedTuple):
    """What a call does: continue the saved call `number`, begin anew (None) or neither, in `doubt`.

    `doubt` is the number of a saved call that it may or may not be.
    """

    number: int | None = None
    doubt: int | None = None


def identity_of(view: Mapping[str, Any], types: Mapping[str, str]) -> str:
    """Return what a call without a `key` is known by: a digest of its first params."""
    return digest(view, types)


def choose(
    identity: str,
    params: Mapping[str, Any],
    saved: Sequence[Saved],
    taken: Mapping[int, str],
    *,
    alone: bool,
) -> Choice:
    """Decide which saved call of its name a call continues.

    Args:
        identity: Of the call that is made.
        params: It is made with these.
        saved: The calls of its name that the task had saved before this execution.
        taken: Which of them calls of this execution continue, and those calls' identities.
        alone: Whether the node makes the call in its own flow, not beside others of its name, and
            as the first of its name in this execution.

    Example:
        >>> saved = [Saved("a", {"at": "10:31"})]
        >>> choose("b", {"at": "10:32"}, saved, {}, alone=True)
        Choice(number=0, doubt=None)
        >>> choose("b", {"at": "Rome"}, saved, {}, alone=True)
        Choice(number=None, doubt=None)
    """
    for index, call in enumerate(saved):
        if call.identity == identity and index not in taken:
            return Choice(index)
    for index, taken_by in taken.items():
        # Another call was taken for this one, which only now turns up.
        if saved[index].identity == identity != taken_by:
            return Choice(doubt=index)
    drifts = {
        index: drift(call.params, params) for index, call in enumerate(saved) if index not in taken
    }
    near = [index for index, level in drifts.items() if level is not None]
    if not near:
        # The params of a call that is asked about again and again change in some other way.
        waiting = [index for index in drifts if saved[index].waits]
        return Choice(doubt=waiting[-1]) if alone and len(waiting) >= _MANY else Choice()
    same_but_for_time = [index for index in near if drifts[index] == CLOCK]
    if len(same_but_for_time) == 1:
        return Choice(same_but_for_time[0])
    return Choice(near[0]) if alone and len(saved) == 1 else Choice(doubt=near[0])


def changed_fields(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """List the top-level fields two params differ in.

    Example:
        >>> changed_fields({"city": "Rome", "at": 1}, {"city": "Rome", "at": 2})
        ['at']
    """
    names = dict.fromkeys([*before, *after])
    return [name for name in names if before.get(name, ...) != after.get(name, ...)]


def drift(before: Any, after: Any) -> Literal[0, 1, 2] | None:
    """Tell what kind of content two params differ in; None if in any other.

    Numbers are data, such as the items of a loop, unless they or their fields look like times.

    Example:
        >>> drift({"city": "Rome", "at": "10:31"}, {"city": "Rome", "at": "10:32"}) == CLOCK
        True
        >>> drift({"id": "6f9619ff-8b86-d011"}, {"id": "7a0142ee-10c4-2f90"}) == IDS
        True
        >>> drift({"city": "Rome"}, {"city": "Oslo"}) is None
        True
    """
    highest = 0
    for left, right in _leaves("", before, after):
        level = next((at for at in range(3) if _masked(left, at) == _masked(right, at)), None)
        if level is None:
            return None
        highest = max(highest, level)
    return cast("Literal[0, 1, 2]", highest)


def _leaves(name: str, before: Any, after: Any) -> list[tuple[Any, Any]]:
    """Pair the values of two JSON documents that differ; what has no counterpart stands alone."""
    if before == after:
        return []
    if is_object(before) and is_object(after) and before.keys() == after.keys():
        parts = [(key, before[key], after[key]) for key in before]
    elif is_array(before) and is_array(after) and len(before) == len(after):
        if _in_order(before) == _in_order(after):
            return [(before, after)]
        parts = [(name, *pair) for pair in zip(before, after, strict=True)]
    elif is_number(before) and is_number(after) and _TIME.search(name):
        return [(_SECONDS[0], _SECONDS[0] + 1)]
    else:
        return [(before, after)]
    return [leaf for part in parts for leaf in _leaves(*part)]


def _masked(value: Any, level: int) -> Any:
    """Return a value without what changes by itself, up to a level."""
    if level and is_number(value):
        return (float, "") if _is_time(value) else (type(value), value)
    if is_array(value) and level >= IDS:
        return (list, _in_order(value))
    if not isinstance(value, str) or level == 0:
        return (type(value), repr(value))
    text = _CLOCK.sub("\0", value)
    if level >= IDS:  # what is drawn or listed at random also comes in another order
        text = " ".join(sorted(re.findall(r"\w+|\0", _IDS.sub("\0", text))))
    return (str, text)


def _in_order(values: Sequence[Any]) -> list[str]:
    return sorted(map(repr, values))


def _is_time(value: float) -> bool:
    least, most = _SECONDS
    return any(least <= abs(value) / unit < most for unit in (1, 1e3, 1e6, 1e9))
