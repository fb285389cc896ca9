"""The inbox page: the list of open reviews and its filters."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from graph_retry.desk.web.listing import ORDERS, Listing, View, view_of
from graph_retry.desk.web.page import Site, root_of
from graph_retry.desk.web.posted import text_of
from graph_retry.desk.web.safety import Access, cookie_of

VIEW_COOKIE = "graph-retry-view"


async def inbox(site: Site, request: Request, access: Access) -> Response:
    """Show a page of the list of open reviews."""
    await site.waiting.refresh()
    asked, listing = request.query_params.get("page", "1"), listed(site, request, access)
    number = min(max(1, int(asked[:9]) if asked.isdecimal() else 1), listing.pages)
    rows = listing.page(number)
    return await site.page(
        request, access, "inbox.html",
        listing=listing, rows=rows, subjects=listing.subjects(rows), number=number, orders=ORDERS,
        is_whole=site.waiting.is_whole, running=site.runs.running,
    )  # fmt: skip


async def alive(site: Site, request: Request, access: Access) -> Response:
    """Tell an open page that the server runs, and that its user is logged in."""
    del site, request, access
    return Response(status_code=204)


def listed(site: Site, request: Request, access: Access) -> Listing:
    """Return the list of open reviews, by the user's rights and filters."""
    view = view_of(cookie_of(request, VIEW_COOKIE))
    return site.listings.of(view, access)


async def change_view(site: Site, request: Request, access: Access) -> Response:
    """Save the posted filters of the inbox in a cookie."""
    form = await site.form(request, access)
    given = {name: text_of(form, name)[:200] for name in View.__dataclass_fields__}
    view = View() if text_of(form, "all") else View(**given)
    home = RedirectResponse(f"{root_of(request)}/", 303)
    site.guard.set_cookie(request, home, VIEW_COOKIE, view.as_cookie())
    return home
