"""The ways to answer a review on the page: each offered decision, with the form that it needs.

The offered decisions, their keys and their effects come from the table of decisions and from the
schema of the answer. This module only adds the words of the page's buttons. A decision without such
words gets those that all clients show.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from graph_retry._issues import ABSENT, issue, pointer
from graph_retry._json import identical, is_object
from graph_retry._review.decisions import ROWS
from graph_retry._review.review import Review
from graph_retry.web.forms.fields import has_unread


class NotYetError(ValueError):
    """A form is not complete or not possible; `place` is the JSON Pointer of the wrong field."""

    def __init__(self, why: str, place: str | None = None) -> None:
        super().__init__(why)
        self.issues = [] if place is None else [issue(place, why, "incomplete")]


class Button(NamedTuple):
    """The words of one way: its key on the keyboard, its title, its effect, and its send button."""

    key: str
    title: str
    tells: str
    sends: str


_BUTTONS = {
    "approve": Button(
        "a",
        "Call the model again, unchanged",
        "Makes the same call once more. This helps after a temporary failure.",
        "Call the model again, unchanged",
    ),
    "edit": Button(
        "e",
        "Change the call",
        "Edit what the model receives. Then it is called again.",
        "Call the model again with these changes",
    ),
    "comment": Button(
        "c",
        "Tell the model something",
        "Your message is added to what the model receives. Then it is called again.",
        "Tell the model and call it again",
    ),
    "respond": Button(
        "r",
        "Write the output yourself",
        "Your output replaces the model's answer. The model is not called again.",
        "Use this output",
    ),
    "accept": Button(
        "o",
        "Use the output as it is",
        "The model's answer is used although it is invalid. The history records this.",
        "Use the output although it is invalid",
    ),
    "defer": Button(
        "d",
        "Answer later",
        "The review leaves the list and comes back at the time you choose.",
        "Answer later",
    ),
    "assign": Button(
        "s",
        "Give it to somebody",
        "The review stays open, and the list shows the name.",
        "Give it to them",
    ),
    "reject": Button(
        "x",
        "Stop here",
        "The call ends without an output. The model is not called again.",
        "Stop this call",
    ),
}
_SUGGESTED = Button(
    "a",
    "Call the model again with the suggestion",
    "Makes the call with the changes suggested above.",
    "Call the model again with the suggestion",
)
_ALTERNATIVES = Button(
    "a",
    "Call the model again with an alternative",
    "Makes the call with the alternative that you choose. They are numbered above.",
    "Call the model again with this alternative",
)
_VALID = Button(
    "a",
    "Use this output",
    "The output is valid, and is used as shown above. The model is not called again.",
    "Use this output",
)
_REASONS = {"needed": "What the model should know", "why": "Why"}


@dataclass(frozen=True)
class Filled:
    """A person's input for one way: the value of its form, and the text of its message box."""

    value: Any = ABSENT
    words: str = ""


@dataclass(frozen=True)
class Way:
    """One way to answer.

    `word` is the decision. `needs` is the key of the value that its form asks for, such as
    `params`, `output` or `until`, or "" if it has no form. `schema` describes this value. `words`
    labels the box for a message, which is required if `must_say` is set. `is_dangerous` marks a way
    that ends the call at once.
    """

    word: str
    button: Button
    needs: str = ""
    schema: Any = None
    words: str = ""
    must_say: bool = False
    is_dangerous: bool = False

    @property
    def takes_output(self) -> bool:
        """Whether this way takes an output, if it does not call the model again."""
        return self.word == "approve" or ROWS[self.word].outcome in ("responded", "overruled")

    def calls(self, review: Review) -> bool:
        """Return whether this way calls the model again."""
        return ROWS[self.word].calls[review.failure is None]

    def make(self, review: Review, filled: Filled) -> dict[str, Any]:
        """Make the decision from a person's input.

        Raises:
            NotYetError: If the input is not complete, or not readable.
        """
        if self.must_say and not filled.words:
            raise NotYetError("Write something first.")
        made: dict[str, Any] = {"type": self.word}
        if self.needs:
            value = _whole(filled)
            if value == "" and self.needs != "output":
                raise NotYetError("Fill this in first.", "")
            made[self.needs] = _changed(value, review) if self.needs == "params" else value
        return made | ({"message": filled.words} if filled.words else {})


def ways_of(review: Review) -> list[Way]:
    """List the ways to answer that a review offers, in the order of the page."""
    words = sorted(review.allowed_decisions, key=_place)
    return [_way(word, review) for word in words if word in ROWS]


def _place(word: str) -> int:
    return list(_BUTTONS).index(word) if word in _BUTTONS else len(_BUTTONS)


def _way(word: str, review: Review) -> Way:
    row = ROWS[word]
    ends = row.outcome is not None and row.data is None
    needs = "choice" if word == "approve" and review.alternatives else row.data
    return Way(
        word,
        _button(word, review),
        needs=needs or "",
        schema=_schema(word, needs, review),
        words=_REASONS[row.message] if ends or row.message == "needed" else "",
        must_say=row.message == "needed",
        is_dangerous=ends,
    )


def _button(word: str, review: Review) -> Button:
    if word == "approve" and review.failure is None:
        return _VALID
    if word == "approve" and review.alternatives:
        return _ALTERNATIVES
    if word == "approve" and review.suggested_params is not None:
        return _SUGGESTED
    if word in _BUTTONS:
        return _BUTTONS[word]
    title = word.capitalize()
    return Button("", title, ROWS[word].does(review), title)


def _schema(word: str, needs: str | None, review: Review) -> Any:
    known = {"params": review.params_schema, "output": review.output_schema}
    if needs is None or needs in known:
        return known.get(needs or "")
    branches: Any = review.value["response_schema"]["oneOf"]
    found = [each["properties"] for each in branches if each["properties"]["type"]["const"] == word]
    return found[0][needs] if found else {}


def _whole(filled: Filled) -> Any:
    if has_unread(filled.value):
        raise NotYetError("Please correct the marked fields.")
    if filled.value is ABSENT:
        raise NotYetError("There is no value yet: fill in the form.", "")
    return filled.value


def _changed(value: Any, review: Review) -> dict[str, Any]:
    """Return the fields that a person changed in the shown params."""
    if place := _removed(value, review.shown):
        raise NotYetError("A field can be changed, not removed: put it back.", place)
    changes = changed_fields(review.shown, value)
    if not changes:
        raise NotYetError("Nothing is changed yet: change a field, or choose another answer.")
    return changes


def changed_fields(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of `after` that differ from `before`, or are not in `before`."""
    return {
        name: part
        for name, part in after.items()
        if name not in before or not identical(part, before[name])
    }


def _removed(value: Any, shown: Any, path: tuple[str, ...] = ()) -> str:
    """Return the pointer of a removed field, or "", because an edit cannot remove a field."""
    if not (is_object(value) and is_object(shown)):
        return ""
    for name, before in shown.items():
        here = (*path, name)
        if name not in value and path:
            return pointer(here)
        if found := _removed(value.get(name, before), before, here):
            return found
    return ""
