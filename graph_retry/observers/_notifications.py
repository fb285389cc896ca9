"""Notify people of a review by e-mail, Slack or Teams, with a link to that review.

Pass `Email`, `Slack` or `Teams` as the option `notify=`, or to `expire_reviews` for reminders. A
message has only the call's name, a word for the failure, and a link.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
import smtplib
import ssl
import time
import urllib.request
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from email.message import EmailMessage
from typing import Any, Literal
from urllib.error import HTTPError
from urllib.parse import SplitResult, urlsplit

from graph_retry.plugins import Seconds, Secret, as_repr, checked, one_line
from graph_retry.reviews import AnyReview, Review

_WAIT_S = 10
"""Seconds that a mail server or a webhook may take."""

_WEEK_S = 7 * 86_400


@checked
@dataclass(frozen=True)
class Link:
    """The right to answer the review `key`, in the name `to`, until the Unix time `expires`.

    `Links.url_for` makes a link for a person. Your own page reads it with `Link.read`.

    Example:
        >>> token = Link("a1b2", 4_000_000_000, "ada").signed("a long random text of your own")
        >>> Link.read(token, "another text")
        >>> Link.read(token, "a long random text of your own")
        Link(key='a1b2', expires=4000000000, to='ada')
    """

    key: str
    expires: int
    to: str | None = None

    def signed(self, secret: str | bytes) -> str:
        """Return the link's token, which cannot be forged without the secret."""
        text = _encoded(json.dumps([self.key, self.expires, self.to]).encode())
        return f"{text}.{_signature(text, secret)}"

    @classmethod
    def read(cls, token: str, secret: str | bytes) -> Link | None:
        """Read a link's token; None if its signature is wrong or it has expired."""
        text, _, signature = token.partition(".")
        # This comparison always takes the same time, so a forger learns nothing from its time.
        if not hmac.compare_digest(signature.encode(), _signature(text, secret).encode()):
            return None
        try:
            # `_encoded` has removed the padding that base64 needs.
            key, expires, to = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        except (ValueError, binascii.Error):
            return None
        return cls(key, expires, to) if time.time() < expires else None


@checked
@dataclass(frozen=True)
class Links:
    """Creates signed links that expire. Each link opens one review.

    Everyone who has the link can see and answer the review without a login. The page accepts the
    link if `create_app` got the same `secret`.

    Args:
        page: The URL at which the page is mounted, such as `https://example.org/reviews`.
        secret: The secret that signs the links: at least 16 random bytes, such as
            `secrets.token_urlsafe()`. An obvious pattern is refused.
        expires_after: Seconds for which a link is valid (default: one week). A link also ends with
            its review.

    Example:
        >>> from graph_retry.hooks import Review
        >>> links = Links("https://example.org/reviews", secret="a long random text of your own")
        >>> review = Review(
        ...     review_id="r1", function_name="read", attempt=1, params={}, failure=None
        ... )
        >>> links.url_for(review).startswith("https://example.org/reviews/l/")
        True
    """

    page: str
    secret: Secret = field(repr=False)
    expires_after: Seconds = _WEEK_S

    def __post_init__(self) -> None:
        if not _is_web_address(self.page):
            raise ValueError(
                f"`page` is {as_repr(self.page, 80)}: give the page's whole URL, such as "
                "'https://example.org/reviews'."
            )
        if set("?#") & set(self.page):
            base = re.split(r"[?#]", self.page)[0].rstrip("/")
            raise ValueError(
                f"`page` is {as_repr(self.page, 80)}: give a URL without `?` and `#`, because "
                f"each link continues its path, such as {as_repr(f'{base:.80}/l/…')}."
            )

    @checked
    def url_for(self, review: AnyReview, *, to: str | None = None) -> str:
        """Return the link to a review.

        Args:
            review: The review.
            to: The recipient's name. The ledger records it as `by`, even if another person uses the
                link.
        """
        expires = int(time.time() + self.expires_after)
        return f"{self.page.rstrip('/')}/l/{Link(review.key, expires, to).signed(self.secret)}"


def _signature(text: str, secret: str | bytes) -> str:
    key = secret.encode() if isinstance(secret, str) else secret
    return _encoded(hmac.new(key, f"link:{text}".encode(), hashlib.sha256).digest())


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


@dataclass(frozen=True)
class _Message:
    title: str
    lines: list[str]
    url: str


def _message(review: Review, links: Links, to: str | None) -> _Message:
    name = one_line(review.function_name, 100)
    lines = [f"{name}, attempt {review.attempt}: {review.summary}."]
    if review.expires_at:
        due = datetime.fromisoformat(review.expires_at)
        lines.append(f"Due {due:%d %B %Y, %H:%M} UTC.")
    return _Message(f"{name} needs an answer", lines, links.url_for(review, to=to))


@checked
@dataclass(frozen=True)
class Email:
    """Send an e-mail about a review, as the option `notify=`.

    If a message is repeated, it has the same `Message-ID`, so that mail systems can drop it.

    Args:
        links: Makes the link in the message.
        server: The mail server: `host`, `host:port`, or an IPv6 address such as `[::1]:25`.
        sender: The sender's address.
        to: The recipient's address. The ledger records it as `by` of an answer through the link.
        security: `starttls` (the default), `tls`, or `none` for a server on this machine.
        user: The login name, if the server needs one.
        password: The password of this login.

    Example:
        >>> links = Links("https://example.org/reviews", secret="a long random text of your own")
        >>> notify = Email(links, "mail.example.org", "reviews@example.org", "ada@example.org")
    """

    links: Links
    server: str
    sender: str
    to: str
    security: Literal["starttls", "tls", "none"] = "starttls"
    user: str | None = None
    password: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        place = _place_in(f"//{self.server}")
        if place is None or place.netloc != self.server or place.username is not None:
            raise ValueError(
                f"`server` is {as_repr(self.server, 80)}: give `host` or `host:port`, with "
                "the port as a number, such as 'mail.example.org:587' or '[::1]:25'."
            )

    @checked
    def __call__(self, review: AnyReview) -> None:
        """Send the message.

        Raises:
            OSError: If the server cannot be reached, or refuses.
        """
        told = _message(review, self.links, self.to)
        mail = EmailMessage()
        mail["Subject"], mail["From"], mail["To"] = told.title, self.sender, self.to
        known = hashlib.sha256(f"{review.key} {self.to}".encode()).hexdigest()[:32]
        mail["Message-ID"] = f"<{known}@graph-retry.invalid>"
        mail.set_content("\n".join([*told.lines, "", told.url]))
        place = urlsplit(f"//{self.server}")
        safe = ssl.create_default_context() if self.security != "none" else None
        with self._connected(place.hostname or "", place.port or 0, safe) as server:
            if self.security == "starttls":
                server.starttls(context=safe)
            if self.user is not None:
                server.login(self.user, self.password or "")
            server.send_message(mail)

    def _connected(self, host: str, port: int, safe: ssl.SSLContext | None) -> smtplib.SMTP:
        if self.security == "tls":
            return smtplib.SMTP_SSL(host, port, timeout=_WAIT_S, context=safe)
        return smtplib.SMTP(host, port, timeout=_WAIT_S)


@dataclass(frozen=True)
class _Webhook:
    links: Links
    webhook: str = field(repr=False)

    def __post_init__(self) -> None:
        if not _is_web_address(self.webhook):
            raise ValueError("`webhook` is not a whole URL: give one that begins with `https://`.")

    @checked
    def __call__(self, review: AnyReview) -> None:
        """Send the message.

        Raises:
            OSError: If the webhook cannot be reached, or refuses.
        """
        _post(self.webhook, self._body(_message(review, self.links, None)))

    def _body(self, told: _Message) -> dict[str, Any]:
        raise NotImplementedError


@checked
@dataclass(frozen=True)
class Slack(_Webhook):
    """Post a message about a review to a Slack channel, as the option `notify=`.

    Args:
        links: Makes the link in the message.
        webhook: The URL of an incoming webhook. Keep it secret: everyone who has it can post.

    Example:
        >>> links = Links("https://example.org/reviews", secret="a long random text of your own")
        >>> notify = Slack(links, "https://hooks.slack.example/services/T0/B0/x")
    """

    def _body(self, told: _Message) -> dict[str, Any]:
        plain = {"type": "plain_text", "emoji": False}
        button = {"type": "button", "text": {**plain, "text": "Answer"}, "url": told.url}
        words = {**plain, "text": "\n".join(told.lines)}
        blocks = [
            {"type": "header", "text": {**plain, "text": told.title}},
            {"type": "section", "text": words},
            {"type": "actions", "elements": [button]},
        ]
        escaped = told.title.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        return {"text": escaped, "blocks": blocks}


@checked
@dataclass(frozen=True)
class Teams(_Webhook):
    """Post a card about a review to a Teams channel, as the option `notify=`.

    Args:
        links: Makes the link in the card.
        webhook: The URL of a workflow "When a Teams webhook request is received". Keep it secret:
            everyone who has it can post.

    Example:
        >>> links = Links("https://example.org/reviews", secret="a long random text of your own")
        >>> notify = Teams(links, "https://example.logic.azure.com/workflows/x")
    """

    def _body(self, told: _Message) -> dict[str, Any]:
        # Teams shows a `TextRun` unchanged. In a `TextBlock`, it would interpret Markdown.
        texts = [
            {"type": "TextRun", "text": told.title, "weight": "bolder", "size": "medium"},
            *({"type": "TextRun", "text": f" {line}"} for line in told.lines),
        ]
        card = {
            "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
            "type": "AdaptiveCard",
            "version": "1.4",
            "body": [{"type": "RichTextBlock", "inlines": texts}],
            "actions": [{"type": "Action.OpenUrl", "title": "Answer", "url": told.url}],
        }
        kind = "application/vnd.microsoft.card.adaptive"
        return {"type": "message", "attachments": [{"contentType": kind, "content": card}]}


def _place_in(address: str) -> SplitResult | None:
    """Return the parts of a URL; None if its host or its port cannot be read."""
    with suppress(ValueError):
        parts = urlsplit(address)
        is_read = parts.port is None or parts.port >= 0  # Reading `port` raises if it is no number.
        if is_read and parts.hostname and not any(map(str.isspace, address)):
            return parts
    return None


def _is_web_address(address: str) -> bool:
    place = _place_in(address)
    return place is not None and place.scheme in ("https", "http")


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: Any, **options: Any) -> None:
        """Follow no redirect, because the message is only for the given URL."""


def _post(address: str, body: dict[str, Any]) -> None:
    """Post JSON to a webhook. Errors do not contain the webhook's URL, because it is a secret."""
    data = json.dumps(body).encode()
    asked = urllib.request.Request(address, data, {"Content-Type": "application/json"})  # noqa: S310
    opener = urllib.request.build_opener(_NoRedirects)
    try:
        with opener.open(asked, timeout=_WAIT_S):
            pass
    except HTTPError as error:
        with error:
            why = (
                f"the webhook answered with status {error.code}: check that its URL is still valid."
            )
            raise OSError(why) from None
