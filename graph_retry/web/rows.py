"""The rows of the open reviews, which stay in memory with only their short fields."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Any

from graph_retry.answering import PendingReview
from graph_retry.notifications import key_of, kind_of

_NUMBERS = re.compile(r"/\d+(?=/|$)")


@dataclass(frozen=True, slots=True)
class Row:
    """An open review as a row of the inbox.

    `key` names it in addresses, and `thread` names its thread there. `kind` is the failure kind in
    words. `labels` are texts such as `tenant: acme`. `searched` is the text that a search looks
    through. `alike` is equal for reviews of one call that failed in the same way and offer the same
    decisions.
    """

    key: str
    thread: str
    review: PendingReview
    kind: str
    labels: frozenset[str]
    searched: str
    alike: tuple[Any, ...]


class Rows:
    """The rows of the open reviews, found by key, by thread or by likeness.

    `version` grows whenever a row comes or goes. `by_key` has the rows that were read longest ago
    first.
    """

    def __init__(self) -> None:
        self.version = 0
        self.by_key: dict[str, Row] = {}
        self._groups: defaultdict[Any, dict[str, Row]] = defaultdict(dict)

    def put(self, row: Row) -> None:
        """Add a row, or replace the older row of the same review."""
        is_new = self._taken(row.key) is None
        self.version += is_new
        self.by_key[row.key] = row
        for group in (row.thread, row.alike):
            self._groups[group][row.key] = row

    def pop(self, key: str) -> Row | None:
        """Remove a row and return it; None if it is unknown."""
        row = self._taken(key)
        self.version += row is not None
        return row

    def alike(self, key: str) -> list[Row]:
        """List the rows that are like one row, which comes first; none if it is unknown."""
        first = self.by_key.get(key)
        others = self._groups[first.alike].values() if first else ()
        return [*([first] if first else []), *(row for row in others if row is not first)]

    def of_thread(self, thread: str) -> list[Row]:
        """List the rows of a thread, by its key in addresses."""
        return [*self._groups.get(thread, {}).values()]

    def _taken(self, key: str) -> Row | None:
        row = self.by_key.pop(key, None)
        for group in (row.thread, row.alike) if row else ():
            del self._groups[group][key]
            if not self._groups[group]:
                del self._groups[group]
        return row


def thread_key(thread_id: str | None) -> str:
    """Return a hash of a thread's id for addresses, so that an address does not reveal the id."""
    return hashlib.sha256(f"thread\0{thread_id}".encode()).hexdigest()[:24]


def row_of(review: PendingReview) -> Row:
    """Make the row of a review, without its long fields, because all rows stay in memory."""
    value = {name: review.value[name] for name in ("checkpoint_ns", "review_configs")}
    parts: dict[str, Any] = {"params": {}, "suggested_params": None, "history": [], "diff": []}
    short = replace(review, value=value, raw_output=None, output=None, problem=None, **parts)
    labels = [f"{name}: {text}" for name, text in review.labels.items()]
    kind = kind_of(review)
    texts = (review.function_name, review.thread_id or "", review.error, kind, *labels)
    searched = "\n".join(texts).casefold()
    where = key_of(review), thread_key(review.thread_id)
    return Row(*where, short, kind, frozenset(labels), searched, _alike(review))


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
