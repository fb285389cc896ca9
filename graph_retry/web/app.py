"""The app: its addresses, and what each of them answers."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from langchain_core.runnables import RunnableConfig
from markupsafe import Markup
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from graph_retry._wording import counted
from graph_retry.answering import PendingReview
from graph_retry.web.card import Card, Posted, filled_of, make_card
from graph_retry.web.fields import quoted, visible
from graph_retry.web.listing import (
    ORDERS,
    View,
    ago,
    facts,
    has_labels,
    make_listing,
    spoken,
    view_of,
    without_type,
)
from graph_retry.web.runs import Run, Runs, call_of
from graph_retry.web.safety import (
    FORM_COOKIE,
    HEADERS,
    Access,
    Authorize,
    Guard,
    Headers,
    NotAllowedError,
    bounded_form,
    text_of,
)
from graph_retry.web.waiting import Waiting, key_of
from graph_retry.web.ways import NotYetError

VIEW_COOKIE = "graph-retry-view"

_HERE = Path(__file__).parent
_SOON_S = 1.5
"""Seconds that a page waits for an answer to be applied, before it says that this takes longer."""

_LIVE_S = 2.0
_BEAT_S = 15.0
"""Seconds between looks at what waits, and between signs of life, while a page is open."""

Handler = Callable[["_Pages", Request, Access], Awaitable[Response]]


def create_app(
    source: Any,
    *,
    authorize: Authorize | None = None,
    token: str | None = None,
    user: str | None = None,
    read_only: bool = False,
    config: RunnableConfig | None = None,
    context: Any = None,
    title: str = "Reviews",
    secret: str | None = None,
    max_body: int = 8_000_000,
) -> Starlette:
    """Make the pages on which people read and answer reviews: an ASGI app.

    Nobody sees anything unless one of three says who it is: `authorize`, `token`, or Starlette's
    `AuthenticationMiddleware` in the app it is mounted in.

    Args:
        source: What `list_reviews` takes: a compiled graph, a client of `langgraph_sdk`, or a
            checkpointer, whose reviews can be seen and not answered.
        authorize: Called with each request, sync or async. Returns the user's name, an `Access`
            (which says what they may do), or None for somebody who may see nothing.
        token: Lets in whoever opens the app with `?token=…`.
        user: The name of whoever comes with the token; it stands in the ledger as `by`.
        read_only: Whether reviews can only be seen.
        config: What the runs that answers start need, as in `list_reviews`.
        context: LangGraph's `context` for these runs, as in `resume`.
        title: What stands at the top of each page.
        secret: Signs the forms. Give the same one to processes that serve the same pages.
        max_body: Bytes that a form may have.

    Example:
        >>> from langgraph.checkpoint.memory import InMemorySaver
        >>> from starlette.applications import Starlette
        >>> from starlette.routing import Mount
        >>> def who(request):
        ...     return request.headers.get("x-user")  # set by a proxy that logs people in
        >>> reviews = create_app(InMemorySaver(), authorize=who)
        >>> app = Starlette(routes=[Mount("/reviews", reviews)])
    """
    waiting = Waiting(source, config)
    pages = _Pages(
        waiting=waiting,
        runs=Runs(waiting, context),
        guard=Guard(authorize, token, user, secret),
        title=title,
        is_read_only=read_only or not waiting.can_answer,
        max_body=max_body,
    )
    return Starlette(
        routes=[
            Route("/", pages.answers(_Pages.inbox)),
            Route("/view", pages.answers(_Pages.change_view), methods=["POST"]),
            Route("/live", pages.answers(_Pages.live)),
            Route("/r/{key}", pages.answers(_Pages.review), methods=["GET", "POST"]),
            Route("/a/{name}", pages.answers(_Pages.outcome)),
            Mount("/static", StaticFiles(directory=_HERE / "static")),
        ],
        middleware=[Middleware(Headers)],
        exception_handlers={404: pages.not_found, 405: pages.not_found, 500: pages.failed},
    )


class _Pages:
    """What each address answers."""

    def __init__(
        self, *, waiting: Waiting, runs: Runs, guard: Guard, title: str, is_read_only: bool,
        max_body: int,
    ) -> None:  # fmt: skip
        self._waiting, self._runs, self._guard = waiting, runs, guard
        self._title, self._is_read_only, self._max_body = title, is_read_only, max_body
        self._templates = environment()

    def answers(self, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
        """Make an endpoint of a handler: only for who may see, and with errors as pages."""

        @wraps(handler)
        async def endpoint(request: Request) -> Response:
            try:
                if (home := self._guard.logged_in(request)) is not None:
                    return home
                return await handler(self, request, await self._guard.access(request))
            except NotAllowedError as error:
                return self._message(request, error.status, "That is not possible.", str(error))

        return endpoint

    async def inbox(self, request: Request, access: Access) -> Response:
        """List what waits."""
        await self._waiting.refresh()
        view = view_of(request.cookies.get(VIEW_COOKIE, ""))
        number = request.query_params.get("page", "1")
        rows = [row for row in self._waiting.rows.values() if has_labels(row, access.labels)]
        listing = make_listing(rows, view, int(number) if number.isdecimal() else 1)
        shown: dict[str, Any] = {"listing": listing, "orders": ORDERS}
        return self._page(request, access, "inbox.html", is_whole=self._waiting.is_whole, **shown)

    async def change_view(self, request: Request, access: Access) -> Response:
        """Keep what somebody wants to see of the inbox."""
        del access
        form = await bounded_form(request, 100_000)
        self._guard.check_form(request, text_of(form, "form"))
        given = {name: text_of(form, name)[:200] for name in View.__dataclass_fields__}
        view = View() if text_of(form, "all") else View(**{**given, "order": given["order"]})
        home = RedirectResponse(f"{_root(request)}/", 303)
        self._guard.set_cookie(request, home, VIEW_COOKIE, view.as_cookie())
        return home

    async def review(self, request: Request, access: Access) -> Response:
        """Show a review, or take an answer to it and to others of its thread."""
        key = request.path_params["key"]
        found = [each for each in await self._waiting.find(key) if has_labels(each, access.labels)]
        if request.method == "POST":
            return await self._take(request, access, key, found)
        if not found:
            return self._gone(request, access)
        together = request.query_params.get("together") == "1"
        cards = [make_card(each) for each in (found if together else found[:1])]
        return self._review_page(request, access, cards, found)

    async def _take(
        self, request: Request, access: Access, key: str, found: list[PendingReview]
    ) -> Response:
        """Take a posted form: what its buttons ask for, or the answer that was chosen."""
        form = await bounded_form(request, self._max_body)
        self._guard.check_form(request, text_of(form, "form"))
        if self._is_read_only or not access.may_decide:
            raise NotAllowedError(403, "You may look at this review, and not answer it.")
        name = text_of(form, "answer")
        if self._runs.get(name) is not None:  # sent twice
            return RedirectResponse(f"{_root(request)}/a/{quote(name, safe='')}", 303)
        if not found or key not in (mine := set(_keys(form))):
            return self._gone(request, access)
        asked = [review for review in found if key_of(review) in mine]
        if any(part.endswith(".do") for part, _ in form):
            cards = [make_card(review, form) for review in asked]
            return self._review_page(request, access, cards, found)
        cards, decisions, is_ready = list[Card](), dict[str, Any](), True
        for review in asked:
            card = make_card(review, form)
            if len(asked) > 1 and card.chosen in ("", "later"):
                cards.append(card)
                continue
            try:
                way, filled = filled_of(card, form)
                decision = way.make(review, filled) | {"channel": "web"}
                decisions[review.review_id] = decision | (
                    {"by": access.user} if access.user else {}
                )
            except NotYetError as problem:
                card, is_ready = make_card(review, form, str(problem), problem.place), False
            cards.append(card)
        if not (is_ready and decisions):
            if is_ready:
                cards[0].problem = "Choose at least one answer."
            return self._review_page(request, access, cards, found, status=422)
        answered = [review for review in asked if review.review_id in decisions]
        self._runs.start(name, Run(answered, decisions, form))
        return RedirectResponse(f"{_root(request)}/a/{quote(name, safe='')}", 303)

    async def outcome(self, request: Request, access: Access) -> Response:
        """Tell what became of an answer; what was refused is shown again as it was typed."""
        run = self._runs.get(request.path_params["name"])
        if run is None or run.task is None or not has_labels(run.reviews[0], access.labels):
            return self._message(
                request, 404, "This answer is not known here.",
                "The page was started anew since. What still waits is in the list.", access,
            )  # fmt: skip
        await asyncio.wait({run.task}, timeout=_SOON_S)
        if not run.task.done():
            return self._page(request, access, "running.html", review=run.reviews[0])
        told = run.task.result()
        if told.problem:
            cards = _again(run, told.following, told.problem)
            return self._review_page(request, access, cards, told.following)
        view = view_of(request.cookies.get(VIEW_COOKIE, ""))
        rows = [row for row in self._waiting.rows.values() if has_labels(row, access.labels)]
        others = make_listing(rows, view, 1).rows
        after = told.following[0] if told.following else (others[0] if others else None)
        return self._page(
            request, access, "outcome.html", told=told, review=run.reviews[0], after=after
        )

    async def live(self, request: Request, access: Access) -> Response:
        """Tell a page whenever what waits has changed, without telling what."""
        del access

        async def changes() -> AsyncIterator[str]:
            version, quiet = -1, 0.0
            while not await request.is_disconnected():
                with suppress(
                    Exception
                ):  # a storage that is away for a moment: the next look tells
                    await self._waiting.refresh()
                quiet += _LIVE_S
                if version != self._waiting.version:
                    version, quiet = self._waiting.version, 0.0
                    yield f"data: {version}\n\n"
                elif quiet >= _BEAT_S:
                    quiet = 0.0
                    yield ": still here\n\n"
                await asyncio.sleep(_LIVE_S)

        return StreamingResponse(changes(), media_type="text/event-stream")

    async def not_found(self, request: Request, error: Exception) -> Response:
        """Say that there is no such page."""
        del error
        return self._message(request, 404, "There is no such page.", "Go back to the list.")

    async def failed(self, request: Request, error: Exception) -> Response:
        """Say that something went wrong here; the server's log has the rest."""
        text = f"{type(error).__name__}: what went wrong is in the log of the server."
        page = self._message(request, 500, "This page could not be made.", text)
        page.headers.update(HEADERS)  # an error passes the middleware by
        return page

    def _review_page(
        self, request: Request, access: Access, cards: list[Card], found: list[PendingReview],
        status: int = 200,
    ) -> Response:  # fmt: skip
        shown = [card.review for card in cards]
        others = [review for review in found if review not in shown]
        can_answer = access.may_decide and not self._is_read_only
        return self._page(
            request, access, "review.html", status, cards=cards, others=others,
            can_answer=can_answer, answer=secrets.token_urlsafe(16),
        )  # fmt: skip

    def _gone(self, request: Request, access: Access) -> Response:
        return self._message(
            request, 410, "This review waits no longer.",
            "It was answered, or it expired. Nothing that you do here changes it.", access,
        )  # fmt: skip

    def _message(
        self, request: Request, status: int, title: str, text: str, access: Access | None = None
    ) -> Response:
        return self._page(
            request, access or Access(may_decide=False), "message.html", status,
            heading=title, text=text, is_known=access is not None,
        )  # fmt: skip

    def _page(
        self, request: Request, access: Access, template: str, status: int = 200, **shown: Any
    ) -> Response:
        cookie = request.cookies.get(FORM_COOKIE) or secrets.token_urlsafe(16)
        text = self._templates.get_template(template).render(
            **shown,
            root=_root(request),
            title=self._title,
            access=access,
            is_read_only=self._is_read_only,
            form=self._guard.form_token(cookie),
        )
        page = HTMLResponse(text, status)
        if FORM_COOKIE not in request.cookies:
            self._guard.set_cookie(request, page, FORM_COOKIE, cookie)
        return page


def environment() -> Environment:
    """Return what draws the templates: all that is put in is escaped, and can be seen."""
    made = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    known: Any = {"ago": ago, "facts": facts, "key_of": key_of, "counted": counted}
    made.globals.update(known)
    made.filters.update(quoted=quoted, spoken=spoken, without_type=without_type)
    return made


def _shown(value: Any) -> Any:
    return value if isinstance(value, Markup) else visible(value)


def _root(request: Request) -> str:
    """Return where the app is mounted, without a slash at the end."""
    return str(request.scope.get("root_path", "")).rstrip("/")


def _keys(form: Posted) -> list[str]:
    """Return the keys of the reviews that a posted form is about."""
    return [text for name, text in form if name == "review"]


def _again(run: Run, following: list[PendingReview], problem: str) -> list[Card]:
    """Make the cards of reviews that are asked again, with what was typed for them before."""
    old = {call_of(review): key_of(review) for review in run.reviews}
    cards: list[Card] = []
    for review in following:
        if (before := old.get(call_of(review))) is not None:
            key = key_of(review)
            posted = [
                (key + name.removeprefix(before) if name.startswith(f"{before}.") else name, text)
                for name, text in run.posted
            ]
            cards.append(make_card(review, posted, review.problem or problem))
    return cards
