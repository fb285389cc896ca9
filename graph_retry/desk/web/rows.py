"""The rows of the open reviews. They stay in memory with only their short fields."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from itertools import chain, islice
from typing import Any, Protocol

from graph_retry import PendingReview
from graph_retry.desk.web.forms.schema import role_of
from graph_retry.plugins import is_array, is_object, one_line, pointer, since
from graph_retry.reviews import LISTED

TEXTS, SEARCHED, SUBJECT, LEVELS, LONGEST, VISITED, ISSUES = 6, 2_000, 90, 6, 20, 2_000, 3
"""Limits of a row: the texts that may name the review, the searched characters of the params and
the output, the characters of the subject, the levels and list items in which texts are kept, the
visited values, and the issues in the list.
"""

_NUMBERS = re.compile(r"/\d+(?=/|$)")

REMARK = "remark"
"""The label with a person's remark or question about a review."""

COMPARED = 50
"""Maximum number of reviews of a call that are compared to find the subject of one."""


@dataclass(frozen=True, slots=True)
class Row:
    """An open review as a row of the inbox.

    key, thread: The names of the review and of its thread in URLs.
    question: Equal for reviews that ask the same question again.
    labels: Texts such as `tenant: acme`.
    searched: The text that a search reads.
    texts: The beginnings of the first texts in the params, by JSON Pointer.
    output: The beginning of the model's text.
    model: The param of this name, if it is a text.
    alike: Equal for reviews with the same call name, the same kind of failure and the same
        decisions.
    """

    key: str
    thread: str
    question: tuple[str, int]
    review: PendingReview
    labels: frozenset[str]
    searched: str
    alike: tuple[Any, ...]
    texts: tuple[tuple[str, str], ...] = ()
    output: str = ""
    model: str = ""

    @property
    def subject(self) -> str:
        """The subject that the call gave itself, or ""."""
        return self.review.subject or ""

    @property
    def is_put_off(self) -> bool:
        """Whether the review is deferred to a later time."""
        return is_put_off(self.review)


class Named(Protocol):
    """A row of a review, or a past call, which is named by a subject or by texts."""

    @property
    def subject(self) -> str:
        """The subject that the call gave itself, or ""."""
        ...

    @property
    def texts(self) -> tuple[tuple[str, str], ...]:
        """The beginnings of the first texts in the params, by their JSON Pointers."""
        ...


def thread_key(thread_id: str | None) -> str:
    """Return a hash of a thread's id, so that URLs do not reveal the id."""
    return hashlib.sha256(f"thread\0{thread_id}".encode()).hexdigest()[:24]


def is_put_off(review: PendingReview) -> bool:
    """Return whether a review is deferred to a later time."""
    return review.deferred_until is not None and since(review.deferred_until) < 0


def question_of(review: PendingReview) -> tuple[str, int]:
    """Return the call and the attempt under review."""
    return review.namespace, review.attempt


def any_item(path: str) -> str:
    """Return a JSON Pointer without list positions: all items of a list are the same place.

    Example:
        >>> any_item("/items/2/price"), any_item("/name")
        ('/items/*/price', '/name')
    """
    return _NUMBERS.sub("/*", path)


def row_of(review: PendingReview, earlier: Row | None = None) -> Row:
    """Make the row of a review. It has only short fields, because all rows stay in memory.

    `earlier` is the row of an earlier attempt of the same call. The new row gets the earlier name,
    because people know the call by this name.
    """
    labels = texts_of(review.labels)
    found = list(texts_in(review.params))
    texts = (review.function_name, review.thread_id or "", review.error, review.summary, *labels)
    said = "\n".join(text for _, text in found)
    texts += (review.labels.get(REMARK, ""), review.subject or "", said, review.raw_output or "")
    return Row(
        key=review.key,
        thread=thread_key(review.thread_id),
        question=question_of(review),
        review=short(review),
        labels=frozenset(labels),
        searched="\n".join(text[:SEARCHED] for text in texts).casefold(),
        alike=_alike(review),
        output=one_line(review.raw_output or "", 2 * SUBJECT),
        texts=earlier.texts if earlier else named_by(found),
        model=model_of(review.params),
    )


def short(review: PendingReview) -> PendingReview:
    """Return a review with only the fields that lists and outcomes show."""
    kept = {name: getattr(review, name) for name in (*LISTED, "interrupt_id", "graph", "config")}
    failure: Any = review.failure and _cut(review.failure)
    issues: Any = [_cut(issue) for issue in review.issues[:ISSUES]]
    return PendingReview(params={}, failure=failure, issues=issues, **kept)


def _cut(record: Mapping[str, Any]) -> dict[str, Any]:
    return {key: text[:SEARCHED] if isinstance(text, str) else text for key, text in record.items()}


def bytes_in(value: Any) -> int:
    r"""Return the bytes of memory of a record of this page, without graphs and configs.

    Example:
        >>> bytes_in(["a" * 1_000_000, ("\U0001f600" * 1_000_000,)]) // 1_000_000
        5
    """
    if is_dataclass(value):
        held = {each.name: getattr(value, each.name) for each in fields(value)}
        return bytes_in({name: held[name] for name in held.keys() - {"graph", "config"}})
    size, held_by = sys.getsizeof(value), value
    parts: Iterable[Any] = ()
    if isinstance(value, Mapping):
        parts = chain.from_iterable(held_by.items())
    elif isinstance(value, (list, tuple, set, frozenset)):
        parts = held_by
    return size + sum(map(bytes_in, parts))


def texts_of(labels: Mapping[str, str]) -> list[str]:
    """Write labels as a person sees and chooses them, without the remark of one review.

    Example:
        >>> texts_of({"tenant": "acme"})
        ['tenant: acme']
    """
    return [f"{name}: {text}" for name, text in labels.items() if name != REMARK]


def named_by(found: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Return the beginnings of the first texts, each in one line, by JSON Pointer."""
    return tuple((place, one_line(text, SUBJECT)) for place, text in islice(found, TEXTS))


def model_of(params: Any) -> str:
    """Return the name of the model in params, or ""."""
    model = params.get("model") if is_object(params) else None
    return model[:SUBJECT] if isinstance(model, str) else ""


def texts_in(value: Any) -> Iterator[tuple[str, str]]:
    """Yield the beginnings of the texts in a JSON value, with their JSON Pointers."""
    for path, text in islice(_visited(value, ()), VISITED):
        if text is not None:
            yield pointer(path)[:SEARCHED], text


def _visited(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str | None]]:
    """Yield each value in a JSON value as (path, beginning of a text, or None for other values)."""
    is_text = isinstance(value, str) and value.strip() and not value.startswith("data:")
    yield path, value[:SEARCHED].strip() if is_text else None
    if len(path) >= LEVELS:
        return
    parts: Iterable[tuple[Any, Any]] = ()
    if is_object(value) and role_of(value):
        parts = [("content", value["content"])]
    elif is_object(value):
        is_block = "type" in value and len(value) > 1  # Of a message.
        parts = ((key, part) for key, part in value.items() if not (is_block and key == "type"))
    elif is_array(value) and value and role_of(value[-1]):
        # The newest message says what a chat is about.
        parts = [(f"-{back}", part) for back, part in enumerate(reversed(value[-LONGEST:]))]
    elif is_array(value):
        parts = enumerate(value[:LONGEST])
    for name, part in parts:
        yield from _visited(part, (*path, str(name)))


def telling(rows: Iterable[Named]) -> dict[str, int]:
    """Count the different texts of calls with one name, at each place of their params."""
    texts: dict[str, set[str]] = {}
    for place, text in chain.from_iterable(row.texts for row in rows):
        texts.setdefault(place, set()).add(text)
    return {place: len(found) for place, found in texts.items()}


def places_in(rows: Iterable[Row]) -> dict[str, dict[str, int]]:
    """Return the result of `telling` for each call, from its first rows."""
    calls: dict[str, list[Row]] = {}
    for row in rows:
        named = calls.setdefault(row.review.function_name, [])
        if len(named) < COMPARED:
            named.append(row)
    return {name: telling(named) for name, named in calls.items()}


def subject_of(row: Named, places: Mapping[str, int]) -> str:
    """Return the subject of a call, or an excerpt of its params.

    `places` has the number of different texts at each place of the params, as `telling` counts
    them. The excerpt is the text at the place with the most different texts, so that all calls are
    named by the same place. If the calls differ nowhere, the excerpt is the longest text.
    """
    if row.subject:
        return row.subject
    known = {place: places.get(place, 0) for place, _ in row.texts}
    best = max(known, key=known.__getitem__, default="")
    if known.get(best, 0) > 1:
        return dict(row.texts)[best]
    return max((text for _, text in row.texts), key=len, default="")


def _alike(review: PendingReview) -> tuple[Any, ...]:
    failure = review.failure or {"kind": "", "type": ""}
    issues = {(any_item(issue["path"][:SEARCHED]), issue["code"]) for issue in review.issues}
    is_suggested = review.suggested_params is not None
    allowed = tuple(sorted(review.allowed_decisions))
    what = (review.function_name, failure["kind"], failure["type"], tuple(sorted(issues)))
    return (*what, is_suggested, allowed)
