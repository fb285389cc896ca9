"""Run the same coroutine in sync and in async code, so that logic is written only once.

The coroutine waits only through functions of this module. In a sync run, these functions block the
thread, so that the coroutine needs no event loop. In an async run, they await.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import threading
import time
from collections import defaultdict
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
)
from concurrent.futures import Future, wait
from contextlib import contextmanager
from typing import Any, Generic, ParamSpec, Self, TypeVar, cast

from graph_retry.lossless._ground import EscapedText, as_repr, error_text

T = TypeVar("T")
P = ParamSpec("P")

_sync: contextvars.ContextVar[bool] = contextvars.ContextVar("graph_retry_sync", default=False)


class MistakeInCodeError(EscapedText, TypeError):
    """A mistake that only the developer can correct, so no person is asked about it."""


class AsyncUnderSyncError(MistakeInCodeError):
    """A sync run needs an async function, or an async-only graph or checkpointer."""


def run_sync(steps: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in this thread, without an event loop.

    Raises:
        AsyncUnderSyncError: If a user's function turns out to be async.
        RuntimeError: If the coroutine awaits something that needs an event loop.

    Example:
        >>> async def work():
        ...     return 1
        >>> run_sync(work())
        1
    """
    with SyncRun(steps) as run:
        steps.send(None)
    return run.result


class SyncRun(Generic[T]):
    """Runs a coroutine in sync code. In the `with` block, the caller writes `steps.send(None)`.

    `run_sync` also runs a coroutine in sync code, but adds a frame to the tracebacks that a user
    sees.
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
                f"{as_repr(self._steps)} awaits an event loop in a sync run: this is a bug in "
                "graph-retry; use the async twin of the function you called until it is mended."
            )
        return False


def is_async_only(error: Exception) -> bool:
    """Return whether a graph or its saver raised an error because it only works in async code.

    Savers of LangGraph, and `query` of this library's storage, raise an `InvalidStateError` only
    for this reason. A node with only an async function raises a `TypeError`.
    """
    if isinstance(error, asyncio.InvalidStateError):
        return raised_in(error, "langgraph.", "graph_retry.")
    node = _raiser(error).get("self") if isinstance(error, TypeError) else None
    has_async = getattr(node, "afunc", None) is not None
    return has_async and getattr(node, "func", ...) is None and raised_in(error, "langgraph.")


def raised_in(error: BaseException, *packages: str) -> bool:
    """Return whether code of these packages, such as `langgraph.`, raised an error."""
    return str(_raiser(error).get("__name__")).startswith(packages)


def _raiser(error: BaseException) -> dict[str, Any]:
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return {} if at is None else {**at.tb_frame.f_globals, **at.tb_frame.f_locals}


@contextmanager
def naming_twin(twin: str) -> Generator[None, None, None]:
    """Replace the error of an async-only graph or saver by one that names the async function.

    Raises:
        AsyncUnderSyncError: If the graph or its saver is async only.
    """
    try:
        yield
    except (TypeError, asyncio.InvalidStateError) as error:
        if not is_async_only(error):
            raise
        why = error_text(error).partition("\n")[0].partition(". ")[0].rstrip(".")
        raise AsyncUnderSyncError(
            f"`{twin.removeprefix('a')}` is sync, but this graph or its checkpointer is async only "
            f"({why}): use `await {twin}(…)`."
        ) from error


async def run_async(steps: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end on the event loop.

    Example:
        >>> async def work():
        ...     return is_sync()
        >>> asyncio.run(run_async(work()))
        False
    """
    _sync.set(False)  # This task may have copied the context of code under `run_sync`.
    return await steps


def is_sync() -> bool:
    """Return whether the current coroutine runs under `run_sync`.

    Example:
        >>> async def work():
        ...     return is_sync()
        >>> run_sync(work())
        True
    """
    return _sync.get()


async def sync_or_async(
    function: Callable[P, T], twin: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs
) -> T:
    """In a sync run, call a function. In an async run, await its async form `twin`.

    Example:
        >>> run_sync(sync_or_async(len, asyncio.sleep, [1]))
        1
    """
    return function(*args, **kwargs) if is_sync() else await twin(*args, **kwargs)


def as_run(flow: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Any]:
    """Return a coroutine function, made sync if the run is sync.

    Example:
        >>> async def outer():
        ...     async def inner():
        ...         return 1
        ...     return as_run(inner)()
        >>> run_sync(outer())
        1
    """
    if not is_sync():
        return flow

    @functools.wraps(flow)
    def sync(*args: P.args, **kwargs: P.kwargs) -> T:
        return run_sync(flow(*args, **kwargs))

    return sync


async def each_of(
    function: Callable[P, Iterable[T]],
    twin: Callable[P, AsyncIterable[T]],
    *args: P.args,
    **kwargs: P.kwargs,
) -> AsyncGenerator[T]:
    """Yield the items of a function in a sync run, and of its async form in an async run."""
    if is_sync():
        for item in function(*args, **kwargs):
            yield item
    else:
        async for item in twin(*args, **kwargs):
            yield item


async def off_loop(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do long work. An async run does it in a worker thread, so that the event loop is free."""
    if is_sync():
        return work(*args, **kwargs)
    return await asyncio.to_thread(work, *args, **kwargs)


async def to_its_end(steps: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end even if it is cancelled, so that no write stops halfway.

    Half a write would keep a transaction open, for which other writers would wait.
    """
    if is_sync():
        return await steps
    running = asyncio.ensure_future(steps)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise


async def acquired(get: Callable[[], T], free: Callable[[T], object]) -> T:
    """Get a resource with `get`, in a worker thread if the run is async.

    If the run is cancelled meanwhile, the thread frees the resource by `free`.
    """
    if is_sync():
        return get()
    guard, got, nobody_waits = threading.Lock(), list[T](), threading.Event()

    def work() -> None:
        result = get()
        with guard:
            got.append(result)
            if nobody_waits.is_set():
                free(got.pop())

    try:
        await asyncio.to_thread(work)
    except asyncio.CancelledError:
        with guard:
            nobody_waits.set()
            if got:
                free(got.pop())
        raise
    return got.pop()


async def sleep(seconds: float) -> None:
    """Wait for some seconds. A sync run blocks the thread."""
    if is_sync():
        time.sleep(seconds)  # noqa: ASYNC251 - no event loop waits for it
    else:
        await asyncio.sleep(seconds)


async def waited(future: Future[Any], seconds: float) -> bool:
    """Wait for a future, but at most `seconds`. Return whether it was possible to wait.

    A sync call inside an event loop does not wait, because it could block the loop that completes
    the future.
    """
    if not is_sync():
        await asyncio.wait([asyncio.wrap_future(future)], timeout=seconds)
    elif not _blocks_event_loop():
        wait([future], seconds)
    else:
        return False
    return True


def _blocks_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class SharedReads:
    """Results of reads that several calls share. A failed read is tried again by the next call."""

    def __init__(self) -> None:
        self._results: dict[str, Any] = {}
        self._locks: defaultdict[Any, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def get(self, name: str, read: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return the result of the read called `name`. If there is none yet, run `read`."""
        # A sync call does not wait, because it may block the event loop that makes the read.
        if is_sync():
            return await self._result(name, read)
        async with self._locks[name, asyncio.get_running_loop()]:
            return await self._result(name, read)

    async def _result(self, name: str, read: Callable[[], Coroutine[Any, Any, T]]) -> T:
        if name not in self._results:
            self._results.setdefault(name, await read())
        result: T = self._results[name]
        return result


_END: Any = object()


def run_steps(items: AsyncGenerator[T]) -> Iterator[T]:
    """Yield the items of an async generator in sync code.

    Example:
        >>> async def numbers():
        ...     yield 1
        >>> list(run_steps(numbers()))
        [1]
    """
    while (item := run_sync(_next(items))) is not _END:
        yield item


async def arun_steps(items: AsyncGenerator[T]) -> AsyncIterator[T]:
    """Yield the items of an async generator in async code, each by `run_async`.

    Example:
        >>> import asyncio
        >>> async def numbers():
        ...     yield 1
        >>> async def all_of_them():
        ...     return [number async for number in arun_steps(numbers())]
        >>> asyncio.run(all_of_them())
        [1]
    """
    while (item := await run_async(_next(items))) is not _END:
        yield item


async def _next(items: AsyncGenerator[T]) -> T:
    return await anext(items, _END)
