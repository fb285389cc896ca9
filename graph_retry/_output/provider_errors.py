"""What a provider's client says in an exception: the kind of failure, and how long to wait.

The clients share no ancestors, so they are read by what they carry: an HTTP status, the provider's
own error code (in the exception, or in the body of a response that broke off), then the names of
their classes. botocore's `ClientError` has all of it in a dict.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from graph_retry._issues import attempt, text_of
from graph_retry._json import is_array, is_object
from graph_retry.records import FailureKind

MAX_RETRY_AFTER = 60.0
"""Seconds a provider's `Retry-After` is waited for at most."""

_MAX_CAUSES = 10

_STATUS_KINDS: dict[int, FailureKind] = {
    401: "permanent",
    402: "permanent",
    403: "permanent",
    408: "transient",
    409: "transient",
    425: "transient",
    429: "transient",
}

# Spelled as `_spelled` spells them: lower case, letters and digits alone.
_QUOTA = {"insufficientquota", "billinghardlimitreached", "accountdeactivated", "billingerror"}
_OVERFLOW = {"contextlengthexceeded", "contextwindowexceeded", "modelcontextwindowexceeded"}
_DENIED_CODES = {
    "accessdenied",
    "apikeyinvalid",
    "authenticationerror",
    "expiredtoken",
    "invalidapikey",
    "invalidsignature",
    "permissiondenied",
    "permissionerror",
    "unauthenticated",
    "unrecognizedclient",
}
_BUSY_CODES = {
    "apierror",
    "deadlineexceeded",
    "internal",
    "internalerror",
    "internalfailure",
    "internalserver",
    "internalservererror",
    "modelerror",
    "modelnotready",
    "modelstreamerror",
    "modeltimeout",
    "overloaded",
    "overloadederror",
    "ratelimiterror",
    "ratelimitexceeded",
    "requesttimeout",
    "resourceexhausted",
    "servererror",
    "serviceunavailable",
    "slowdown",
    "throttling",
    "timeouterror",
    "toomanyrequests",
    "unavailable",
}
_REJECTED_CODES = {"invalidrequesterror", "invalidargument", "validation", "notfounderror"}

# The clients' own classes (httpx, openai, anthropic, requests, aiohttp, …) share names.
_TRANSPORT = re.compile(
    r"(?:Timeout|Connection|Transport|Network|Protocol)(?:Error|Exception)?\b"
    r"|\b(?:IncompleteRead|ChunkedEncodingError|ClientPayloadError|ServerDisconnectedError)\b"
)
_DENIED = re.compile(r"(?:Authentication|Permission(?:Denied)?)Error\b")
_TOO_LONG = re.compile(r"\bContext(?:Window|Length)?(?:Overflow|Exceeded)")

# Anthropic and Google have no code for it: a refused request says so in its text alone.
_TOO_LONG_TEXT = re.compile(
    r"context (?:length|window)|(?:prompt|input) is too long|too many (?:input )?tokens"
    r"|(?:input )?token count.{0,60}exceeds|exceeds? .{0,40}maximum number of (?:input )?tokens",
    re.IGNORECASE,
)


def provider_kind(error: Exception) -> FailureKind | None:
    """Return the kind of failure a client's exception stands for, or None if it does not say.

    An exception that says nothing may have been raised `from` one that does.
    """
    for cause in _chain(error):
        kind = _kind(cause)
        if kind is not None:
            return kind
    return None


def retry_after(error: Exception) -> float:
    """Return the seconds a provider asks to wait before the same request is sent again.

    `retry-after-ms` is in milliseconds; `Retry-After` is in seconds or a date. Google says it in a
    detail of the error, as in `"7.5s"`.
    """
    for cause in _chain(error):
        headers = _headers(cause)
        for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
            if name in headers:
                seconds = _seconds(headers[name], scale, headers.get("date"))
                return min(max(seconds, 0.0), MAX_RETRY_AFTER)
        for detail in _google_details(cause):
            if isinstance(delay := detail.get("retryDelay"), str):
                return min(max(_seconds(delay.removesuffix("s"), 1.0, None), 0.0), MAX_RETRY_AFTER)
    return 0.0


def _chain(error: Exception) -> Iterator[BaseException]:
    """Yield an exception and those it was raised from, ten at most."""
    current: BaseException | None = error
    for _ in range(_MAX_CAUSES):
        if current is None:
            return
        yield current
        current = current.__cause__


def _kind(error: BaseException) -> FailureKind | None:
    status, codes = _status(error), set(_codes(error))
    names = " ".join(cls.__name__ for cls in type(error).__mro__)
    if codes & _OVERFLOW or _TOO_LONG.search(names):
        return "context_overflow"
    if status in (400, 413) and isinstance(error, Exception):
        return "context_overflow" if _TOO_LONG_TEXT.search(text_of(error)) else _by_code(codes)
    if codes & _QUOTA:
        return "permanent"
    if status is not None:
        return "transient" if status >= 500 else _STATUS_KINDS.get(status, "rejected_input")
    if codes & (_DENIED_CODES | _BUSY_CODES | _REJECTED_CODES):
        return _by_code(codes)
    if getattr(error, "is_retryable", False) is True:  # LangChain's `ModelError`
        return "transient"
    if _DENIED.search(names):
        return "permanent"
    return "transient" if _TRANSPORT.search(names) else None


def _by_code(codes: set[str]) -> FailureKind:
    """Return what a provider's code stands for; botocore has status 400 for most of them."""
    if codes & (_DENIED_CODES | _QUOTA):
        return "permanent"
    return "transient" if codes & _BUSY_CODES and not codes & _REJECTED_CODES else "rejected_input"


def _status(error: BaseException) -> int | None:
    response: Any = getattr(error, "response", None)
    candidates: list[Any] = [getattr(error, "status_code", None), getattr(error, "code", None)]
    if is_object(response):
        candidates.append((response.get("ResponseMetadata") or {}).get("HTTPStatusCode"))
    else:
        candidates.append(getattr(response, "status_code", None))
    statuses = (status for status in candidates if isinstance(status, int) and 400 <= status < 600)
    return next(statuses, None)


def _codes(error: BaseException) -> Iterator[str]:
    """Yield the provider's words for what went wrong."""
    response: Any = getattr(error, "response", None)
    holders: list[Any] = [
        {name: getattr(error, name, None) for name in ("code", "type", "status", "reason")},
        getattr(error, "body", None),
        *_google_details(error),
        response.get("Error") if is_object(response) else None,
    ]
    for holder in holders:
        inner = holder.get("error") if is_object(holder) else None
        for level in filter(is_object, (holder, inner)):
            for name in ("code", "type", "status", "reason", "Code"):
                if isinstance(level.get(name), str):
                    yield _spelled(level[name])


def _google_details(error: BaseException) -> list[dict[str, Any]]:
    """Return what Google adds to an error: the reason in its own words, the time to wait."""
    body = getattr(error, "details", None)
    inner = body.get("error", body) if is_object(body) else None
    details = inner.get("details") if is_object(inner) else None
    return [detail for detail in details if is_object(detail)] if is_array(details) else []


def _spelled(code: str) -> str:
    return re.sub(r"[^a-z0-9]", "", code.lower()).removesuffix("exception")


def _headers(error: BaseException) -> dict[str, str]:
    response: Any = getattr(error, "response", None)
    if is_object(response):
        response = response.get("ResponseMetadata") or {}
        headers: Any = response.get("HTTPHeaders")
    else:
        headers = getattr(response, "headers", None)
    pairs = attempt(lambda: [*headers.items()])[0]
    return {str(name).lower(): str(value) for name, value in pairs} if is_array(pairs) else {}


def _seconds(text: str, scale: float, date: str | None) -> float:
    try:
        return float(text) * scale
    except ValueError:
        pass
    try:
        wanted = parsedate_to_datetime(text)
        # The server's clock, where it tells the time, is the one the date was made with.
        now = parsedate_to_datetime(date) if date else datetime.now(UTC)
        return (wanted - now).total_seconds()
    except (TypeError, ValueError):
        return 0.0
