"""Control who may see and decide, and what a browser may do with the pages."""

from __future__ import annotations

import hashlib
import hmac
import inspect
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graph_retry._review.review import Review
from graph_retry.notifications import key_of, read_link, sign

TOKEN_COOKIE = "graph-retry-token"  # noqa: S105 - a name
FORM_COOKIE = "graph-retry-form"
LINK_COOKIE = "graph-retry-link"

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "Cache-Control": "no-store",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
}
"""Sent with every answer: nothing from elsewhere is loaded, run, framed or kept."""


@dataclass(frozen=True)
class Access:
    """The rights of a user.

    Args:
        user: Who it is: `by` in the ledger.
        may_decide: Whether they may answer; otherwise they only see.
        labels: Only calls with these labels are shown to them, such as `{"tenant": "acme"}`.
    """

    user: str | None = None
    may_decide: bool = True
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    key: str | None = field(default=None, kw_only=True)
    """The one review that may be seen, of somebody who came by a link to it."""

    def sees(self, review: Review) -> bool:
        """Return whether a review may be shown."""
        is_named = self.key is None or self.key == key_of(review)
        return is_named and self.labels.items() <= review.labels.items()

    @property
    def signed(self) -> dict[str, str]:
        """The fields that the ledger gets for a decision made on the page: `channel` and `by`."""
        return {"channel": "web"} | ({"by": self.user} if self.user else {})


Authorize = Callable[[Request], Access | str | Awaitable[Access | str | None] | None]
"""Says who asks: an `Access`, a user's name, or None for somebody who may see nothing."""


class NotAllowedError(Exception):
    """A request that is refused; the text says what to do about it."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class Guard:
    """Lets in who may see, bounds what they send, and sends `HEADERS`.

    Args:
        authorize: Says who asks; without it the mounting app's own authentication does.
        token: Lets in whoever has it, once in the address and from then on in a cookie.
        user: The name of whoever comes with the token.
        secret: Signs the forms; processes that serve the same pages need the same one.
    """

    def __init__(
        self, authorize: Authorize | None, token: str | None, user: str | None, secret: str | None
    ) -> None:
        self._authorize, self._token, self._user = authorize, token, user
        self._secret = secret.encode() if secret else secrets.token_bytes(32)

    async def access(self, request: Request) -> Access:
        """Return the access of the sender of a request.

        Raises:
            NotAllowedError: If they may see nothing.
        """
        try:
            return await self._logged_in(request)
        except NotAllowedError:
            link = read_link(request.cookies.get(LINK_COOKIE, ""), self._secret)
            if link is None or link.key != request.path_params.get("key"):
                raise
            return Access(link.to, key=link.key)

    async def _logged_in(self, request: Request) -> Access:
        if self._token is not None:
            given = request.cookies.get(TOKEN_COOKIE, "")
            if hmac.compare_digest(given.encode(), self._cookie(self._token).encode()):
                return Access(self._user)
            raise NotAllowedError(401, "Open the address that was printed when this was started.")
        if self._authorize is not None:
            found = self._authorize(request)
            found = await found if inspect.isawaitable(found) else found
            if found is None:
                raise NotAllowedError(403, "You may not see the reviews: ask who runs this page.")
            return Access(found) if isinstance(found, str) else found
        user = request.scope.get("user")
        if user is None:
            raise NotAllowedError(
                403,
                "Nobody may see the reviews yet: pass `authorize=` or `token=` to `create_app`, or "
                "mount it in an app with Starlette's AuthenticationMiddleware.",
            )
        if not user.is_authenticated:
            raise NotAllowedError(401, "Log in first.")
        return Access(str(user.display_name))

    def logged_in(self, request: Request) -> RedirectResponse | None:
        """Turn the token in an address into a cookie, and go on without it."""
        given = request.query_params.get("token")
        if given is None or self._token is None or request.method != "GET":
            return None
        # Two slashes at the beginning would name another host.
        home = RedirectResponse("/" + str(request.scope["path"]).lstrip("/\\"), 303)
        if hmac.compare_digest(given.encode(), self._token.encode()):
            self.set_cookie(request, home, TOKEN_COOKIE, self._cookie(self._token))
        return home

    def by_link(self, request: Request) -> RedirectResponse:
        """Turn a link into a cookie of the one review's page, and go on there.

        Raises:
            NotAllowedError: If it was not made with this app's `secret`, or has expired.
        """
        token = request.path_params["token"]
        link = read_link(token, self._secret)
        if link is None:
            raise NotAllowedError(403, "This link is not valid, or no longer: ask for a new one.")
        place = f"{request.scope['root_path']}/r/{link.key}"
        there = RedirectResponse(place, 303)
        self.set_cookie(request, there, LINK_COOKIE, token, place)
        return there

    def follow(self, request: Request, response: Any, access: Access, keys: Iterable[str]) -> None:
        """Let who came by a link see reviews in which the same question is asked again."""
        link = read_link(request.cookies.get(LINK_COOKIE, ""), self._secret)
        if access.key is None or link is None:
            return
        for key in keys:
            token = sign(replace(link, key=key), self._secret)
            place = f"{request.scope['root_path']}/r/{key}"
            self.set_cookie(request, response, LINK_COOKIE, token, place)

    def set_cookie(
        self, request: Request, response: Any, name: str, value: str, path: str = ""
    ) -> None:
        """Set a cookie that no script reads and no other site sends with a form."""
        response.set_cookie(
            name, value, httponly=True, samesite="lax", secure=request.url.scheme == "https",
            path=path or request.scope["root_path"] or "/",
        )  # fmt: skip

    def form_token(self, cookie: str) -> str:
        """Return the token in the forms of a browser with this cookie."""
        return hmac.new(self._secret, cookie.encode(), hashlib.sha256).hexdigest()

    def check_form(self, request: Request, given: object) -> None:
        """Take a form only from a page of ours, in the browser it was sent to.

        Raises:
            NotAllowedError: If it came from elsewhere.
        """
        cookie = request.cookies.get(FORM_COOKIE, "")
        is_ours = request.headers.get("sec-fetch-site", "same-origin") == "same-origin"
        token = self.form_token(cookie)
        if not (cookie and is_ours and hmac.compare_digest(str(given).encode(), token.encode())):
            raise NotAllowedError(
                403, "This form is too old, or came from another page: load it again."
            )

    def _cookie(self, token: str) -> str:
        # The cookie holds a hash, so that nobody can read the token in a browser.
        return hashlib.sha256(f"graph-retry:{token}".encode()).hexdigest()


class Headers:
    """Adds `HEADERS` to every answer of an app."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        await self._app(scope, receive, with_headers)


async def bounded_form(request: Request, most: int) -> list[tuple[str, str]]:
    """Read a posted form of at most `most` bytes; files are not taken.

    Raises:
        NotAllowedError: If it is longer.
    """
    too_long = NotAllowedError(413, f"That is more than {most // 1_000_000:,} MB: send less.")
    if int(request.headers.get("content-length") or 0) > most:
        raise too_long
    seen, receive = 0, request.receive

    async def counted() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > most:
            raise too_long
        return message

    form = await Request(request.scope, counted).form(
        max_files=0, max_fields=5_000, max_part_size=most
    )
    return [(name, text) for name, text in form.multi_items() if isinstance(text, str)]


def text_of(form: list[tuple[str, str]], name: str) -> str:
    """Return the last text of a name in a posted form."""
    return next((text for key, text in reversed(form) if key == name), "")
