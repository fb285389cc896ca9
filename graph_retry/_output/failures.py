"""Which kind of failure an exception or a finish reason is."""

from __future__ import annotations

import re
from typing import Any, Literal

from langchain_core.exceptions import OutputParserException
from pydantic import ValidationError

from graph_retry._issues import attempt, text_of
from graph_retry._redact import without_keys
from graph_retry.records import Failure, FailureKind

MAX_MESSAGE = 4_000
"""Characters of an error message kept in the ledger."""

ROUTES: dict[FailureKind, Literal["hooks", "review"]] = {
    "transient": "hooks",
    "invalid_syntax": "hooks",
    "invalid_schema": "hooks",
    "truncated": "hooks",
    "refusal": "hooks",
    "rejected_input": "hooks",
    "permanent": "review",
}
"""What each kind of failure is given to first: hooks and feedback, or a reviewer at once."""

MAX_RETRY_AFTER = 60.0
"""Seconds a provider's `Retry-After` is waited for at most."""

_STATUS_KINDS: dict[int, FailureKind] = {
    401: "permanent",
    402: "permanent",
    403: "permanent",
    408: "transient",
    409: "transient",
    425: "transient",
    429: "transient",
}
# The clients' own classes (httpx, openai, anthropic, requests, …) share names, not ancestors.
_TRANSPORT = re.compile(r"(?:Timeout|Connection|Transport|Network)(?:Error|Exception)?\b")
_DENIED = re.compile(r"(?:Authentication|Permission(?:Denied)?)Error\b")
_TRUNCATED = frozenset({"length", "max_tokens", "max_output_tokens", "incomplete"})
_REFUSED = frozenset({"content_filter", "refusal", "safety", "recitation", "blocklist"})
_STOPPED = frozenset({"stop", "end_turn", "stop_sequence", "eos", "complete", "completed"})


class CircuitOpenError(Exception):
    """No call was made: too many failed in a row."""


def failure_of(error: Exception, kind: FailureKind | None = None) -> Failure:
    """Describe an exception as a failure, by HTTP status, by LangChain's class, then by type.

    A given `kind` is taken as it is. An exception nothing is known about is `rejected_input`:
    other params may still help. Keys that the message quotes are masked.

    Example:
        >>> failure_of(TimeoutError("no answer in 30 s"))["kind"]
        'transient'
    """
    text = without_keys(text_of(error)) or type(error).__name__
    # What a client's exception says of itself may be computed, and fail.
    known, failed = (kind, []) if kind else attempt(_kind, error)
    return {
        "kind": "rejected_input" if failed else known,
        "type": type(error).__name__,
        "message": text[:MAX_MESSAGE],
    }


def retry_after(error: Exception) -> float:
    """Return the seconds a provider asks to wait before the same request is sent again."""
    headers: Any = getattr(getattr(error, "response", None), "headers", None) or {}
    try:
        seconds = float(headers.get("retry-after", 0))
    except (TypeError, ValueError, AttributeError):
        return 0.0
    return min(max(seconds, 0.0), MAX_RETRY_AFTER)


def finish_kind(finish_reason: str | None) -> FailureKind | None:
    """Return the failure a finish reason announces, or None.

    Example:
        >>> finish_kind("length")
        'truncated'
    """
    reason = (finish_reason or "").lower()
    if reason in _TRUNCATED:
        return "truncated"
    return "refusal" if reason in _REFUSED else None


def is_complete(finish_reason: str | None) -> bool | None:
    """Tell whether the model said it was done: yes, no (cut off), or unknown.

    Example:
        >>> is_complete("stop"), is_complete("length"), is_complete(None)
        (True, False, None)
    """
    reason = (finish_reason or "").lower()
    if reason in _STOPPED:
        return True
    return False if reason in _TRUNCATED else None


def _kind(error: Exception) -> FailureKind:
    if isinstance(error, OutputParserException):
        return "invalid_syntax"
    if isinstance(error, ValidationError):
        return "invalid_schema"
    status = _status(error)
    if status is not None:
        if "insufficient_quota" in (getattr(error, "code", None), getattr(error, "type", None)):
            return "permanent"
        if status >= 500:
            return "transient"
        return _STATUS_KINDS.get(status, "rejected_input")
    if isinstance(error, CircuitOpenError):
        return "permanent"
    if getattr(error, "is_retryable", False) is True:  # LangChain's `ModelError`
        return "transient"
    names = " ".join(cls.__name__ for cls in type(error).__mro__)
    if _DENIED.search(names):
        return "permanent"
    return "transient" if _TRANSPORT.search(names) else "rejected_input"


def _status(error: Exception) -> int | None:
    response: Any = getattr(error, "response", None)
    for holder, name in ((error, "status_code"), (error, "code"), (response, "status_code")):
        status = getattr(holder, name, None)
        if isinstance(status, int) and 400 <= status < 600:
            return status
    return None
