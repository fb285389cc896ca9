"""The content of a review on the page: errors, the model's text, and forms to answer it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import unquote

from jsonpointer import JsonPointerException, resolve_pointer

from graph_retry import PendingReview
from graph_retry.desk.changed import edited_fields
from graph_retry.desk.texts import doubts_of, said
from graph_retry.desk.web.forms.attempt_rows import attempts_told, written_by
from graph_retry.desk.web.forms.form_fields import Field, Form, is_same, quoted
from graph_retry.desk.web.forms.form_values import filled, has_unread, read_form
from graph_retry.desk.web.forms.marks import compared, folded, marked
from graph_retry.desk.web.forms.ways import NotYetError, Way, ways_of
from graph_retry.desk.web.forms.words import is_deeper
from graph_retry.desk.web.posted import DEPTH
from graph_retry.ledger import Ledger
from graph_retry.plugins import (
    ABSENT,
    is_array,
    is_object,
    pointer_parts,
)
from graph_retry.records import Issue
from graph_retry.reviews import DECISIONS, Review, attempt_of, issues_in, output_read

_ASKED = {"until": "Until when", "to": "To whom", "choice": "Which one"}
"""Labels of the form values that are not objects."""

_LATER = {
    "in an hour": 1,
    "in 4 hours": 4,
    "in 12 hours": 12,
    "tomorrow at this time": 24,
    "in 3 days": 72,
    "in a week": 168,
}
"""The times to which a review can be deferred, in hours from now. They need no time zone."""

Posted = Sequence[tuple[str, str]]


@dataclass
class Card:
    """One review, with the ways to answer it and the person's input.

    chosen: The name of the chosen way to answer.
    heading, problem, problem_lines: Why the person's answer was not applied.
    places: The fields to correct, by JSON Pointer.
    forms: The fields of each editable value, by its name (`params`, `output`).
    words: The typed message for each way to answer.
    """

    review: PendingReview
    ways: list[Way]
    chosen: str = ""
    heading: str = "Not sent yet."
    problem: str = ""
    problem_lines: list[str] = field(default_factory=list[str])
    places: list[str] = field(default_factory=list[str])
    forms: dict[str, Field] = field(default_factory=dict[str, Field])
    words: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def key(self) -> str:
        """The review's name in URLs."""
        return self.review.key

    @property
    def whole(self) -> Any:
        """The output that was read. Issues have their places in it."""
        return first_value(self.review, "output")

    @property
    def doubts(self) -> dict[str, list[str]]:
        """The reasons to check some values of a valid output first, by JSON Pointer."""
        return doubts_of(self.review)

    @property
    def texts(self) -> tuple[str, str]:
        """The model's text, and the text after repair."""
        last: Any = attempt_of(self.review) or {"raw": None, "repaired": None}
        raw = written_by(last["raw"]) or self.review.raw_output or ""
        return raw, (last["repaired"] or {"text": raw})["text"]

    @property
    def was_repaired(self) -> bool:
        """Whether the text after repair is not a part of the model's text."""
        raw, read = self.texts
        return read not in raw

    @property
    def pieces(self) -> list[tuple[str, str]]:
        """The pieces of the model's text, each with the pointer of its error, or "".

        The pieces of a repaired text come from the repair. For a valid output, the pointers are
        those of its doubts.
        """
        raw, read = self.texts
        if self.review.failure is None:
            return marked(said(self.review.output), list(self.doubts))
        if not read:
            return []
        before, _, after = (read if self.was_repaired else raw).partition(read)
        pointers = [issue["path"] for issue in self.review.issues]
        pieces = [(before, ""), *marked(read, pointers), (after, "")]
        return [piece for piece in pieces if piece[0]]

    @property
    def folded(self) -> list[tuple[str, str | None]]:
        """The pieces of the model's text. Long pieces without a fault are folded.

        A folded part is a piece whose pointer is None, with a text such as "… 46 lines …".
        """
        return folded(self.pieces)

    @property
    def suggestion(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """The suggested changes of the params, as a comparison of words for each place."""
        return compared(self.review.params, self.review.shown)

    @property
    def alternatives(self) -> list[list[tuple[str, list[tuple[str, str]]]]]:
        """The changes that each alternative makes to the params."""
        return [compared(self.review.params, each) for each in self.review.alternatives]

    @property
    def params(self) -> Field:
        """The params of the call as read-only fields."""
        return _form(self.review, {}).field(self.review.params_schema or {}, self.review.params)

    @property
    def proposals(self) -> list[str]:
        """The names of the proposed params that a button puts into the form."""
        return list(_proposed(self.review))

    @property
    def attempts(self) -> list[dict[str, Any]]:
        """The attempts so far, with their changes and results, the newest first."""
        return attempts_told(Ledger(self.review.history))


def make_card(
    review: PendingReview,
    posted: Posted | None = None,
    problem: str = "",
    issues: Sequence[Issue] = (),
    posted_as: str = "",
) -> Card:
    """Make the card of a review. `posted` has the fields of its form, if a person has sent one.

    `problem` is the reason why the posted answer was refused. Each of the `issues` is shown at its
    field. If the posted form is for an earlier review with the same question, `posted_as` is the
    key of the earlier review.
    """
    card = Card(review, ways_of(review), problem=problem)
    mine = _under(posted_as or card.key, posted or ())
    card.chosen = dict(mine).get("way", "")
    card.words = dict(_under("words", mine))
    about = next((way.needs for way in card.ways if way.word == card.chosen), "")
    for way in [way for way in card.ways if way.needs]:
        which, within = way.needs, _under(way.needs, mine)
        value = _typed(review, which, within) if posted else first_value(review, which)
        told: dict[str, list[str]] = {}
        for one in issues if which == about else ():
            told.setdefault(one["path"], []).append(one["message"])
        refused = dict(told)
        if which == "output":
            _tell_issues(review, value, told)
        form = _form(review, told, which, next(_pressed("add", within), None))
        if which == "output":
            form.doubts = card.doubts
            form.before = first_value(review, which) if posted else ABSENT
        form.as_json = next(_pressed("json", within), None)
        form.posted = [unquote(name.partition(":")[2]) for name, _ in within]
        made = form.field(way.schema, value)
        card.forms[which] = _control(review, which, made, value)
        if which == "params":
            _mark_proposed(review, made, value)
        if problem and which == about:
            card.places = [unquote(part.name, errors="surrogatepass") for part in made.wrong()]
        if refused:
            _tell_refusal(card, refused)
    card.problem, *card.problem_lines = card.problem.splitlines() or [""]
    return card


def _tell_refusal(card: Card, told: Mapping[str, list[str]]) -> None:
    """Show at the top the number of marked fields, and the problems without a field."""
    if count := len(card.places):
        fields = "the field marked below" if count == 1 else f"the {count} fields marked below"
        others = [
            text for where, texts in told.items() if where not in card.places for text in texts
        ]
        card.problem = "\n".join([f"Please correct {fields}:", *others])


def _tell_issues(review: Review, value: Any, told: dict[str, list[str]]) -> None:
    """Add the issues of the model's output to those fields that the person has not changed."""
    before, refused = first_value(review, "output"), set(told)
    # If the form was empty at first, its fields do not show the values with the issues.
    for issue in review.issues if before is not ABSENT else ():
        old, new = (resolve_pointer(each, issue["path"], ABSENT) for each in (before, value))
        if issue["path"] not in refused and not has_unread(new) and is_same(old, new):
            told.setdefault(issue["path"], []).append(issue["message"])


def typed(posted: Posted, *keys: str) -> list[str]:
    """Return a person's messages for some reviews, and values of chosen decisions, as texts.

    Only the posted form is read, because the reviews may be closed.
    """
    texts = list[str]()
    for mine in (_under(key, posted) for key in keys):
        row = DECISIONS.get(dict(mine).get("way", ""))
        value = read_form(_under(row.data, mine)) if row and row.data else ABSENT
        texts += [text for _, text in _under("words", mine)]
        texts += [] if value is ABSENT else [said(value)]
    return [text for text in texts if text.strip()]


def chosen_in(posted: Posted, key: str) -> str:
    """Return the way to answer that a posted form chooses for a review, or ""."""
    way = dict(_under(key, posted)).get("way", "")
    return "" if way == "later" else way


def decided(card: Card, posted: Posted) -> tuple[Way, dict[str, Any]]:
    """Return the chosen way of a card, and the decision from the person's input.

    Raises:
        NotYetError: If no way is chosen, or the input is not complete.
    """
    mine = _under(card.key, posted)
    way = next((way for way in card.ways if way.word == dict(mine).get("way")), None)
    if way is None:
        raise NotYetError("Choose what should happen.")
    value = read_form(_under(way.needs, mine)) if way.needs else ABSENT
    if way.needs:
        value = filled(value, first_value(card.review, way.needs))
    return way, way.make(card.review, value, card.words.get(way.word, "").strip())


def judged(review: PendingReview, posted: Posted) -> dict[str, list[str]]:
    """Validate a draft by the question's schemas. Return the problems by quoted JSON Pointer.

    A pointer may belong to a value that the form does not show.
    """
    card, issues = make_card(review, posted), list[Issue]()
    try:
        _, decision = decided(card, posted)
        issues = issues_in(review, decision)
    except NotYetError as error:
        issues = error.issues
    card = make_card(review, posted, issues=issues)
    needs = next((way.needs for way in card.ways if way.word == card.chosen), "")
    form = card.forms.get(needs)
    told = {part.name: part.problems for part in form.wrong()} if form else {}
    for one in issues:
        if one["message"] not in told.setdefault(quoted(one["path"]), []):
            told[quoted(one["path"])].append(one["message"])
    return told


def _under(start: str, posted: Posted) -> list[tuple[str, str]]:
    """Return the posted fields below the name `start`, without this prefix."""
    start = f"{start}."
    return [(name.removeprefix(start), text) for name, text in posted if name.startswith(start)]


def _form(
    review: Review, told: Mapping[str, Sequence[str]], which: str = "params", add: str | None = None
) -> Form:
    node: dict[str, Any] = review.params_schema or {}
    locked = node.get("propertyNames", {}).get("not", {}).get("enum", ())
    is_params = which == "params"
    return Form(
        review.value["response_schema"],
        told,
        show_absent=not is_params,
        locked=locked if is_params else (),
        add=add,
    )


def _proposed(review: Review) -> dict[str, dict[str, Any]]:
    """Return the proposed params by name: the suggestion, or the alternatives."""
    if review.alternatives:
        return {f"alternative {n}": each for n, each in enumerate(review.alternatives, 1)}
    is_suggested = edited_fields(review.params, review.shown)
    return {"the suggestion": review.shown} if is_suggested else {}


def _mark_proposed(review: Review, made: Field, value: Any) -> None:
    """Mark the fields that have a proposed value in place of the current value."""
    for part in made.fields if is_object(value) else ():
        name = part.label
        part.from_suggestion = not part.is_locked and any(
            name in edited_fields(review.params, each) and is_same(value.get(name), each[name])
            for each in _proposed(review).values()
        )


def _control(review: Review, which: str, made: Field, value: Any) -> Field:
    """Label the fields `until`, `to` and `choice`. Add the choices of times to `until`."""
    made.label = made.label or _ASKED.get(which, "")
    if which == "until" and not isinstance(value, str):
        now = datetime.now(UTC)
        later = {words: (now + timedelta(hours=hours)) for words, hours in _LATER.items()}
        if review.expires_at:
            ends = datetime.fromisoformat(review.expires_at)
            later = {words: moment for words, moment in later.items() if moment < ends}
            if not later:
                soon = {"in 15 minutes": now + timedelta(minutes=15)}
                halfway = {"halfway to its end": now + max(ends - now, timedelta()) / 2}
                later = soon if soon["in 15 minutes"] < ends else halfway
        made.kind, made.is_empty, made.empty = "choice", False, ""
        made.choices = [
            (json.dumps(moment.isoformat(timespec="seconds")), words)
            for words, moment in later.items()
        ]
    elif which in _ASKED:
        made.is_empty, made.empty = False, ""
    return made


def first_value(review: Review, which: str) -> Any:
    """Return the initial values of a form: the current params, or the output that was read.

    If the output is nested too deep to be sent, its form begins empty.
    """
    if which != "output":
        return {"params": review.params, "choice": 1}.get(which, ABSENT)
    try:
        read = output_read(review)
    except RecursionError:
        return ABSENT
    return ABSENT if read is ... or is_deeper(read, DEPTH.most) else read


def _typed(review: Review, which: str, within: Posted) -> Any:
    """Return the posted value of a form, after the change by a pressed button."""
    value = filled(read_form(within), first_value(review, which))
    if which == "params" and is_object(value):
        value = {**review.params, **value}  # Browsers do not post locked fields.
    if is_object(value):
        value |= {
            name: review.params[name]
            for where in _pressed("old", within)
            for name in pointer_parts(where)[:1]
            if name in review.params
        }
        proposed = list(_proposed(review).values())
        for number in _pressed("take", within):
            if number.isdecimal() and 0 < int(number[:9]) <= len(proposed):
                value |= edited_fields(review.params, proposed[int(number) - 1])
    for where in _pressed("remove", within):
        above, _, last = where.rpartition("/")
        with suppress(JsonPointerException):
            items = resolve_pointer(value, above)
            if is_array(items) and last.isdecimal() and int(last) < len(items):
                del items[int(last)]
    return value


def _pressed(what: str, within: Posted) -> Iterator[str]:
    """Yield the JSON Pointer of the pressed button, if its action is `what`."""
    for name, text in within:
        does, _, where = text.partition(":")
        if name == "do" and does == what:
            yield unquote(where, errors="surrogatepass")
