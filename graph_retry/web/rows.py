"""The row of an open review in the inbox, with only its short fields."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from graph_retry.answering import PendingReview
from graph_retry.notifications import KINDS, key_of

_NUMBERS = re.compile(r"/\d+(?=/|$)")


@dataclass(frozen=True, slots=True)
class Row:
    """An open review as a row of the inbox.

    `key` names it in addresses. `kind` is the failure kind in words. `labels` are texts such as
    `tenant: acme`. `searched` is the text that a search looks through. `alike` is equal for reviews
    of one call that failed in the same way and offer the same decisions.
    """

    key: str
    review: PendingReview
    kind: str
    labels: frozenset[str]
    searched: str
    alike: tuple[Any, ...]


def row_of(review: PendingReview) -> Row:
    """Make the row of a review, without its long fields, because all rows stay in memory."""
    value = {name: review.value[name] for name in ("checkpoint_ns", "review_configs")}
    parts: dict[str, Any] = {"params": {}, "suggested_params": None, "history": [], "diff": []}
    short = replace(review, value=value, raw_output=None, output=None, problem=None, **parts)
    labels = [f"{name}: {text}" for name, text in review.labels.items()]
    kind = kind_of(review)
    texts = (review.function_name, review.thread_id or "", review.error, kind, *labels)
    searched = "\n".join(texts).casefold()
    return Row(key_of(review), short, kind, frozenset(labels), searched, _alike(review))


def kind_of(review: PendingReview) -> str:
    """Return the failure kind of a review in words, or that its output is valid."""
    return KINDS[review.failure["kind"]] if review.failure else "valid, to approve"


def _alike(review: PendingReview) -> tuple[Any, ...]:
    """Return a key that is equal for reviews that may need the same answer.

    All items of a list count as the same place. So a wrong third price makes a review like another
    review with a wrong first price.
    """
    failure = review.failure or {"kind": "", "type": ""}
    issues = {(_NUMBERS.sub("/*", issue["path"]), issue["code"]) for issue in review.issues}
    is_suggested = review.suggested_params is not None
    allowed = tuple(sorted(review.allowed_decisions))
    what = (review.function_name, failure["kind"], failure["type"], tuple(sorted(issues)))
    return (*what, is_suggested, allowed)


def facts(review: PendingReview) -> dict[str, Any]:
    """Return the texts of a review's row: its kind, and place, message and value of each issue."""
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
