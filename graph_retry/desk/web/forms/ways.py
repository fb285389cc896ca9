"""The ways to answer a review on the page. A way is an offered decision with its form.

The ways come from the table of decisions and from the answer's schema. The template `ways.html`
adds the labels of the buttons.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from graph_retry.desk.changed import edited_fields, removed_field
from graph_retry.desk.web.forms.form_values import has_unread
from graph_retry.output import issue
from graph_retry.plugins import ABSENT, is_object
from graph_retry.reviews import Offered, Review, after_edit, offered


class NotYetError(ValueError):
    """A form is incomplete or wrong. `place` is the JSON Pointer of the wrong field."""

    def __init__(self, why: str, place: str | None = None) -> None:
        super().__init__(why)
        self.issues = [] if place is None else [issue(place, why, "incomplete")]


@dataclass(frozen=True, kw_only=True)
class Way(Offered):
    """One way to answer a review: an offered decision with its form.

    name: The name of the way. `ways.html` has the label of its button under this name.
    words: The label of the box for a message.
    is_dangerous: Whether this decision ends the call at once.
    """

    name: str
    words: str = ""
    is_dangerous: bool = False

    @property
    def takes_output(self) -> bool:
        """Whether this decision may end the call with an output."""
        return self.word == "approve" or self.outcome in ("responded", "overruled")

    def make(self, review: Review, value: Any, words: str = "") -> dict[str, Any]:
        """Make the decision from a person's input: the form's value, and a message.

        Raises:
            NotYetError: If the input is incomplete or cannot be read.
        """
        if self.needs_words and not words:
            raise NotYetError("Write something first.")
        made: dict[str, Any] = {"type": self.word}
        if self.needs:
            if has_unread(value):
                raise NotYetError("Please correct the marked fields.")
            if value is ABSENT:
                raise NotYetError("There is no value yet: fill in the form.", "")
            if value == "" and self.needs != "output":
                raise NotYetError("Fill this in first.", "")
            if self.needs == "until" and _is_too_late(value, review.expires_at):
                raise NotYetError("This review ends before that time: choose an earlier one.", "")
            made[self.needs] = edit_to(value, review) if self.needs == "params" else value
        return made | ({"message": words} if words else {})


def _is_too_late(moment: Any, end: str | None) -> bool:
    try:
        return bool(end) and datetime.fromisoformat(moment) >= datetime.fromisoformat(str(end))
    except (ValueError, TypeError):  # If this is no time, the run refuses it.
        return False


def ways_of(review: Review) -> list[Way]:
    """List the ways to answer that a review offers, in the order of the page."""
    return [_way(offer, review) for offer in offered(review)]


def _way(offer: Offered, review: Review) -> Way:
    word = name = offer.word
    facts: dict[str, Any] = vars(offer)
    if word == "approve" and review.failure is None:
        name = "use"
    elif word == "approve" and review.alternatives:
        name, facts = (
            "approve an alternative",
            {**facts, "needs": "choice", "schema": offer.also["choice"]},
        )
    elif word == "approve" and review.suggested_params is not None:
        name = "approve the suggestion"
    elif word in ("approve", "edit") and review.is_before_call:
        name = f"{word} the first call"
    ends = offer.outcome is not None and not offer.needs
    reason = "What the model should know" if offer.needs_words else "Why" if ends else ""
    reason = "A remark or question that stays with the review" if offer.waits else reason
    return Way(**facts, name=name, words=reason, is_dangerous=ends)


def edit_to(value: Any, review: Review) -> dict[str, Any]:
    """Return the edit after which the call has exactly the params of a form.

    A form begins with the current params, but an edit changes the suggested params. If the person
    did not take a suggested field, the edit restores its current value.

    Raises:
        NotYetError: If nothing was changed, or if an edit cannot make this change.
    """
    if not is_object(value):  # No page makes such a form.
        raise NotYetError("This form is incomplete: open the review again.")
    after = {**review.params, **value}
    if not edited_fields(review.params, after):
        raise NotYetError("Nothing is changed yet: change a field, or choose another answer.")
    changes = edited_fields(review.shown, after)
    if review.value.get("redacted"):
        # The texts in the form are not those of the call, so they cannot be sent.
        kept = [name for name in changes if not edited_fields(review.params, {name: after[name]})]
        if kept or not changes:
            raise NotYetError(
                "The current texts are not shown: take the suggestion first, and then change it.",
                f"/{kept[0]}" if kept else None,
            )
    changes = changes or edited_fields(review.params, after)
    merged, unread = after_edit(review, changes)
    if not unread and (place := removed_field(merged, after)):
        raise NotYetError("An edit cannot remove a field: put it back.", place)
    return changes
