"""The ways to answer a review on the page: each offered decision, with the form that it needs.

The offered decisions, their keys and their effects come from the table of decisions and from the
schema of the answer. The template `ways.html` adds the words of the page's buttons.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from graph_retry._core.review.decisions import ROWS
from graph_retry._core.review.forms.foreseen import schema_of
from graph_retry.desk.changed import edited_fields, removed_field
from graph_retry.desk.web.forms.reading import has_unread
from graph_retry.output import issue
from graph_retry.plugins import ABSENT, is_object
from graph_retry.reviews import Review, after_edit


class NotYetError(ValueError):
    """A form is incomplete or wrong. `place` is the JSON Pointer of the wrong field."""

    def __init__(self, why: str, place: str | None = None) -> None:
        super().__init__(why)
        self.issues = [] if place is None else [issue(place, why, "incomplete")]


@dataclass(frozen=True)
class Way:
    """One way to answer.

    `word` is the decision. `name` is the key of the button's words in `ways.html`, and `does` is
    the effect in the words of all clients. `needs` is the key of the value in the form, such as
    `params`, `output` or `until`, or "" without a form. `schema` describes this value. `words` is
    the label of the box for a message. `must_say` means that a message is required. `is_dangerous`
    marks a way that ends the call at once.
    """

    word: str
    name: str
    does: str
    needs: str = ""
    schema: Any = None
    words: str = ""
    must_say: bool = False
    is_dangerous: bool = False

    @property
    def takes_output(self) -> bool:
        """Whether this way ends the call with an output, unless the call is made again."""
        return self.word == "approve" or ROWS[self.word].outcome in ("responded", "overruled")

    def calls(self, review: Review) -> bool:
        """Return whether this way makes the call again."""
        return ROWS[self.word].calls[review.failure is None]

    def make(self, review: Review, value: Any, words: str = "") -> dict[str, Any]:
        """Make the decision from a person's input: the value of the form, and a message.

        Raises:
            NotYetError: If the input is not complete, or not readable.
        """
        if self.must_say and not words:
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
            made[self.needs] = _edited(value, review) if self.needs == "params" else value
        return made | ({"message": words} if words else {})


def _is_too_late(moment: Any, end: str | None) -> bool:
    try:
        return bool(end) and datetime.fromisoformat(moment) >= datetime.fromisoformat(str(end))
    except (ValueError, TypeError):  # The run refuses what is no time, with its own words.
        return False


def ways_of(review: Review) -> list[Way]:
    """List the ways to answer that a review offers, in the order of the page."""
    words = sorted(review.allowed_decisions, key=lambda word: ROWS[word].place)
    return [_way(word, review) for word in words]


def _way(word: str, review: Review) -> Way:
    row, name, needs = ROWS[word], word, ROWS[word].data
    if word == "approve" and review.failure is None:
        name = "use"
    elif word == "approve" and review.alternatives:
        name, needs = "approve an alternative", "choice"
    elif word == "approve" and review.suggested_params is not None:
        name = "approve the suggestion"
    ends = row.outcome is not None and row.data is None
    reason = "What the model should know" if row.message == "needed" else "Why" if ends else ""
    reason = "A remark or question that stays with the review" if row.waits else reason
    return Way(
        word,
        name,
        row.does(review),
        needs=needs or "",
        schema=schema_of(review, word, needs) if needs else None,
        words=reason,
        must_say=row.message == "needed",
        is_dangerous=ends,
    )


def _edited(value: Any, review: Review) -> dict[str, Any]:
    """Return the edit after which the call has exactly the params of a form.

    A form begins with the present params, but an edit applies to the suggested ones. So the edit
    also takes back each suggested field that the person did not take.
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
                "The present texts are not shown: take the suggestion, and then change it.",
                f"/{kept[0]}" if kept else None,
            )
    changes = changes or edited_fields(review.params, after)
    merged, unread = after_edit(review, changes)
    if not unread and (place := removed_field(merged, after)):
        raise NotYetError("A field can be changed, not removed: put it back.", place)
    return changes
