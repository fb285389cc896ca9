"""Filter, group and sort the open reviews for the list, and divide them into pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from starlette.datastructures import QueryParams
from starlette.requests import Request

from graph_retry.desk.newest import Newest
from graph_retry.desk.web.posted import NotAllowedError
from graph_retry.desk.web.rows import Row, places_in, subject_of
from graph_retry.desk.web.safety import Access, cookie_of
from graph_retry.desk.web.waiting import Waiting
from graph_retry.plugins import digest, since

PER_PAGE = 50
MOST_VIEWS = 50
"""Number of views whose listings are kept."""

FEW = 3
"""Number of similar reviews that the grouped list shows of each kind."""

SOON = timedelta(days=1)
"""Reviews that end within this time are listed first."""

MOST_LABELS, LONGEST = 10, 200

VIEW_COOKIE = "graph-retry-view"

TABS = {
    "waiting": "Waiting",
    "mine": "Mine",
    "running": "Running",
    "later": "Later",
    "decided": "Decided",
}

ORDERS = {
    "grouped": "grouped",
    "newest": "newest first",
    "oldest": "oldest first",
    "due": "due first",
    "alike": "one of each kind",
}


@dataclass(frozen=True)
class View:
    """A person's view of the list: tab, order and filters. The URL contains it.

    `like` is the `Row.group` of similar reviews.
    """

    tab: str = "waiting"
    order: str = "grouped"
    call: str = ""
    kind: str = ""
    model: str = ""
    label: tuple[str, ...] = ()
    like: str = ""
    text: str = ""

    @property
    def is_set(self) -> bool:
        """Whether the view has a filter."""
        return self != View(self.tab, self.order)

    @property
    def query(self) -> str:
        """The view as the query of a URL."""
        parts = [(each.name, getattr(self, each.name), each.default) for each in fields(self)]
        return urlencode([(n, given) for n, given, plain in parts if given != plain], doseq=True)

    def but(self, **changed: Any) -> str:
        """Return the URL query of the same view with some changes."""
        return replace(self, **changed).query


def view_of(query: str | QueryParams) -> View:
    """Read a view from the query of a URL. Unknown values are replaced by the defaults.

    Example:
        >>> view_of("tab=later&label=a&label=b&order=sideways")
        View(tab='later', order='grouped', ..., label=('a', 'b'), like='', text='')
    """
    given = QueryParams(query)
    known = {n: given[n][:LONGEST] for n in View.__dataclass_fields__ if n in given}
    for name, choices in (("tab", TABS), ("order", ORDERS)):
        if known.get(name) not in choices:
            known.pop(name, None)
    labels = [text[:LONGEST] for text in given.getlist("label") if text]
    known.pop("label", None)
    return View(**known, label=tuple(dict.fromkeys(labels))[:MOST_LABELS])


def view_in(request: Request) -> View:
    """Return this person's last view of the list, from a cookie."""
    try:
        return view_of(bytes.fromhex(cookie_of(request, VIEW_COOKIE)).decode())
    except (ValueError, NotAllowedError):
        return View()


@dataclass(frozen=True)
class Head:
    """The heading of a group: its words, its number of reviews, and the view of all of them."""

    title: str
    count: int
    all: str = ""


@dataclass
class Listing:
    """The reviews that fit a view, in its order.

    `found` counts the reviews that fit the filters, and `total` all reviews that are not deferred.
    `alike` maps each `Row.alike` to its number of reviews. `choices` has the values of each filter.
    At `until`, the next deferred review comes back, and the listing is outdated. `heads` maps the
    key of a row to the heading above this row. `places` maps each call to the places in which its
    reviews differ, whatever the view.
    """

    rows: list[Row]
    view: View
    found: int
    total: int
    alike: Mapping[Any, int]
    choices: dict[str, list[str]]
    until: str | None
    heads: dict[str, Head]
    places: dict[str, dict[str, int]]

    @property
    def pages(self) -> int:
        """The number of pages."""
        return max(1, -(-len(self.rows) // PER_PAGE))

    def subjects(self, rows: Iterable[Row]) -> dict[str, str]:
        """Return the text that names each row, by its key."""
        return {row.key: subject_of(row, self.places[row.review.function_name]) for row in rows}

    def page(self, number: int) -> list[Row]:
        """Return the rows of one page."""
        return self.rows[(number - 1) * PER_PAGE : number * PER_PAGE]


class Listings:
    """People's listings and their versions, kept until the rows change."""

    def __init__(self, waiting: Waiting) -> None:
        self._waiting, self._version = waiting, -1
        self._made = Newest[tuple[Any, ...], Listing](MOST_VIEWS)
        self._versions = Newest[tuple[Any, ...], str](MOST_VIEWS)

    def version(self, access: Access) -> str:
        """Return a text that changes only with the reviews of this user."""
        if not access.is_limited:
            return str(self._waiting.version)
        self._renew()
        which = (access.key, *sorted(access.labels.items()))
        if which not in self._versions:
            seen = access.seen(self._waiting.rows.values())
            known = [[row.key, dict(row.review.labels), row.review.deferred_until] for row in seen]
            self._versions[which] = digest(known, self._waiting.is_whole)
        return self._versions[which]

    def of(self, view: View, access: Access) -> Listing:
        """Return the list for a tab, filter and order, with only reviews that the user may see."""
        self._renew()
        which = (view, access.user, access.key, *sorted(access.labels.items()))
        made = self._made.get(which)
        if made is None or (made.until is not None and since(made.until) >= 0):
            seen = access.seen(self._waiting.rows.values())
            made = self._made[which] = make_listing(seen, view, access.user)
        return made

    def _renew(self) -> None:
        if self._version != self._waiting.version:
            self._version = self._waiting.version
            self._made.clear()
            self._versions.clear()


def make_listing(rows: Iterable[Row], view: View, user: str | None = None) -> Listing:
    """Filter and sort the rows."""
    known = list(rows)
    put_off = [row for row in known if row.is_put_off]
    mine = view.label if view.tab != "mine" else (*view.label, f"assignee: {user}")
    wanted = replace(view, label=mine)
    chosen = [row for row in known if _is_wanted(row, wanted)]
    alike = Counter(row.alike for row in chosen)
    if view.like:
        group = {kind: digest(*kind)[:12] for kind in alike}
        chosen = [row for row in chosen if group[row.alike] == view.like]
        alike = Counter(row.alike for row in chosen)
    chosen.sort(key=_when_asked, reverse=view.order != "oldest")
    heads = dict[str, Head]()
    if view.order == "grouped":
        chosen, heads = _grouped(chosen, view, alike)
    if view.order == "due":
        chosen.sort(key=lambda row: row.review.expires_at or "~")
    if view.order == "alike":
        one_each = {row.alike: row for row in reversed(chosen)}
        chosen = sorted(one_each.values(), key=lambda row: alike[row.alike], reverse=True)
    choices = {
        "call": sorted({row.review.function_name for row in known}),
        "kind": sorted({row.review.summary for row in known}),
        "model": sorted({row.model for row in known} - {""})[:LONGEST],
        "label": sorted(frozenset[str]().union(*(row.labels for row in known)))[:LONGEST],
    }
    until = min((str(row.review.deferred_until) for row in put_off), default=None)
    total = len(known) - len(put_off)
    found, places = alike.total(), places_in(known)
    return Listing(chosen, view, found, total, alike, choices, until, heads, places)


def _grouped(
    rows: list[Row], view: View, alike: Mapping[Any, int]
) -> tuple[list[Row], dict[str, Head]]:
    """List the reviews that end soon first, then a few of each large kind, then all others."""
    soon = (datetime.now(UTC) + SOON).isoformat()
    due = [row for row in rows if (row.review.expires_at or "~") < soon]
    due.sort(key=lambda row: str(row.review.expires_at))
    ends_soon = {row.key for row in due}
    kinds: dict[Any, list[Row]] = {}
    for row in rows:
        if row.key not in ends_soon:
            kinds.setdefault(row.alike if alike[row.alike] > FEW + 1 else None, []).append(row)
    others = kinds.pop(None, [])
    made, heads = due, dict[str, Head]()
    if due and (kinds or others):
        heads[due[0].key] = Head("Due within a day", len(due))
    for kind, own in kinds.items():
        what = f"{own[0].review.function_name}: {own[0].review.summary}"
        whole = view.but(order="newest", like=digest(*kind)[:12])
        is_one_of_some = len(kinds) > 1 or others or due
        if is_one_of_some:
            heads[own[0].key] = Head(what, len(own), whole)
        made = made + (own[:FEW] if is_one_of_some else own)
    if others and heads:
        heads[others[0].key] = Head("Others", len(others))
    return made + others, heads


def _when_asked(row: Row) -> tuple[str, str]:
    return row.review.asked_at or "", row.review.review_id


def _is_wanted(row: Row, view: View) -> bool:
    return (
        row.is_put_off == (view.tab == "later")
        and view.call in ("", row.review.function_name)
        and view.kind in ("", row.review.summary)
        and view.model in ("", row.model)
        and row.labels.issuperset(view.label)
        and all(word in row.searched for word in view.text.casefold().split())
    )
