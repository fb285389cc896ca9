"""Read the exceptions of providers' clients: the failure kind, and the time to wait.

The clients' exceptions share no base class. So an exception is judged by its HTTP status, its error
code, its text, and the names of its classes. The code is in the exception or in the body of a
response. botocore's `ClientError` has status and code in a dict. Each provider's file lists its
codes and texts.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, cast, get_args

from graph_retry._core.ground.issues import attempt
from graph_retry._core.ground.json import is_array, is_object
from graph_retry._core.output.providers import PROVIDERS
from graph_retry._core.output.providers.provider import Cause, Said
from graph_retry.lossless._ground import lazy, text_of
from graph_retry.records import FAILURE_KINDS, FailureKind

MAX_RETRY_AFTER = 60.0
"""The longest wait in seconds that a provider's `Retry-After` can cause."""

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

_REFUSED_REQUEST = (400, 403, 413, 422)
"""Statuses of refused requests. The error's text says more precisely what was wrong."""

_BY_CODE = (400, 413, 424)
"""For these statuses the provider's code decides, because botocore uses them for throttling."""

_NO_NETWORK = {errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN}


_CAUSES: dict[str, Cause] = {
    code: cause for provider in PROVIDERS for code, cause in provider.error_codes.items()
}


def _texts(said: Said) -> re.Pattern[str]:
    texts = [text for each in PROVIDERS for text, of in each.error_texts.items() if of == said]
    return lazy("|".join(texts), re.IGNORECASE)


_TEXTS: dict[Said, re.Pattern[str]] = {said: _texts(said) for said in get_args(Said)}

# HTTP clients (httpx, requests, aiohttp, …) and providers' clients use such class names.
_TRANSPORT_NAMES = lazy(
    r"(?:Timeout|Connection|Transport|Network|Protocol)(?:Error|Exception)?\b"
    r"|\b(?:ChunkedEncodingError|ClientPayloadError|IncompleteRead(?:Error)?|BadStatusLine)\b"
    r"|\b(?:HTTPClientError|ResponseStreamingError|ServerDisconnectedError|SSLError|gaierror)\b"
)
_REQUEST_NAMES = lazy(r"\b(?:LocalProtocolError|UnsupportedProtocol|SSLCertVerificationError)\b")
"""Transport errors that a repeated request raises again, such as a wrong protocol."""
_DENIED_NAMES = lazy(
    r"(?:Authentication|Permission(?:Denied)?|TokenRetrieval|UnauthorizedSSOToken)Error\b"
    r"|\b(?:No|Partial|Default)CredentialsError\b"
)
_OVERFLOW_NAMES = lazy(r"\bContext(?:Window|Length)?(?:Overflow|Exceeded)")
_FILTERED_NAMES = lazy(r"\bContent(?:PolicyViolation|FilterFinishReason)")


def provider_kind(error: BaseException) -> FailureKind | None:
    """Return the failure kind of a client's exception, or None if it is unknown.

    Without a kind of its own, the exception gets the kind of its cause. An exception group gets the
    kind of the member for which another attempt is least useful.
    """
    for cause in _chain(error):
        kind = _kind(cause)
        if kind is not None:
            return kind
    return None


def retry_after(error: BaseException) -> float:
    """Return the seconds that a provider asks to wait before the same request is sent again.

    The header `retry-after-ms` is in milliseconds. `Retry-After` is in seconds, or a date. Google
    puts the time into a detail of the error, such as `"7.5s"`. An unreadable time counts as 0.
    """
    seconds, failed = attempt(_wait, error)  # An unknown exception's attributes may raise.
    return min(seconds, MAX_RETRY_AFTER) if not failed and seconds > 0 else 0.0


def _wait(error: BaseException) -> float:
    for cause in _chain(error):
        if members := _members(cause):
            return max(_wait(one) for one in members)
        headers = _headers(cause)
        waits = [
            _seconds(headers.get("retry-after-ms"), 0.001, None),
            _seconds(headers.get("retry-after"), 1.0, headers.get("date")),
            *(_seconds(detail.get("retryDelay"), 1.0, None) for detail in _google_details(cause)),
        ]
        for wait in waits:
            if wait is not None:
                return wait
    return 0.0


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and its causes. `urllib` and `urllib3` keep the cause in `reason`."""
    current: Any = error
    for _ in range(_MAX_CAUSES):
        if not isinstance(current, BaseException):
            return
        yield current
        current = current.__cause__ or getattr(current, "reason", None)


def _members(error: BaseException) -> tuple[BaseException, ...]:
    group = cast("Any", error)
    return group.exceptions if isinstance(error, BaseExceptionGroup) else ()


def _kind(error: BaseException) -> FailureKind | None:
    """Return the failure kind of the first rule that applies."""
    if members := _members(error):
        kinds = {provider_kind(one) or "rejected_input" for one in members}
        return next(kind for kind in FAILURE_KINDS if kind in kinds)
    status, text = _status(error), text_of(error)
    causes = {_CAUSES.get(code) for code in _codes(error)}
    names = " ".join(cls.__name__ for cls in type(error).__mro__)
    is_rejected, by_code = "rejected" in causes, status is None or status in _BY_CODE
    is_busy = "busy" in causes and not is_rejected
    is_refused = status in _REFUSED_REQUEST or (status is None and is_rejected)
    refused_text = text if is_refused and not is_busy else ""
    by_status = "transient" if (status or 0) >= 500 else _STATUS_KINDS.get(status or 0)
    has_no_network = isinstance(error, OSError) and error.errno in _NO_NETWORK
    rules: list[tuple[object, FailureKind]] = [
        ("overflow" in causes or _OVERFLOW_NAMES.search(names), "context_overflow"),
        ("filtered" in causes or _FILTERED_NAMES.search(names), "refusal"),
        (status in (413, 429) and _TEXTS["too_large"].search(text), "context_overflow"),
        (_TEXTS["overflow"].search(refused_text), "context_overflow"),
        (_TEXTS["filtered"].search(refused_text), "refusal"),
        (_TEXTS["no_credit"].search(refused_text), "permanent"),
        ("quota" in causes or (by_code and "denied" in causes), "permanent"),
        (by_code and is_busy, "transient"),
        (status in _BY_CODE or (by_code and is_rejected), "rejected_input"),
        (status, by_status or "rejected_input"),
        (getattr(error, "is_retryable", False) is True, "transient"),  # LangChain's `ModelError`.
        (_DENIED_NAMES.search(names), "permanent"),
        (_REQUEST_NAMES.search(names), "rejected_input"),
        (has_no_network or _TRANSPORT_NAMES.search(names), "transient"),
    ]
    return next((kind for applies, kind in rules if applies), None)


def _status(error: BaseException) -> int | None:
    response: Any = getattr(error, "response", None)
    candidates: list[Any] = [
        getattr(error, name, None) for name in ("status_code", "code", "status", "http_status")
    ]
    if is_object(response):
        candidates.append((response.get("ResponseMetadata") or {}).get("HTTPStatusCode"))
    else:
        candidates.append(getattr(response, "status_code", None))
    # An error inside a stream has no HTTP status. OpenRouter gives the status as the error's code.
    candidates += [level.get("code") for level in _levels(getattr(error, "body", None))]
    for candidate in candidates:
        is_digits = isinstance(candidate, str) and len(candidate) == 3 and candidate.isdecimal()
        status = int(candidate) if is_digits else candidate
        if isinstance(status, int) and 400 <= status < 600:
            return status
    return None


def _codes(error: BaseException) -> Iterator[str]:
    """Yield the provider's error codes from every place where clients keep them."""
    response: Any = getattr(error, "response", None)
    own = {name: getattr(error, name, None) for name in ("code", "type", "status", "reason")}
    if callable(own["code"]):  # In gRPC's exceptions, `code` is a method that returns an enum.
        own["code"] = getattr(attempt(own["code"])[0], "name", None)
    holders: list[Any] = [
        own,
        getattr(error, "body", None),
        *_google_details(error),
        response.get("Error") if is_object(response) else None,
    ]
    for level in (level for holder in holders for level in _levels(holder)):
        for name in ("code", "type", "status", "reason", "Code"):
            if isinstance(level.get(name), str):
                yield _spelled(level[name])


def _levels(holder: Any) -> Iterator[dict[str, Any]]:
    """Yield a dict with error data, and the dict under its key `error`."""
    inner = holder.get("error") if is_object(holder) else None
    yield from filter(is_object, (holder, inner))


def _google_details(error: BaseException) -> list[dict[str, Any]]:
    """Return the details of a Google error, which may hold its reason and the time to wait."""
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
        headers = getattr(error if response is None else response, "headers", None)
    pairs = attempt(lambda: [*headers.items()])[0]
    return {str(name).lower(): str(value) for name, value in pairs} if is_array(pairs) else {}


def _seconds(text: Any, scale: float, date: str | None) -> float | None:
    """Return a time to wait in seconds, from a number or a date."""
    if not isinstance(text, str):
        return None
    try:
        return float(text.strip().removesuffix("s")) * scale
    except ValueError:
        pass
    try:
        # The response's own date comes from the server's clock, and our clock may differ.
        now = _moment(date) if date else datetime.now(UTC)
        return (_moment(text) - now).total_seconds()
    except (TypeError, ValueError):
        return None


def _moment(date: str) -> datetime:
    """Parse an HTTP date, which is in UTC even if it names no time zone."""
    moment = parsedate_to_datetime(date)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
