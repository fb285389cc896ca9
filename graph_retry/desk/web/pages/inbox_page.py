"""The list of reviews: waiting, running, deferred and decided ones."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from graph_retry.desk.web.applying import Run
from graph_retry.desk.web.page import Site
from graph_retry.desk.web.pages.arranged import (
    ORDERS,
    PER_PAGE,
    TABS,
    VIEW_COOKIE,
    Listing,
    View,
    view_in,
    view_of,
)
from graph_retry.desk.web.pages.past_calls import Decided
from graph_retry.desk.web.rows import subject_of, telling, texts_of
from graph_retry.desk.web.safety import Access


async def inbox(site: Site, request: Request, access: Access) -> Response:
    """Show a page of one tab of the list."""
    await site.waiting.refresh()
    asked, view = request.query_params.get("page", "1"), view_of(request.query_params)
    listing = site.listings.of(view, access)
    decided = await _decided(site, view, access) if view.tab == "decided" else []
    pages = max(1, -(-len(decided) // PER_PAGE)) if decided else listing.pages
    number = min(max(1, int(asked[:9]) if asked.isdecimal() else 1), pages)
    rows, decided = listing.page(number), decided[(number - 1) * PER_PAGE : number * PER_PAGE]
    calls = {one.name: [other for other in decided if other.name == one.name] for one in decided}
    places = {name: telling(alike) for name, alike in calls.items()}
    named = [(subject_of(one, places[one.name]), one) for one in decided]
    page = await site.page(
        request, access, "inbox.html",
        listing=listing, rows=rows, subjects=listing.subjects(rows), number=number, pages=pages,
        orders=ORDERS, tabs=TABS, is_whole=site.waiting.is_whole, progress=site.waiting.progress,
        running=site.runs.running, runs=_running(site, access), left=_left(site, access),
        past=site.past, home="", decided=named,
    )  # fmt: skip
    if "hx-request" not in request.headers and view != view_in(request):
        # The list beside a review, and the link back to the list, show this view.
        site.guard.set_cookie(request, page, VIEW_COOKIE, view.query.encode().hex())
    return page


def _running(site: Site, access: Access) -> list[Run]:
    runs = {id(run): run for run in site.runs.running.values()}
    return [run for run in reversed(runs.values()) if access.seen(run.reviews)]


def _left(site: Site, access: Access) -> list[Run]:
    """List this person's answers that were not applied, and this person's stopped runs."""
    return [run for run in site.runs.left(access.user) if access.seen(run.reviews)]


async def _decided(site: Site, view: View, access: Access) -> list[Decided]:
    """List the decisions of people that fit the filters, the newest first."""
    await site.past.started()
    known = [
        one
        for call in site.past.calls(access)
        if view.call in ("", call.call)
        and view.model in ("", call.model)
        and {*texts_of(call.labels)}.issuperset(view.label)
        for one in call.decided
        if all(word in one.searched for word in view.text.casefold().split())
    ]
    return sorted(known, key=lambda one: one.at, reverse=True)


async def alive(site: Site, request: Request, access: Access) -> Response:
    """Tell an open page that the server is running and the user is logged in."""
    del site, request, access
    return Response(status_code=204)


def listed(site: Site, request: Request, access: Access) -> Listing:
    """Return the list of open reviews that this person has seen last."""
    return site.listings.of(view_in(request), access)
