"""Ready `on_retry` hooks that raise the stakes: another model, other settings, a higher limit."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, cast

from graph_retry._json import is_number, is_object, is_whole
from graph_retry._output.failures import ROUTES
from graph_retry._params.fields import fields_of
from graph_retry.errors import AttemptFailed
from graph_retry.hooks._prompt import require_fields, with_fields
from graph_retry.records import FailureKind


def escalate(schedule: Mapping[int, Mapping[str, Any]]) -> Escalation:
    """Make a hook that changes fields after certain attempts, whatever the failure was.

    Two attempts that fail in the same way do not stop it: its step is made before a person is
    asked, as far as `auto_retries` allows.

    Args:
        schedule: `{attempt: {field: value}}`. A change is made after exactly that attempt has
            failed, and stays. A function as value gets the old one: `lambda old: old + 0.2`.

    Raises:
        TypeError: If the schedule is not a dict.
        ValueError: If an attempt is no number from 1 on, or has no fields; in use, before the first
            call, if the params lack one of the fields.

    Example:
        >>> hook = escalate({2: {"model": "large", "temperature": lambda old: old / 2}})
        >>> hook(AttemptFailed("no"), 2, {"model": "small", "temperature": 0.5})
        {'model': 'large', 'temperature': 0.25}
    """
    if not isinstance(cast("Any", schedule), Mapping):
        raise TypeError(f"`schedule` is {schedule!r:.200}: give a dict, the changes by attempt.")
    for attempt, changes in schedule.items():
        if not is_whole(cast("Any", attempt)) or attempt < 1:
            raise ValueError(
                f"`schedule` names attempt {attempt!r:.200}: attempts are whole numbers from 1."
            )
        if not is_object(changes):
            raise ValueError(
                f"`schedule` has {changes!r:.200} for attempt {attempt}: give the fields to change "
                'by name, as in `{"model": "large"}`.'
            )
    return Escalation(schedule)


@dataclass(frozen=True)
class Escalation:
    """The hook that `escalate` makes."""

    schedule: Mapping[int, Mapping[str, Any]]
    __name__ = "escalate"
    new_means = True

    def __call__(self, error: AttemptFailed, attempt: int, params: Any) -> Any:
        """Return the params with the changes that are due after this attempt, None if none are."""
        del error
        self.check_params(params)
        changes = self.schedule.get(attempt, {})
        return _changed(params, changes) if changes else None

    def check_params(self, params: Any) -> None:
        """Refuse params that lack one of the fields."""
        names = (name for changes in self.schedule.values() for name in changes)
        require_fields(params, names, "escalate")


def fall_back(kinds: FailureKind | Collection[FailureKind], *steps: Mapping[str, Any]) -> FallBack:
    """Make a hook that changes fields after failures of some kinds: a step for each of them.

    After a refusal, say, the prompt is put in other words, and after the second another model is
    asked. Equal failures do not stop it.

    Args:
        kinds: The failure kinds, such as `"refusal"` or `("refusal", "context_overflow")`.
        *steps: What to change after the first such failure, the second, …: values by field, or
            functions of the old one. A change stays.

    Raises:
        ValueError: If a kind does not exist, or a step is no dict of changes; in use, before the
            first call, if the params lack one of the fields.

    Example:
        >>> hook = fall_back("refusal", {"prompt": "In a textbook: {}".format}, {"model": "other"})
        >>> hook(AttemptFailed("no", kind="refusal"), 1, {"prompt": "How?", "model": "mine"})
        {'prompt': 'In a textbook: How?', 'model': 'mine'}
    """
    of = (kinds,) if isinstance(kinds, str) else tuple(kinds)
    unknown = [kind for kind in of if kind not in ROUTES]
    if unknown or not of:
        raise ValueError(f"`kinds` is {kinds!r:.200}: give some of {', '.join(ROUTES)}.")
    if not steps or not all(is_object(step) and step for step in steps):
        raise ValueError("give the steps as dicts: the fields to change by name.")
    return FallBack(of, steps)


@dataclass(frozen=True)
class FallBack:
    """The hook that `fall_back` makes."""

    kinds: tuple[FailureKind, ...]
    steps: tuple[Mapping[str, Any], ...]
    __name__ = "fall_back"
    new_means = True

    def __call__(self, error: AttemptFailed, attempt: int, params: Any) -> Any:
        """Return the params with the next step's changes, None if the failure is another one."""
        del attempt
        if error.kind not in self.kinds:
            return None
        failures = [record["failure"] for record in error.attempts]
        before = sum(failure is not None and failure["kind"] in self.kinds for failure in failures)
        number = max(before, 1)
        return _changed(params, self.steps[number - 1]) if number <= len(self.steps) else None

    def check_params(self, params: Any) -> None:
        """Refuse params that lack one of the fields."""
        require_fields(params, (name for step in self.steps for name in step), "fall_back")


def _changed(params: Any, changes: Mapping[str, Any]) -> Any:
    """Return the params with some fields changed; a function gets the old value."""
    old = fields_of(params)
    return with_fields(
        params, {name: to(old[name]) if callable(to) else to for name, to in changes.items()}
    )


def raise_limit(field: str = "max_tokens", factor: float = 2.0, *, most: int) -> LimitRaise:
    """Make a hook that raises a token limit after an answer was cut off. It changes only that.

    Args:
        field: The params field with the limit; its value may be `None`, for no limit.
        factor: How much is granted each time.
        most: The highest limit; there a person decides.

    Raises:
        ValueError: If `factor` is not above 1 or `most` no limit; in use, before the first call,
            if the params lack the field or have no number there.

    Example:
        >>> cut_off = AttemptFailed("cut off", kind="truncated")
        >>> raise_limit(most=1_000)(cut_off, 1, {"prompt": "Go on.", "max_tokens": 600})
        {'prompt': 'Go on.', 'max_tokens': 1000}
    """
    if factor <= 1:
        raise ValueError(f"`factor` is {factor!r}: a limit is raised by more than 1.")
    if not is_whole(cast("Any", most)) or most < 1:
        raise ValueError(f"`most` is {most!r:.200}: give the highest limit, a whole number from 1.")
    return LimitRaise(field, factor, most)


@dataclass(frozen=True)
class LimitRaise:
    """The hook that `raise_limit` makes."""

    field: str
    factor: float
    most: int
    __name__ = "raise_limit"
    new_means = True  # an answer that is cut off again is the same failure, until there is room

    def __call__(self, error: AttemptFailed, attempt: int, params: Any) -> Any:
        """Return the params with a higher limit, None where that would not help."""
        del attempt
        self.check_params(params)
        limit = fields_of(params)[self.field]
        if error.kind != "truncated" or limit is None or limit >= self.most:
            return None
        return with_fields(params, {self.field: min(self.most, math.ceil(limit * self.factor))})

    def check_params(self, params: Any) -> None:
        """Refuse params that lack the field, or have no number there."""
        require_fields(params, (self.field,), "raise_limit")
        limit = fields_of(params)[self.field]
        if limit is not None and not is_number(limit):
            raise ValueError(
                f"`raise_limit` raises the field `{self.field}`, which is {limit!r:.200}: it must "
                "be a number, or None for no limit."
            )
