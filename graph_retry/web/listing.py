"""The inbox: which reviews are shown, in which order, how many to a page."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from graph_retry.answering import PendingReview
from graph_retry.web.waiting import key_of

PER_PAGE = 50
ORDERS = {"newest": "newest first", "oldest": "oldest first", "due": "due first"}
_UNITS = (("day", 86_400), ("hour", 3_600), ("minute", 60))


@dataclass(frozen=True)
class View:
    """What somebody wants to see of the inbox. It is kept in a cookie: addresses tell nothing."""

    order: str = "newest"
    call: str = ""
    kind: str = ""
    label: str = ""
    text: str = ""

    def as_cookie(self) -> str:
        """Write it in characters that a cookie may have."""
        return json.dumps(asdict(self)).encode().hex()


def view_of(cookie: str) -> View:
    """Read a cookie; one that cannot be read shows everything."""
    try:
        known = json.loads(bytes.fromhex(cookie))
        given = {
            name: str(known[name])[:200] for name in View.__dataclass_fields__ if name in known
        }
    except (ValueError, TypeError):
        return View()
    return View(**given) if given.get("order", "newest") in ORDERS else View()


@dataclass
class Listing:
    """A page of the inbox, with what there is to choose from."""

    rows: list[PendingReview]
    view: View
    page: int
    pages: int
    found: int
    total: int
    choices: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def key(self, review: PendingReview) -> str:
        """Return the name of a review in addresses."""
        return key_of(review)


def make_listing(rows: Iterable[PendingReview], view: View, page: int) -> Listing:
    """Choose, sort and cut what is shown."""
    known = list(rows)
    chosen = [row for row in known if _is_wanted(row, view)]
    chosen.sort(key=lambda row: (row.asked_at or "", row.review_id), reverse=view.order != "oldest")
    if view.order == "due":
        chosen.sort(key=lambda row: row.expires_at or "~")
    pages = max(1, -(-len(chosen) // PER_PAGE))
    page = min(max(page, 1), pages)
    shown = chosen[(page - 1) * PER_PAGE : page * PER_PAGE]
    choices = {
        "call": sorted({row.function_name for row in known}),
        "kind": sorted({kind_of(row) for row in known}),
        "label": sorted({_label(*item) for row in known for item in row.labels.items()})[:200],
    }
    return Listing(shown, view, page, pages, len(chosen), len(known), choices)


def has_labels(row: PendingReview, labels: Mapping[str, str]) -> bool:
    """Tell whether a call has these labels, perhaps beside others."""
    return labels.items() <= row.labels.items()


def kind_of(row: PendingReview) -> str:
    """Say in a word or two what a review is about."""
    return KINDS[row.failure["kind"]] if row.failure else "valid, to approve"


KINDS = {
    "transient": "not reached",
    "invalid_syntax": "unreadable",
    "invalid_schema": "does not fit",
    "truncated": "cut off",
    "context_overflow": "too long",
    "refusal": "declined",
    "rejected_input": "refused",
    "permanent": "failed",
}


def _is_wanted(row: PendingReview, view: View) -> bool:
    return (
        view.call in ("", row.function_name)
        and view.kind in ("", kind_of(row))
        and (not view.label or view.label in {_label(*item) for item in row.labels.items()})
        and all(word in _searched(row) for word in view.text.casefold().split())
    )


def _label(name: str, text: str) -> str:
    return f"{name}: {text}"


def _searched(row: PendingReview) -> str:
    labels = (_label(*item) for item in row.labels.items())
    texts = (row.function_name, row.thread_id or "", row.error, kind_of(row), *labels)
    return "\n".join(texts).casefold()


def ago(moment: str | None) -> str:
    """Say how long ago a moment was, or how far ahead it is.

    Example:
        >>> ago("2020-01-01T00:00:00+00:00").endswith("days ago")
        True
    """
    if not moment:
        return ""
    seconds = (datetime.now(UTC) - datetime.fromisoformat(moment)).total_seconds()
    words = _span(abs(seconds))
    if words == "a moment":
        return "just now" if seconds >= 0 else "in a moment"
    return f"{words} ago" if seconds >= 0 else f"in {words}"


def _span(seconds: float) -> str:
    for unit, size in _UNITS:
        if number := int(seconds // size):
            return f"{number:,} {unit}{'' if number == 1 else 's'}"
    return "a moment"


def facts(row: PendingReview) -> dict[str, Any]:
    """Return what a line of the inbox says of a review."""
    if row.failure is None:
        said = "The output is valid and waits to be approved."
    elif row.issues and row.failure["kind"] == "invalid_schema":
        issues = (
            f"{issue['path'] or 'the whole output'}: {issue['message']}" for issue in row.issues
        )
        said = " · ".join(issues)
    else:
        said = row.failure["message"]
    return {"kind": kind_of(row), "said": " ".join(said.split())[:300]}


def spoken(path: str) -> str:
    """Say where a JSON Pointer leads.

    Example:
        >>> spoken("/items/0/price"), spoken("")
        ('items → 1 → price', 'the whole of it')
    """
    parts = (part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:])
    words = (str(int(part) + 1) if part.isdecimal() else part for part in parts)
    return " → ".join(words) or "the whole of it"


def without_type(received: str) -> str:
    """Leave the Python type out that an issue tells behind a value.

    Example:
        >>> without_type('"EUR 12" (str)')
        '"EUR 12"'
    """
    return re.sub(r" \(\w+\)$", "", received)
