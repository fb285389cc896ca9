"""`retry_llm_call` and its async twin, for calls inside a node, task, entrypoint or tool."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Generator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import replace
from typing import Annotated, Any, Self, TypeVar, Unpack, overload

from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphInterrupt
from langgraph.types import Interrupt
from pydantic import JsonValue

from graph_retry._core.ground.functions.arguments import checked
from graph_retry._core.ground.functions.awaiting import naming_twin
from graph_retry._core.ground.functions.signatures import (
    LLMCall,
    OnRetry,
    OutputForm,
    ParamsT,
    name_of,
)
from graph_retry._core.langgraph.run_config import thread_in_logs
from graph_retry._core.loop.after_attempt import ended_error
from graph_retry._core.loop.graph import function_graph, steps_allowed
from graph_retry._core.loop.outcome import restore_value
from graph_retry._core.loop.run.plan import Plan, make_plan
from graph_retry._core.loop.run.running import CALL
from graph_retry._core.loop.run.step import check_identity
from graph_retry._core.output.validator import Validator
from graph_retry._core.params.codec import ParamsCodec
from graph_retry._core.state.identity import identity_of
from graph_retry._core.state.position import LOOP, fresh_loop, loop_of
from graph_retry._core.state.swallowed import reached_after
from graph_retry._core.state.transitions import WITH_OUTPUT
from graph_retry.errors import PauseSwallowed
from graph_retry.options import OptionsWithoutAccept, RetryOptions, settle
from graph_retry.records import Attempt

T = TypeVar("T")

_paused: ContextVar[str | None] = ContextVar("graph_retry_paused", default=None)
"""The name of the call that has paused in this node.

A context variable holds exactly one node's call, because LangGraph runs each node in its own
context.
"""

_Awaited = Annotated[Awaitable[T], "what `aretry_llm_call(…)` returns, or `*calls` of a list"]


@overload
def retry_llm_call(
    llm_call: LLMCall[ParamsT, Any],
    params: ParamsT,
    on_retry: OnRetry[ParamsT] = None,
    *,
    output: type[T],
    **options: Unpack[OptionsWithoutAccept],
) -> T: ...
@overload
def retry_llm_call(
    llm_call: LLMCall[ParamsT, Any],
    params: ParamsT,
    on_retry: OnRetry[ParamsT] = None,
    *,
    output: type[T],
    **options: Unpack[RetryOptions],
) -> T | JsonValue: ...
@overload
def retry_llm_call(
    llm_call: LLMCall[ParamsT, T],
    params: ParamsT,
    on_retry: OnRetry[ParamsT] = None,
    *,
    output: None = None,
    **options: Unpack[RetryOptions],
) -> T: ...
@overload
def retry_llm_call(
    llm_call: LLMCall[ParamsT, Any],
    params: ParamsT,
    on_retry: OnRetry[ParamsT] = None,
    *,
    output: OutputForm,
    **options: Unpack[RetryOptions],
) -> Any: ...
def retry_llm_call(
    llm_call: LLMCall[Any, Any],
    params: Any,
    on_retry: OnRetry[Any] = None,
    *,
    output: Any = None,
    **options: Unpack[RetryOptions],
) -> Any:
    """Call a model with `params`; repair and validate its output; ask a person when it fails.

    Inside a LangGraph node, task, entrypoint or tool, a failure that automation cannot repair
    pauses the run with an interrupt, and an answer continues it. A finished model call never runs
    again. Outside a graph nobody is asked, and only hooks and feedback work.

    Args:
        llm_call: A sync function of the params, or a LangChain runnable, that returns text, a
            LangChain message, a `Completion` or any object, and raises on failure.
        params: Everything that a person might want to change: a pydantic model, a dataclass, a
            dict, a single value, or `None`.
        on_retry: A hook `(error, attempt, params) -> new params | None`, or a list of them, tried
            in order.
        output: The wanted output: a type, a JSON Schema, or a validator function. With `None`,
            every result that a checkpointer can save is a success.
        **options: See `RetryOptions`.

    Returns:
        The validated output, or the result of `llm_call` if `output` is `None`. After the decision
        `accept`, which `allowed_decisions` must name, it is the JSON value as it was read.

    Raises:
        CallCancelled: If a reviewer rejects the call.
        AttemptsExhausted: If `review=False` and every automatic attempt failed.
        InterventionRequired: If a person is needed and the run has no checkpointer.
        PauseSwallowed: If the node makes this call although an earlier one paused.
        TypeError: If an argument has the wrong type, or params hold something that cannot be
            saved.
        ValueError: If an option has a value that is not allowed, or params hold a secret.

    Example:
        >>> retry_llm_call(lambda prompt: '{"n": 1,}', "count", output=dict[str, int])
        {'n': 1}
    """
    call = Call(llm_call, params, on_retry, output, options)
    # The same as `Call.invoke`, with one frame fewer in the tracebacks of `llm_call`.
    with call.watched(is_sync=True):
        state = call.graph.invoke(call.inputs, call.config)
    return call.result(state)


@overload
async def aretry_llm_call(
    llm_call: LLMCall[ParamsT, Any],
    params: ParamsT,
    on_retry: OnRetry[ParamsT] = None,
    *,
    output: type[T],
    **options: Unpack[OptionsWithoutAccept],
) -> T: ...
@overload
async def aretry_llm_call(
    llm_call: LLMCall[ParamsT, Any],
    params: ParamsT,
    on_retry: OnRetry[ParamsT] = None,
    *,
    output: type[T],
    **options: Unpack[RetryOptions],
) -> T | JsonValue: ...
@overload
async def aretry_llm_call(
    llm_call: LLMCall[ParamsT, Awaitable[T]],
    params: ParamsT,
    on_retry: OnRetry[ParamsT] = None,
    *,
    output: None = None,
    **options: Unpack[RetryOptions],
) -> T: ...
@overload
async def aretry_llm_call(
    llm_call: LLMCall[ParamsT, T],
    params: ParamsT,
    on_retry: OnRetry[ParamsT] = None,
    *,
    output: None = None,
    **options: Unpack[RetryOptions],
) -> T: ...
@overload
async def aretry_llm_call(
    llm_call: LLMCall[ParamsT, Any],
    params: ParamsT,
    on_retry: OnRetry[ParamsT] = None,
    *,
    output: OutputForm,
    **options: Unpack[RetryOptions],
) -> Any: ...
async def aretry_llm_call(
    llm_call: LLMCall[Any, Any],
    params: Any,
    on_retry: OnRetry[Any] = None,
    *,
    output: Any = None,
    **options: Unpack[RetryOptions],
) -> Any:
    """Do what `retry_llm_call` does, from async code; `llm_call` and hooks may be sync or async.

    Several calls may run in `asyncio.gather`. With `gather_calls`, all their questions are shown at
    once.

    Example:
        >>> import asyncio
        >>> async def model(prompt):
        ...     return '{"n": 1,}'
        >>> asyncio.run(aretry_llm_call(model, "count", output=dict[str, int]))
        {'n': 1}
    """
    return (await Call(llm_call, params, on_retry, output, options).ainvoke())[0]


@checked
async def gather_calls(*calls: _Awaited[T], one_at_a_time: bool = False) -> list[T]:
    """Await several `aretry_llm_call`s of one node, and pause once with all their questions.

    `asyncio.gather` would show only the first question, and the next one after its answer.

    Args:
        *calls: The calls, or agents and async `@task`s that make calls. All run at the same time.
        one_at_a_time: Show one question at a time, in the order of `calls`, because web chats and
            inboxes cannot answer several at once. Until a question is shown, it can be neither
            listed nor answered, but its time (`expires_after`) already runs.

    Returns:
        The results in the order of `calls`.

    Raises:
        Exception: If a call ended with an error: the first such error, after all calls ended.
        WrongArgumentError: If one of `calls` is a list of calls or a result, and not a call.

    Example:
        >>> from graph_retry import aretry_llm_call
        >>> async def node():
        ...     calls = (aretry_llm_call(str.upper, word) for word in ("a", "b"))
        ...     return await gather_calls(*calls)
        >>> asyncio.run(node())
        ['A', 'B']
    """
    with watched_pause("gather_calls"):
        results = await asyncio.gather(*calls, return_exceptions=True)
        questions: list[Interrupt] = []
        refused: list[PauseSwallowed] = []
        finished: list[T] = []
        for result in results:
            if isinstance(result, GraphInterrupt):
                questions.extend(result.args[0])
            elif isinstance(result, PauseSwallowed):
                refused.append(result)
            elif isinstance(result, BaseException):
                raise result
            else:
                finished.append(result)
        if questions:
            raise GraphInterrupt(tuple(questions[:1] if one_at_a_time else questions))
        # A call that began after the pause of an equal one is made when that one is answered.
        if refused:
            raise refused[0]
    return finished


@contextmanager
def watched_pause(name: str) -> Generator[None, None, None]:
    """Let the pause of a call pass; if user code runs on after it, refuse the node's next call.

    The refusal is an `Exception`. The same user code may catch it, so it is also logged. A
    `BaseException` would not be caught, but LangGraph's server never ends a run that raises one.

    Raises:
        PauseSwallowed: If an earlier call of this run of the node has paused already.
    """
    earlier = _paused.get()
    if earlier is not None:
        raise reached_after(name, earlier, thread_in_logs())
    try:
        yield
    except GraphInterrupt as pause:
        _paused.set(name)
        # If `llm_call` itself calls `interrupt`, LangGraph reports its question in the pauses of
        # two steps. Without this, clients would show it twice.
        asked = {question.id: question for question in pause.args[0]}
        passing = GraphInterrupt(tuple(asked.values()))
        # A traceback shows this, also inside the `ExceptionGroup` of a task group.
        passing.add_note(
            f"`{name}` waits for a person. This exception pauses the run, so let it pass. An "
            "`asyncio.TaskGroup` hides it from LangGraph: await calls with `gather_calls`."
        )
        raise passing from None


class Call:
    """One call of a function: its graph, the input of the graph, and the reading of its result."""

    def __init__(
        self,
        llm_call: LLMCall[Any, Any],
        params: Any,
        on_retry: OnRetry[Any],
        output: Any,
        options: RetryOptions,
        codec: ParamsCodec[Any] | None = None,
    ) -> None:
        settings = settle(name_of(llm_call, "llm_call"), "function", options)
        codec = (codec or ParamsCodec[Any].for_value(params)).for_one_run()
        self.plan: Plan[Any] = make_plan(llm_call, codec, on_retry, output, settings)
        self.graph = function_graph(settings)
        encoded = codec.encode(params)
        self._identity = identity_of(encoded, settings.key)
        self.config: RunnableConfig = {
            "configurable": {CALL: self.plan},
            "recursion_limit": steps_allowed(self.plan),
            "run_name": settings.name,
        }
        loop = {**fresh_loop(), "types": encoded.types, "identity": self._identity}
        self.inputs = {"params": encoded.view, LOOP: loop}

    def of_node(self, accepts: Validator | None) -> Self:
        """Make this the call of a whole node, and return it.

        `accepts` checks the outputs that people give.
        """
        self.plan = replace(self.plan, accepts=accepts, is_node=True)
        self.config["configurable"] = {CALL: self.plan}
        return self

    def invoke(self) -> tuple[Any, list[Attempt]]:
        """Make the call; return its output and its ledger."""
        with self.watched(is_sync=True):
            state = self.graph.invoke(self.inputs, self.config)
        return self.result(state), state["attempts"]

    async def ainvoke(self) -> tuple[Any, list[Attempt]]:
        """Do what `invoke` does, from async code."""
        with self.watched(is_sync=False):
            state = await self.graph.ainvoke(self.inputs, self.config)
        return self.result(state), state["attempts"]

    @contextmanager
    def watched(self, *, is_sync: bool) -> Generator[None, None, None]:
        """Watch the run of the graph.

        The interrupt of a call that waits passes through. If an async-only graph or saver runs in
        sync code, the error names `aretry_llm_call`.
        """
        named = naming_twin("aretry_llm_call") if is_sync else nullcontext()
        with watched_pause(self.plan.settings.name), named:
            yield

    def result(self, state: dict[str, Any]) -> Any:
        """Return the output in the graph's final state, or raise the error of the call."""
        name = self.plan.settings.name
        check_identity(name, loop_of(state)["identity"], self._identity)
        if state["status"] not in WITH_OUTPUT:
            raise ended_error(self.plan.settings, state, loop_of(state)["stopped"])
        if self.plan.validator is not None and state["status"] == "succeeded":
            return self.plan.validator.rebuild(state["output"])
        return restore_value(state.get("output"), state[LOOP]["output_types"])
