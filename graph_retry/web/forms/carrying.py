"""Apply a person's changes in one review to other reviews that failed in the same way.

A change is applied exactly or not at all. If the place in the other review has the same old value,
it gets the person's new value. If it has another value, a number is replaced by the new number, and
text that the person added at the beginning or end is added there as well. All other changes are
refused, so that the person answers this review separately.
"""

from __future__ import annotations

import copy
from typing import Any

from graph_retry._issues import ABSENT, parts_of
from graph_retry._json import is_array, is_number, is_object
from graph_retry._params.patch import changes
from graph_retry._review.review import Review
from graph_retry.web.forms.card import first_value, is_same
from graph_retry.web.forms.ways import NotYetError, Way, changed_fields
from graph_retry.web.words import spoken


def carried(way: Way, decision: dict[str, Any], first: Review, other: Review) -> dict[str, Any]:
    """Return a decision about `other` that makes the same change as `decision` about `first`.

    Raises:
        NotYetError: If this is not possible; the message tells why.
    """
    if way.word not in other.allowed_decisions:
        raise NotYetError("This answer is not allowed here.")
    if other is first or way.needs not in ("params", "output"):
        return decision
    before, there = first_value(first, way.needs), first_value(other, way.needs)
    if way.needs == "output":
        return {**decision, "output": carry(before, decision["output"], there)}
    made = carry(before, {**before, **decision["params"]}, there)
    if not (edited := changed_fields(there, made)):
        raise NotYetError("It has these values already.")
    return {**decision, "params": edited}


def carry(before: Any, after: Any, there: Any) -> Any:
    """Make the change from `before` to `after` in the value `there`.

    Raises:
        NotYetError: If a changed place has another value in `there`.

    Example:
        >>> carry({"a": "Read."}, {"a": "Read. In euros."}, {"a": "Look.", "b": 1})
        {'a': 'Look. In euros.', 'b': 1}
    """
    old, new, made = ({} if value is ABSENT else {"v": value} for value in (before, after, there))
    made = copy.deepcopy(made)
    for place, was, wanted in changes(old, new):
        steps = parts_of(place)
        owner: Any = made
        for step in steps[:-1]:
            owner = _at(owner, step)
        value = _value(was, wanted, _at(owner, steps[-1]))
        if value is None or not _put(owner, steps[-1], value[0]):
            where = spoken(place.removeprefix("/v"))
            raise NotYetError(f"“{where}” has another value here. Answer this review separately.")
    return made.get("v", ABSENT)


def _value(was: Any, wanted: Any, present: Any) -> tuple[Any] | None:
    """Return the new value of a place that holds `present`, as a tuple; None if it is uncertain."""
    if is_same(present, was) or is_same(present, wanted):
        return (wanted,)
    if isinstance(was, str) and isinstance(wanted, str) and isinstance(present, str) and was:
        if wanted.startswith(was):
            return (present + wanted.removeprefix(was),)
        return (wanted.removesuffix(was) + present,) if wanted.endswith(was) else None
    are_numbers = all(is_number(value) for value in (was, wanted, present))
    return (wanted,) if are_numbers else None


def _at(owner: Any, step: str) -> Any:
    if is_object(owner):
        return owner.get(step, ABSENT)
    if is_array(owner) and step.isdecimal() and int(step) < len(owner):
        return owner[int(step)]
    return ABSENT


def _put(owner: Any, step: str, value: Any) -> bool:
    """Set or remove the value at a key or index; return False if there is no such place."""
    if is_object(owner):
        owner.pop(step, None) if value is ABSENT else owner.update({step: value})
        return True
    if not is_array(owner) or int(step) > len(owner):
        return False
    owner[int(step) : int(step) + 1] = [] if value is ABSENT else [value]
    return True
