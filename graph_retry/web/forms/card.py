"""The content of one review on the page: the errors, the model's text, and a form for each way."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import unquote

from jsonpointer import resolve_pointer

from graph_retry._attempts import parsed_value, tokens_of
from graph_retry._issues import ABSENT, excerpt, parts_of
from graph_retry._json import identical, is_array, is_object
from graph_retry._params.patch import changes
from graph_retry._review.review import Review
from graph_retry._schemas import alternatives, element, member
from graph_retry.answering import PendingReview
from graph_retry.ledger import Ledger
from graph_retry.notifications import key_of
from graph_retry.records import Issue
from graph_retry.web.forms.fields import Field, Form, has_unread, read_form
from graph_retry.web.forms.marks import marked, word_diff
from graph_retry.web.forms.schema import blank, branch_of
from graph_retry.web.forms.ways import Filled, NotYetError, Way, ways_of
from graph_retry.web.words import said

_ASKED = {"until": "Until when", "to": "To whom", "choice": "Which one"}
"""Labels of the values that are not objects."""

_LATER = {
    "in an hour": 1,
    "in 4 hours": 4,
    "in 12 hours": 12,
    "tomorrow at this time": 24,
    "in 3 days": 72,
    "in a week": 168,
}
"""The choices for deferring a review, in hours from now, because these need no time zone."""

Posted = Sequence[tuple[str, str]]


@dataclass
class Card:
    """One review, with its ways to answer and the person's input.

    `chosen` is the word of the chosen way. `problem` and `problem_lines` tell why an answer was
    refused. `forms` has the fields by the key of a value, and `words` the messages by way.
    """

    review: PendingReview
    ways: list[Way]
    chosen: str = ""
    problem: str = ""
    problem_lines: list[str] = field(default_factory=list[str])
    forms: dict[str, Field] = field(default_factory=dict[str, Field])
    words: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def key(self) -> str:
        """The name of the review in addresses."""
        return key_of(self.review)

    @property
    def title(self) -> str:
        """The problem in one short sentence, as the heading of the page."""
        review = self.review
        if review.failure is None:
            return "The model's output is valid. Should it be used?"
        count = len(review.issues)
        if review.failure["kind"] == "invalid_schema" and count:
            things = "One thing is" if count == 1 else f"{count} things are"
            return f"{things} wrong with the model's answer."
        return _HAPPENED.get(review.failure["kind"], "The call to the model failed.")

    @property
    def last(self) -> Any:
        """The record of the attempt under review; None if the ledger cannot be read."""
        records = [each for each in self.review.history if each["number"] == self.review.attempt]
        return records[-1] if records else None

    @property
    def pieces(self) -> list[tuple[str, str]]:
        """The model's text in pieces, each with the pointer of its error, or "" if it has none."""
        last: dict[str, Any] = self.last or {}
        raw = _written(last.get("raw")) or self.review.raw_output
        if raw is None:
            return []
        read: str = (last.get("repaired") or {"text": raw})["text"]
        before, is_in, after = raw.partition(read)
        if not is_in:  # The text was repaired, so that it is no part of the model's own text.
            before, after = "", ""
        pointers = [issue["path"] for issue in self.review.issues]
        pieces = [(before, ""), *marked(read, pointers), (after, "")]
        return [piece for piece in pieces if piece[0]]

    @property
    def was_repaired(self) -> bool:
        """Whether `pieces` shows the repaired text, and not the model's own text."""
        last: dict[str, Any] = self.last or {}
        raw = _written(last.get("raw"))
        return raw is not None and "".join(text for text, _ in self.pieces) != raw

    @property
    def suggestion(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """The suggested changes of the params, as a comparison of words for each place."""
        review = self.review
        if review.suggested_params is None:
            return []
        return compared(review.params, review.suggested_params)

    @property
    def params(self) -> Field:
        """The params of the call as fields, to be read."""
        return _form(self.review, {}).field(self.review.params_schema or {}, self.review.params)

    @property
    def suggested_fields(self) -> list[str]:
        """The JSON Pointers of the top-level fields that the suggestion changes."""
        tops = (f"/{where.split('/')[1]}" for where, _ in self.suggestion)
        return list(dict.fromkeys(tops))

    @property
    def attempts(self) -> list[dict[str, Any]]:
        """The attempts so far, the last one first, with their changes and results."""
        return attempts_told(Ledger(self.review.history))

    @property
    def output(self) -> str:
        """The valid output as text."""
        return said(self.review.output)


_HAPPENED = {
    "transient": "The model could not be reached, or was too busy.",
    "invalid_syntax": "The model's answer cannot be read.",
    "invalid_schema": "The model's answer has the wrong form.",
    "truncated": "The model's answer was cut off.",
    "context_overflow": "The text is too long for this model.",
    "refusal": "The model declined to answer.",
    "rejected_input": "The provider rejected the call.",
    "permanent": "The call to the model failed, and would fail again.",
}


def make_card(
    review: PendingReview,
    posted: Posted | None = None,
    problem: str = "",
    issues: Sequence[Issue] = (),
    posted_as: str = "",
) -> Card:
    """Make the card of a review. `posted` are the fields of its form, if a person has sent it.

    `problem` tells why the posted answer was refused. Each of its `issues` stands beside its field.
    `posted_as` is the key of an earlier review whose form was sent, if it asked the same question.
    """
    card = Card(review, ways_of(review), problem=problem)
    mine = _own(posted_as or card.key, posted or ())
    card.chosen = dict(mine).get("way", "")
    card.words = {name.partition(".")[2]: text for name, text in mine if name.startswith("words.")}
    about = next((way.needs for way in card.ways if way.word == card.chosen), "")
    for way in card.ways:
        if not (which := way.needs):
            continue
        value = _changed(review, way, mine) if posted else first_value(review, which)
        told: dict[str, list[str]] = {}
        for one in issues if which == about else ():
            told.setdefault(one["path"], []).append(one["message"])
        refused = dict(told)
        if which == "output":
            _tell_issues(review, value, told)
        form = _form(review, told, way)
        card.forms[which] = _control(which, form.field(way.schema, value), value)
        if refused:
            _tell_refusal(card, refused, form.placed)
    card.problem, *card.problem_lines = card.problem.splitlines() or [""]
    return card


def _tell_refusal(card: Card, told: Mapping[str, list[str]], placed: Collection[str]) -> None:
    """Say at the top how many fields are marked, and what has no field to stand beside."""
    count = sum(len(texts) for where, texts in told.items() if where in placed)
    if count:
        fields = "the field marked below" if count == 1 else f"the {count} fields marked below"
        others = [text for where, texts in told.items() if where not in placed for text in texts]
        card.problem = "\n".join([f"Please correct {fields}.", *others])


def _tell_issues(review: Review, value: Any, told: dict[str, list[str]]) -> None:
    """Add the issues of the model's output to the fields that the person has not changed."""
    before, refused = first_value(review, "output"), set(told)
    for issue in review.issues:
        old, new = (resolve_pointer(each, issue["path"], ABSENT) for each in (before, value))
        if issue["path"] not in refused and not has_unread(new) and is_same(old, new):
            told.setdefault(issue["path"], []).append(issue["message"])


def is_same(one: Any, other: Any) -> bool:
    """Return whether two values are identical as JSON, or both `ABSENT`."""
    if one is ABSENT or other is ABSENT:
        return one is other
    return identical(one, other)


def filled_of(card: Card, posted: Posted) -> tuple[Way, Filled]:
    """Return the chosen way of a card, and the person's input for it.

    Raises:
        NotYetError: If no way is chosen.
    """
    mine = _own(card.key, posted)
    chosen = dict(mine).get("way", "")
    way = next((way for way in card.ways if way.word == chosen), None)
    if way is None:
        raise NotYetError("Choose what should happen.")
    words = card.words.get(way.word, "").strip()
    value = read_form(_within(way.needs, mine)) if way.needs else ABSENT
    return way, Filled(value, words)


def _own(key: str, posted: Posted) -> list[tuple[str, str]]:
    """Return the posted fields of one review, without the review's key in their names."""
    start = f"{key}."
    return [(name.removeprefix(start), text) for name, text in posted if name.startswith(start)]


def _within(which: str, mine: Posted) -> list[tuple[str, str]]:
    start = f"{which}."
    return [(name.removeprefix(start), text) for name, text in mine if name.startswith(start)]


def _form(review: Review, told: Mapping[str, Sequence[str]], way: Way | None = None) -> Form:
    node: dict[str, Any] = review.params_schema or {}
    locked = node.get("propertyNames", {}).get("not", {}).get("enum", ())
    root, is_params = review.value["response_schema"], way is None or way.needs == "params"
    return Form(root, told, show_absent=not is_params, locked=locked if is_params else ())


def _control(which: str, made: Field, value: Any) -> Field:
    """Give the values `until`, `to` and `choice` their own label, and `until` its choices."""
    made.label = made.label or _ASKED.get(which, "")
    if which == "until" and not isinstance(value, str):
        now = datetime.now(UTC)
        later = {words: (now + timedelta(hours=hours)) for words, hours in _LATER.items()}
        made.kind, made.is_empty, made.empty = "choice", False, ""
        made.choices = [
            (json.dumps(moment.isoformat(timespec="seconds")), words)
            for words, moment in later.items()
        ]
    elif which in _ASKED:
        made.is_empty, made.empty = False, ""
    return made


def first_value(review: Review, which: str) -> Any:
    """Return the initial values of a form: the shown params, or the output that was read."""
    if which != "output":
        return {"params": review.shown, "choice": 1}.get(which, ABSENT)
    if review.output is not None:
        return review.output
    records = [each for each in review.history if each["number"] == review.attempt]
    if not records or review.value.get("redacted"):
        return ABSENT  # A redacted text must not become the output.
    try:
        return parsed_value(records[-1])
    except ValueError:
        return ABSENT


def _changed(review: Review, way: Way, mine: Posted) -> Any:
    """Return the posted value of a form, changed by the pressed button, if one was pressed."""
    within = _within(way.needs, mine)
    value = read_form(within)
    if way.needs == "params" and is_object(value):
        value = {**review.shown, **value}  # Browsers do not post locked fields.
    for name, where in within:
        if name == "do":
            value = _done(review, way.schema, value, *where.split(":", 1))
    return value


def _done(review: Review, node: Any, value: Any, what: str, where: str) -> Any:
    """Apply a button at a pointer: add or remove an item, or take a field's old or new value."""
    parts = parts_of(unquote(where, errors="surrogatepass"))
    root = review.value["response_schema"]
    if what in ("old", "new") and parts and is_object(value):
        source = review.params if what == "old" else review.shown
        return {**value, parts[0]: source[parts[0]]} if parts[0] in source else value
    above, owner = value, branch_of(alternatives(node, root), value)
    for part in parts[: len(parts) - (what == "remove")]:
        node, above = _step(owner, root, above, part)
        owner = branch_of(alternatives(node, root), above)
    if not is_array(above):
        return value
    if what == "add":
        above.append(blank(element(owner, len(above), root), root, above[-1] if above else None))
    elif what == "remove" and parts[-1].isdecimal() and int(parts[-1]) < len(above):
        del above[int(parts[-1])]
    return value


def _step(owner: dict[str, Any], root: Any, value: Any, part: str) -> tuple[Any, Any]:
    """Return the schema and the value of one member or item; `None, ABSENT` if there is none."""
    if is_array(value) and part.isdecimal() and int(part) < len(value):
        return element(owner, int(part), root), value[int(part)]
    if is_object(value) and part in value:
        return member(owner, part), value[part]
    return None, ABSENT


def _written(raw: Any) -> str | None:
    """Return the model's output as text; None if there is none."""
    given = [raw[name] for name in ("text", "value") if raw and name in raw]
    return said(given[0]) if given else None


def compared(old: Any, new: Any) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the changes between two JSON values, as a comparison of words for each pointer."""
    return [(where, _pieces(before, after)) for where, before, after in changes(old, new)]


def _pieces(before: Any, after: Any) -> list[tuple[str, str]]:
    if isinstance(before, str) and isinstance(after, str):
        return word_diff(before, after)
    both = [("gone", before), ("new", after)]
    return [(kind, said(value)) for kind, value in both if value is not ABSENT]


def attempts_told(ledger: Ledger) -> list[dict[str, Any]]:
    """Return the attempts of a call for a page, the last one first, with changes and results."""
    return [_told(ledger, record["number"]) for record in reversed(ledger.attempts)]


def _told(ledger: Ledger, number: int) -> dict[str, Any]:
    record = ledger.at(number)
    first = number == ledger.attempts[0]["number"]
    changed: list[tuple[str, list[tuple[str, str]]]] = []
    try:
        changed = [] if first else compared(ledger.params_at(number - 1), ledger.params_at(number))
    except ValueError:  # The checkpoint with these params, or with those before, was deleted.
        known = False
    else:
        known = True
    failure, written = record["failure"], _written(record["raw"])
    return {
        "number": number,
        "author": record["author"],
        "reason": record["reason"],
        "changed": changed,
        "is_known": known,
        "failure": failure,
        "issues": record["issues"],
        "written": written and excerpt(written, 2_000),
        "decision": record["decision"],
        "started_at": record["started_at"],
        "duration": record["duration_s"],
        "tokens": tokens_of(record)["total_tokens"],
    }
