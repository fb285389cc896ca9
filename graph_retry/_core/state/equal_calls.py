"""Choose the saved state of a call among the saved calls with an equal name and equal params.

Calls of one task are equal if they have the same name and the same first params. For example, a
loop over documents makes equal calls if only the closure of each function holds the document. Equal
calls are distinguished by the values that their functions hold (see `ground/held`). If these values
are equal as well, the calls are numbered. If nobody can know which saved call
a call continues, an error is raised.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from graph_retry._core.ground.held.captured import Captured
from graph_retry.errors import ReplayMismatch
from graph_retry.records import SavedFunction

_REMEDY = "give each call a `key=` of its own, such as the id of what it works on"


class SavedCall(NamedTuple):
    """A saved call that is equal to a call that begins.

    function: The function of the saved call; None if an earlier version of graph-retry saved it.
    is_made: Whether the saved call has a finished attempt.
    """

    function: SavedFunction | None
    is_made: bool


EqualCalls = Mapping[int, SavedCall]
"""The saved calls that are equal to a new call, by number."""


def check_equal(name: str, begun: Iterable[Captured], function: Captured) -> None:
    """Refuse a call if its function cannot be distinguished from the function of an equal call.

    `begun` has the functions of the equal calls that this run of the node has begun.

    Raises:
        ValueError: If nothing that can be saved distinguishes the two functions.
    """
    for other in begun:
        if function.like(other) == "unknown":
            held = ", ".join(
                f"`{part}`" for part, item in function.parts.items() if not item.digest
            )
            raise ValueError(
                f"two calls of `{name}` in one node have equal params, and functions that hold "
                f"different objects ({held or 'which the function changes'}), so a resumed thread "
                f"could not tell them apart: {_REMEDY}."
            )


def chosen(name: str, saved: EqualCalls, begun: Iterable[int], function: Captured) -> int | None:
    """Return the number of the saved call that a call continues; None if the call is new.

    Args:
        name: The name of the call.
        saved: The saved calls that are equal to the call, by number.
        begun: The numbers of the equal calls that this run of the node has begun already.
        function: The function of the call.

    Raises:
        ReplayMismatch: If it is not known which saved call the call continues, or whether it
            continues a saved call.
    """
    free = sorted(set(saved).difference(begun))
    compared = {number: function.like_saved(saved[number].function) for number in free}
    found = {likeness: number for number in reversed(free) for likeness in compared[number][:1]}
    if "same" in found:
        return found["same"]
    if "changed" not in found:
        if "unknown" not in found:
            return None
        raise _not_known(name, compared[found["unknown"]].names, function)
    changed = [number for number in free if compared[number].likeness == "changed"]
    functions = [function.steady(saved[number].function) for number in changed]
    first = functions[0]
    is_recorded = first is not None or not function.parts
    if len(changed) > 1 and not (is_recorded and all(each == first for each in functions)):
        why = (
            "an earlier version of graph-retry saved them"
            if first is None
            else "the code of the node was changed meanwhile"
        )
        raise ReplayMismatch(
            f"`{name}` was called {len(saved)} times with equal params and different functions "
            f"when this thread was saved, and it is not known which of the saved calls this call "
            f"continues, because {why}. Nothing was called. Continue the thread with the code that "
            f"saved it; for new threads, {_REMEDY}."
        )
    return changed[0]


def _not_known(name: str, held: list[str], function: Captured) -> ReplayMismatch:
    unread = [f"`{each}`" for each in held if function.parts[each].digest is None]
    changed = [f"`{each}`" for each in held if function.parts[each].digest is not None]
    told = (
        [f"{', '.join(changed)} differs, which may be a change of the same object"]
        if changed
        else []
    )
    told += [f"{', '.join(unread)} cannot be read without using it up"] if unread else []
    told += [] if held else ["the code differs, and no file tells whether it was edited"]
    return ReplayMismatch(
        f"`{name}` was called with equal params when this thread was saved, and it is not known "
        f"whether this call continues the saved call, because of its function: {'; '.join(told)}. "
        f"Nothing was called. Let the function hold data that can be read, such as a text or a "
        f"path, or {_REMEDY}; with a new key, a saved call starts with its first attempt."
    )


def new_number(saved: EqualCalls, begun: Iterable[int]) -> int:
    """Return the smallest number that no equal call has."""
    taken = {*saved, *begun}
    return next(number for number in range(len(taken) + 1) if number not in taken)


def why_new(name: str, saved: EqualCalls, begun: Iterable[int], function: Captured) -> str | None:
    """Return a warning that a new call may be meant to continue a saved call, or None.

    The warning names the values in which the functions of the two calls differ. It is about saved
    calls that this run has not begun, and only about those with a finished attempt and a saved
    function.
    """
    missing = [saved[number] for number in sorted(set(saved).difference(begun))]
    fields = [
        function.like_saved(each.function).names
        for each in missing
        if each.function and each.is_made
    ]
    if not fields:
        return None
    held = ", ".join(f"`{part}`" for part in min(fields, key=len)) or "its code"
    return (
        f"an earlier run of this node made a call of `{name}` with equal params and a function "
        f"that holds other values (they differ in {held}). This run has not made that call so "
        "far; if both are meant to be the same call, whose function changes from run to run, give "
        "the call a `key=` that stays the same, such as the id of what the call works on"
    )
