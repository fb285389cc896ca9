"""The common parts of all pages: access, templates and error pages."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from graph_retry._core.ground.wording import counted, in_words
from graph_retry.answering import PendingReview
from graph_retry.desk.web.forms.card import typed
from graph_retry.desk.web.forms.fields import quoted, visible
from graph_retry.desk.web.listing import Listings
from graph_retry.desk.web.pages.past import Past
from graph_retry.desk.web.rows import thread_key
from graph_retry.desk.web.runs import Missed, Runs
from graph_retry.desk.web.safety import (
    HEADERS,
    Access,
    Guard,
    NotAllowedError,
    bounded_form,
    check_origin,
)
from graph_retry.desk.web.waiting import Waiting
from graph_retry.desk.web.words import ago, answered, said, spoken, without_type
from graph_retry.observers._notifications import key_of, kind_of, sentence_of

HERE = Path(__file__).parent

Posted = list[tuple[str, str]]
Handler = Callable[Concatenate["Site", Request, Access, ...], Awaitable[Response]]


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

    def answers(self, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
        """Make an endpoint from a handler, which checks access first.

        An open page asks for itself again and again, with the version that it shows as `since`. The
        handler is called only if the open reviews have changed.
        """

        @wraps(handler)
        async def endpoint(request: Request) -> Response:
            if (home := self.guard.logged_in(request)) is not None:
                return home
            access = await self.guard.access(request)
            since = request.query_params.get("since")
            if since is not None and not await self._has_news(since):
                return Response(status_code=204)
            return await handler(self, request, access)

        return endpoint

    @property
    def version(self) -> str:
        """The version of the open reviews, which also differs from those of other processes."""
        return f"{self._process}-{self.waiting.version}"

    async def _has_news(self, since: str) -> bool:
        try:
            await self.waiting.refresh()
        except Exception:  # noqa: BLE001 - a storage that fails for a moment changes no open page
            return False
        return since != self.version

    async def form(self, request: Request, most: int | None = None) -> Posted:
        """Read a posted form, and check that one of our pages sent it."""
        check_origin(request)
        return await bounded_form(request, most or self._max_body)

    def can_answer(self, access: Access) -> bool:
        """Return whether this user may answer reviews in this app."""
        return access.may_decide and not self.is_read_only

    async def refused(self, request: Request, error: Exception) -> Response:
        """Return the page for a request that is not allowed."""
        status = error.status if isinstance(error, NotAllowedError) else 403
        return self.message(request, status, "That is not possible.", str(error))

    async def not_found(self, request: Request, error: Exception) -> Response:
        """Return the page for an unknown address."""
        del error
        return self.message(request, 404, "There is no such page.", "Go back to the list.")

    async def failed(self, request: Request, error: Exception) -> Response:
        """Return the page for an unexpected error; the server's log has the details."""
        text = f"{type(error).__name__}: the log of the server has the details."
        page = self.message(request, 500, "This page failed.", text)
        page.headers.update(HEADERS)  # Starlette makes this page outside of our middleware.
        return page

    async def gone(self, request: Request, access: Access, form: Posted | None = None) -> Response:
        """Return the page for reviews that are no longer open, with the input for them."""
        path_key = request.path_params["key"]
        keys = dict.fromkeys([path_key, *(key for name, key in form or [] if name == "review")])
        missed = [await self.missed(key, access, form or []) for key in keys]
        review = self.waiting.closed(path_key, access)
        thread = await self.waiting.of_thread(review) if review and review.graph else []
        return self.message(
            request, 410,
            "This review is closed." if len(missed) == 1 else "These reviews are closed.",
            "An answer here changes nothing.", access,
            following=list(filter(access.sees, thread)), missed=missed,
        )  # fmt: skip

    async def missed(self, key: str, access: Access, form: Posted) -> Missed:
        """Tell who closed a review before the answer in `form`, or that the review has changed."""
        found = (await self.waiting.find(key, access))[:1]
        again = found[0] if found else await self.waiting.asked_again(key, access)
        if again is not None:
            why = "It has changed since you opened it."
            return Missed(why, again, typed(form, key), key_of(again))
        review = self.waiting.closed(key, access)
        answers = await self.waiting.answers(review) if review else []
        why = answered(*answers[0]) if answers else "Somebody answered it, or it expired."
        return Missed(why, review, typed(form, key))

    def message(
        self, request: Request, status: int, title: str, text: str, access: Access | None = None,
        *, following: Sequence[PendingReview] = (), missed: Sequence[Missed] = (),
    ) -> Response:  # fmt: skip
        """Return a page with a heading, a text, and links to reviews of the same thread.

        It lists the `missed` reviews with the input for them.
        """
        return self.page(
            request, access or Access(may_decide=False), "message.html", status,
            heading=title, text=text, is_known=access is not None, following=following,
            missed=missed,
        )  # fmt: skip

    def page(
        self, request: Request, access: Access, template: str, status: int = 200, **shown: Any
    ) -> Response:
        """Render a template as a page."""
        text = self._templates.get_template(template).render(
            **shown,
            root=root_of(request),
            here=request.url.path,
            title=self._title,
            access=access,
            version=self.version,
            is_read_only=self.is_read_only,
        )
        return HTMLResponse(text, status)


def environment() -> Environment:
    """Return the template environment, which escapes values and shows invisible characters."""
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    functions = ago, counted, in_words, key_of, kind_of, said, sentence_of, thread_key
    known: Any = {function.__name__: function for function in functions}
    made.globals.update(known)
    made.filters.update(quoted=quoted, spoken=spoken, without_type=without_type)
    return made


def _shown(value: Any) -> Any:
    return value if isinstance(value, Markup) else visible(value)


def root_of(request: Request) -> str:
    """Return the path under which the app is mounted, without a slash at the end."""
    return str(request.scope.get("root_path", "")).rstrip("/")
