"""A validator made of a function somebody wrote."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from typing import Any, cast

from langgraph.errors import GraphBubbleUp

from graph_retry._awaiting import AsyncUnderSyncError, awaited, run_sync
from graph_retry._issues import MAX_ISSUES, REFUSED, cut, describe, issue, wrap_error
from graph_retry._json import is_array, is_object
from graph_retry._output.mistakes import place_of_bug, tell_bug
from graph_retry._output.validator import Validator
from graph_retry._params.fields import fields_of
from graph_retry._signatures import declared_params, name_of
from graph_retry.records import Issue

_VERDICTS = ("ok", "success", "valid", "is_valid")
_PROBLEMS = ("errors", "error", "issues")
_REASONS = (*_PROBLEMS, "message", "reason")
_VALUES = ("data", "value")
_MISSING: Any = object()


class FunctionValidator(Validator):
    """Judge a value by what a function returns for a copy of it; the first of these rules holds.

    The function may be async where the run is.

    | it returns | which means |
    |---|---|
    | nothing: it raises | refused, with what was raised (`GraphBubbleUp` passes through) |
    | `False` | refused |
    | `None`, `True`, the copy itself, or an equal value | accepted |
    | a dict with `ok`, `success`, `valid` or `is_valid` `False` | refused, for its `errors`, `error`, `issues`, `message` or `reason` |
    | such a dict with `True`, and nothing but `data` or `value` and reasons | accepted; its `data` or `value`, if any, is the value |
    | a model or a dataclass with such fields, a tuple `(False, reasons)` or `(True, value)` | the same |
    | a dict with nothing but `errors`, `error` or `issues`, which the value has not | its issues; accepted if they are empty |
    | a list, a set or what a generator yields | its issues, each a text, an exception or a dict like `Issue` or pydantic's; accepted if empty |
    | a text, for a value that is none, or an exception | an issue; accepted if the text is empty |
    | anything else, which must be plain JSON | accepted, with this as the value |

    To make a list or a text the value, return `{"ok": True, "data": value}`. A function whose
    parameter is annotated with `str` judges the model's text as it came, and no JSON in it.
    """  # noqa: E501 - a row of a table is one line

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.name = cut(name_of(function, "value"), 80)
        self.function = function
        try:
            with suppress(ValueError):  # Some built-ins have no signature to look at.
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
        """Return `jsonable`: the function may not accept its own result."""
        return jsonable

    def _judge(self, value: Any) -> tuple[Any, list[Issue]]:
        return run_sync(self._ajudge(value))

    async def _ajudge(self, value: Any) -> tuple[Any, list[Issue]]:
        try:
            given = copy.deepcopy(value)
            answer = _plain(await awaited(self.function(given), self.function))
        except (GraphBubbleUp, AsyncUnderSyncError):
            raise
        except Exception as error:  # noqa: BLE001 - the function is the caller's
            return value, self._raised(error)
        return self._decided(value, given, answer)

    def _raised(self, error: Exception) -> list[Issue]:
        issues = wrap_error(error)
        # A `KeyError` or `TypeError` is often how a value is refused; these never are.
        place = place_of_bug(error, self.function, (NameError, AttributeError, ImportError))
        if place is not None:
            tell_bug(f"the validator `{self.name}`", error, place)
            issues[0]["message"] += f" ({place})"
        return issues

    def _decided(self, value: Any, given: Any, answer: Any) -> tuple[Any, list[Issue]]:
        """Read what the function returned; see the table above."""
        if answer is False:
            return value, [self._issue(REFUSED)]
        if answer is None or answer is True:
            return value, []
        if answer is given or (type(answer) is type(value) and answer == value):
            return answer, []
        accepted, content = _verdict(answer, value)
        if accepted is True:
            return (value if content is _MISSING else content), []
        if accepted is False:
            return value, self._issues(_reasons(content))
        is_text = isinstance(answer, str) and not isinstance(value, str)
        if is_text or isinstance(answer, Exception):
            answer = [answer] if answer else []
        if is_array(answer):
            return value, self._issues(answer)
        return answer, []

    def _issues(self, reasons: list[Any]) -> list[Issue]:
        listed: list[Issue] = []
        for reason in reasons:
            raised = wrap_error(reason) if isinstance(reason, Exception) else []
            listed += raised or [self._issue(reason)]
        return listed

    def _issue(self, error: Any) -> Issue:
        reason = error if is_object(error) else {"message": error}
        if "msg" in reason and "message" not in reason:  # as pydantic's `errors()` has them
            reason = {
                "message": reason["msg"],
                "path": reason.get("loc"),
                "code": reason.get("type"),
            }
        if not isinstance(reason.get("message"), str):
            raise TypeError(
                f"`output` validator `{self.name}` listed {describe(error)} as an issue; that is a "
                "text or a dict with `message` and perhaps `path`, `code`, `expected`, `received`; "
                'to return a list as the value, return `{"ok": True, "data": […]}`'
            )
        path, code = reason.get("path") or "", reason.get("code") or "refused"
        path = f"/{path}" if isinstance(path, str) and path[:1] not in ("", "/") else path
        message = reason["message"] or REFUSED
        return issue(path, message, code, reason.get("expected"), reason.get("received"))


def _plain(answer: Any) -> Any:
    """Return an answer as a list where it is iterated, and NumPy's truth values as Python's."""
    if isinstance(answer, set | frozenset):
        answer = iter(sorted(cast("set[Any]", answer), key=str))  # the same in every process
    if hasattr(answer, "__next__"):  # an iterator, such as a generator
        return [*islice(answer, MAX_ISSUES)]
    is_scalar = getattr(answer, "shape", None) == () and hasattr(answer, "item")
    return answer.item() if is_scalar else answer


def _verdict(answer: Any, value: Any) -> tuple[bool | None, Any]:
    """Tell an answer that accepts or refuses, with its value or reasons; None for no verdict."""
    answer = fields_of(answer) or answer
    if isinstance(answer, tuple):
        parts: list[Any] = [*answer]
        if len(parts) == 2 and isinstance(parts[0], bool):
            return parts[0], (_MISSING if parts[1] is None else parts[1])
        return None, None
    if not is_object(answer):
        return None, None
    said = [answer[name] for name in _VERDICTS if isinstance(answer.get(name), bool)]
    if False in said:
        return False, next((answer[name] for name in _REASONS if answer.get(name)), REFUSED)
    if said and answer.keys() <= {*_VERDICTS, *_REASONS, *_VALUES}:
        return True, next((answer[name] for name in _VALUES if name in answer), _MISSING)
    is_new = not (is_object(value) and answer.keys() & value.keys())
    if answer and is_new and answer.keys() <= {*_PROBLEMS}:
        problems = next((answer[name] for name in _PROBLEMS if answer.get(name)), _MISSING)
        return problems is _MISSING, problems
    return None, None


def _reasons(content: Any) -> list[Any]:
    """List what a refusal gives as its reasons: one, several, or several by the field's name."""
    if content is _MISSING or content in ([], {}, ""):
        return [REFUSED]
    if is_object(content) and "message" not in content:
        by_field = [(key, text if is_array(text) else [text]) for key, text in content.items()]
        return [{"path": f"/{key}", "message": text} for key, texts in by_field for text in texts]
    return content if is_array(content) else [content]
