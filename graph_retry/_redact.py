"""Redact values and attempt records, and mask keys of providers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from graph_retry._json import is_array, is_object

Redact = Callable[[str], str]

_KEYS = re.compile(
    r"""\b(?:sk|pk|rk)-[\w-]{16,} | \bAIza[\w-]{30,} | \bgh[pousr]_\w{30,}
    | \bxox[abeprs]-[\w-]{10,} | \bAKIA[A-Z0-9]{16}\b | \beyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*
    | (?<=\bBearer\ )[^\s"',;]{8,}
    | (?<=[?&]key=)[^\s&"']{8,} | (?<=[?&]api_key=)[^\s&"']{8,} | (?<=[?&]token=)[^\s&"']{8,}""",
    re.VERBOSE,
)


def without_keys(text: str) -> str:
    """Mask what has the shape of a provider's key: errors quote requests, and requests hold keys.

    Example:
        >>> without_keys("401 for https://host/v1?key=AIzaSyA-1234567890abcdefghijklmnopqrstu")
        '401 for https://host/v1?key=[key]'
    """
    return _KEYS.sub("[key]", text)


def redacted(value: Any, redact: Redact | None) -> Any:
    """Return a JSON value with every text in it redacted; keys and numbers stay.

    Example:
        >>> redacted({"to": ["Ada", 1]}, lambda text: "***")
        {'to': ['***', 1]}
    """
    if redact is None:
        return value
    if isinstance(value, str):
        return redact(value)
    if is_array(value):
        return [redacted(item, redact) for item in value]
    if is_object(value):
        return {key: redacted(item, redact) for key, item in value.items()}
    return value


def redacted_fields(record: Mapping[str, Any], redact: Redact | None) -> dict[str, Any]:
    """Return the redacted fields of an attempt's record; empty without a redactor."""
    if redact is None:
        return {}

    def with_redacted(entry: Mapping[str, Any], *names: str) -> dict[str, Any]:
        return {**entry, **{name: redacted(entry[name], redact) for name in names}}

    failure, repairs = record.get("failure"), record.get("repairs", [])
    return {
        "redacted": True,
        **{name: redacted(record.get(name), redact) for name in ("raw", "repaired", "parsed")},
        "failure": failure and with_redacted(failure, "message"),
        "issues": [
            with_redacted(issue, "message", "expected", "received")
            for issue in record.get("issues", [])
        ],
        "repairs": [with_redacted(repair, "detail") for repair in repairs],
    }
