"""The function form: the same loop, called from inside a node, task, entrypoint or tool."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar, Unpack, cast, overload

from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import get_runtime

from graph_retry.callables import LLMCall, OnRetry, ParamsT, name_of
from graph_retry.engine.ending import ended_error
from graph_retry.engine.graph import build_graph
from graph_retry.engine.plan import Plan, make_plan
from graph_retry.engine.state import LOOP, fresh_loop
from graph_retry.engine.stored import restore
from graph_retry.flow import as_task
from graph_retry.ledger import CALL_TASK
from graph_retry.options import RetryOptions, settle
from graph_retry.params.codec import ParamsCodec
from graph_retry.pausing import watched_pause

T = TypeVar("T")


@overload
def retry_llm_call(
    llm_call: LLMCall[ParamsT, Any],
    params: ParamsT,
    on_retry: OnRetry[ParamsT] = None,
    *,
    output: type[T],
    **options: Unpack[RetryOptions],
) -> T: ...
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
    output: Mapping[str, Any] | Callable[[Any], Any],
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

    Inside a LangGraph node, task, entrypoint or tool a failure that automation cannot mend pauses
    the run with an interrupt, and the answer goes on from there. A finished model call never runs
    again. Outside a graph only the automatic path runs.

    Args:
        llm_call: A sync function of the params that returns text, a LangChain message, a
            `Completion` or any object, and raises on failure.
        params: Everything a person might want to change about this call: a pydantic model, a
            dataclass, a dict, a bare value, or `None` if there is nothing.
        on_retry: A hook `(error, attempt, params) -> new params | None`, or a list of them, tried
            in order.
        output: What the call must give: a type, a JSON Schema, or a validator function. With
            `None` whatever it returns and a checkpointer can save is a success.
        **options: See `RetryOptions`.

    Returns:
        The validated output, or what `llm_call` returned if `output` is `None`.

    Raises:
        CallCancelled: If a reviewer rejects the call.
        AttemptsExhausted: If `review=False` and every automatic attempt failed.
        InterventionRequired: If a person is needed and the run has no checkpointer.
        PauseSwallowed: If code of the node caught the pause of an earlier call and went on.
        TypeError: If an argument has the wrong type, or params hold something that cannot be
            saved.
        ValueError: If an option has a value that is not allowed, or params hold a secret.

    Example:
        >>> retry_llm_call(lambda prompt: '{"n": 1,}', "count", output=dict[str, int])
        {'n': 1}
    """
    call = _Call(llm_call, params, on_retry, output, options)
    with watched_pause(call.plan.settings.name):
        state = call.graph.invoke(call.inputs)
    return call.result(state)


@overload
async def aretry_llm_call(
    llm_call: LLMCall[ParamsT, Any],
    params: ParamsT,
    on_retry: OnRetry[ParamsT] = None,
    *,
    output: type[T],
    **options: Unpack[RetryOptions],
) -> T: ...
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
    output: Mapping[str, Any] | Callable[[Any], Any],
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
    """Do what `retry_llm_call` does from async code; `llm_call` and hooks may be sync or async.

    Several of them may run in `asyncio.gather`; `gather_calls` shows all their questions at once.

    Example:
        >>> import asyncio
        >>> async def model(prompt):
        ...     return '{"n": 1,}'
        >>> asyncio.run(aretry_llm_call(model, "count", output=dict[str, int]))
        {'n': 1}
    """
    call = _Call(llm_call, params, on_retry, output, options)

    async def run() -> dict[str, Any]:
        return cast("dict[str, Any]", await call.graph.ainvoke(call.inputs))

    # Under `gather` the siblings of a paused call are cancelled and run again: as a task of its
    # own a finished call keeps its result. Outside a graph there is no task to be had.
    if not _inside_graph():
        return call.result(await run())
    with watched_pause(call.plan.settings.name):
        state = await as_task(CALL_TASK)(run)()
    return call.result(state)


def _inside_graph() -> bool:
    try:
        return cast("Any", get_runtime()) is not None
    except (RuntimeError, KeyError):
        return False


class _Call:
    """One function-form call: its graph, the graph's input, and how to read the result."""

    def __init__(
        self,
        llm_call: LLMCall[Any, Any],
        params: Any,
        on_retry: OnRetry[Any],
        output: Any,
        options: RetryOptions,
    ) -> None:
        settings = settle(name_of(llm_call, "llm_call"), "function", options)
        codec = ParamsCodec[Any].for_value(params)
        self.plan: Plan[Any] = make_plan(llm_call, codec, on_retry, output, settings)
        self.graph: CompiledStateGraph[Any, Any, Any, Any] = build_graph(self.plan, None)
        encoded = codec.encode(params)
        self.inputs = {"params": encoded.view, LOOP: {**fresh_loop(), "types": encoded.types}}

    def result(self, state: dict[str, Any]) -> Any:
        if state["status"] != "succeeded":
            raise ended_error(self.plan.settings.name, state["status"], state["attempts"])
        degraded = state["attempts"][-1].get("degraded")
        validator = self.plan.relaxed if degraded else self.plan.validator
        if validator is not None:
            return validator.rebuild(state["output"])
        return restore(state.get("output"), state[LOOP]["output_types"])
