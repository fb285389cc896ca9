"""Validate an output with the function that a user passed as `output`.

The function may return a verdict, a dict such as `{"ok": False, "errors": ["too long"]}`.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from langgraph.errors import GraphBubbleUp

from graph_retry._core.ground.functions.awaiting import AsyncUnderSyncError, run_sync
from graph_retry._core.ground.functions.calling import awaited, forgotten, yields
from graph_retry._core.ground.functions.signatures import declared_params, name_of
from graph_retry._core.ground.issues import REFUSED, child_of, cut, describe, issue, wrap_error
from graph_retry._core.ground.json import ABSENT, is_array, is_object, pointer
from graph_retry._core.output.mistakes import bug_in_validator
from graph_retry._core.output.validator import Validator
from graph_retry.lossless._ground import EscapedText, error_text, lazy
from graph_retry.records import Issue

STATES = ("ok", "success", "valid")
"""Keys that say True or False. Each verdict has exactly one of these keys."""
VALUE = "data"
"""The key of the accepted value, in a verdict that says True."""
REASONS = ("errors", "error", "issues")
"""The keys of the errors. Only a verdict that says False has errors."""
HOPELESS = "hopeless"
"""The key that says whether another attempt is useless."""

_KNOWN = {*STATES, VALUE, *REASONS, HOPELESS}
_STEP = lazy(r"[^.\[\]]+")


class Verdict(NamedTuple):
    """An accepted value, or the issues of a refused value."""

    value: Any
    issues: list[Issue]


class UnclearError(EscapedText, TypeError):
    """The result of a validator function may mean several things."""


def verdict_of(answer: dict[str, Any], value: Any) -> Verdict | None:
    """Read a returned dict as a verdict; return None if the dict is the changed value.

    If a dict has no key such as `ok`, and shares fields with the value, it is the changed value. A
    key such as `errors` in a changed value must also be in the original value.

    Raises:
        UnclearError: If the dict is neither clearly a verdict nor clearly the changed value.
    """
    own = value if is_object(value) else {}
    states = [word for word in STATES if word in answer]
    if not states and own.keys() >= {word for word in REASONS if word in answer}:
        if _is_changed(answer, value):
            return None
        raise UnclearError(
            f"returned {describe(answer)}, which is no verdict, and shares too little with the "
            f"value to be the value, changed: for a verdict, return a bool or a list of issues, or "
            f"raise; {_as_value(own)}"
        )
    if states and answer.keys() <= own.keys():
        raise UnclearError(
            f"returned a dict with `{states[0]}`, which the value has as well, so that it may be "
            f"a verdict, or the value, changed: for a verdict, return a bool or a list of issues, "
            f"or raise; {_as_value(own)}"
        )
    _check_words(answer, states, own)
    reasons = [one for word in REASONS for one in _listed(answer.get(word))]
    if answer[states[0]]:
        if reasons:
            raise UnclearError(
                f"returned `{states[0]}` True together with {describe(reasons[0])} as an error"
            )
        return Verdict(answer.get(VALUE, value), [])
    issues = issues_of(reasons or [REFUSED], value)
    if is_hopeless(answer):
        issues[0]["hopeless"] = True
    return Verdict(value, issues)


def _check_words(answer: dict[str, Any], states: list[str], own: dict[str, Any]) -> None:
    """Raise if a verdict has unknown keys, or does not say True or False exactly once."""
    extra = next((str(key) for key in answer if key not in _KNOWN), None)
    if len(states) == 1 and extra is None and isinstance(answer[states[0]], bool):
        return
    if not states:
        reason = next(word for word in REASONS if word in answer)
        found = f"`{reason}`, but without a word that says whether the value is valid"
    elif len(states) > 1 or extra is not None:
        found = f"`{states[0]}` and `{extra or states[1]}`"
    else:
        found = f"`{states[0]}` {describe(answer[states[0]])}"
    raise UnclearError(
        f"returned a dict with {found}: in a verdict, one of {_quoted(STATES)} is True or False, "
        f"and {_quoted((VALUE, *REASONS))} may stand beside it; {_as_value(own)}"
    )


def _is_changed(answer: dict[str, Any], value: Any) -> bool:
    """Return whether a dict has all keys of the value, or one unchanged item of the value."""
    if not is_object(value) or not value:
        return False
    kept = any(key in answer and answer[key] == item for key, item in value.items())
    return kept or answer.keys() >= value.keys()


def _as_value(own: dict[str, Any]) -> str:
    """Advise how to return a dict as the value."""
    word = next((word for word in STATES if word not in own), None)
    verdict = f'give `{{"{word}": True, "{VALUE}": …}}`'
    how = "change the argument and return it" if word is None else verdict
    return f"to return the dict as the value, {how}"


def _quoted(words: tuple[str, ...]) -> str:
    *first, last = (f"`{word}`" for word in words)
    return f"{', '.join(first)} or {last}"


def _listed(reasons: Any) -> list[Any]:
    """List the reasons of a verdict. An error with inner `issues`, as Zod's, gives these issues."""
    if is_object(reasons) and (inner := next((w for w in REASONS if w in reasons), None)):
        return _listed(reasons[inner])
    if is_array(reasons):
        return reasons
    return [reasons] if reasons else []


def issues_of(reasons: list[Any], value: Any) -> list[Issue]:
    """Convert reasons to issues. Each reason is a text, an exception, or a dict like `Issue`."""
    listed: list[Issue] = []
    for reason in reasons:
        raised = wrap_error(reason) if isinstance(reason, Exception) else []
        listed += raised or [_issue(reason, value)]
    return listed


def _issue(error: Any, value: Any) -> Issue:
    reason = error if is_object(error) else {"message": error}
    if not isinstance(reason.get("message"), str):
        raise UnclearError(
            f"listed {describe(error)} as an issue; that is a text, an exception or a dict with "
            "`message` and perhaps `path`, `code`, `expected`, `received`; to return a list as the "
            'value, return `{"ok": True, "data": […]}`'
        )
    # Ajv calls the path `instancePath`.
    place = reason.get("path") or reason.get("instancePath") or ""
    path, code = _path(place, value), reason.get("code") or "refused"
    message = reason["message"] or REFUSED
    expected, received = reason.get("expected"), reason.get("received")
    return issue(path, message, code, expected, received, hopeless=is_hopeless(reason))


def _path(given: Any, value: Any) -> Any:
    """Convert a path such as `rows[0].a` to a JSON Pointer, unless it is the name of a field."""
    if not isinstance(given, str) or given[:1] in ("", "/"):
        return given
    if child_of(value, given) is not ABSENT:
        return pointer([given])
    return f"/{given}" if "/" in given else pointer(_STEP.findall(given.removeprefix("$")))


def is_hopeless(answer: dict[str, Any]) -> bool:
    given = answer.get(HOPELESS) or False
    if not isinstance(given, bool):
        raise UnclearError(f"returned {describe(given)} as `{HOPELESS}`: give True or False")
    return given


_FORMS = (
    'return a bool, the value, a list of issues or `{"ok": …}` with `data` or `errors`, or raise'
)


class FunctionValidator(Validator):
    """Validate a value with a user's function, which gets a copy of the value.

    `docs/reference/output.md` lists the results that the function may return. The first row of this
    table that fits applies. If the graph runs async, the function may be async. If the function's
    parameter is annotated with `str`, the function gets the model's whole text.
    """

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.name = cut(name_of(function, "value"), 80)
        self.function = function
        try:
            with suppress(ValueError):  # Some built-ins have no signature.
                signature = inspect.signature(function)
                signature.bind(None)
                parameter = next(iter(signature.parameters.values()))
                self.wants_text = parameter.annotation in (str, "str")
        except TypeError as error:
            message = f"`output` validator `{self.name}` must take one value: {error_text(error)}"
            raise TypeError(message) from error
        declared = declared_params(function)
        if declared is not None:
            raise TypeError(
                f"`output` validator `{self.name}` takes a `{declared.__name__}`, but is given "
                f"plain JSON: give `Annotated[{declared.__name__}, AfterValidator({self.name})]`"
            )
        if yields(function):
            raise TypeError(
                f"`output` validator `{self.name}` is a generator function: use `return` in place "
                "of `yield`."
            )
        if (line := forgotten(function)) is not None:
            raise TypeError(
                f"`output` validator `{self.name}` never returns what it computes in {line}, so it "
                "would accept each value: add `return`."
            )
        if self.wants_text:
            self.schema = {"title": self.name, "type": "string"}

    def rebuild(self, jsonable: Any) -> Any:
        """Return `jsonable` unchecked, because the function may not accept its own result."""
        return jsonable

    def _judge(self, value: Any) -> tuple[Any, list[Issue]]:
        return run_sync(self._ajudge(value))

    async def _ajudge(self, value: Any) -> tuple[Any, list[Issue]]:
        try:
            given = copy.deepcopy(value)  # The user's function may change its argument.
            answer = await awaited(self.function(given), self.function)
        except (GraphBubbleUp, AsyncUnderSyncError):
            raise  # `GraphBubbleUp` is LangGraph's control flow, such as an interrupt.
        except Exception as error:  # noqa: BLE001 - the function is the caller's
            return value, self._raised(error)
        return self._decided(value, given, answer)

    def _raised(self, error: Exception) -> list[Issue]:
        issues = wrap_error(error)
        if (place := bug_in_validator(self.name, error, self.function)) is not None:
            issues[0]["message"] += f" ({place})"
        return issues

    def _decided(self, value: Any, given: Any, answer: Any) -> tuple[Any, list[Issue]]:
        """Return the value and its issues, as the table in `docs/reference/output.md` says."""
        if answer is False:
            return value, issues_of([REFUSED], value)
        if answer is None or answer is True:
            return value, []
        if answer is given or (type(answer) is type(value) and answer == value):
            return answer, []
        try:
            if is_object(answer) and (verdict := verdict_of(answer, value)) is not None:
                return verdict.value if not verdict.issues else value, verdict.issues
            if isinstance(answer, Exception):
                answer = [answer]
            if is_array(answer):
                return value, issues_of(answer, value)
            if isinstance(answer, tuple) or isinstance(answer, str) > isinstance(value, str):
                raise UnclearError(
                    f"returned {describe(answer)}, which may mean several things: {_FORMS}"
                )
        except UnclearError as error:
            raise TypeError(f"`output` validator `{self.name}` {error}") from None
        return answer, []
