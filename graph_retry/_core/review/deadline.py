"""Compute when a review expires, from times in ISO 8601 and UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

EXPIRE = "expire"
"""The type of an answer without a decision, which resumes an expired review."""


def now() -> str:
    """Return the current time, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def utc(moment: str) -> str | None:
    """Convert a time to UTC; None if the text is not a time. Without a zone, the time is in UTC.

    Example:
        >>> utc("2030-05-01T08:00+02:00")
        '2030-05-01T06:00:00.000+00:00'
    """
    try:
        given = datetime.fromisoformat(moment)
    except ValueError:
        return None
    known = given if given.tzinfo else given.replace(tzinfo=UTC)
    return known.astimezone(UTC).isoformat(timespec="milliseconds")


def after(moment: str, seconds: float | None) -> str | None:
    """Return the time `seconds` after `moment`; None if `seconds` is None.

    Example:
        >>> after("2027-03-03T12:00:00.000+00:00", 90)
        '2027-03-03T12:01:30.000+00:00'
    """
    if seconds is None:
        return None
    later = datetime.fromisoformat(moment) + timedelta(seconds=seconds)
    return later.isoformat(timespec="milliseconds")


def is_expired(expires_at: str | None, at: str | None = None) -> bool:
    """Say whether a review had expired at the time `at` (default: now).

    Example:
        >>> is_expired("2027-03-03T12:00:00.000+00:00", "2027-03-03T12:00:01.000+00:00")
        True
    """
    if expires_at is None:
        return False
    return datetime.fromisoformat(at or now()) >= datetime.fromisoformat(expires_at)
