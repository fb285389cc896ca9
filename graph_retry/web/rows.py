"""A line of the list: the short fields of an open review."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from graph_retry.answering import PendingReview
from graph_retry.notifications import KINDS, key_of

_NUMBERS = re.compile(r"/\d+(?=/|$)")


@dataclass(frozen=True, slots=True)
class Row:
    """A review in lists.

    `alike` is equal for reviews of one call that failed in the same way and may be answered in the
    same ways. `searched` is what a search looks at.
    """

    key: str
    review: PendingReview
    kind: str
    labels: frozenset[str]
    searched: str
    alike: tuple[Any, ...]


def row_of(review: PendingReview) -> Row:
    """Make the line of a review."""
    value = {name: review.value[name] for name in ("checkpoint_ns", "review_configs")}
    parts: dict[str, Any] = {"params": {}, "suggested_params": None, "history": [], "diff": []}
    short = replace(review, value=value, raw_output=None, output=None, problem=None, **parts)
    labels = [f"{name}: {text}" for name, text in review.labels.items()]
    kind = kind_of(review)
    texts = (review.function_name, review.thread_id or "", review.error, kind, *labels)
    searched = "\n".join(texts).casefold()
    return Row(key_of(review), short, kind, frozenset(labels), searched, _alike(review))


def kind_of(review: PendingReview) -> str:
    """Return the kind of a review in a word or two."""
    return KINDS[review.failure["kind"]] if review.failure else "valid, to approve"


def _alike(review: PendingReview) -> tuple[Any, ...]:
    """Return a key that is equal for reviews that may need the same answer.

    Items of lists count as one place: the third price is as wrong as the first.
    """
    failure = review.failure or {"kind": "", "type": ""}
    issues = {(_NUMBERS.sub("/*", issue["path"]), issue["code"]) for issue in review.issues}
    is_suggested = review.suggested_params is not None
    allowed = tuple(sorted(review.allowed_decisions))
    what = (review.function_name, failure["kind"], failure["type"], tuple(sorted(issues)))
    return (*what, is_suggested, allowed)


def facts(review: PendingReview) -> dict[str, Any]:
    """Return the texts of a review in its line of the inbox: place, message and received value."""
    if review.failure is None:
        said = [("", "The output is valid and needs an approval.", "")]
    elif review.issues and review.failure["kind"] == "invalid_schema":
        said = [
            (issue["path"], _short(issue["message"]), _short(issue["received"] or ""))
            for issue in review.issues[:3]
        ]
    else:
        said = [("", _short(review.failure["message"]), "")]
    return {"kind": kind_of(review), "said": said}


def _short(text: str) -> str:
    return " ".join(text.split())[:200]
