"""The common parts of all pages: access, templates and error pages."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from dataclasses import replace
from functools import partial, wraps
from operator import attrgetter
from pathlib import Path
from typing import Any, Concatenate, TypeVar
from weakref import WeakValueDictionary

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from graph_retry import PendingReview
from graph_retry.desk.texts import said, spoken
from graph_retry.desk.web.applying import Missed, Runs, Sent
from graph_retry.desk.web.forms.card import typed
from graph_retry.desk.web.forms.form_fields import quoted
from graph_retry.desk.web.forms.form_values import visible
from graph_retry.desk.web.forms.words import ago, answered, said_role, without_type
from graph_retry.desk.web.pages.arranged import Listings, view_in
from graph_retry.desk.web.pages.past_calls import Past
from graph_retry.desk.web.posted import ARRIVING, REVIEWS, NotAllowedError, Posted, read_posted
from graph_retry.desk.web.rows import is_put_off, thread_key
from graph_retry.desk.web.safety import HEADERS, Access, Guard, check_origin, review_of
from graph_retry.desk.web.waiting import Waiting
from graph_retry.plugins import counted, error_text, in_words

HERE = Path(__file__).parent

SHORT = 100_000
"""Maximum bytes of a form without answers."""

Handler = Callable[Concatenate["Site", Request, Access, ...], Awaitable[Response]]
T = TypeVar("T")

WORKERS = 3
"""The number of OS threads for posted forms. Other pages have as many OS threads."""

_viewer: ContextVar[Access] = ContextVar("the user for whom a page is rendered")


class Site:
    """The state and methods that all handlers of pages share."""

    def __init__(
        self, *, waiting: Waiting, runs: Runs, guard: Guard, title: str, is_read_only: bool,
        max_body: int,
    ) -> None:  # fmt: skip
        self.waiting, self.runs, self.guard = waiting, runs, guard
        self.past, self.listings = Past(waiting), Listings(waiting)
        self._title, self.is_read_only, self._max_body = title, is_read_only, max_body
        self._templates, self._process = environment(), secrets.token_hex(4)
        self._workers = {
            is_form: ThreadPoolExecutor(WORKERS, "graph-retry-web") for is_form in (True, False)
        }
        self._arriving = Counter[str | None]()
        self._turns: WeakValueDictionary[str | None, asyncio.Lock] = WeakValueDictionary()

    def answers(self, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
        """Make an endpoint from a handler. The endpoint checks access first.

        An open page reloads itself regularly, with its version as `since`. If the open reviews have
        not changed, the endpoint does not call the handler.
        """

        @wraps(handler)
        async def endpoint(request: Request) -> Response:
            if (home := self.guard.logged_in(request)) is not None:
                return home
            try:
                access = await self.guard.access(request)
            except NotAllowedError:
                if (again := _from_here(request)) is None:
                    raise
                return HTMLResponse(again, 401)
            since = request.query_params.get("since")
            if since is not None and not await self._has_news(since, access):
                return Response(status_code=204)
            try:
                return await handler(self, request, access)
            finally:
                self._arrived(request, access.user, -_bytes_of(request))

        return endpoint

    def _arrived(self, request: Request, user: str | None, number: int) -> None:
        """Count the bytes of a user's forms that are held until they are answered."""
        request.state.arrived = _bytes_of(request) + number
        self._count(user, number)

    def _count(self, user: str | None, number: int) -> None:
        self._arriving[user] += number
        if number > 0:
            ARRIVING.check(self._arriving[user])
        elif not self._arriving[user]:
            del self._arriving[user]

    def start(self, request: Request, access: Access, name: str, sent: Sent) -> None:
        """Start to apply a form's answers. The form's bytes count until all answers are applied.

        The text of an answered review in the list is saved first, because the review leaves the
        list.
        """
        about = self.waiting.about
        for run in sent.runs:
            run.reviews = [replace(each, subject=about(each)) for each in run.reviews]
        self.runs.start(name, sent)
        number, request.state.arrived = _bytes_of(request), 0
        if sent.task is not None:
            sent.task.add_done_callback(lambda _: self._count(access.user, -number))

    def version(self, access: Access) -> str:
        """Return a text that changes with the open reviews of this user."""
        return f"{self._process}-{self.listings.version(access)}"

    async def _has_news(self, since: str, access: Access) -> bool:
        try:
            await self.waiting.refresh()
        except Exception:  # noqa: BLE001 - a storage that fails for a moment changes no open page
            return False
        return since != self.version(access)

    async def form(self, request: Request, access: Access, *, answers: bool = False) -> Posted:
        """Read a posted form. The sender's rights are checked before the first byte is read.

        `answers` means that the form answers reviews.

        Raises:
            NotAllowedError: If the user may not send the form, or if it is not a form of this page.
        """
        check_origin(request)
        if answers and not self.can_answer(access):
            raise NotAllowedError(403, "You can read this review, but not answer it.")
        most = self._max_body if answers else min(self._max_body, SHORT)
        arrived = partial(self._arrived, request, access.user)
        return await read_posted(request, most, partial(self.work, request), arrived)

    async def work(self, request: Request, function: Callable[..., T], *args: Any) -> T:
        """Call a slow function in an OS thread, so that it never blocks the event loop."""
        workers = self._workers[request.method == "POST"]
        call = partial(copy_context().run, function, *args)
        return await asyncio.get_running_loop().run_in_executor(workers, call)

    def turn(self, access: Access) -> asyncio.Lock:
        """Return the lock with which a user's forms are processed one by one."""
        return self._turns.setdefault(access.user, asyncio.Lock())

    def can_answer(self, access: Access) -> bool:
        """Say whether this user may answer reviews in this app."""
        return access.may_decide and not self.is_read_only

    async def refused(self, request: Request, error: Exception) -> Response:
        """Return the page for a request that is not allowed."""
        status = error.status if isinstance(error, NotAllowedError) else 403
        return await self.message(request, status, "That is not possible.", error_text(error))

    async def not_found(self, request: Request, error: Exception) -> Response:
        """Return the page for an unknown URL."""
        del error
        return await self.message(request, 404, "There is no such page.", "Go back to the list.")

    async def failed(self, request: Request, error: Exception) -> Response:
        """Return the page for an unexpected error. The server's log has the details."""
        text = f"{type(error).__name__}: see the server's log for the details."
        page = await self.message(request, 500, "This page failed.", text)
        page.headers.update(HEADERS)  # Starlette makes this page outside of our middleware.
        return page

    async def gone(self, request: Request, access: Access, form: Posted | None = None) -> Response:
        """Return the page for closed reviews, with the person's input for them."""
        path_key = request.path_params["key"]
        keys = dict.fromkeys([path_key, *(key for name, key in form or [] if name == "review")])
        REVIEWS.check(len(keys) - 1)
        missed = [await self.missed(request, key, access, form or []) for key in keys]
        review = self.waiting.closed(path_key, access)
        thread = await self.waiting.of_thread(review) if review and review.graph else []
        return await self.message(
            request, 410,
            "This review is closed." if len(missed) == 1 else "These reviews are closed.",
            "An answer here changes nothing.", access,
            following=[each for each in access.seen(thread) if not is_put_off(each)], missed=missed,
        )  # fmt: skip

    async def missed(self, request: Request, key: str, access: Access, form: Posted) -> Missed:
        """Say who closed a review before the answer in `form`, or that the review has changed."""
        kept = await self.work(request, typed, form, key)
        found = (await self.waiting.find(key, access))[:1]
        again = found[0] if found else await self.waiting.asked_again(key, access)
        if again is not None:
            why = "It has changed since you opened it."
            return Missed(why, again, kept, again.key)
        review = self.waiting.closed(key, access)
        drive, inbox = self.waiting.drive, self.waiting.inbox
        answers = await drive(inbox.answers, review) if review else []
        why = answered(*answers[0]) if answers else "Somebody answered it, or it expired."
        return Missed(why, review, kept)

    async def message(
        self, request: Request, status: int, title: str, text: str, access: Access | None = None,
        *, following: Sequence[PendingReview] = (), missed: Sequence[Missed] = (),
    ) -> Response:  # fmt: skip
        """Return a page with a text, links to `following` reviews, and input of `missed` ones."""
        return await self.page(
            request, access or Access(may_decide=False), "message.html", status,
            heading=title, text=text, is_known=access is not None, following=following,
            missed=missed,
        )  # fmt: skip

    async def page(
        self, request: Request, access: Access, template: str, status: int = 200, **shown: Any
    ) -> Response:
        """Render a template as a page.

        Raises:
            NotAllowedError: If the page would show a review that the user may not see.
        """
        about = {
            "home": view_in(request).query,
            **shown,
            "root": root_of(request),
            "here": request.url.path,
            "title": self._title,
            "access": access,
            "version": self.version(access),
            "named": _of_seen(self.waiting.named),
            "is_read_only": self.is_read_only,
        }
        return HTMLResponse(
            await self.work(request, self._rendered, template, access, about), status
        )

    def _rendered(self, template: str, access: Access, about: dict[str, Any]) -> str:
        _viewer.set(access)
        return self._templates.get_template(template).render(about)


class _Guarded(Environment):
    """A template environment whose templates read only reviews that the user may see."""

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Return an attribute for a template."""
        return super().getattr(_checked(obj), attribute)


def _checked(value: T) -> T:
    about = review_of(value)
    if about is not None and not _viewer.get().sees(about):
        raise NotAllowedError(404, "This page would show a review that you may not see.")
    return value


def environment() -> Environment:
    """Return the template environment. It escapes values and shows invisible characters."""
    made = _Guarded(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    functions = ago, counted, in_words, said, thread_key
    of_reviews = {"key_of": "key", "kind_of": "summary", "sentence_of": "sentence"}
    known: Any = {function.__name__: function for function in functions}
    known |= {name: _of_seen(attrgetter(fact)) for name, fact in of_reviews.items()}
    made.globals.update(known)
    made.filters.update(
        said_role=said_role, quoted=quoted, spoken=spoken, without_type=without_type
    )
    return made


def _of_seen(function: Callable[[Any], T]) -> Callable[[Any], T]:
    return lambda review: function(_checked(review))


def _shown(value: Any) -> Any:
    return value if isinstance(value, Markup) else visible(value)


def _bytes_of(request: Request) -> int:
    return getattr(request.state, "arrived", 0)


def _from_here(request: Request) -> str | None:
    """If a link on another site opened this URL, return a page that opens the URL again.

    Browsers send no cookies with the first request, because the link is on another site. The second
    request comes from this page, with cookies.
    """
    is_elsewhere = request.headers.get("sec-fetch-site") == "cross-site"
    if request.method != "GET" or not is_elsewhere or "from" in request.query_params:
        return None
    again = escape(f"{request.url.path}?{request.url.query}&from=here")
    return f'<meta http-equiv="refresh" content="0;url={again}"><p>One moment …'


def root_of(request: Request) -> str:
    """Return the path under which the app is mounted, without a slash at the end."""
    return str(request.scope.get("root_path", "")).rstrip("/")
