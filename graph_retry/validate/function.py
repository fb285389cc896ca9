"""A validator made of a function somebody wrote."""

import copy
import inspect
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from graph_retry.callables import name_of
from graph_retry.records import Issue
from graph_retry.validate.caught import attempt
from graph_retry.validate.issues import REFUSED, cut, describe, issue
from graph_retry.validate.plain import NOT_JSON, TOO_DEEP, is_dict, is_list, json_problem, same
from graph_retry.validate.validator import Checked

_VERDICT_KEYS = {"ok", "success", "data", "errors", "error"}


class FunctionValidator:
    """Judge a value by what a function returns for a copy of it, or raises.

    - It raises: issues. `GraphBubbleUp` and what is not an `Exception` pass through.
    - `None` or `True`: the value is fine as it came. `False`: it is not. This holds for boolean
      values too. Otherwise, the copy itself or what equals the value is the value.
    - A dict of a boolean `ok` or `success` and nothing but `data`, `errors`, `error` beside it: a
      verdict. `data` replaces the value, errors are strings or dicts like `Issue`.
    - A list for a value that is not a list: issues, strings or dicts like `Issue`; none if empty.
    - A list for a list: issues if all of it is dicts like `Issue`, else the new value. An empty
      list or one of strings could mean either and is refused with a `TypeError`.
    - A string for a value that is not one is refused likewise.
    - Anything else replaces the value; it must be plain JSON.

    A dict is like `Issue` if it has `message` and `path` and no key that `Issue` has not.
    """

    schema: dict[str, Any] | None = None
    wants_text = False

    def __init__(self, function: Callable[[Any], Any]) -> None:
        """Refuse a function that cannot be called with one value and give its answer at once."""
        self.name = cut(name_of(function, "value"), 80)
        call = getattr(function, "__call__", None)  # noqa: B004 (an instance's own method)
        if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call):
            raise TypeError(f"`output` validator `{self.name}` is async; pass a plain function")
        try:
            with suppress(ValueError):  # Some built-ins have no signature to look at.
                inspect.signature(function).bind(None)
        except TypeError as error:
            message = f"`output` validator `{self.name}` must take one value: {error}"
            raise TypeError(message) from error
        self._function = function

    def check(self, value: Any) -> Checked:
        """Call the function and read its answer.

        Raises:
            TypeError: If the answer is unclear or not plain JSON.
        """
        problem = json_problem(value)
        copied = problem is None or problem["code"] not in (NOT_JSON, TOO_DEEP)
        given = copy.deepcopy(value) if copied else value
        answer, issues = attempt(self._function, given)
        if issues:
            return Checked.refused(issues)
        judged, issues = self._read(answer, value, given)
        problem = json_problem(judged)
        if problem and problem["code"] == NOT_JSON and not issues:
            raise TypeError(
                f"`output` validator `{self.name}` accepted {describe(judged)}, which is not plain "
                "JSON and cannot be kept in graph state; return plain data, or pass the type, "
                "`Annotated[Type, AfterValidator(function)]`, as `output`"
            )
        if problem and not issues:
            issues = [problem]
        return Checked.refused(issues) if issues else Checked(value=judged, jsonable=judged)

    def rebuild(self, jsonable: Any) -> Any:
        """Return `jsonable`: it is the value."""
        return jsonable

    def _read(self, answer: Any, value: Any, given: Any) -> tuple[Any, list[Issue]]:
        """Tell a new value from issues, by the rules above."""
        if answer is None or answer is True:
            return value, []
        if answer is False:
            return value, [issue("", REFUSED, "refused")]
        if answer is given or same(answer, value):
            return answer, []
        if _is_verdict(answer):
            if answer.get("ok", answer.get("success")):
                return answer.get("data", value), []
            errors = answer.get("errors") or answer.get("error") or REFUSED
            return value, self._issues(errors if is_list(errors) else [errors])
        unclear = isinstance(answer, str) and not isinstance(value, str)
        if is_list(answer):
            if not is_list(value) or (answer and all(map(_is_issue, answer))):
                return value, self._issues(answer)
            unclear = all(isinstance(each, str) for each in answer)
        if unclear:
            raise TypeError(
                f"`output` validator `{self.name}` returned {describe(answer)}, which could be a "
                'new value or issues; return `{"ok": True, "data": …}` for a value, '
                '`{"ok": False, "errors": […]}` for issues, or raise `ValueError`'
            )
        return answer, []

    def _issues(self, errors: list[Any]) -> list[Issue]:
        return [self._issue(error) for error in errors]

    def _issue(self, error: Any) -> Issue:
        if isinstance(error, str):
            return issue("", error, "refused")
        if not is_dict(error) or "message" not in error:
            raise TypeError(
                f"`output` validator `{self.name}` listed {describe(error)} as an issue; "
                "an issue is a string or a dict with `message` and perhaps `path`, `code`, "
                '`expected`, `received`; to return a list as the value, return `{"ok": True, '
                '"data": […]}`'
            )
        path = error.get("path") or ""
        if isinstance(path, str) and path and not path.startswith("/"):
            path = [path]
        expected, received = (_text(error.get(key)) for key in ("expected", "received"))
        code = str(error.get("code") or "refused")
        return issue(path, str(error["message"]), code, expected, received)


def _is_verdict(answer: Any) -> bool:
    if not is_dict(answer) or not answer.keys() <= _VERDICT_KEYS:
        return False
    return [type(answer[key]) for key in ("ok", "success") if key in answer] == [bool]


def _is_issue(item: Any) -> bool:
    return is_dict(item) and {"path", "message"} <= item.keys() <= Issue.__annotations__.keys()


def _text(fact: Any) -> str | None:
    return fact if fact is None or isinstance(fact, str) else describe(fact)
