"""Ready-made hooks that change fields of the params, such as the model or a token limit.

Each function of this module makes a `ChangingHook` with a rule: which fields change, and when.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from functools import lru_cache
from typing import Annotated, Any

from pydantic import TypeAdapter, ValidationError

from graph_retry._core.params.fields import fields_of
from graph_retry._core.params.prompt import require_fields, with_fields
from graph_retry.errors import AttemptFailed
from graph_retry.plugins import Count, Within, as_repr, checked, is_number
from graph_retry.records import FailureKind

Changes = Mapping[str, Any]
"""New values by field name. A value may be a function `old value -> new value`."""


_adapter: Callable[[Any], TypeAdapter[Any]] = lru_cache(maxsize=100)(TypeAdapter)


class ChangingHook:
    """A hook that changes fields of the params by a rule.

    Automatic retries usually end after two equal failures in a row. They continue with params from
    this hook, because the hook tries other means, such as another model.

    Args:
        name: The name of the function that made this hook, for messages and records.
        fields: Every field that the hook may change.
        changes: The rule: a sync or async function of the error, the attempt's number and the old
            fields. It returns the changed fields.
        check: Raises `ValueError` if the rule cannot work with the first fields.
        steps: The changes that are known before the first failure.
    """

    new_means = True
    from_attempt = 1

    def __init__(
        self,
        name: str,
        fields: Collection[str],
        changes: Callable[[AttemptFailed, int, Changes], Changes | Awaitable[Changes]],
        check: Callable[[Changes], None] | None = None,
        steps: Iterable[Changes] = (),
    ) -> None:
        self.__name__, self._fields, self._changes, self._check = name, fields, changes, check
        self._steps = tuple(steps)

    def __call__(self, error: AttemptFailed, attempt: int, params: Any) -> Any:
        """Return the changed params, or None if nothing changes."""
        require_fields(params, self._fields, self.__name__)
        old = fields_of(params)
        changes = self._changes(error, attempt, old)
        return (
            self._later(params, changes) if inspect.isawaitable(changes) else _made(params, changes)
        )

    async def _later(self, params: Any, changes: Awaitable[Changes]) -> Any:
        return _made(params, await changes)

    def check_params(self, params: Any) -> None:
        """Raise `ValueError` if the params lack a field of this hook, or it gets a wrong value."""
        require_fields(params, self._fields, self.__name__)
        if self._check is not None:
            self._check(fields_of(params))
        for step in () if isinstance(params, Mapping) else self._steps:
            for name, value in step.items():
                if not callable(value):
                    self._check_value(params, name, value)

    def _check_value(self, params: Any, name: str, value: Any) -> None:
        wrong: list[Any] = []
        try:
            _adapter(type(params)).validate_python({**fields_of(params), name: value})
        except ValidationError as error:
            wrong = error.errors(include_url=False, include_context=False, include_input=False)
        except Exception:  # noqa: BLE001 - the params may be of any class, with any validators
            return
        # A validator of the user may look at other fields, which may change as well.
        of_type = ("literal_error", "enum", "_type", "_parsing")
        for one in wrong:
            if one["loc"] == (name,) and one["type"].endswith(of_type):
                raise ValueError(
                    f"`{self.__name__}` would set the field `{name}` to {as_repr(value, 80)}, but "
                    f"its type does not allow this: {one['msg']}."
                )


def _made(params: Any, changes: Changes) -> Any:
    old = fields_of(params)
    new = {name: to(old[name]) if callable(to) else to for name, to in changes.items()}
    return with_fields(params, new) if new else None


@checked
def escalate(schedule: Mapping[Count, Changes]) -> ChangingHook:
    """Make a hook that changes fields of the params after certain attempts, whatever the failure.

    Automatic retries usually end after two equal failures in a row. They continue, up to the limit
    `auto_retries`, if `schedule` has a change for the failed attempt.

    Args:
        schedule: `{attempt: {field: value}}`. After the attempt with this number has failed, the
            fields get these values, also for later attempts. In place of a value, you may give a
            function of the old value, for example `lambda old: old + 0.2`.

    Raises:
        ValueError: Before the first call, if the params lack one of the fields, or if the declared
            type of a field does not allow its new value.

    Example:
        >>> hook = escalate({2: {"model": "large", "temperature": lambda old: old / 2}})
        >>> hook(AttemptFailed("no"), 2, {"model": "small", "temperature": 0.5})
        {'model': 'large', 'temperature': 0.25}
    """
    fields = {name for changes in schedule.values() for name in changes}
    hook = ChangingHook(
        "escalate",
        fields,
        lambda _, attempt, __: schedule.get(attempt, {}),
        steps=schedule.values(),
    )
    hook.from_attempt = min(schedule, default=1)
    return hook


@checked
def fall_back(
    kinds: FailureKind | Annotated[Collection[FailureKind], Within(1)], *steps: Changes
) -> ChangingHook:
    """Make a hook that changes fields of the params step by step, after failures of certain kinds.

    For example, the first refusal changes the prompt, and the second refusal changes the model.
    Automatic retries usually end after two equal failures in a row, but not if a step is left.

    Args:
        kinds: The failure kinds, such as `"refusal"` or `("refusal", "context_overflow")`.
        *steps: Dicts `{field: value}`: one for the first failure of these kinds, one for the
            second, and so on. In place of a value, you may give a function of the old value.
            Changes stay for later attempts.

    Raises:
        ValueError: If a step is empty, or no step is given. Also before the first call, if the
            params lack one of the fields, or if the declared type of a field does not allow its
            new value.

    Example:
        >>> hook = fall_back("refusal", {"prompt": "In a textbook: {}".format}, {"model": "other"})
        >>> hook(AttemptFailed("no", kind="refusal"), 1, {"prompt": "How?", "model": "mine"})
        {'prompt': 'In a textbook: How?', 'model': 'mine'}
    """
    of = (kinds,) if isinstance(kinds, str) else tuple(kinds)
    if not steps or not all(steps):
        raise ValueError(
            "`fall_back` needs at least one step: give dicts of the fields to change, such as "
            "`{'model': 'large'}`."
        )

    def changes(error: AttemptFailed, attempt: int, old: Changes) -> Changes:
        del attempt, old
        failures = [record["failure"] for record in error.attempts]
        before = sum(failure is not None and failure["kind"] in of for failure in failures)
        step = max(before, 1) - 1
        return steps[step] if error.kind in of and step < len(steps) else {}

    fields = {name for step in steps for name in step}
    return ChangingHook("fall_back", fields, changes, steps=steps)


@checked
def raise_limit(
    field: str = "max_tokens", factor: Annotated[float, Within(above=1)] = 2.0, *, most: Count
) -> ChangingHook:
    """Make a hook that raises the token limit in the params after an answer was cut off.

    Args:
        field: The params field with the limit. Its value may be `None`, for no limit.
        factor: The limit is multiplied by this number after each answer that was cut off.
        most: The highest value of the limit. At this value, the hook changes nothing more.

    Raises:
        ValueError: Before the first call, if the params lack the field, or it is not a number, or
            above `most`.

    Example:
        >>> cut_off = AttemptFailed("cut off", kind="truncated")
        >>> raise_limit(most=1_000)(cut_off, 1, {"prompt": "Go on.", "max_tokens": 600})
        {'prompt': 'Go on.', 'max_tokens': 1000}
    """

    def limit_in(old: Changes) -> Any:
        if old[field] is not None and not is_number(old[field]):
            raise ValueError(
                f"`raise_limit` cannot raise the field `{field}`, which is "
                f"{as_repr(old[field], 200)}: give a number, or None for no limit."
            )
        return old[field]

    def changes(error: AttemptFailed, attempt: int, old: Changes) -> Changes:
        del attempt
        limit = limit_in(old)
        if error.kind != "truncated" or limit is None or limit >= most:
            return {}
        return {field: math.ceil(min(most, limit * factor))}

    def check(old: Changes) -> None:
        if (limit_in(old) or 0) > most:
            raise ValueError(
                f"`raise_limit(most={most})` cannot raise the field `{field}`, which is "
                f"{old[field]} from the start: give a higher `most`."
            )

    return ChangingHook("raise_limit", (field,), changes, check)
