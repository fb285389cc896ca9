"""Models that answer by a script, or as a ledger tells they once did."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, cast

from langchain_core.exceptions import OutputParserException
from langchain_core.messages import AIMessage

from graph_retry.outcome import Completion
from graph_retry.records import Attempt, Failure

_STATUS = {"transient": 503, "permanent": 401, "rejected_input": 400}


class ScriptedLLM:
    """A model that answers by a script: it returns each step, or raises it if it is an exception.

    `calls` are the params it was called with. A script that ran out, or was not used up, fails the
    test at the end of the `with` block or in `assert_finished`.

    Example:
        >>> from graph_retry import retry_llm_call
        >>> with ScriptedLLM(TimeoutError("30 s"), "[1]") as llm:
        ...     hook = lambda error, attempt, params: {"model": "large"}
        ...     retry_llm_call(llm, {"model": "small"}, hook, output=list[int], auto_retries=1)
        [1]
        >>> llm.calls
        [{'model': 'small'}, {'model': 'large'}]
    """

    def __init__(self, *steps: Any) -> None:
        self.steps = steps
        self.calls: list[Any] = []

    def __call__(self, params: Any) -> Any:
        """Return or raise the next step."""
        self.calls.append(params)
        if len(self.calls) > len(self.steps):
            raise AssertionError(self._told())
        step = self.steps[len(self.calls) - 1]
        if isinstance(step, Exception):
            raise step
        return step

    def assert_finished(self) -> None:
        """Fail, with an AssertionError, unless the model was called once for each step."""
        if len(self.calls) != len(self.steps):
            raise AssertionError(self._told())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.assert_finished()

    def _told(self) -> str:
        return f"the model was called {len(self.calls)} times and its script has {len(self.steps)}"


def from_ledger(attempts: Sequence[Attempt]) -> ScriptedLLM:
    """Make a model that returns, or raises, what the recorded one did.

    An exception has its recorded class name and message, and its kind, but for three that only a
    `classify` function gives to exceptions: `invalid_schema`, `truncated` and `refusal`.

    Example:
        >>> from graph_retry import InterventionRequired, retry_llm_call
        >>> try:
        ...     retry_llm_call(lambda params: "[1, 2", {}, output=list[int])
        ... except InterventionRequired as error:
        ...     llm = from_ledger(error.attempts)
        >>> llm({}).text
        '[1, 2'
    """
    return ScriptedLLM(*(_step(each) for each in attempts if each["status"] != "running"))


def _step(attempt: Attempt) -> Any:
    raw, failure, reason = attempt["raw"], attempt["failure"], attempt["finish_reason"]
    if raw is None:
        return _raised(cast("Failure", failure))
    if "type" in raw:
        return type(raw["type"], (), {})()
    if failure is not None and failure["type"] == "Refusal":
        told = {"refusal": failure["message"]} | {"parsed": raw.get("value")}
        said = {"finish_reason": reason} if reason else {}
        text = raw.get("text", "")
        return AIMessage(text, additional_kwargs=told, response_metadata=said)
    return Completion(raw["text"], attempt["usage"], reason) if "text" in raw else raw["value"]


def _raised(failure: Failure) -> Exception:
    base = OutputParserException if failure["kind"] == "invalid_syntax" else Exception
    error = type(failure["type"], (base,), {})(failure["message"])
    error.status_code = _STATUS.get(failure["kind"])
    return cast("Exception", error)
