"""A validator made from the function that a user passed as `output`."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from langgraph.errors import GraphBubbleUp
from typing_extensions import TypeIs

from graph_retry._functions.awaiting import AsyncUnderSyncError, run_sync
from graph_retry._functions.calling import awaited
from graph_retry._functions.signatures import declared_params, name_of
from graph_retry._output.mistakes import place_of_bug, tell_bug
from graph_retry._output.validator import Validator
from graph_retry._texts.issues import REFUSED, cut, describe, issue, wrap_error
from graph_retry._texts.json import is_array, is_object
from graph_retry.records import Issue

_VERDICT = {"ok", "data", "errors", "hopeless"}
_FORMS = (
    'return a bool, the value, a list of issues or `{"ok": …}` with `data` or `errors`, or raise'
)


class FunctionValidator(Validator):
    """Validate a value by the result of a function.

    The function gets a copy of the value. The first row of this table that fits its result applies.
    The function may be async if the graph runs async.

    | the function | the value is |
    |---|---|
    | raises an exception | refused, for this reason (`GraphBubbleUp` passes through) |
    | returns `False` | refused |
    | returns `None`, `True`, the copy itself, or an equal value | accepted |
    | returns `{"ok": True}`, optionally with `data` | accepted; `data` replaces it if given |
    | returns `{"ok": False}`, optionally with `errors` | refused, for these issues |
    | returns a list | accepted if the list is empty, otherwise refused for these issues |
    | returns an exception | refused, for this reason |
    | returns other plain JSON | accepted, and replaced by that JSON |

    Each issue in a list is a text, an exception or a dict like `Issue`.

    A function can report that no other call could help. For this, a verdict or an issue has
    `hopeless: True`, or an exception has this attribute. Then no further attempt is made, and a
    person is asked at once.

    To replace the value by a list, or a value of another type by a text, return
    `{"ok": True, "data": value}`. If the function's parameter is annotated with `str`, the function
    gets the model's whole text, and the text is not read as JSON.
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
            message = f"`output` validator `{self.name}` must take one value: {error}"
            raise TypeError(message) from error
        declared = declared_params(function)
        if declared is not None:
            raise TypeError(
                f"`output` validator `{self.name}` takes a `{declared.__name__}`, but is given "
                f"plain JSON: give `Annotated[{declared.__name__}, AfterValidator({self.name})]`"
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
        # A validator may refuse a value by a `KeyError` or `TypeError`. The three exceptions below
        # can only come from a mistake in the validator's code.
        place = place_of_bug(error, self.function, (NameError, AttributeError, ImportError))
        if place is not None:
            tell_bug(f"the validator `{self.name}`", error, place)
            issues[0]["message"] += f" ({place})"
        return issues

    def _decided(self, value: Any, given: Any, answer: Any) -> tuple[Any, list[Issue]]:
        """Return the value and its issues, by the table in the class docstring."""
        if answer is False:
            return value, [self._issue(REFUSED)]
        if answer is None or answer is True:
            return value, []
        if answer is given or (type(answer) is type(value) and answer == value):
            return answer, []
        if self._is_verdict(answer, value):
            if answer["ok"]:
                return answer.get("data", value), []
            errors = answer.get("errors") or [REFUSED]
            issues = self._issues(errors if is_array(errors) else [errors])
            if self._is_hopeless(answer):
                issues[0]["hopeless"] = True
            return value, issues
        if isinstance(answer, Exception):
            answer = [answer]
        if is_array(answer):
            return value, self._issues(answer)
        if isinstance(answer, str) and not isinstance(value, str):
            raise TypeError(
                f"`output` validator `{self.name}` returned {describe(answer)}, which may mean "
                f"several things: {_FORMS}"
            )
        return answer, []

    def _is_verdict(self, answer: Any, value: Any) -> TypeIs[dict[str, Any]]:
        """Tell a verdict (`{"ok": …}`) from a value that has a field named `ok`."""
        if not (is_object(answer) and "ok" in answer):
            return False
        more = [f"`{key}`" for key in answer if key not in _VERDICT]
        if not more and isinstance(answer["ok"], bool):
            return True
        if is_object(value) and "ok" in value:
            return False
        found = f"`ok` and {more[0]}" if more else f"`ok` {describe(answer['ok'])}"
        raise TypeError(
            f"`output` validator `{self.name}` returned a dict with {found}: in a verdict, `ok` is "
            "True or False, and `data` or `errors` may stand beside it; to return the dict as the "
            'value, give `{"ok": True, "data": …}`'
        )

    def _issues(self, reasons: list[Any]) -> list[Issue]:
        listed: list[Issue] = []
        for reason in reasons:
            raised = wrap_error(reason) if isinstance(reason, Exception) else []
            listed += raised or [self._issue(reason)]
        return listed

    def _issue(self, error: Any) -> Issue:
        reason = error if is_object(error) else {"message": error}
        if not isinstance(reason.get("message"), str):
            raise TypeError(
                f"`output` validator `{self.name}` listed {describe(error)} as an issue; that is a "
                "text, an exception or a dict with `message` and perhaps `path`, `code`, "
                "`expected`, `received`; to return a list as the value, return "
                '`{"ok": True, "data": […]}`'
            )
        path, code = reason.get("path") or "", reason.get("code") or "refused"
        path = f"/{path}" if isinstance(path, str) and path[:1] not in ("", "/") else path
        message = reason["message"] or REFUSED
        expected, received = reason.get("expected"), reason.get("received")
        hopeless = self._is_hopeless(reason)
        return issue(path, message, code, expected, received, hopeless=hopeless)

    def _is_hopeless(self, answer: dict[str, Any]) -> bool:
        given = answer.get("hopeless") or False
        if not isinstance(given, bool):
            raise TypeError(
                f"`output` validator `{self.name}` returned {describe(given)} as `hopeless`: give "
                "True or False"
            )
        return given
