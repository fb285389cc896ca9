"""Read the exceptions of providers' clients: the failure kind, and the time to wait.

The clients' exceptions share no base class. So an exception is read by its HTTP status, then by the
provider's error code, and last by the names of its classes. The code is in the exception, or in the
body of a response. botocore's `ClientError` has all of this in a dict. The codes and error texts of
each provider are in its own file.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, cast

from graph_retry._issues import attempt, text_of
from graph_retry._json import is_array, is_object
from graph_retry._output.providers import PROVIDERS
from graph_retry._patterns import lazy
from graph_retry.records import FailureKind

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
"""Statuses of refused requests. The error text tells more precisely what was wrong."""

_BY_CODE = (400, 413, 424)
"""Statuses for which the provider's code decides. botocore uses them even for throttling."""

_NO_NETWORK = {errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN}

_LASTING: tuple[FailureKind, ...] = (
    "permanent",
    "rejected_input",
    "context_overflow",
    "refusal",
    "transient",
)
"""Failure kinds in order: the first is the one that another attempt helps least."""


_WORDS = [provider.error_words for provider in PROVIDERS]
_QUOTA = frozenset[str]().union(*(words.quota for words in _WORDS))
_OVERFLOW = frozenset[str]().union(*(words.overflow for words in _WORDS))
_FILTERED = frozenset[str]().union(*(words.filtered for words in _WORDS))
_DENIED = frozenset[str]().union(*(words.denied for words in _WORDS))
_BUSY = frozenset[str]().union(*(words.busy for words in _WORDS))
_REJECTED = frozenset[str]().union(*(words.rejected for words in _WORDS))


def _any_of(patterns: Iterable[str | None]) -> re.Pattern[str]:
    return lazy("|".join(filter(None, patterns)), re.IGNORECASE)


_OVERFLOW_TEXT = _any_of(words.overflow_text for words in _WORDS)
_TOO_LARGE_TEXT = _any_of(words.too_large_text for words in _WORDS)
_FILTERED_TEXT = _any_of(words.filtered_text for words in _WORDS)
_NO_CREDIT_TEXT = _any_of(words.no_credit_text for words in _WORDS)

# HTTP clients (httpx, requests, aiohttp, …) and providers' clients use such class names.
_TRANSPORT_NAMES = lazy(
    r"(?:Timeout|Connection|Transport|Network|Protocol)(?:Error|Exception)?\b"
    r"|\b(?:ChunkedEncodingError|ClientPayloadError|IncompleteRead(?:Error)?|BadStatusLine)\b"
    r"|\b(?:HTTPClientError|ResponseStreamingError|ServerDisconnectedError|SSLError|gaierror)\b"
)
_REQUEST_NAMES = lazy(r"\b(?:LocalProtocolError|UnsupportedProtocol|SSLCertVerificationError)\b")
"""Transport errors that a repeated request cannot avoid, such as an unsupported protocol."""
_DENIED_NAMES = lazy(
    r"(?:Authentication|Permission(?:Denied)?|TokenRetrieval|UnauthorizedSSOToken)Error\b"
    r"|\b(?:No|Partial|Default)CredentialsError\b"
)
_OVERFLOW_NAMES = lazy(r"\bContext(?:Window|Length)?(?:Overflow|Exceeded)")
_FILTERED_NAMES = lazy(r"\bContent(?:PolicyViolation|FilterFinishReason)")


def provider_kind(error: BaseException) -> FailureKind | None:
    """Return the failure kind of a client's exception, or None if it is unknown.

    If the exception itself says nothing, its causes are read. In a group of exceptions the kind
    that another attempt helps least counts.
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
    """Yield an exception and its causes, at most ten exceptions.

    `urllib` and `urllib3` keep the cause in the attribute `reason`.
    """
    current: Any = error
    for _ in range(_MAX_CAUSES):
        if not isinstance(current, BaseException):
            return
        yield current
        current = current.__cause__ or getattr(current, "reason", None)


def _members(error: BaseException) -> tuple[BaseException, ...]:
    """Return the exceptions in an exception group; for any other exception, nothing."""
    group = cast("Any", error)
    return group.exceptions if isinstance(error, BaseExceptionGroup) else ()


def _kind(error: BaseException) -> FailureKind | None:
    if members := _members(error):
        kinds = {provider_kind(one) or "rejected_input" for one in members}
        return next(kind for kind in _LASTING if kind in kinds)
    status, codes = _status(error), set(_codes(error))
    names = " ".join(cls.__name__ for cls in type(error).__mro__)
    said = _said(error, status, codes, names)
    if said is not None:
        return said
    if status in _BY_CODE:
        return _by_code(codes)
    if codes & _QUOTA:
        return "permanent"
    if status is not None:
        return "transient" if status >= 500 else _STATUS_KINDS.get(status, "rejected_input")
    if codes & (_DENIED | _BUSY | _REJECTED):
        return _by_code(codes)
    return _by_class(error, names)


def _said(
    error: BaseException, status: int | None, codes: set[str], names: str
) -> FailureKind | None:
    """Return the kind of a refused request from its code, class or text, or None.

    The request was too long, was filtered, or the account has no credit.
    """
    if codes & _OVERFLOW or _OVERFLOW_NAMES.search(names):
        return "context_overflow"
    if codes & _FILTERED or _FILTERED_NAMES.search(names):
        return "refusal"
    text = text_of(error)
    if status in (413, 429) and _TOO_LARGE_TEXT.search(text):
        return "context_overflow"
    is_busy = bool(codes & _BUSY) and not codes & _REJECTED
    is_refused = status in _REFUSED_REQUEST or (status is None and codes & _REJECTED)
    if is_busy or not is_refused:
        return None
    if _OVERFLOW_TEXT.search(text):
        return "context_overflow"
    if _FILTERED_TEXT.search(text):
        return "refusal"
    return "permanent" if _NO_CREDIT_TEXT.search(text) else None


def _by_class(error: BaseException, names: str) -> FailureKind | None:
    """Return the kind of an exception by its class alone, or None."""
    if getattr(error, "is_retryable", False) is True:  # LangChain's `ModelError` has this.
        return "transient"
    if _DENIED_NAMES.search(names):
        return "permanent"
    if _REQUEST_NAMES.search(names):
        return "rejected_input"
    has_no_network = isinstance(error, OSError) and error.errno in _NO_NETWORK
    return "transient" if has_no_network or _TRANSPORT_NAMES.search(names) else None


def _by_code(codes: set[str]) -> FailureKind:
    """Return the failure kind for a provider's error codes."""
    if codes & (_DENIED | _QUOTA):
        return "permanent"
    return "transient" if codes & _BUSY and not codes & _REJECTED else "rejected_input"


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
    """Read a time to wait, given as a number or as a date, in seconds; None if unreadable."""
    if not isinstance(text, str):
        return None
    try:
        return float(text.strip().removesuffix("s")) * scale
    except ValueError:
        pass
    try:
        # If the response has a date, the server's clock is used, because ours may differ.
        now = _moment(date) if date else datetime.now(UTC)
        return (_moment(text) - now).total_seconds()
    except (TypeError, ValueError):
        return None


def _moment(date: str) -> datetime:
    """Read an HTTP date. It is in UTC even if it names no time zone."""
    moment = parsedate_to_datetime(date)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
