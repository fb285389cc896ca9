"""The security of the pages: access, logins, cookies, the origin of forms, and headers."""

from __future__ import annotations

import base64
import hashlib
import hmac
import inspect
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graph_retry.desk.web.posted import COOKIE, NotAllowedError
from graph_retry.observers import Link
from graph_retry.plugins import WrongArgumentError, as_repr, checked
from graph_retry.reviews import Review

T = TypeVar("T")

SESSION_COOKIE = "graph-retry-session"
LINK_COOKIE = "graph-retry-link"

SESSION_S = 7 * 86_400
"""Seconds that a login lasts."""

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
        user: The user's name. The ledger records this name as `by`.
        may_decide: Whether the user may answer reviews, or only read them.
        labels: The user sees only calls with these labels, such as `{"tenant": "acme"}` (default:
            all calls).
    """

    user: str | None = None
    may_decide: bool = True
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    key: str | None = field(default=None, kw_only=True)
    """The key of the only review that the user may see, if the user came by a review's link."""

    @property
    def is_limited(self) -> bool:
        """Whether the user may see only some calls."""
        return bool(self.labels) or self.key is not None

    def sees(self, review: Review) -> bool:
        """Say whether the user may see a review."""
        is_named = self.key is None or self.key == review.key
        return is_named and self.has(review.labels)

    def has(self, labels: Mapping[str, str]) -> bool:
        """Say whether the user may see calls with these labels."""
        return self.labels.items() <= labels.items()

    def seen(self, found: Iterable[T]) -> list[T]:
        """Return only the reviews, or records about reviews, that the user may see."""
        return [each for each in found if (about := review_of(each)) is None or self.sees(about)]

    @property
    def signed(self) -> dict[str, str]:
        """The keys `channel` and `by` for each decision from the page."""
        return {"channel": "web"} | ({"by": self.user} if self.user else {})


def review_of(value: Any) -> Review | None:
    """Return a review, or the review of a record; None for other values."""
    about = value if isinstance(value, Review) else getattr(value, "review", None)
    return about if isinstance(about, Review) else None


Authorize = Callable[[Request], Access | str | Awaitable[Access | str | None] | None]
"""A function that identifies the sender of a request, sync or async.

It returns an `Access`, a user's name, or None for a user who may see nothing."""


class Guard:
    """Identifies the sender of each request.

    Args:
        authorize: Identifies the sender. If None, the authentication of the surrounding app is
            used.
        token: A text in a URL that gives access. After the first request, a random session in a
            cookie takes its place.
        user: The name of the user who comes with the token.
        secret: The key that signs sessions, and links to single reviews. Without it, a new token
            ends all sessions, and a restart of the app ends all links.
    """

    def __init__(
        self, authorize: Authorize | None, token: str | None, user: str | None, secret: str | None
    ) -> None:
        self._authorize, self._token, self._user = authorize, token, user
        self._secret = secret.encode() if secret else secrets.token_bytes(32)
        self._signs = (secret or token or secrets.token_hex(32)).encode()

    async def access(self, request: Request) -> Access:
        """Return the access of the sender of a request.

        Raises:
            NotAllowedError: If the sender may see nothing.
        """
        try:
            return await self._logged_in(request)
        except NotAllowedError:
            link = self._link(request)
            if link is None or link.key != request.path_params.get("key"):
                raise
            return Access(link.to, key=link.key)

    async def _logged_in(self, request: Request) -> Access:
        if self._token is not None:
            if self._is_session(request, cookie_of(request, SESSION_COOKIE)):
                return Access(self._user)
            raise NotAllowedError(401, "Open the URL that was printed when the page was started.")
        if self._authorize is not None:
            found = self._authorize(request)
            found = await found if inspect.isawaitable(found) else found
            if not found:  # An empty name, as of an empty header, is nobody's.
                raise NotAllowedError(
                    403, "You may not see the reviews: ask the person who runs this page."
                )
            if not isinstance(cast("object", found), Access | str):
                raise WrongArgumentError(
                    f"`authorize` returned {as_repr(found, 80)}: return the user's name, an "
                    "`Access`, or None for a user who may see nothing."
                )
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

    def _session(self, request: Request) -> str:
        """Make a unique session, which is valid for this user and for this app's port and path."""
        known = f"{secrets.token_urlsafe(24)}.{int(time.time()) + SESSION_S}"
        return f"{known}.{self._mark(request, known)}"

    def _is_session(self, request: Request, given: str) -> bool:
        known, _, mark = given.rpartition(".")
        if not hmac.compare_digest(mark.encode(), self._mark(request, known).encode()):
            return False
        return time.time() < int(known.rpartition(".")[2])

    def _mark(self, request: Request, known: str) -> str:
        place = f"{named(request, SESSION_COOKIE)}\0{request.scope['root_path']}"
        text = f"{place}\0{self._user}\0{known}"
        mark = hmac.new(self._signs, f"session:{text}".encode(), hashlib.sha256).digest()
        return base64.urlsafe_b64encode(mark).decode().rstrip("=")

    def _link(self, request: Request) -> Link | None:
        return Link.read(cookie_of(request, LINK_COOKIE), self._secret)

    def logged_in(self, request: Request) -> RedirectResponse | None:
        """Set a session's cookie, and redirect to the URL without its token."""
        given = request.query_params.get("token")
        if given is None or self._token is None or request.method != "GET":
            return None
        # An address that begins with two slashes would redirect to another host.
        home = RedirectResponse("/" + str(request.scope["path"]).lstrip("/\\"), 303)
        if hmac.compare_digest(given.encode(), self._token.encode()):
            self.set_cookie(request, home, SESSION_COOKIE, self._session(request))
        return home

    def by_link(self, request: Request) -> RedirectResponse:
        """Redirect a link to its review's page, with the link's token in a cookie for this page.

        Raises:
            NotAllowedError: If the link was not signed with this app's `secret`, or has expired.
        """
        token = request.path_params["token"]
        link = Link.read(token, self._secret)
        if link is None:
            raise NotAllowedError(403, "This link is not valid, or has expired: ask for a new one.")
        place = f"{request.scope['root_path']}/r/{link.key}"
        there = RedirectResponse(place, 303)
        self.set_cookie(request, there, LINK_COOKIE, token, place)
        return there

    def follow(self, request: Request, response: Any, access: Access, keys: Iterable[str]) -> None:
        """Let a user who came by a review's link also see later reviews with the same question."""
        link = self._link(request)
        if access.key is None or link is None:
            return
        for key in keys:
            token = replace(link, key=key).signed(self._secret)
            place = f"{request.scope['root_path']}/r/{key}"
            self.set_cookie(request, response, LINK_COOKIE, token, place)

    def set_cookie(
        self, request: Request, response: Any, name: str, value: str, path: str = ""
    ) -> None:
        """Set a cookie for this port. Scripts and other sites cannot read it."""
        response.set_cookie(
            named(request, name), value, httponly=True, samesite="strict",
            secure=request.url.scheme == "https", path=path or request.scope["root_path"] or "/",
        )  # fmt: skip


def named(request: Request, name: str) -> str:
    """Return the name of a cookie with the port, because browsers share cookies between ports."""
    try:
        port = request.url.port
    except ValueError:
        raise NotAllowedError(400, "The header `Host` is not an address.") from None
    return f"{name}-{port}" if port else name


def cookie_of(request: Request, name: str) -> str:
    """Return a cookie of this app, or "".

    Raises:
        NotAllowedError: If the cookie is longer than any cookie of this app.
    """
    given = request.cookies.get(named(request, name), "")
    COOKIE.check(len(given))
    return given


def check_origin(request: Request) -> None:
    """Check that a form comes from one of our pages. Only browsers set the checked headers.

    Browsers send `Sec-Fetch-Site` over HTTPS, and to this machine. Otherwise they send `Origin`,
    with the scheme, the host and the port.

    Raises:
        NotAllowedError: If the form comes from anywhere else.
    """
    site = request.headers.get("sec-fetch-site")
    sender = request.headers.get("origin")
    if site is None and sender:
        own = f"{request.url.scheme}://{request.headers.get('host')}"
        site = "same-origin" if sender == own else "cross-site"
    if site not in ("same-origin", "none"):  # `none`: the person loaded a sent form again.
        raise NotAllowedError(
            403,
            "This form came from another page: open the review here. A proxy must pass on the "
            "headers `Host` and `X-Forwarded-Proto`.",
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
