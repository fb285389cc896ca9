"""Write a step once, drive it sync or async.

A flow is a generator that yields effects and is sent their results, in the manner of httpx's auth
flows: the rules stay in one place and only these two drivers know about `await`.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
import time
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.config import get_config
from langgraph.types import RetryPolicy
from typing_extensions import TypeIs

T = TypeVar("T")


@dataclass(eq=False)
class Run:
    """Call a function of the user's, sync or async, and send back what it returns.

    With a `timeout` (seconds) a sync function runs in a thread of its own. One that overruns is
    left behind there: it cannot be stopped, and what it returns later is dropped. With a `config`
    LangChain and LangGraph see the function run under that one.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...] = ()
    timeout: float | None = None
    config: RunnableConfig | None = None

    def context(self) -> contextvars.Context:
        """Return the context the function is to run in."""
        context = contextvars.copy_context()
        if self.config is not None:
            context.run(var_child_runnable_config.set, self.config)
        return context


@dataclass(eq=False)
class Durable:
    """Run a sub-flow as a LangGraph task, so that a finished one never runs again on resume.

    Where nothing is saved nothing is resumed either, and it runs in place.
    """

    name: str
    flow: Callable[[], Flow[Any]]
    retry_policy: RetryPolicy | None = None


@dataclass(eq=False)
class Ask:
    """Call a graph's method: `name` from sync code, its async twin `a` + name from async code."""

    graph: Any
    name: str
    args: tuple[Any, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(eq=False)
class Pause:
    """Wait a moment, in seconds."""

    seconds: float


@dataclass(eq=False)
class Wait:
    """Wait until a future is done, whatever its result."""

    future: Future[None]


Effect = Run | Durable | Ask | Pause | Wait
Flow = Generator[Effect, Any, T]


class AsyncUnderSyncError(TypeError):
    """An async function was reached from a sync run."""


def drive(flow: Flow[T]) -> T:
    """Run a flow to its end in the calling thread.

    Raises:
        AsyncUnderSyncError: If a function of the user's turns out to be async.
    """
    send: Callable[[Any], Effect] = flow.send
    value: Any = None
    try:
        while True:
            effect = send(value)
            try:
                send, value = flow.send, _perform(effect)
            except Exception as error:  # noqa: BLE001 - the flow raises what it does not know
                send, value = flow.throw, error
    except StopIteration as stop:
        return cast("T", stop.value)
    finally:
        flow.close()  # also after Ctrl-C or a cancellation, so that the flow can let go of a lock


async def adrive(flow: Flow[T]) -> T:
    """Run a flow to its end on the event loop; sync functions run in a worker thread."""
    send: Callable[[Any], Effect] = flow.send
    value: Any = None
    try:
        while True:
            effect = send(value)
            try:
                send, value = flow.send, await _aperform(effect)
            except Exception as error:  # noqa: BLE001 - the flow raises what it does not know
                send, value = flow.throw, error
    except StopIteration as stop:
        return cast("T", stop.value)
    finally:
        flow.close()


def saver_in(configurable: Mapping[str, Any]) -> BaseCheckpointSaver[Any] | None:
    """Return the checkpointer of a run, found by what it is, if the run is saved."""
    return next(filter(_is_saver, configurable.values()), None)


def _is_saver(value: object) -> TypeIs[BaseCheckpointSaver[Any]]:
    return isinstance(value, BaseCheckpointSaver)


def is_saved() -> bool:
    """Tell whether the run of the step that is running is saved anywhere."""
    return saver_in(get_config().get("configurable", {})) is not None


def plain(flow: Flow[T]) -> Flow[T]:
    """Return a flow that runs its tasks in place, for where no graph keeps their results."""
    value: Any = None
    try:
        while True:
            effect = flow.send(value)
            if isinstance(effect, Durable):
                value = yield from plain(effect.flow())
            else:
                value = yield effect
    except StopIteration as stop:
        return cast("T", stop.value)


def is_async(function: Callable[..., Any]) -> bool:
    """Tell whether calling `function` gives a coroutine, as far as can be known before."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004
    )


class Step(Runnable[Any, Any]):
    """A graph node made of one flow, usable under `invoke` and `ainvoke`."""

    def __init__(self, flow: Callable[[Any], Flow[Any]]) -> None:
        self._flow = flow

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: ARG002
        """Run the step on a state."""
        return drive(self._flow(input))

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: ARG002
        """Run the step on a state, on the event loop."""
        return await adrive(self._flow(input))


def as_task(name: str, retry_policy: RetryPolicy | None = None) -> Any:
    """Return LangGraph's decorator that makes a function a task."""
    from langgraph.func import task  # noqa: PLC0415 - a noticeable part of the import time

    return task(name=name, retry_policy=retry_policy)


def _perform(effect: Effect) -> Any:
    if isinstance(effect, Durable):
        if effect.retry_policy is None and not is_saved():
            return drive(effect.flow())

        def body() -> Any:
            return drive(effect.flow())

        return as_task(effect.name, effect.retry_policy)(body)().result()
    if isinstance(effect, Ask):
        return getattr(effect.graph, effect.name)(*effect.args, **effect.options)
    if isinstance(effect, Pause):
        time.sleep(effect.seconds)
        return None
    if isinstance(effect, Wait):
        return effect.future.result()
    if effect.timeout is None or is_async(effect.function):
        result = effect.context().run(effect.function, *effect.args)
    else:
        result = _in_thread(effect).result(effect.timeout)
    if inspect.iscoroutine(result):
        result.close()
    if inspect.isawaitable(result):
        name = getattr(effect.function, "__qualname__", repr(effect.function))
        msg = (
            f"`{name}` is async but the graph runs synchronously: "
            "use `ainvoke` (or `aretry_llm_call`), or pass a sync function."
        )
        raise AsyncUnderSyncError(msg)
    return result


async def _aperform(effect: Effect) -> Any:
    if isinstance(effect, Durable):
        if effect.retry_policy is None and not is_saved():
            return await adrive(effect.flow())

        async def body() -> Any:
            return await adrive(effect.flow())

        return await as_task(effect.name, effect.retry_policy)(body)()
    if isinstance(effect, Ask):
        return await getattr(effect.graph, f"a{effect.name}")(*effect.args, **effect.options)
    if isinstance(effect, Pause):
        await asyncio.sleep(effect.seconds)
        return None
    if isinstance(effect, Wait):
        # A waiter that is cancelled leaves the future to the others.
        return await asyncio.shield(asyncio.wrap_future(effect.future))
    context = effect.context()
    async with asyncio.timeout(effect.timeout):
        if is_async(effect.function):
            result = context.run(effect.function, *effect.args)
        elif effect.timeout is None:
            result = await asyncio.to_thread(context.run, effect.function, *effect.args)
        else:
            result = await asyncio.wrap_future(_in_thread(effect))
        if not inspect.isawaitable(result):
            return result
        if effect.config is None:
            return await result
        token = var_child_runnable_config.set(effect.config)
        try:
            return await result
        finally:
            var_child_runnable_config.reset(token)


def _in_thread(effect: Run) -> Future[Any]:
    """Run a function in a daemon thread: unlike a pool's, it never holds up the process's end."""
    future: Future[Any] = Future()
    context = effect.context()

    def work() -> None:
        future.set_running_or_notify_cancel()
        with _Handed(future):
            future.set_result(context.run(effect.function, *effect.args))

    threading.Thread(target=work, daemon=True).start()
    return future


class _Handed:
    """Hands what a thread raises to whoever waits, where also `sys.exit()` and Ctrl-C belong."""

    def __init__(self, future: Future[Any]) -> None:
        self._future = future

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if error is not None:
            self._future.set_exception(error)
        return True
