"""Apply a person's changes in one review to other reviews that failed in the same way.

A change is applied exactly or not at all. If another review has the same old value, it gets the
person's new value. A different number becomes the person's number. A different text gets the words
that the person added at the beginning or end. Any other change is not applied, and the person
answers the other review separately.
"""

from __future__ import annotations

from typing import Any

from jsonpointer import resolve_pointer

from graph_retry.desk.changed import edited_fields
from graph_retry.desk.texts import spoken
from graph_retry.desk.web.forms.card import first_value
from graph_retry.desk.web.forms.form_fields import is_same
from graph_retry.desk.web.forms.ways import NotYetError, Way, edit_to
from graph_retry.plugins import ABSENT, apply_patch, changes, is_number, is_object
from graph_retry.reviews import Review


def carried(way: Way, decision: dict[str, Any], first: Review, other: Review) -> dict[str, Any]:
    """Return a decision about `other` with the same change as `decision` about `first`.

    Raises:
        NotYetError: If the same change is not possible. The message is the reason.
    """
    if way.word not in other.allowed_decisions:
        raise NotYetError("This answer is not allowed here.")
    if other is first or way.needs not in ("params", "output"):
        return decision
    before, there = first_value(first, way.needs), first_value(other, way.needs)
    if way.needs == "output":
        return {**decision, "output": carry(before, decision["output"], there)}
    made = carry(before, {**first.shown, **decision["params"]}, there)
    if not edited_fields(there, made):
        raise NotYetError("It has these values already.")
    return {**decision, "params": edit_to(made, other)}


def carry(before: Any, after: Any, there: Any) -> Any:
    """Apply the change from `before` to `after` to the value `there`.

    Raises:
        NotYetError: If the value of a changed place in `there` does not allow the change.

    Example:
        >>> carry({"a": "Read."}, {"a": "Read. In euros."}, {"a": "Look.", "b": 1})
        {'a': 'Look. In euros.', 'b': 1}
    """
    old, new, made = ({} if value is ABSENT else {"v": value} for value in (before, after, there))
    for place, was, wanted in changes(old, new):
        owner = resolve_pointer(made, place.rpartition("/")[0], None)
        present = resolve_pointer(made, place, ABSENT)
        if is_same(present, wanted) and (is_object(owner) or wanted is not ABSENT):
            continue
        try:
            value = _value(was, wanted, present)
            step = {"op": "add" if present is ABSENT else "replace", "path": place, "value": value}
            if value is ABSENT:
                step = {"op": "remove", "path": place}
            made = apply_patch(made, [step])
        except ValueError:
            where = spoken(place.removeprefix("/v"))
            why = f"“{where}” has another value here. Answer this review separately."
            raise NotYetError(why) from None
    return made.get("v", ABSENT)


def _value(was: Any, wanted: Any, present: Any) -> Any:
    """Return the new value of a place, instead of the current value `present`.

    Raises:
        ValueError: If there is no certain new value.
    """
    if is_same(present, was) or all(is_number(value) for value in (was, wanted, present)):
        return wanted
    if isinstance(was, str) and isinstance(wanted, str) and isinstance(present, str) and was:
        if wanted.startswith(was):
            return present + wanted.removeprefix(was)
        if wanted.endswith(was):
            return wanted.removesuffix(was) + present
    raise ValueError("another value")
