"""The page of one review, or of all reviews of a thread, and the page of an answer's outcome."""

from __future__ import annotations

import secrets
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from graph_retry.answering import PendingReview
from graph_retry.notifications import key_of
from graph_retry.web.forms.card import Card, decided, make_card, typed
from graph_retry.web.forms.ways import NotYetError
from graph_retry.web.page import Posted, Site, root_of
from graph_retry.web.pages.alike import preview
from graph_retry.web.pages.inbox import listed
from graph_retry.web.runs import SOON_S, Run, Sent
from graph_retry.web.safety import Access, NotAllowedError, text_of


async def review(site: Site, request: Request, access: Access) -> Response:
    """Show a review, or handle its posted form, which may answer other reviews of the thread."""
    key = request.path_params["key"]
    found = await site.waiting.find(key, access)
    again = None if found else await site.waiting.asked_again(key, access)
    if again is not None:
        return await _asked_again(site, request, access, again)
    if request.method == "POST":
        return await _take(site, request, access, found)
    if not found:
        return await site.gone(request, access)
    together = request.query_params.get("together") == "1"
    cards = [make_card(each) for each in (found if together else found[:1])]
    return review_page(site, request, access, cards, found)


async def _asked_again(
    site: Site, request: Request, access: Access, review: PendingReview
) -> Response:
    """Lead from a closed review to the open one with the same question, and keep typed values."""
    page: Response = RedirectResponse(f"{root_of(request)}/r/{key_of(review)}", 303)
    if request.method == "POST":
        form, before = await site.form(request), request.path_params["key"]
        why = "The question was asked again after you opened it. Send your answer once more."
        if review.problem:
            why += f"\nAn earlier answer was refused: {review.problem}"
        card = make_card(review, form, why, posted_as=before)
        page = review_page(site, request, access, [card], [review], 409)
    site.guard.follow(request, page, access, [key_of(review)])
    return page


async def _take(
    site: Site, request: Request, access: Access, found: list[PendingReview]
) -> Response:
    """Handle a posted form: start the chosen answer, or apply a button and show the form again."""
    form = await site.form(request)
    if not site.can_answer(access):
        raise NotAllowedError(403, "You can read this review, but not answer it.")
    name, key = text_of(form, "answer"), request.path_params["key"]
    there = RedirectResponse(f"{root_of(request)}/r/{key}/a/{name}", 303)
    if site.runs.get(name):  # The browser has sent this form twice.
        return there
    if not found or key not in (mine := set(_keys(form))):
        return await site.gone(request, access, form)
    asked = [review for review in found if key_of(review) in mine]
    if any(part.endswith(".do") for part, _ in form):
        cards = [make_card(review, form) for review in asked]
        return review_page(site, request, access, cards, found)
    cards, decisions, is_ready = list[Card](), dict[str, Any](), True
    for review in asked:
        card = make_card(review, form)
        if len(asked) > 1 and card.chosen in ("", "later"):
            cards.append(card)
            continue
        try:
            decisions[review.review_id] = decided(card, form)[1] | access.signed
        except NotYetError as problem:
            card, is_ready = make_card(review, form, str(problem), problem.issues), False
        cards.append(card)
    if not (is_ready and decisions):
        if is_ready:
            cards[0].problem = "Choose at least one answer."
        return review_page(site, request, access, cards, found, status=422)
    if text_of(form, "alike") and access.key is None:
        return await preview(site, request, access, asked[0], form)
    answered = [review for review in asked if review.review_id in decisions]
    site.runs.start(name, Sent([Run(answered, decisions, form)]))
    return there


async def outcome(site: Site, request: Request, access: Access) -> Response:
    """Show the outcome of an answer. For a refused answer, show its form with the typed values."""
    sent, key = site.runs.get(request.path_params["name"]), request.path_params["key"]
    runs = [run for run in sent.runs if key in map(key_of, run.reviews)] if sent else []
    if sent is None or not runs or not access.sees(runs[0].reviews[0]):
        return site.message(
            request, 404, "This answer is unknown.",
            "The server was restarted. The list shows the open reviews.", access,
        )  # fmt: skip
    run = runs[0]
    await sent.wait(SOON_S)
    if (told := run.told) is None:
        return site.page(request, access, "running.html", review=run.reviews[0])
    if "hx-request" in request.headers:  # The waiting page sent this request and must reload.
        return Response(headers={"HX-Refresh": "true"})
    if told.problem:
        cards = _again(run, told.following, told.problem)
        for card in cards:
            card.heading = "Your answer was refused. No call was made."
        page = review_page(site, request, access, cards, told.following)
        # A link gives access to one review, but now a new review asks the same question.
        site.guard.follow(request, page, access, [card.key for card in cards])
        return page
    others = [] if access.key else listed(site, request, access).rows
    following = [] if access.key else told.following
    after = following[0] if following else (others[0].review if others else None)
    return site.page(
        request, access, "outcome.html",
        told=told, review=run.reviews[0], after=after, is_same_thread=bool(following),
        typed=typed(run.posted) if told.tone == "plain" else [],
    )  # fmt: skip


def review_page(
    site: Site, request: Request, access: Access, cards: list[Card], found: list[PendingReview],
    status: int = 200,
) -> Response:  # fmt: skip
    """Render the page of one review, or of several reviews of a thread."""
    shown = [card.review for card in cards]
    others = [] if access.key else [review for review in found if review not in shown]
    alike = 0 if access.key else len(site.waiting.alike(cards[0].key, access))
    return site.page(
        request, access, "review.html", status, cards=cards, others=others,
        can_answer=site.can_answer(access), answer=secrets.token_urlsafe(16), alike=alike,
    )  # fmt: skip


def _keys(form: Posted) -> list[str]:
    """Return the keys of the reviews in a posted form."""
    return [text for name, text in form if name == "review"]


def _again(run: Run, following: list[PendingReview], problem: str) -> list[Card]:
    """Make the cards of reviews that replace refused ones, with the person's earlier input."""
    before = {review.namespace: key_of(review) for review in run.reviews}
    return [
        make_card(review, run.posted, review.problem or problem, review.answer_issues, key)
        for review in following
        if (key := before.get(review.namespace))
    ]
