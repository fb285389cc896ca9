"""The history page with the figures of all calls, and the page of one thread's ledgers."""

from __future__ import annotations

from datetime import UTC, datetime

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from graph_retry.desk.web.forms.attempt_rows import attempts_told
from graph_retry.desk.web.page import Site, root_of
from graph_retry.desk.web.pages.past_calls import changed_most, figures_of
from graph_retry.desk.web.posted import text_of
from graph_retry.desk.web.rows import thread_key
from graph_retry.desk.web.safety import Access
from graph_retry.ledger import Ledger

_CALLS = 20
"""The most names with figures, and the most calls in the list of the latest calls."""


async def history(site: Site, request: Request, access: Access) -> Response:
    """Show the figures of all calls. A posted form starts a new reading of all threads."""
    if request.method == "POST":
        await site.form(request, access)
        site.past.read()
        return RedirectResponse(f"{root_of(request)}/history", 303)
    await site.past.started()
    calls = site.past.calls(access)
    figures = figures_of(calls, datetime.now(UTC).date())
    lately = sorted(calls, key=lambda call: call.started_at, reverse=True)[:_CALLS]
    return await site.page(
        request, access, "history.html",
        figures=figures[:_CALLS], more=max(0, len(figures) - _CALLS), calls=len(calls),
        changed=changed_most(calls), lately=lately, past=site.past,
    )  # fmt: skip


async def find_thread(site: Site, request: Request, access: Access) -> Response:
    """Redirect to the page of the thread whose id was posted."""
    form = await site.form(request, access)
    posted = text_of(form, "thread").strip()[:1_000]
    if await _ledgers(site, posted, access):
        site.past.know(posted)
    return RedirectResponse(f"{root_of(request)}/t/{thread_key(posted)}", 303)


async def _ledgers(site: Site, thread_id: str, access: Access) -> list[Ledger]:
    known = await site.waiting.ledgers(thread_id) if thread_id else []
    return [each for each in known if access.has(each.attempts[-1].get("labels") or {})]


async def thread(site: Site, request: Request, access: Access) -> Response:
    """Show the ledgers of a thread, except those that the user may not see."""
    thread_id = site.past.thread(request.path_params["key"])
    seen = await _ledgers(site, thread_id or "", access)
    if not seen:
        return await site.message(
            request, 404, "This page can show no call of this thread.",
            "Check the thread's id, and enter it on the history page.", access,
        )  # fmt: skip
    await site.waiting.refresh()
    waiting = access.seen(site.waiting.in_thread(request.path_params["key"]))
    told = await site.work(request, lambda: [(ledger, attempts_told(ledger)) for ledger in seen])
    calls = {name for run in site.runs.running.values() for name in run.asked}
    return await site.page(
        request, access, "thread.html", thread=thread_id, ledgers=told, waiting=waiting,
        running=calls,
    )  # fmt: skip
