"""The forms of a call: `retry_llm_call`, its async form, and the node of a graph."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Annotated, Any, TypeVar, Unpack, cast, overload

from langgraph.errors import GraphInterrupt
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Interrupt
from pydantic import JsonValue

from graph_retry._core.ground.functions.arguments import checked
from graph_retry._core.ground.functions.signatures import (
    LLMCall,
    OnRetry,
    OutputForm,
    ParamsT,
    name_of,
)
from graph_retry._core.loop.graph import node_graph
from graph_retry._core.loop.run.plan import make_plan
from graph_retry._core.params.codec import ParamsCodec
from graph_retry._core.state.attempts import params_at, readable
from graph_retry.calls import Call, watched_pause
from graph_retry.errors import AttemptsExhausted, PauseSwallowed
from graph_retry.options import OptionsWithoutAccept, RetryOptions, settle
from graph_retry.records import Attempt

T = TypeVar("T")

_Awaited = Annotated[
    Awaitable[T], "the coroutine of `aretry_llm_call(…)`; unpack a list with `*calls`"
]


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
    """Call a model with `params`, repair and validate its output, and ask a person if that fails.

    Inside a LangGraph node, task, entrypoint or tool, a failure that automation cannot repair
    pauses the run with an interrupt. An answer continues the run. A finished model call never runs
    again. Outside a graph, hooks and feedback work, but a call that needs a person raises
    `InterventionRequired`.

    Args:
        llm_call: A sync function of the params, or a LangChain runnable, that returns text, a
            LangChain message, a `Completion` or any object, and raises on failure.
        params: Everything that a person might want to change: a pydantic model, a dataclass, a
            dict, a single value, or `None`.
        on_retry: A hook `(error, attempt, params) -> new params | None`, or a list of them, tried
            in order.
        output: The wanted output: a type, a JSON Schema, or a validator function. With `None`,
            every result that a checkpointer can save is a success. mypy accepts a `Literal` or an
            `Annotated` only through a variable, such as `Size: Any = Literal["S", "M"]`.
        **options: See `RetryOptions`.

    Returns:
        The validated output, or the result of `llm_call` if `output` is `None`. After the decision
        `accept` (off by default), the invalid output, as the JSON value that was read.

    Raises:
        CallCancelled: If a reviewer rejects the call.
        AttemptsExhausted: If `review=False` and every automatic attempt failed.
        InterventionRequired: If a person is needed and the run has no checkpointer.
        PauseSwallowed: If an earlier call of this node has paused, and user code caught its
            interrupt.
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
    """Do the same as `retry_llm_call`, in async code. `llm_call` and hooks may be sync or async.

    To run several calls at the same time, use `gather_calls`. If several calls need a person, it
    shows all their questions at once. `asyncio.gather` would show one question after the other. A
    worker thread reads answers of more than 4,000 characters.

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

    `asyncio.gather` would show one question after the other.

    Args:
        *calls: Awaitables: calls, agents, or async `@task`s that make calls. All run at the same
            time.
        one_at_a_time: Show one question at a time, in the order of `calls` (default False). Set
            this for web chats and inboxes, which cannot answer several questions at once. Until a
            question is shown, nobody can list or answer it. The time of `expires_after` already
            counts.

    Returns:
        The results in the order of `calls`.

    Raises:
        Exception: The first error of a call, raised after all calls have ended.
        WrongArgumentError: If one of `calls` is a list or a result instead of an awaitable.

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
        # If a call began while an equal call was paused, it is made when that call is answered.
        if refused:
            raise refused[0]
    return finished


def create_retry_node(
    llm_call: LLMCall[Any, Any],
    params_type: Any,
    on_retry: OnRetry[Any] = None,
    *,
    output: Any = None,
    **options: Unpack[RetryOptions],
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Make a graph node that calls a model, checks its output and asks a person when it fails.

    The node reads the state key `params` (a `params_type`, or its JSON) and writes `output` (plain
    JSON), `status` (`succeeded`, `cancelled` or `exhausted`) and `attempts` (the ledger). If a call
    ends without an output, the node sets `output` to None, so that the output of an earlier call
    does not stay in the state. If the state of your graph declares no key that the node writes, the
    node is refused before its first model call. If only `output` is missing, a WARNING says so.

    If the input has the `attempts` of a call that has not ended, the node continues this call.
    After an `exhausted` call, the node starts a new call. Studio and `get_graph(xray=1)` show the
    steps `call`, `repair`, `validate`, `revise` and `review`.

    Args:
        llm_call: A function of the params, sync or async, that returns text, a LangChain message,
            a `Completion` or any object, and raises on failure.
        params_type: The type of the params, which people can inspect and edit: a pydantic model,
            dataclass, TypedDict, `dict`, another type for a single value, or `None` for no params.
        on_retry: A hook `(error, attempt, params) -> new params | None`, or a list of them, tried
            in order; sync or async.
        output: The wanted output: a type, a JSON Schema, or a validator function. With `None`,
            every result that a checkpointer can save is a success.
        **options: See `RetryOptions`.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If an option has a value that is not allowed.

    Example:
        >>> from langgraph.graph import StateGraph
        >>> node = create_retry_node(lambda params: '{"n": 1}', dict, output=dict[str, int])
        >>> node.invoke({"params": {"prompt": "count"}})["output"]
        {'n': 1}
    """
    settings = settle(name_of(llm_call, "llm_call"), "node", options, output)
    codec: ParamsCodec[Any] = ParamsCodec(params_type)
    return node_graph(make_plan(llm_call, codec, on_retry, output, settings), params_type)


@checked
def review_later(ended: AttemptsExhausted | Sequence[Attempt]) -> dict[str, Any]:
    """Return the input for a retry node that asks a person about an exhausted call.

    For example, a job with `review=False` cannot ask anybody, and collects its failed calls. Later,
    run a retry node for each failed call, in a new thread, with the result of this function as
    input. The node must have the same type of params as the call. The node opens a review of the
    call's last attempt, without calling the model. If the call has used all its attempts, give the
    node a higher `max_attempts`, or the review offers no decision that calls the model.

    Args:
        ended: The error `AttemptsExhausted`, or the `attempts` of a node that ended as `exhausted`.
            The `attempts` may have been saved as JSON and loaded again.

    Raises:
        ValueError: If the last attempt did not fail, or if its params are missing from the ledger.

    Example:
        >>> from graph_retry import AttemptsExhausted, retry_llm_call
        >>> try:
        ...     retry_llm_call(lambda prompt: "many", "How many?", output=int, review=False)
        ... except AttemptsExhausted as error:
        ...     given = review_later(error)
        >>> given["params"], given["attempts"][-1]["to_review"]
        ({'value': 'How many?'}, True)
    """
    attempts = readable(ended.attempts if isinstance(ended, AttemptsExhausted) else ended)
    params = params_at(attempts)
    if not attempts or attempts[-1]["failure"] is None or params is None:
        raise ValueError(
            "`ended` has nothing to review: its last attempt must have failed, and must "
            "hold its params. Give the `AttemptsExhausted` error or the whole `attempts`."
        )
    last = cast("Attempt", {**attempts[-1], "to_review": True})
    return {"params": params.view, "attempts": [*attempts[:-1], last]}
