"""A validator made from the function that a user passed as `output`."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from langgraph.errors import GraphBubbleUp

from graph_retry._core.ground.functions.awaiting import AsyncUnderSyncError, run_sync
from graph_retry._core.ground.functions.calling import awaited, forgotten
from graph_retry._core.ground.functions.signatures import declared_params, name_of
from graph_retry._core.ground.issues import REFUSED, cut, describe, wrap_error
from graph_retry._core.ground.json import is_array, is_object
from graph_retry._core.output.mistakes import place_of_bug, tell_bug
from graph_retry._core.output.validator import Validator
from graph_retry._core.output.verdicts import UnclearError, issues_of, verdict_of
from graph_retry.lossless._ground import error_text
from graph_retry.records import Issue

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
    | returns the dict with other items | accepted, and replaced by this dict |
    | returns a number, or a text for a text | accepted, and replaced by it |

    A verdict may also say `success` or `valid` for `ok`, and `error` or `issues` for `errors`. A
    dict that is no verdict must have all keys of the value, or one of its items unchanged. Any
    other dict raises a `TypeError`, because it may be a refusal in words that are not known here.

    Each issue in a list is a text, an exception or a dict like `Issue`. Its `path` is a JSON
    Pointer, a list of keys, or a path in dots.

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
            message = f"`output` validator `{self.name}` must take one value: {error_text(error)}"
            raise TypeError(message) from error
        declared = declared_params(function)
        if declared is not None:
            raise TypeError(
                f"`output` validator `{self.name}` takes a `{declared.__name__}`, but is given "
                f"plain JSON: give `Annotated[{declared.__name__}, AfterValidator({self.name})]`"
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
            if isinstance(answer, str) and not isinstance(value, str):
                raise UnclearError(
                    f"returned {describe(answer)}, which may mean several things: {_FORMS}"
                )
        except UnclearError as error:
            raise TypeError(f"`output` validator `{self.name}` {error}") from None
        return answer, []
