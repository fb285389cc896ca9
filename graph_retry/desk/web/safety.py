"""The security of the pages: access, cookies, the origin of forms, size limits and headers."""

from __future__ import annotations

import hashlib
import hmac
import inspect
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graph_retry._core.ground.functions.arguments import checked
from graph_retry._core.review.review import Review
from graph_retry.observers._notifications import key_of, read_link, sign

TOKEN_COOKIE = "graph-retry-token"  # noqa: S105 - a name
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
"""Headers of every response. They forbid scripts and frames from other sites, and caching."""


@checked
@dataclass(frozen=True)
class Access:
    """The rights of a user.

    Args:
        user: The user's name, which the ledger records as `by`.
        may_decide: Whether the user may answer reviews, or only read them.
        labels: The user sees only calls with these labels, such as `{"tenant": "acme"}`.
    """

    user: str | None = None
    may_decide: bool = True
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    key: str | None = field(default=None, kw_only=True)
    """The key of the only review that the user may see. Only a user of a review's link has one."""

    def sees(self, review: Review) -> bool:
        """Return whether the user may see a review."""
        is_named = self.key is None or self.key == key_of(review)
        return is_named and self.labels.items() <= review.labels.items()

    @property
    def signed(self) -> dict[str, str]:
        """The keys `channel` and `by`, which are added to each decision from the page."""
        return {"channel": "web"} | ({"by": self.user} if self.user else {})


Authorize = Callable[[Request], Access | str | Awaitable[Access | str | None] | None]
"""A function that identifies the sender of a request, sync or async.

It returns an `Access`, a user's name, or None for a user who may see nothing."""


class NotAllowedError(Exception):
    """A request is refused; the message tells the user what to do."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class Guard:
    """Identifies the sender of each request.

    Args:
        authorize: Identifies the sender. If None, the surrounding app's authentication does it.
        token: The text that gives access, first in an address and then in a cookie.
        user: The name of the user who comes with the token.
        secret: The key that signs the links to single reviews.
    """

    def __init__(
        self, authorize: Authorize | None, token: str | None, user: str | None, secret: str | None
    ) -> None:
        self._authorize, self._token, self._user = authorize, token, user
        self._secret = secret.encode() if secret else secrets.token_bytes(32)

    async def access(self, request: Request) -> Access:
        """Return the access of the sender of a request.

        Raises:
            NotAllowedError: If the sender may see nothing.
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
            if not found:  # An empty name, as of an empty header, is nobody's.
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
        """Move the token from an address into a cookie, and redirect to the address without it."""
        given = request.query_params.get("token")
        if given is None or self._token is None or request.method != "GET":
            return None
        # An address that begins with two slashes would redirect to another host.
        home = RedirectResponse("/" + str(request.scope["path"]).lstrip("/\\"), 303)
        if hmac.compare_digest(given.encode(), self._token.encode()):
            self.set_cookie(request, home, TOKEN_COOKIE, self._cookie(self._token))
        return home

    def by_link(self, request: Request) -> RedirectResponse:
        """Move the token of a link into a cookie for its review's page, and redirect to the page.

        Raises:
            NotAllowedError: If the link was not signed with this app's `secret`, or has expired.
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
        """Let the user of a review's link also see reviews that ask the same question again."""
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
        """Set a cookie that scripts cannot read, and that forms of other sites do not send."""
        response.set_cookie(
            name, value, httponly=True, samesite="lax", secure=request.url.scheme == "https",
            path=path or request.scope["root_path"] or "/",
        )  # fmt: skip

    def _cookie(self, token: str) -> str:
        # The cookie holds a hash, because nobody should be able to read the token in a browser.
        return hashlib.sha256(f"graph-retry:{token}".encode()).hexdigest()


def check_origin(request: Request) -> None:
    """Check that a form comes from one of our pages, by headers that only a browser can set.

    Browsers send `Sec-Fetch-Site` over HTTPS and to this machine. Elsewhere they send `Origin`.

    Raises:
        NotAllowedError: If the form comes from anywhere else.
    """
    site = request.headers.get("sec-fetch-site")
    sender = urlsplit(request.headers.get("origin", "")).netloc
    if site is None and sender:
        site = "same-origin" if sender == request.headers.get("host") else "cross-site"
    if site not in ("same-origin", "none"):  # `none`: the person loaded a sent form again.
        raise NotAllowedError(
            403,
            "This form came from another page: open the review here. Without HTTPS, a proxy must "
            "pass on the header `Host`.",
        )


class Headers:
    """ASGI middleware that adds `HEADERS` to every response."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        await self._app(scope, receive, with_headers)


async def bounded_form(request: Request, most: int) -> list[tuple[str, str]]:
    """Read a posted form of at most `most` bytes, without files.

    Raises:
        NotAllowedError: If the form is longer.
    """
    too_long = NotAllowedError(413, f"That is more than {most // 1_000_000:,} MB: send less.")
    if int(request.headers.get("content-length") or 0) > most:
        raise too_long
    # The header may be missing or wrong, so the received bytes are counted as well.
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
    """Return the last value of the field `name` in a posted form, or ""."""
    return next((text for key, text in reversed(form) if key == name), "")
