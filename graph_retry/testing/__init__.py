"""Tools for tests: scripted models, recorded ledgers, simulated crashes, and checks of plug-ins."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any, Self, cast

from langchain_core.exceptions import OutputParserException
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import PrivateAttr

from graph_retry import Completion, pending_reviews, resume
from graph_retry._core.langgraph.storage.conformance import acheck_store, check_store
from graph_retry.ledger import OneCall, attempts_in
from graph_retry.plugins import checked, counted, is_array, is_object
from graph_retry.records import FAILURE_KINDS, Attempt, Failure
from graph_retry.testing._doors import (
    check_budget,
    check_format,
    check_hook,
    check_inbox,
    check_observer,
    check_page,
    waiting_thread,
)
from graph_retry.threads import attempts_of

__all__ = [
    "ScriptedChatModel",
    "ScriptedLLM",
    "acheck_store",
    "assert_replayable",
    "check_budget",
    "check_format",
    "check_hook",
    "check_inbox",
    "check_observer",
    "check_page",
    "check_store",
    "from_ledger",
    "waiting_thread",
]

_LOG = logging.getLogger("graph_retry")
_VOLATILE = (
    "started_at",
    "duration_s",
    "idempotency_key",
    "origin",
    "review_id",
    "at",
    "traceparent",
)


class ScriptedLLM:
    """A fake model with a script of steps. Each call returns the next step, or raises an exception.

    `calls` holds the params of the calls. The end of a `with` block fails the test if the number of
    calls differs from the number of steps. `assert_finished` makes the same check.

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
        if len(steps) == 1 and is_array(steps[0]) and len(steps[0]) > 1:
            _LOG.warning(
                "`ScriptedLLM` got one step, which is a list of %s items, and answers one call "
                "with it. For a step of each item, write `ScriptedLLM(*steps)`",
                len(steps[0]),
            )
        self.steps = steps
        self.calls: list[Any] = []

    def __call__(self, params: Any) -> Any:
        """Return the next step. If the step is an exception, raise it."""
        self.calls.append(params)
        if len(self.calls) > len(self.steps):
            raise AssertionError(self._mismatch())
        step = self.steps[len(self.calls) - 1]
        if isinstance(step, Exception):
            raise step
        return step

    def assert_finished(self) -> None:
        """Raise an AssertionError unless the model was called once for each step."""
        if len(self.calls) != len(self.steps):
            raise AssertionError(self._mismatch())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.assert_finished()

    def _mismatch(self) -> str:
        times = counted(len(self.calls), "time")
        return f"the model was called {times} and its script has {len(self.steps)}"


class ScriptedChatModel(BaseChatModel):
    """A fake chat model with a script, for `with_structured_output`, agents and chains.

    Each step answers one call. A step is a text, a message, an exception to raise, or a dict of
    arguments with which the model calls the first bound tool. `script` is a `ScriptedLLM`, with its
    `calls` and `assert_finished`.

    Example:
        >>> from pydantic import BaseModel
        >>> class Person(BaseModel):
        ...     name: str
        >>> model = ScriptedChatModel({"name": "Ada"}, "Hello!")
        >>> model.with_structured_output(Person).invoke("Who is it?")
        Person(name='Ada')
        >>> model.invoke("Hi.").text
        'Hello!'
    """

    _script: ScriptedLLM = PrivateAttr()

    def __init__(self, *steps: str | BaseMessage | dict[str, Any] | Exception) -> None:
        super().__init__()
        self._script = ScriptedLLM(*steps)

    @property
    def script(self) -> ScriptedLLM:
        """The `ScriptedLLM` of this model. Its `calls` hold the messages of each call."""
        return self._script

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: str | None = None, **kwargs: Any
    ) -> Runnable[Any, AIMessage]:
        """Bind tools. A step that is a dict then calls the first of these tools."""
        del tool_choice
        return self.bind(tools=[convert_to_openai_tool(each) for each in tools], **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: Any = None,
        **kwargs: Any,
    ) -> ChatResult:
        del stop, run_manager
        step = self._script(messages)
        if isinstance(step, dict):
            name = kwargs["tools"][0]["function"]["name"]
            step = AIMessage("", tool_calls=[{"name": name, "args": step, "id": "call_1"}])
        message = AIMessage(step) if isinstance(step, str) else step
        return ChatResult(generations=[ChatGeneration(message=message)])


@checked
def from_ledger(attempts: OneCall) -> ScriptedLLM:
    """Create a fake model that returns or raises the recorded results of a ledger.

    A raised exception has the recorded class name, message and failure kind. But the kinds
    `invalid_schema`, `truncated` and `refusal` are lost, because only a `classify` function can
    give them to an exception.

    Raises:
        ValueError: If the record of an attempt was deleted.

    Example:
        >>> from graph_retry import InterventionRequired, retry_llm_call
        >>> try:
        ...     retry_llm_call(lambda params: "[1, 2", {}, output=list[int])
        ... except InterventionRequired as error:
        ...     llm = from_ledger(error.attempts)
        >>> llm({}).text
        '[1, 2'
    """
    ended = [each for each in attempts_in(attempts) if each["status"] != "running"]
    return ScriptedLLM(*map(_step, ended))


def _step(attempt: Attempt) -> Any:
    if attempt.get("kept_in"):
        raise ValueError(
            f"`attempts` lacks the result of attempt {attempt['number']}: its checkpoint was "
            "deleted, or the server does not show it. Give a whole ledger."
        )
    raw, failure, reason = attempt["raw"], attempt["failure"], attempt["finish_reason"]
    if raw is None or "received" in raw:  # The call raised, perhaps in its stream.
        return _raised(cast("Failure", failure))
    if "type" in raw:
        return type(raw["type"], (), {})()
    if failure is not None and failure["type"] == "Refusal":
        extra = {"refusal": failure["message"], "parsed": raw.get("value")}
        said = {"finish_reason": reason} if reason else {}
        text = raw.get("text", "")
        return AIMessage(text, additional_kwargs=extra, response_metadata=said)
    return Completion(raw["text"], attempt["usage"], reason) if "text" in raw else raw["value"]


def _raised(failure: Failure) -> Exception:
    base = OutputParserException if failure["kind"] == "invalid_syntax" else Exception
    error = type(failure["type"], (base,), {})(failure["message"])
    error.status_code = FAILURE_KINDS[failure["kind"]].status
    return cast("Exception", error)


@checked
def assert_replayable(
    make_graph: Callable[[ScriptedLLM, InMemorySaver], Any],
    given: Any,
    answers: Sequence[Mapping[str, Any]] = (),
    *,
    steps: Sequence[Any],
) -> int:
    """Simulate a crash after each checkpoint, resume in a new graph, and compare the results.

    Args:
        make_graph: A function `(model, checkpointer) -> compiled graph`.
        given: The input of the graph.
        answers: The decisions, in the order of the reviews.
        steps: The script of the model. Each step must be used exactly once.

    Returns:
        The number of checkpoints after which a crash was simulated.

    Raises:
        AssertionError: If a call was repeated or left out, or if the state or the ledger differs.

    Example:
        >>> from graph_retry import create_retry_node, edit
        >>> def make_graph(llm, saver):
        ...     return create_retry_node(llm, dict, output=int).copy({"checkpointer": saver})
        >>> answers = [edit(prompt="a number")]
        >>> assert_replayable(make_graph, {"params": {}}, answers, steps=["one", "1"]) > 5
        True
    """
    _, *whole = _run(make_graph, given, answers, steps, None)
    stop = 0
    while True:
        stopped, *cut = _run(make_graph, given, answers, steps, stop)
        if not stopped:
            return stop
        if cut != whole:
            raise AssertionError(
                f"a run that crashed after checkpoint {stop} ends with {cut} instead of {whole}"
            )
        stop += 1


class _StoppedError(Exception):
    pass


class _StoppingSaver(InMemorySaver):
    """A checkpointer that simulates a crash: it raises after a number of checkpoints."""

    def __init__(self, stop: int | None) -> None:
        super().__init__()
        self._stop = stop
        # Under strict msgpack, LangGraph copies the saver. The copies share this counter.
        self._saved = count()

    def put(self, *args: Any, **kwargs: Any) -> RunnableConfig:
        saved = super().put(*args, **kwargs)
        if next(self._saved) == self._stop:
            raise _StoppedError
        return saved


def _run(
    make: Any, given: Any, answers: Any, steps: Any, stop: int | None
) -> tuple[bool, Any, Any]:
    saver, config = _StoppingSaver(stop), RunnableConfig(configurable={"thread_id": "replay"})
    llm, left, chosen = ScriptedLLM(*steps), list(answers), dict[str, Any]()
    graph, stopped = make(llm, saver), False
    ready: dict[str, Any] | None = None
    while True:
        try:
            if ready is None:
                graph.invoke(given, config, durability="sync")
            else:
                resume(graph, config, answers=ready, durability="sync")
        except _StoppedError:
            graph, stopped = make(llm, saver), True
            graph.invoke(None, config, durability="sync")
        reviews = pending_reviews(graph, config)
        for review in reviews:
            if review.review_id not in chosen and left:
                chosen[review.review_id] = left.pop(0)
        ready = {r.review_id: chosen[r.review_id] for r in reviews if r.review_id in chosen}
        if not ready:
            break
    llm.assert_finished()
    ledgers = [ledger.attempts for ledger in attempts_of(graph, config)]
    return stopped, _stable(graph.get_state(config).values), _stable(ledgers)


def _stable(value: Any) -> Any:
    """Return a value without the keys that differ between any two runs, such as times."""
    if is_object(value):
        return {key: _stable(item) for key, item in value.items() if key not in _VOLATILE}
    return [_stable(item) for item in value] if is_array(value) else value
