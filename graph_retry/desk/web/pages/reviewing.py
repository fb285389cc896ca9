"""The page of one review, or of all reviews of a thread, and the page of an answer's outcome."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response

from graph_retry import PendingReview
from graph_retry.desk.web.applying import SOON_S, Missed, Run, Sent
from graph_retry.desk.web.forms.card import Card, chosen_in, decided, judged, make_card, typed
from graph_retry.desk.web.forms.form_values import visible
from graph_retry.desk.web.forms.ways import NotYetError
from graph_retry.desk.web.page import Site, root_of
from graph_retry.desk.web.pages.alike import preview
from graph_retry.desk.web.pages.inbox_page import listed
from graph_retry.desk.web.posted import REVIEWS, NotAllowedError, Posted, text_of
from graph_retry.desk.web.safety import Access


async def review(site: Site, request: Request, access: Access) -> Response:
    """Show a review, or handle its posted form, which may also answer other reviews."""
    if request.method == "POST":
        return await _take(site, request, access)
    key = request.path_params["key"]
    run = site.runs.running.get(key)
    if run is not None and access.seen(run.reviews):
        return await site.page(
            request, access, "running.html", review=access.seen(run.reviews)[0], run=run, held=0.0,
            by=run.by, after=None,
        )  # fmt: skip
    found = await site.waiting.find(key, access)
    again = None if found else await site.waiting.asked_again(key, access)
    if again is not None:
        page = RedirectResponse(f"{root_of(request)}/r/{again.key}", 303)
        site.guard.follow(request, page, access, [again.key])
        return page
    if not found:
        return await site.gone(request, access)
    together = request.query_params.get("together") == "1"
    cards = await site.work(
        request, lambda: [make_card(each) for each in (found if together else found[:1])]
    )
    return await review_page(site, request, access, cards, found)


async def judge(site: Site, request: Request, access: Access) -> Response:
    """Validate a draft while a person types, without sending it. Sent forms have priority."""
    form = await site.form(request, access)
    turn, told = site.turn(access), None
    if not turn.locked():
        async with turn:
            found = await site.waiting.find(request.path_params["key"], access)
            told = await site.work(request, judged, found[0], form) if found else None
    return Response(status_code=204) if told is None else JSONResponse(told)


async def whole_text(site: Site, request: Request, access: Access) -> Response:
    """Show the whole text of the model. The review's page shows only a part."""
    found = await site.waiting.find(request.path_params["key"], access)
    if not found:
        return await site.gone(request, access)
    raw, _ = await site.work(request, lambda: make_card(found[0]).texts)
    return PlainTextResponse(visible(raw))


@dataclass
class _Meant:
    """The open reviews of a posted form, and the answers that came too late.

    `thread` lists all open reviews of the thread. `posted_as` maps the key of each review to its
    key in the form. The two keys differ if the question was asked again.
    """

    thread: list[PendingReview] = field(default_factory=list[PendingReview])
    posted_as: dict[str, str] = field(default_factory=dict[str, str])
    missed: list[Missed] = field(default_factory=list[Missed])

    @property
    def reviews(self) -> list[PendingReview]:
        """The open reviews of the form."""
        return [review for review in self.thread if review.key in self.posted_as]


async def _meant(
    site: Site, request: Request, access: Access, form: Posted, keys: Iterable[str]
) -> _Meant:
    """Read the reviews of a posted form. Some may be closed by now, or asked again.

    Raises:
        NotAllowedError: If the reviews belong to several threads. A form of the page never has such
            reviews.
    """
    meant = _Meant()
    for key in keys:
        found = [each for each in meant.thread if each.key == key]
        found = found or await site.waiting.find(key, access)
        again = None if found else await site.waiting.asked_again(key, access)
        if again is not None:
            found = [again]
        if found:
            meant.posted_as[found[0].key] = key
            meant.thread = list({each.key: each for each in [*meant.thread, *found]}.values())
        elif chosen_in(form, key):
            meant.missed.append(await site.missed(request, key, access, form))
    if len({review.thread_id for review in meant.thread}) > 1:
        raise NotAllowedError(400, "This form is incomplete: open the review again.")
    return meant


@dataclass
class _Judged:
    """The cards of a posted form, and the decisions that can be sent."""

    cards: list[Card] = field(default_factory=list[Card])
    decisions: dict[str, Any] = field(default_factory=dict[str, Any])
    status: int = 200


async def _take(site: Site, request: Request, access: Access) -> Response:
    """Handle a posted form: send the chosen answers, or show the form again with its input."""
    form = await site.form(request, access, answers=True)
    async with site.turn(access):
        return await _taken(site, request, access, form)


async def _taken(site: Site, request: Request, access: Access, form: Posted) -> Response:
    name, path_key = text_of(form, "answer"), request.path_params["key"]
    if sent := site.runs.repeated(name, access.user):  # The browser has sent this form twice.
        return _to_outcome(request, name, sent.runs[0])
    keys = list(dict.fromkeys(text for part, text in form if part == "review"))
    REVIEWS.check(len(keys))
    meant = await _meant(site, request, access, form, keys if path_key in keys else ())
    if not meant.posted_as:
        return await site.gone(request, access, form)
    is_changed = any(part.endswith(".do") for part, _ in form)
    judged = await site.work(request, _judged, meant, form, access, is_changed)
    status = judged.status
    if status != 200 or is_changed or not judged.decisions:
        if meant.missed:
            status = 409
        elif status == 200 and not is_changed:
            judged.cards[0].problem, status = "Choose at least one answer.", 422
        access = _following(access, meant.reviews)
        page = await review_page(
            site, request, access, judged.cards, meant.thread, status, missed=meant.missed
        )
        # A link gives access to one review, but now a new review may ask the same question.
        site.guard.follow(request, page, access, meant.posted_as)
        return page
    if text_of(form, "alike") and access.key is None:
        return await preview(site, request, access, meant.reviews[0], form)
    taken = [each for each in meant.reviews if each.review_id in judged.decisions]
    run = Run(taken, judged.decisions, by=access.user or "")
    site.start(request, access, name, Sent([run], form, meant.missed))
    return _to_outcome(request, name, run)


def _judged(meant: _Meant, form: Posted, access: Access, is_changed: bool) -> _Judged:
    judged, is_one = _Judged(), len({text for part, text in form if part == "review"}) == 1
    for review in meant.reviews:
        before = meant.posted_as[review.key]
        why = "" if before == review.key else _why_again(review)
        card = make_card(review, form, why, posted_as=before)
        judged.cards.append(card)
        if why:
            judged.status = 409
        elif not is_changed and (is_one or chosen_in(form, before)):
            try:
                judged.decisions[review.review_id] = decided(card, form)[1] | access.signed
            except NotYetError as problem:
                judged.cards[-1] = make_card(review, form, str(problem), problem.issues)
                judged.status = 422
    return judged


def _following(access: Access, same: list[PendingReview]) -> Access:
    """Let the user of a link also see a later review with the same question."""
    return replace(access, key=same[0].key) if access.key and same else access


def _to_outcome(request: Request, name: str, run: Run) -> Response:
    key = run.reviews[0].key
    return RedirectResponse(f"{root_of(request)}/r/{key}/a/{name}", 303)


def _why_again(review: PendingReview) -> str:
    why = "The question was asked again after you opened it. Send your answer once more."
    return f"{why}\nAn earlier answer was refused: {review.problem}" if review.problem else why


async def outcome(site: Site, request: Request, access: Access) -> Response:
    """Show the outcome of an answer. If it was refused, show the form with the typed values."""
    name, key = request.path_params["name"], request.path_params["key"]
    sent = site.runs.get(name)
    runs = [run for run in sent.runs if key in (one.key for one in run.reviews)] if sent else []
    if sent is None or not runs or not access.seen(runs[0].reviews):
        found = (await site.waiting.find(key, access))[:1]
        now = (
            "Its review is open: your browser has the draft" if found else "The list shows the rest"
        )
        return await site.message(
            request, 404, "This answer is unknown.", f"The server was restarted. {now}.", access,
            following=found,
        )  # fmt: skip
    run = runs[0]
    if held := sent.held_s:
        return await site.page(
            request, access, "running.html", review=run.reviews[0], run=run, held=held, by=None,
            after=_next(site, request, access, run),
        )  # fmt: skip
    await sent.wait(SOON_S)
    if (told := run.told) is None:
        return await site.page(
            request, access, "running.html", review=run.reviews[0], run=run, held=0.0, by=None,
            after=_next(site, request, access, run),
        )  # fmt: skip
    if "hx-request" in request.headers:  # The waiting page sent this request and must reload.
        return Response(headers={"HX-Refresh": "true"})
    told = told.seen_by(access)
    if told.problem:
        following = await site.waiting.of_thread(run.reviews[0])
        same = [each for each in following if each.namespace in run.asked]
        access = _following(access, same)
        following = access.seen(following)
        cards = await site.work(request, _again, sent, run, following, told.problem)
        if not cards:  # Somebody has answered it since.
            return await site.gone(request, access, [*sent.posted])
        for card in cards:
            card.heading = "Your answer was refused. No call was made."
        page = await review_page(
            site, request, access, cards, following, missed=access.seen(sent.missed)
        )
        # A link gives access to one review, but now a new review asks the same question.
        site.guard.follow(request, page, access, [card.key for card in cards])
        return page
    following = [] if access.key else access.seen(told.following)
    following = [each for each in following if each.key not in site.runs.running]
    after = following[0] if following else _next(site, request, access, run)
    return await site.page(
        request, access, "outcome.html",
        told=told, review=run.reviews[0], after=after, is_same_thread=bool(following),
        typed=typed(sent.posted, *(one.key for one in run.reviews)) if told.tone == "plain" else [],
        missed=access.seen(sent.missed), taken=run.asked.values(),
    )  # fmt: skip


def _next(site: Site, request: Request, access: Access, run: Run) -> PendingReview | None:
    """Return the next review of the list, other than the answered one."""
    if access.key:
        return None
    running, is_put_off = site.runs.running, run.told is not None and run.told.is_put_off
    for row in listed(site, request, access).rows:
        is_own = row.key in run.asked.values() or (is_put_off and row.question[0] in run.asked)
        if row.key not in running and not (is_own and (is_put_off or run.told is None)):
            return row.review
    return None


async def undo(site: Site, request: Request, access: Access) -> Response:
    """Take back, send, stop or continue the answers of a form. After taking back, show the form."""
    form = await site.form(request, access, answers=True)
    key, sent = request.path_params["key"], site.runs.get(request.path_params["name"])
    if sent is None or not access.seen(sent.runs[0].reviews):
        return RedirectResponse(request.url.path, 303)
    if sent.runs[0].by != (access.user or ""):
        raise NotAllowedError(403, "Only the sender of an answer can take it back or stop it.")
    name = request.path_params["name"]
    if text_of(form, "stop"):
        await site.runs.stop(sent)
        return RedirectResponse(request.url.path, 303)
    if text_of(form, "go_on"):
        site.runs.go_on(sent, f"{name}+")
        return RedirectResponse(f"{request.url.path}+", 303)
    taken = None
    if text_of(form, "undo"):
        taken = site.runs.take_back(name)
    else:
        sent.go.set()
    found = await site.waiting.find(key, access) if taken else []
    if not found:  # It is on its way, or somebody else has answered it.
        return RedirectResponse(
            request.url.path if not taken else f"{root_of(request)}/r/{key}", 303
        )
    asked = {text for part, text in sent.posted if part == "review"}
    own = [review for review in found if review.key in asked] or found[:1]
    cards = await site.work(request, lambda: [make_card(each, sent.posted) for each in own])
    cards[0].heading, cards[0].problem = "Taken back.", "Nothing was sent."
    return await review_page(site, request, access, cards, found)


async def review_page(
    site: Site, request: Request, access: Access, cards: list[Card], found: list[PendingReview],
    status: int = 200, *, missed: Sequence[Missed] = (),
) -> Response:  # fmt: skip
    """Render the page of one review, or of several reviews of a thread."""
    shown = [card.review for card in cards]
    others = [] if access.key else [review for review in found if review not in shown]
    alike = 0 if access.key else len(site.waiting.alike(cards[0].key, access))
    return await site.page(
        request, access, "review.html", status, cards=cards, others=others,
        can_answer=site.can_answer(access), answer=secrets.token_urlsafe(16), alike=alike,
        missed=missed, is_posted=request.method == "POST" or "name" in request.path_params,
    )  # fmt: skip


def _again(sent: Sent, run: Run, following: list[PendingReview], problem: str) -> list[Card]:
    """Make the cards of the reviews that replace refused ones, with the person's input."""
    return [
        make_card(review, sent.posted, review.problem or problem, review.answer_issues, key)
        for review in following
        if (key := run.asked.get(review.namespace))
    ]
