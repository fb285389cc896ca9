"""Ready `on_retry` hooks that raise the stakes: another model, other settings, a higher limit."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from graph_retry._params.fields import fields_of
from graph_retry.errors import AttemptFailed
from graph_retry.hooks._prompt import require_fields, with_fields


def escalate(schedule: Mapping[int, Mapping[str, Any]]) -> Callable[[AttemptFailed, int, Any], Any]:
    """Make a hook that changes fields after certain attempts, whatever the failure was.

    Args:
        schedule: `{attempt: {field: value}}`. A change is made after exactly that attempt has
            failed, and stays. A function as value gets the old one: `lambda old: old + 0.2`.

    Raises:
        ValueError: If an attempt is below 1; in use, if the params lack one of the fields.

    Example:
        >>> hook = escalate({2: {"model": "large", "temperature": lambda old: old / 2}})
        >>> hook(AttemptFailed("no"), 2, {"model": "small", "temperature": 0.5})
        {'model': 'large', 'temperature': 0.25}
    """
    if min(schedule, default=1) < 1:
        raise ValueError(f"`schedule` names attempt {min(schedule)}: attempts count from 1.")

    def change(error: AttemptFailed, attempt: int, params: Any) -> Any:
        del error
        require_fields(params, (name for changes in schedule.values() for name in changes))
        old, due = fields_of(params), schedule.get(attempt, {})
        new = {name: to(old[name]) if callable(to) else to for name, to in due.items()}
        return with_fields(params, new) if new else None

    change.__name__ = change.__qualname__ = "escalate"
    return change


def raise_limit(
    field: str = "max_tokens", factor: float = 2.0, *, most: int
) -> Callable[[AttemptFailed, int, Any], Any]:
    """Make a hook that raises a token limit when an answer was cut off, and changes nothing else.

    Args:
        field: The params field that holds the limit, or `None` where there is no limit.
        factor: How much is granted each time.
        most: The highest limit; there a person decides.

    Raises:
        ValueError: If `factor` is not above 1; in use, if the params lack the field.

    Example:
        >>> cut_off = AttemptFailed("cut off", kind="truncated")
        >>> raise_limit(most=1_000)(cut_off, 1, {"prompt": "Go on.", "max_tokens": 600})
        {'prompt': 'Go on.', 'max_tokens': 1000}
    """
    if factor <= 1:
        raise ValueError(f"`factor` is {factor!r}: a limit is raised by more than 1.")

    def change(error: AttemptFailed, attempt: int, params: Any) -> Any:
        del attempt
        require_fields(params, (field,))
        limit = fields_of(params)[field]
        if error.kind != "truncated" or limit is None or limit >= most:
            return None
        return with_fields(params, {field: min(most, math.ceil(limit * factor))})

    change.__name__ = change.__qualname__ = "raise_limit"
    return change
