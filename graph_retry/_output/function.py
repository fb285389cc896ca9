"""A validator made of a function somebody wrote."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from graph_retry._issues import REFUSED, attempt, cut, describe, issue
from graph_retry._json import is_array, is_object
from graph_retry._output.validator import Validator
from graph_retry._signatures import name_of
from graph_retry.records import Issue

_VERDICT_KEYS = {"ok", "success", "data", "errors", "error"}


class FunctionValidator(Validator):
    """Judge a value by what a function returns for a copy of it; the first of these rules holds.

    - It raises, or returns `False`: refused. `GraphBubbleUp` passes through.
    - `None`, `True`, the copy itself, or what equals the value: accepted.
    - A dict of a boolean `ok` (or `success`) and at most `data` and `errors`: a verdict.
    - A list: issues, each a text or a dict like `Issue`; none if empty. A text for a value that is
      not one: an issue. To make such an answer the value, return `{"ok": True, "data": answer}`.
    - Anything else replaces the value; it must be plain JSON.
    """

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.name = cut(name_of(function, "value"), 80)
        self._function = function
        call = getattr(function, "__call__", None)  # noqa: B004 (an instance's own method)
        if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call):
            raise TypeError(f"`output` validator `{self.name}` is async; pass a plain function")
        try:
            with suppress(ValueError):  # Some built-ins have no signature to look at.
                inspect.signature(function).bind(None)
        except TypeError as error:
            message = f"`output` validator `{self.name}` must take one value: {error}"
            raise TypeError(message) from error

    def rebuild(self, jsonable: Any) -> Any:
        """Return `jsonable`: the function may not accept its own result."""
        return jsonable

    def _judge(self, value: Any) -> tuple[Any, list[Issue]]:
        both, issues = attempt(lambda: (given := copy.deepcopy(value), self._function(given)))
        if issues:
            return value, issues
        given, answer = both
        if answer is False:
            return value, [self._issue(REFUSED)]
        if answer is None or answer is True:
            return value, []
        if answer is given or (type(answer) is type(value) and answer == value):
            return answer, []
        if is_object(answer) and answer.keys() <= _VERDICT_KEYS:
            accepted = answer.get("ok", answer.get("success"))
            if accepted is True:
                return answer.get("data", value), []
            if accepted is False:
                errors = answer.get("errors") or answer.get("error") or REFUSED
                answer = errors if is_array(errors) else [errors]
        elif isinstance(answer, str) and not isinstance(value, str):
            answer = [answer]
        if is_array(answer):
            return value, [self._issue(each) for each in answer]
        return answer, []

    def _issue(self, error: Any) -> Issue:
        each = error if is_object(error) else {"message": error}
        if not isinstance(each.get("message"), str):
            raise TypeError(
                f"`output` validator `{self.name}` listed {describe(error)} as an issue; that is a "
                "text or a dict with `message` and perhaps `path`, `code`, `expected`, `received`; "
                'to return a list as the value, return `{"ok": True, "data": […]}`'
            )
        path, code = each.get("path") or "", each.get("code") or "refused"
        path = f"/{path}" if isinstance(path, str) and path[:1] not in ("", "/") else path
        return issue(path, each["message"], code, each.get("expected"), each.get("received"))
