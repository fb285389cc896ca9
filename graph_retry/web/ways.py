"""The ways to answer a review, a row each: what a button says, what it needs, what it sends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from graph_retry import accept, approve, comment, edit, reject, respond
from graph_retry._issues import ABSENT, pointer
from graph_retry._json import is_object
from graph_retry._review.forms.javascript import identical
from graph_retry.answering import PendingReview
from graph_retry.web.fields import has_unread


class NotYetError(ValueError):
    """What was filled in makes no decision yet; `place` is the pointer of the field to look at."""

    def __init__(self, why: str, place: str | None = None) -> None:
        super().__init__(why)
        self.place = place


@dataclass(frozen=True)
class Filled:
    """What somebody filled in for one way: the params or the output, and words."""

    value: Any = ABSENT
    words: str = ""


@dataclass(frozen=True)
class Way:
    """One way to answer.

    `key` is its key on the keyboard, `needs` the form it has: `params`, `output` or none. `words`
    labels its box for words, which is optional unless `must_say`.
    """

    word: str
    key: str
    title: str
    tells: str
    button: str
    make: Callable[[PendingReview, Filled], Any]
    needs: str = ""
    words: str = ""
    must_say: bool = False
    is_dangerous: bool = False


def shown_params(review: PendingReview) -> dict[str, Any]:
    """Return the params that an approval calls with, and that edits are merged onto."""
    return review.params if review.suggested_params is None else review.suggested_params


def _approved(_: PendingReview, filled: Filled) -> Any:
    return _with_reason(approve(), filled)


def _edited(review: PendingReview, filled: Filled) -> Any:
    value, shown = _whole(filled), shown_params(review)
    if place := _removed(value, shown):
        raise NotYetError("A field can be changed, not removed: put it back.", place)
    changes = {
        name: part
        for name, part in value.items()
        if name not in shown or not identical(part, shown[name])
    }
    if not changes:
        raise NotYetError("Nothing is changed yet: change a field, or choose another answer.")
    return _with_reason(edit(changes), filled)


def _responded(_: PendingReview, filled: Filled) -> Any:
    return _with_reason(respond(_whole(filled)), filled)


def _with_reason(decision: Any, filled: Filled) -> Any:
    return decision | ({"message": filled.words} if filled.words else {})


def _whole(filled: Filled) -> Any:
    if has_unread(filled.value):
        raise NotYetError("Some fields cannot be read yet: see what stands beside them.")
    if filled.value is ABSENT:
        raise NotYetError("There is no value yet: fill in the form.", "")
    return filled.value


def _removed(value: Any, shown: Any, path: tuple[str, ...] = ()) -> str:
    """Return the pointer of what an edited object has no more: merged, it would stay."""
    if not (is_object(value) and is_object(shown)):
        return ""
    for name, before in shown.items():
        here = (*path, name)
        if name not in value and path:
            return pointer(here)
        if found := _removed(value.get(name, before), before, here):
            return found
    return ""


_APPROVE = Way(
    "approve", "a", "Call the model again, unchanged",
    "The same call is made once more. That helps where the failure was a passing one.",
    "Call the model again, unchanged", _approved,
)  # fmt: skip
_WAYS = (
    _APPROVE,
    Way(
        "edit", "e", "Change the call",
        "Change what the model is asked with. Then it is called again.",
        "Call the model again with these changes", _edited, needs="params",
    ),
    Way(
        "comment", "c", "Tell the model something",
        "Your words are added to what the model is asked with. Then it is called again.",
        "Tell the model, and call it again",
        lambda _, filled: comment(filled.words), words="What the model should know", must_say=True,
    ),
    Way(
        "respond", "r", "Write the output yourself",
        "What you write is used instead of the model's answer. The model is not called.",
        "Use this output", _responded, needs="output",
    ),
    Way(
        "accept", "k", "Take the output as it is",
        "The model's answer is used although it is not valid. That is recorded.",
        "Take the output although it is not valid",
        lambda _, filled: accept(filled.words or None), words="Why it is right", is_dangerous=True,
    ),
    Way(
        "reject", "x", "Stop here",
        "The call ends without an output. The model is not called.",
        "Stop this call",
        lambda _, filled: reject(filled.words or None), words="Why", is_dangerous=True,
    ),
)  # fmt: skip
WAYS: Mapping[str, Way] = {way.word: way for way in _WAYS}
"""The decisions that people make on the page."""

_SUGGESTED = Way(
    "approve", "a", "Call the model again with the suggestion",
    "The call is made with the suggested changes that are shown above.",
    "Call the model again with the suggestion", _approved,
)  # fmt: skip
_VALID = Way(
    "approve", "a", "Take this output",
    "The output is valid, and is used as it is shown above. The model is not called.",
    "Take this output", _approved,
)  # fmt: skip


def ways_of(review: PendingReview) -> list[Way]:
    """List the ways that a review allows, in the order in which they are offered."""
    if review.failure is None:
        known = {**WAYS, "approve": _VALID}
    elif review.suggested_params is not None:
        known = {**WAYS, "approve": _SUGGESTED}
    else:
        known = dict(WAYS)
    allowed = review.allowed_decisions
    return [way for word, way in known.items() if word in allowed]
