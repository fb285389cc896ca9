"""Write logic once as a coroutine, and run it both in sync and in async code.

The coroutine waits only by the functions of this module. Under `run_sync` these functions block.
The coroutine then never suspends, and needs no event loop. Under `run_async` they await.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
import time
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
)
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, Generic, ParamSpec, Self, TypeVar, cast

from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config

from graph_retry._functions.streams import Receiver, adrain, drain

T = TypeVar("T")
P = ParamSpec("P")

_sync: contextvars.ContextVar[bool] = contextvars.ContextVar("graph_retry_sync", default=False)


class AsyncUnderSyncError(TypeError):
    """A sync run would have to call an async function, graph or checkpointer."""


def run_sync(steps: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in the calling thread.

    Raises:
        AsyncUnderSyncError: If a user's function turns out to be async.
        RuntimeError: If the coroutine awaits something that needs an event loop.
    """
    with SyncRun(steps) as run:
        steps.send(None)
    return run.result


class SyncRun(Generic[T]):
    """A sync run of a coroutine, which the caller starts with `steps.send(None)` in the block.

    `run_sync` is not used there, because it would add a frame to the tracebacks that a user sees.
    """

    result: T

    def __init__(self, steps: Coroutine[Any, Any, T]) -> None:
        self._steps = steps

    def __enter__(self) -> Self:
        self._token = _sync.set(True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> bool:
        if kind is None:
            self._steps.close()  # Closing runs `finally` blocks, which release the thread's lock.
        _sync.reset(self._token)
        # A coroutine that has reached its end raises `StopIteration` with its result.
        if kind is StopIteration:
            self.result = cast("StopIteration", error).value
            return True
        if kind is None:
            raise RuntimeError(
                f"{self._steps!r} awaits an event loop in a sync run: this is a bug in "
                "graph-retry; use the async twin of the function you called until it is mended."
            )
        return False


_ASYNC_ONLY = ("Synchronous calls to Async", "No synchronous function provided")
"""The first words of errors by which async savers and async nodes refuse a sync call."""


def is_async_only(error: Exception) -> bool:
    """Return whether an error says that a graph or its saver is async only."""
    return str(error).startswith(_ASYNC_ONLY)


@contextmanager
def naming_twin(twin: str) -> Generator[None, None, None]:
    """Turn the error of an async-only graph or saver into one that names the async twin.

    Raises:
        AsyncUnderSyncError: If the graph or its saver is async only.
    """
    try:
        yield
    except (TypeError, asyncio.InvalidStateError) as error:
        if not is_async_only(error):
            raise
        why = str(error).partition("\n")[0].partition(". ")[0].rstrip(".")
        raise AsyncUnderSyncError(
            f"`{twin.removeprefix('a')}` is sync, but this graph or its checkpointer is async only "
            f"({why}): use `await {twin}(…)`."
        ) from error


async def run_async(steps: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end on the event loop; sync functions run in a worker thread."""
    _sync.set(False)  # Code under `run_sync` may have started this asyncio task.
    return await steps


def is_sync() -> bool:
    """Return whether the running coroutine is driven by `run_sync`."""
    return _sync.get()


async def sync_or_async(
    function: Callable[P, T], twin: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Call a function in a sync run, or await its async twin in an async run."""
    return function(*args, **kwargs) if is_sync() else await twin(*args, **kwargs)


async def collect(
    function: Callable[P, Iterable[T]],
    twin: Callable[P, AsyncIterable[T]],
    *args: P.args,
    **kwargs: P.kwargs,
) -> list[T]:
    """List the items that a function yields, or its async twin if the run is async."""
    if is_sync():
        return list(function(*args, **kwargs))
    return [item async for item in twin(*args, **kwargs)]


async def sleep(seconds: float) -> None:
    """Wait for some seconds, by blocking in a sync run."""
    if is_sync():
        time.sleep(seconds)  # noqa: ASYNC251 - no event loop waits for it
    else:
        await asyncio.sleep(seconds)


def is_async(function: Callable[..., Any]) -> bool:
    """Return whether a function, or the `__call__` of an object, is declared with `async def`."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004
    )


async def call(
    function: Callable[..., Any] | Runnable[Any, Any],
    *args: Any,
    timeout: float | None = None,  # noqa: ASYNC109 - of a sync function's thread, too
    config: RunnableConfig | None = None,
    receiver: Receiver | None = None,
) -> Any:
    """Call a user's function, sync or async, or a runnable, and return its result.

    Args:
        function: The function or runnable.
        *args: Its arguments.
        timeout: Maximum seconds. With a timeout, a sync function runs in a separate thread. A late
            function continues there, because a thread cannot be stopped. Its result is dropped.
        config: The config that LangChain and LangGraph see while the function runs.
        receiver: Takes the pieces of a returned stream, in the function's thread and context.
    """
    target, context = _target(function), _context_with(config)

    def work() -> Any:
        try:
            result = context.run(target, *args)
        except StopIteration as error:  # A future cannot hold a `StopIteration`.
            raise _stopped(target) from error
        return context.run(_taken, receiver, result)

    if is_sync():
        if timeout is None or is_async(target):
            try:  # As in `work`, but with one frame fewer in the tracebacks of the function.
                result = context.run(target, *args)
            except StopIteration as error:
                raise _stopped(target) from error
            result = context.run(_taken, receiver, result)
        else:
            result = _in_thread(work).result(timeout)
        return _not_awaitable(result, target, receiver)
    async with asyncio.timeout(timeout):
        if is_async(target):
            result = work()
        elif timeout is None:
            result = await asyncio.to_thread(work)
        else:
            result = await asyncio.wrap_future(_in_thread(work))
        token = None if config is None else var_child_runnable_config.set(config)
        try:
            # A coroutine function may return a coroutine, if it forgets an `await`.
            while inspect.isawaitable(result):
                result = await result
            if receiver is not None and isinstance(result, AsyncIterator):
                return await adrain(cast("Any", result), receiver)
        finally:
            if token is not None:
                var_child_runnable_config.reset(token)
        # An async function may return a sync stream, which must not block the event loop.
        if receiver is not None and isinstance(result, Iterator):
            return await asyncio.to_thread(context.run, _taken, receiver, result)
        return result


def _stopped(target: Any) -> RuntimeError:
    return RuntimeError(f"`{_name(target)}` raised StopIteration")


def _target(function: Callable[..., Any] | Runnable[Any, Any]) -> Any:
    """Return the function to call; for a runnable, its sync or async method."""
    runnable = cast("Any", function)
    if not isinstance(function, Runnable):
        return function
    return runnable.invoke if is_sync() else runnable.ainvoke


def _context_with(config: RunnableConfig | None) -> contextvars.Context:
    """Copy the current context, and set the config that LangChain will see in the copy."""
    context = contextvars.copy_context()
    if config is not None:
        context.run(var_child_runnable_config.set, config)
    return context


def _taken(receiver: Receiver | None, result: Any) -> Any:
    """Return a function's result. If the result is a sync stream, `receiver` first joins it."""
    if receiver is None or not isinstance(result, Iterator):
        return result  # pyright: ignore[reportUnknownVariableType]
    return drain(result, receiver)  # pyright: ignore[reportUnknownArgumentType]


async def awaited(result: Any, function: Callable[..., Any]) -> Any:
    """Return the result of a user's function. If the result is a coroutine, await it.

    Raises:
        AsyncUnderSyncError: If the result is a coroutine, and the run is sync.
    """
    while inspect.isawaitable(result) and not is_sync():
        result = await result
    return _not_awaitable(result, function)


def _not_awaitable(
    result: Any, function: Callable[..., Any], receiver: Receiver | None = None
) -> Any:
    """Return a function's result, or raise if it is an awaitable or a received async stream."""
    is_stream = receiver is not None and isinstance(cast("object", result), AsyncIterator)
    if not is_stream and not inspect.isawaitable(result):
        return result
    if inspect.iscoroutine(result):
        result.close()  # Python warns of a coroutine that was neither awaited nor closed.
    raise _async_under_sync(function)


def _async_under_sync(function: Callable[..., Any]) -> AsyncUnderSyncError:
    return AsyncUnderSyncError(
        f"`{_name(function)}` is async but the graph runs synchronously: run it with `ainvoke`, "
        "and write `await aretry_llm_call(…)` in an async node; or pass a sync function."
    )


def refuse_async(function: Callable[..., Any]) -> None:
    """Raise an error about an async function in a sync run, before the first model call.

    Raises:
        AsyncUnderSyncError: If the function is async and the run is sync.
    """
    if is_sync() and is_async(unwrapped(function)):
        raise _async_under_sync(function)


def _name(function: Callable[..., Any]) -> str:
    target = unwrapped(function)
    return getattr(target, "__qualname__", type(target).__qualname__)


def unwrapped(function: Any) -> Any:
    """Return the function inside a `functools.partial`; any other function unchanged."""
    while isinstance(function, partial):
        function = function.func
    return function


def _in_thread(work: Callable[[], Any]) -> Future[Any]:
    """Run a function in a daemon thread, because a pool's thread would keep the process alive."""
    future: Future[Any] = Future()

    def forward(_kind: object, error: BaseException | None, _trace: object) -> bool:
        if error is not None:  # The caller gets `SystemExit` and `KeyboardInterrupt` as well.
            future.set_exception(error)
        return True

    def run() -> None:
        future.set_running_or_notify_cancel()
        with ExitStack() as forwarding:
            forwarding.push(forward)
            future.set_result(work())

    threading.Thread(target=run, daemon=True).start()
    return future
