"""The pages that apply one answer to all reviews that failed in the same way.

The first page shows a preview of the answer's effect on each review. The person ticks previews and
sends them. The mark of a preview is a hash of its review and its decision. If a review has changed
since its preview, the marks differ, and the review stays open.
"""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from graph_retry import PendingReview
from graph_retry.desk.texts import said
from graph_retry.desk.web.applying import SOON_S, Missed, Run, Sent
from graph_retry.desk.web.forms.card import Card, decided, first_value, make_card, typed
from graph_retry.desk.web.forms.carrying import carried
from graph_retry.desk.web.forms.marks import compared
from graph_retry.desk.web.forms.odd import odd_ones
from graph_retry.desk.web.forms.ways import NotYetError, Way
from graph_retry.desk.web.page import Site, root_of
from graph_retry.desk.web.posted import (
    TICKS,
    NotAllowedError,
    Posted,
    check_fields,
    check_json,
    text_of,
)
from graph_retry.desk.web.safety import Access
from graph_retry.plugins import ABSENT, digest
from graph_retry.reviews import foreseen

SHOWN = 2_000_000
"""The maximum of an answer's length times its previews, so a long answer gets few previews."""


@dataclass
class Preview:
    """The effect of the first review's answer on one similar review.

    `decision` is the adapted answer. Without a possible answer, `decision` is None, and `why` is
    the reason. If the call is made again, `asked` compares the old params with the new params.
    Otherwise `output` is the call's new output, and `changed` compares this output with the model's
    output. `doubts` lists the errors that the question's schemas find in the decision. `odd` tells
    how the params or the new output differ from those of other reviews.
    """

    review: PendingReview
    decision: dict[str, Any] | None = None
    why: str = ""
    asked: list[tuple[str, list[tuple[str, str]]]] = field(default_factory=list[Any])
    output: str | None = None
    changed: list[tuple[str, list[tuple[str, str]]]] = field(default_factory=list[Any])
    doubts: list[str] = field(default_factory=list[str])
    odd: list[str] = field(default_factory=list[str])

    @property
    def key(self) -> str:
        """The name of the review in addresses."""
        return self.review.key

    @property
    def mark(self) -> str:
        """The review's key, with a hash of the review and its decision."""
        return f"{self.key}:{digest(self.review.review_id, self.decision)}"


async def preview(
    site: Site, request: Request, access: Access, first: PendingReview, form: Posted
) -> Response:
    """Show the preview of one review's answer for each similar review."""
    card, way, decision = await site.work(request, _asked, first, form)
    rows = site.waiting.alike(first.key, access)
    size = len(await site.work(request, str, decision))
    most = max(1, min(TICKS.most, SHOWN // size))
    keys = [row.key for row in rows[:most]]
    make = partial(_preview, way, decision, first)
    shown = await _previews(site, request, access, first, keys, make)
    await site.work(request, _mark_odd, shown)
    shown.sort(key=lambda each: (each.key != first.key, not each.odd))
    return await site.page(
        request, access, "alike.html",
        way=way, first=first, words=card.words.get(way.word, ""), previews=shown,
        more=max(0, len(rows) - most), answer=secrets.token_urlsafe(16), asked=_packed(form),
    )  # fmt: skip


def _mark_odd(previews: list[Preview]) -> None:
    """Note for each preview how its params and its output differ from those of the others."""
    outputs = [first_value(each.review, "output") for each in previews]
    seen = [
        {"params": each.review.params} | ({} if output is ABSENT else {"output": output})
        for each, output in zip(previews, outputs, strict=True)
    ]
    for each, told in zip(previews, odd_ones(seen), strict=True):
        each.odd = told


def _asked(first: PendingReview, form: Posted) -> tuple[Card, Way, dict[str, Any]]:
    card = make_card(first, form)
    return card, *decided(card, form)


async def answer_alike(site: Site, request: Request, access: Access) -> Response:
    """Answer each ticked review, unless it has changed since its preview."""
    if access.key is not None:
        raise NotAllowedError(
            403, "Your link allows you to answer one review, but not similar ones."
        )
    form = await site.form(request, access, answers=True)
    async with site.turn(access):
        return await _answered(site, request, access, form)


async def _answered(site: Site, request: Request, access: Access, form: Posted) -> Response:
    key, name = request.path_params["key"], text_of(form, "answer")
    there = RedirectResponse(f"{root_of(request)}/r/{key}/alike/{name}", 303)
    if site.runs.repeated(name, access.user):  # The browser has sent this form twice.
        return there
    asked = await site.work(request, _unpacked, text_of(form, "asked"))
    found = await site.waiting.find(key, access)
    if not found:
        return await site.gone(request, access, asked)
    ticked = list(dict.fromkeys(text for part, text in form if part == "tick"))
    TICKS.check(len(ticked))
    keys = [mark.partition(":")[0] for mark in ticked]
    try:
        _, way, decision = await site.work(request, _asked, found[0], asked)
    except NotYetError:
        raise NotAllowedError(400, "This form is incomplete: open the review again.") from None
    make = partial(_preview, way, decision, found[0])
    fresh = await _previews(site, request, access, found[0], keys, make)
    chosen: dict[str | None, list[Preview]] = {}
    left: list[Missed] = []
    known = {each.mark: each for each in fresh if each.decision is not None}
    for mark in ticked:
        each = known.get(mark)
        if each is None:
            left.append(await site.missed(request, mark.partition(":")[0], access, []))
            continue
        chosen.setdefault(each.review.thread_id, []).append(each)
    runs = [_run(each, access) for each in chosen.values()]
    site.start(request, access, name, Sent(runs, asked, left))
    return there


def _run(chosen: list[Preview], access: Access) -> Run:
    signed = {one.review.review_id: {**(one.decision or {}), **access.signed} for one in chosen}
    return Run([one.review for one in chosen], signed, by=access.user or "")


async def outcomes(site: Site, request: Request, access: Access) -> Response:
    """Show the outcome of each answer."""
    sent = site.runs.get(request.path_params["name"])
    if sent is None or access.key is not None:
        return await site.message(
            request, 404, "These answers are unknown.",
            "The server was restarted. The list shows the open reviews.", access,
        )  # fmt: skip
    if not sent.held_s:
        await sent.wait(SOON_S)
    runs = [run for run in sent.runs if len(access.seen(run.reviews)) == len(run.reviews)]
    lost = sum(run.told.not_applied for run in runs if run.told)
    return await site.page(
        request, access, "outcomes.html",
        runs=runs, missed=access.seen(sent.missed),
        typed=typed(sent.posted, request.path_params["key"]) if sent.missed or lost else [],
        given=sum(len(run.decisions) for run in runs) - lost,
        open=sum(len(run.decisions) for run in runs if not run.told), held=sent.held_s,
        taken=[key for run in runs for key in run.asked.values()],
    )  # fmt: skip


async def _previews(
    site: Site,
    request: Request,
    access: Access,
    first: PendingReview,
    keys: list[str],
    make: Callable[[PendingReview], Preview],
) -> list[Preview]:
    """Make a preview of each review that is still open."""
    shown: list[Preview] = []
    for key in keys:
        found = [first] if key == first.key else await site.waiting.find(key, access)
        if found:
            shown.append(await site.work(request, make, found[0]))
    return shown


def _preview(
    way: Way, decision: dict[str, Any], first: PendingReview, other: PendingReview
) -> Preview:
    try:
        made = carried(way, decision, first, other)
    except NotYetError as problem:
        return Preview(other, why=str(problem))
    shown = Preview(other, made)
    if way.calls_again:
        shown.asked = compared(other.params, {**other.shown, **made.get("params", {})})
    elif way.takes_output:
        taken = made.get("output", other.output)
        read = first_value(other, "output")
        shown.output = said(taken)
        shown.changed = [] if read is ABSENT else compared(read, taken)
    shown.doubts = foreseen(other, made)
    return shown


def _packed(form: Posted) -> str:
    """Write a posted form as one field, in characters that all browsers send unchanged."""
    kept = [(name, text) for name, text in form if name not in ("answer", "alike")]
    return base64.b64encode(json.dumps(kept).encode()).decode()


def _unpacked(text: str) -> Posted:
    try:
        written = base64.b64decode(text).decode()
        check_json(written)
        posted = [(str(name), str(value)) for name, value in json.loads(written)]
        check_fields(posted)
        return posted
    except (ValueError, TypeError):
        raise NotAllowedError(400, "This form is incomplete: open the review again.") from None
