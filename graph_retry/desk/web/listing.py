"""Filter and sort the open reviews for the inbox, and divide them into pages."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from graph_retry._core.review.deadline import is_expired
from graph_retry.desk.web.posted import NotAllowedError, check_json
from graph_retry.desk.web.rows import Row, subject_of
from graph_retry.desk.web.safety import Access
from graph_retry.desk.web.waiting import Waiting
from graph_retry.observers._notifications import kind_of

PER_PAGE = 50
MOST_VIEWS = 50
"""Number of views whose listings are kept."""

ORDERS = {
    "newest": "newest first",
    "oldest": "oldest first",
    "due": "due first",
    "alike": "one of each kind",
    "off": "deferred",
}


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
        return json.dumps(asdict(self), ensure_ascii=False).encode().hex()


def view_of(cookie: str) -> View:
    """Read the filters from a cookie; an unreadable cookie means no filters."""
    try:
        written = bytes.fromhex(cookie).decode()
        check_json(written)
        known = json.loads(written)
        given = {
            name: str(known[name])[:200] for name in View.__dataclass_fields__ if name in known
        }
    except (ValueError, TypeError, NotAllowedError):
        return View()
    return View(**given) if given.get("order", "newest") in ORDERS else View()


@dataclass
class Listing:
    """The reviews that fit a view, in its order.

    `found` is the number of reviews that fit the filters. `total` is the number of all reviews that
    are not deferred. `alike` maps each `Row.alike` to the number of reviews with this value.
    `choices` has the values of each filter. `until` is the time at which the next deferred review
    comes back, and the listing is outdated.
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

    def subjects(self, rows: Iterable[Row]) -> dict[str, str]:
        """Return the text that names each row among the first rows of the same call, by its key."""
        calls: dict[str, list[Row]] = {}
        for row in self.rows:
            named = calls.setdefault(row.review.function_name, [])
            if len(named) < PER_PAGE:
                named.append(row)
        return {row.key: subject_of(row, calls[row.review.function_name]) for row in rows}

    def page(self, number: int) -> list[Row]:
        """Cut out a page."""
        return self.rows[(number - 1) * PER_PAGE : number * PER_PAGE]


class Listings:
    """A cache of the listings that people look at. A change of the rows empties the cache."""

    def __init__(self, waiting: Waiting) -> None:
        self._waiting, self._version = waiting, -1
        self._made: dict[tuple[Any, ...], Listing] = {}

    def of(self, view: View, access: Access) -> Listing:
        """Return the listing of a view, with the reviews that a user may see."""
        if self._version != self._waiting.version or len(self._made) > MOST_VIEWS:
            self._version, self._made = self._waiting.version, {}
        which = (view, *sorted(access.labels.items()))
        made = self._made.get(which)
        if made is None or (made.until is not None and is_expired(made.until)):
            seen = access.seen(self._waiting.rows.values())
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
        "kind": sorted({kind_of(row.review) for row in known}),
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
        and view.kind in ("", kind_of(row.review))
        and (not view.label or view.label in row.labels)
        and all(word in row.searched for word in view.text.casefold().split())
    )


def is_put_off(row: Row) -> bool:
    """Return whether a review is deferred to a later time."""
    until = row.review.deferred_until
    return until is not None and not is_expired(until)
