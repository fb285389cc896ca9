"""The rows of the open reviews, which stay in memory with only their short fields."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from typing import Any

from graph_retry.answering import PendingReview
from graph_retry.observers._notifications import key_of, kind_of

_NUMBERS = re.compile(r"/\d+(?=/|$)")


@dataclass(frozen=True, slots=True)
class Row:
    """An open review as a row of the inbox.

    `key` names the review in addresses, and `thread` names its thread in addresses. `question` is
    equal for reviews that ask the same question again. `labels` are texts such as `tenant: acme`.
    `searched` is the text in which a search looks. `alike` is equal for reviews of calls with one
    name, whose attempts failed in the same way, and which offer the same decisions.
    """

    key: str
    thread: str
    question: tuple[str, int]
    review: PendingReview
    labels: frozenset[str]
    searched: str
    alike: tuple[Any, ...]


def thread_key(thread_id: str | None) -> str:
    """Return a hash of a thread's id for addresses, so that an address does not reveal the id."""
    return hashlib.sha256(f"thread\0{thread_id}".encode()).hexdigest()[:24]


def question_of(review: PendingReview) -> tuple[str, int]:
    """Return the call and the attempt that a review asks about."""
    return review.namespace, review.attempt


def any_item(path: str) -> str:
    """Return a JSON Pointer in which all items of a list count as the same place.

    Example:
        >>> any_item("/items/2/price"), any_item("/name")
        ('/items/*/price', '/name')
    """
    return _NUMBERS.sub("/*", path)


def row_of(review: PendingReview) -> Row:
    """Make the row of a review, without its long fields, because all rows stay in memory."""
    long: dict[str, Any] = {"params": {}, "suggested_params": None, "value": {}, "history": []}
    short = replace(review, **long, diff=[], raw_output=None, output=None, problem=None)
    labels = [f"{name}: {text}" for name, text in review.labels.items()]
    texts = (review.function_name, review.thread_id or "", review.error, kind_of(review), *labels)
    return Row(
        key=key_of(review),
        thread=thread_key(review.thread_id),
        question=question_of(review),
        review=short,
        labels=frozenset(labels),
        searched="\n".join(texts).casefold(),
        alike=_alike(review),
    )


def _alike(review: PendingReview) -> tuple[Any, ...]:
    failure = review.failure or {"kind": "", "type": ""}
    issues = {(any_item(issue["path"]), issue["code"]) for issue in review.issues}
    is_suggested = review.suggested_params is not None
    allowed = tuple(sorted(review.allowed_decisions))
    what = (review.function_name, failure["kind"], failure["type"], tuple(sorted(issues)))
    return (*what, is_suggested, allowed)
