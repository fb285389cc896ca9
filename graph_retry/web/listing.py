"""Filter and sort the open reviews for the inbox, and divide them into pages."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from graph_retry._review.deadline import is_expired
from graph_retry.web.rows import Row, Rows
from graph_retry.web.safety import Access

PER_PAGE = 50
MOST_VIEWS = 50
"""Number of views whose listings are kept."""

ORDERS = {
    "newest": "newest first",
    "oldest": "oldest first",
    "due": "due first",
    "alike": "one of each kind",
    "off": "put off",
}
_UNITS = (("day", 86_400), ("hour", 3_600), ("minute", 60))


@dataclass(frozen=True)
class View:
    """A person's filters of the inbox. A cookie keeps them, so that addresses reveal nothing."""

    order: str = "newest"
    call: str = ""
    kind: str = ""
    label: str = ""
    text: str = ""

    def as_cookie(self) -> str:
        """Write the filters in characters that a cookie may contain."""
        return json.dumps(asdict(self)).encode().hex()


def view_of(cookie: str) -> View:
    """Read the filters from a cookie; an unreadable cookie means no filters."""
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
    """The reviews that fit a view, in its order.

    `found` counts the reviews that fit the filters, and `total` all that are not deferred. `alike`
    counts the similar reviews, by the key `Row.alike`. `choices` has the values of each filter.
    The listing is outdated at `until`, when a deferred review comes back.
    """

    rows: list[Row]
    view: View
    found: int
    total: int
    alike: Mapping[Any, int]
    choices: dict[str, list[str]]
    until: str | None

    @property
    def pages(self) -> int:
        """The number of pages."""
        return max(1, -(-len(self.rows) // PER_PAGE))

    def page(self, number: int) -> list[Row]:
        """Cut out a page."""
        return self.rows[(number - 1) * PER_PAGE : number * PER_PAGE]


class Listings:
    """The listings of all views that people look at, each made once per change of the rows."""

    def __init__(self, rows: Rows) -> None:
        self._rows, self._version = rows, -1
        self._made: dict[tuple[Any, ...], Listing] = {}

    def of(self, view: View, access: Access) -> Listing:
        """Return the listing of a view, with the reviews that a user may see."""
        if self._version != self._rows.version or len(self._made) > MOST_VIEWS:
            self._version, self._made = self._rows.version, {}
        which = (view, *sorted(access.labels.items()))
        made = self._made.get(which)
        if made is None or (made.until is not None and is_expired(made.until)):
            seen = (row for row in self._rows.by_key.values() if access.sees(row.review))
            made = self._made[which] = make_listing(seen, view)
        return made


def make_listing(rows: Iterable[Row], view: View) -> Listing:
    """Filter and sort the rows."""
    known = list(rows)
    put_off = [row for row in known if is_put_off(row)]
    chosen = [row for row in known if _is_wanted(row, view)]
    alike = Counter(row.alike for row in chosen)
    chosen.sort(key=_when_asked, reverse=view.order != "oldest")
    if view.order == "due":
        chosen.sort(key=lambda row: row.review.expires_at or "~")
    if view.order == "alike":
        one_each = {row.alike: row for row in reversed(chosen)}
        chosen = sorted(one_each.values(), key=lambda row: alike[row.alike], reverse=True)
    choices = {
        "call": sorted({row.review.function_name for row in known}),
        "kind": sorted({row.kind for row in known}),
        "label": sorted(frozenset[str]().union(*(row.labels for row in known)))[:200],
    }
    until = min((str(row.review.deferred_until) for row in put_off), default=None)
    total = len(known) - len(put_off)
    return Listing(chosen, view, alike.total(), total, alike, choices, until)


def _when_asked(row: Row) -> tuple[str, str]:
    return row.review.asked_at or "", row.review.review_id


def _is_wanted(row: Row, view: View) -> bool:
    return (
        is_put_off(row) == (view.order == "off")
        and view.call in ("", row.review.function_name)
        and view.kind in ("", row.kind)
        and (not view.label or view.label in row.labels)
        and all(word in row.searched for word in view.text.casefold().split())
    )


def is_put_off(row: Row) -> bool:
    """Return whether a review is deferred to a later time."""
    until = row.review.deferred_until
    return until is not None and not is_expired(until)


def ago(moment: str | None) -> str:
    """Write the time since a moment, or the time until it.

    Example:
        >>> ago("2020-01-01T00:00:00+00:00").endswith("days ago")
        True
    """
    if not moment:
        return ""
    seconds = (datetime.now(UTC) - datetime.fromisoformat(moment)).total_seconds()
    words = in_words(abs(seconds))
    if words == "a moment":
        return "just now" if seconds >= 0 else "in a moment"
    return f"{words} ago" if seconds >= 0 else f"in {words}"


def in_words(seconds: float) -> str:
    """Write a number of seconds in its largest unit."""
    for unit, size in _UNITS:
        if number := int(seconds // size):
            return f"{number:,} {unit}{'' if number == 1 else 's'}"
    return "a moment"


def spoken(path: str) -> str:
    """Write a JSON Pointer for people, with list items counted from 1.

    Example:
        >>> spoken("/items/0/price"), spoken("")
        ('items → 1 → price', 'the whole value')
    """
    parts = (part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:])
    words = (str(int(part) + 1) if part.isdecimal() else part for part in parts)
    return " → ".join(words) or "the whole value"


def without_type(received: str) -> str:
    """Return the text of a received value without its Python type.

    Example:
        >>> without_type('"EUR 12" (str)')
        '"EUR 12"'
    """
    return re.sub(r" \(\w+\)$", "", received)
