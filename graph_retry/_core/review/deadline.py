"""Compute and compare the times of a review. All times are ISO 8601 texts in UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

EXPIRE = "expire"
"""The `type` of the answer that resumes an expired review. This answer has no decision."""


def now() -> str:
    """Return the current time in UTC as ISO 8601, with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def utc(moment: str) -> str | None:
    """Convert an ISO 8601 text to UTC. Return None if the text is not a time.

    A time without a zone is taken as UTC.

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
    """Return the time that is `seconds` later than `moment`, or None if `seconds` is None.

    Example:
        >>> after("2027-03-03T12:00:00.000+00:00", 90)
        '2027-03-03T12:01:30.000+00:00'
    """
    if seconds is None:
        return None
    later = datetime.fromisoformat(moment) + timedelta(seconds=seconds)
    return later.isoformat(timespec="milliseconds")


def is_expired(expires_at: str | None, at: str | None = None) -> bool:
    """Return whether the time `at` (default: now) has reached `expires_at`. None never expires.

    Example:
        >>> is_expired("2027-03-03T12:00:00.000+00:00", "2027-03-03T12:00:01.000+00:00")
        True
    """
    if expires_at is None:
        return False
    return datetime.fromisoformat(at or now()) >= datetime.fromisoformat(expires_at)
