"""Call a user's function, sync or async, and read the stream that it may return.

A stream is always closed, even if it is not read to its end. This module also reads the bytecode of
a function, to find out whether the function forgets to return its result.
"""

from __future__ import annotations

import asyncio
import builtins
import contextvars
import inspect
import itertools
import logging
import os
import re
import threading
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from dis import get_instructions
from functools import cache, partial
from pathlib import Path
from types import CodeType
from typing import Any, Protocol, cast, get_type_hints

from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langgraph.errors import GraphBubbleUp

from graph_retry._core.ground.functions.awaiting import AsyncUnderSyncError, is_sync
from graph_retry._core.ground.functions.limits import Limits
from graph_retry.lossless._ground import lazy

_LOG = logging.getLogger("graph_retry")

YIELDING = inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR
_COMPUTING = lazy(
    "COMPARE_OP|CONTAINS_OP|IS_OP|UNARY_NOT|DICT_UPDATE|BUILD_(MAP|STRING)|LOAD_(FAST|GLOBAL|DEREF)"
)
"""How the instructions begin that only compute, such as LOAD_FAST_BORROW of Python 3.14."""
_NAMING = {"LOAD_GLOBAL", "PUSH_NULL", "EXTENDED_ARG"}
_PURE = (all, any, bool, callable, dict, hasattr, isinstance, issubclass, len, replace)


def is_async(function: Callable[..., Any]) -> bool:
    """Return whether a function, or the `__call__` of an object, is declared with `async def`."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004
    )


async def call(
    function: Callable[..., Any] | Runnable[Any, Any],
    *args: Any,
    limits: Limits | None = None,
    config: RunnableConfig | None = None,
    receiver: Receiver | None = None,
) -> Any:
    """Call a user's function or runnable, sync or async, and return its result.

    Args:
        function: The function or runnable.
        *args: Its arguments.
        limits: How long the call may take. If there is a limit, a sync function runs in a separate
            thread. If the limit ends first, the function continues there, because a thread cannot
            be stopped. Its result is dropped.
        config: The config that LangChain and LangGraph see while the function runs.
        receiver: Takes the pieces of a returned stream, in the function's thread and context.

    Example:
        >>> from graph_retry.plugins import run_sync
        >>> run_sync(call(str.upper, "yes"))
        'YES'
    """
    limits = limits or Limits(None)
    config = limits.watched(config)
    target, context = _target(function), _context_with(config)

    def work() -> Any:
        try:
            result = context.run(target, *args)
        except StopIteration as error:  # A future cannot hold a `StopIteration`.
            raise _stopped(target) from error
        return context.run(_taken, receiver, result)

    if is_sync():
        if not limits.given or is_async(target):
            try:  # As in `work`, but with one frame fewer in the tracebacks of the function.
                result = context.run(target, *args)
            except StopIteration as error:
                raise _stopped(target) from error
            result = context.run(_taken, receiver, result)
        else:
            result = limits.result(_in_thread(work))
        return _not_awaitable(result, target, receiver)
    async with limits.cancelling():
        if is_async(target):
            result = work()
        elif not limits.given:
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
    runnable = cast("Any", function)
    if not isinstance(function, Runnable):
        return function
    return runnable.invoke if is_sync() else runnable.ainvoke


def _context_with(config: RunnableConfig | None) -> contextvars.Context:
    context = contextvars.copy_context()
    if config is not None:
        context.run(var_child_runnable_config.set, config)
    return context


def _taken(receiver: Receiver | None, result: Any) -> Any:
    """Return the result of a function. If it is a sync stream, return the joined pieces."""
    if receiver is None or not isinstance(result, Iterator):
        return result  # pyright: ignore[reportUnknownVariableType]
    return drain(result, receiver)  # pyright: ignore[reportUnknownArgumentType]


async def awaited(result: Any, function: Callable[..., Any]) -> Any:
    """Return the result of a user's function. Await a coroutine, or refuse it in a sync run."""
    while inspect.isawaitable(result) and not is_sync():
        result = await result
    return _not_awaitable(result, function)


def _not_awaitable(
    result: Any, function: Callable[..., Any], receiver: Receiver | None = None
) -> Any:
    """Return a result. Raise if it is a coroutine, or an async stream in place of a sync stream."""
    is_stream = receiver is not None and isinstance(cast("object", result), AsyncIterator)
    if not is_stream and not inspect.isawaitable(result):
        return result
    if inspect.iscoroutine(result):
        result.close()  # Python warns of a coroutine that was neither awaited nor closed.
    raise _async_under_sync(function)


def _async_under_sync(function: Callable[..., Any], place: str = "") -> AsyncUnderSyncError:
    return AsyncUnderSyncError(
        f"{place}`{_name(function)}` is async but the graph runs synchronously: run it with "
        "`ainvoke`, and write `await aretry_llm_call(…)` in an async node; or pass a sync function."
    )


def refuse_async(function: Callable[..., Any], argument: str) -> None:
    """Raise `AsyncUnderSyncError` if a function is async and the run is sync."""
    if is_sync() and is_async(unwrapped(function)):
        raise _async_under_sync(function, f"`{argument}`: ")


def _name(function: Callable[..., Any]) -> str:
    target = unwrapped(function)
    name: str = getattr(target, "__qualname__", type(target).__qualname__)
    return name.rpartition("<locals>.")[2]


def _in_thread(work: Callable[[], Any]) -> Future[Any]:
    """Run a function in a daemon thread, because a pool's thread keeps the process from ending."""
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


def joined(texts: Iterable[str]) -> str:
    """Join pieces of text, and the halves of characters that were split between two pieces."""
    text = "".join(texts)
    if not re.search("[\ud800-\udbff][\udc00-\udfff]", text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def without_half(text: str) -> str:
    """Remove half a character (a high surrogate) at the end. Its other half may still come."""
    return text[:-1] if "\ud800" <= text[-1:] <= "\udbff" else text


class Receiver(Protocol):
    """An object that takes the pieces of a stream and joins them."""

    def take(self, piece: Any) -> bool:
        """Add the next piece. Return whether no further piece is needed."""
        ...

    def result(self) -> Any:
        """Return the joined pieces."""
        ...


def drain(stream: Iterator[Any], receiver: Receiver) -> Any:
    """Read a stream until it ends or `receiver` needs no more. Return the joined pieces.

    Raises:
        TypeError: If the stream is a generator that also returns a value.
    """
    try:
        while not receiver.take(next(stream)):
            pass
    except StopIteration as ended:
        if ended.value is not None:
            raise TypeError(
                f"the function yields pieces and then returns `{type(ended.value).__name__}`, "
                "which Python drops: yield all pieces, or return the value and yield nothing"
            ) from None
    finally:
        close = getattr(stream, "close", None)
        if close is not None:
            with _errors_logged():
                close()
    return receiver.result()


async def adrain(stream: AsyncIterator[Any], receiver: Receiver) -> Any:
    """Read an async stream, as `drain` reads a sync stream."""
    try:
        async for piece in stream:
            if receiver.take(piece):
                break
    finally:
        close = getattr(stream, "aclose", None) or getattr(stream, "close", None)
        with _errors_logged():
            closing = None if close is None else close()
            if inspect.isawaitable(closing):
                await closing
    return receiver.result()


@contextmanager
def _errors_logged() -> Generator[None]:
    """Log an error while a stream is closed, and do not raise it: the output has arrived."""
    try:
        yield
    except GraphBubbleUp:
        raise
    except Exception as error:  # noqa: BLE001 - whatever the client of a provider raises
        _LOG.warning("a stream could not be closed: %s", type(error).__name__)


OURS = Path(__file__).parents[3]
_STANDARD = Path(os.__file__).parent
_INSTALLED = {"site-packages", "dist-packages"}


@cache
def is_library(file: str) -> bool:
    """Return whether a file belongs to this library, an installed package, or Python itself."""
    if file.startswith("<frozen"):
        return True
    path = Path(file)
    is_installed = not _INSTALLED.isdisjoint(path.parts)
    return is_installed or path.is_relative_to(OURS) or path.is_relative_to(_STANDARD)


def unwrapped(function: Any) -> Any:
    """Return the function inside a `functools.partial`, or any other function unchanged."""
    while isinstance(function, partial):
        function = function.func
    return function


def returns_nothing(function: Callable[..., Any] | Runnable[Any, Any]) -> bool:
    """Return whether a function always returns None, because no `return` in it has a value."""
    code = code_of(function)
    return code is not None and _gives_none(code)


@cache
def _gives_none(code: CodeType) -> bool:
    before, returns = "", False
    if code.co_flags & inspect.CO_GENERATOR:
        return False
    for step in get_instructions(code):
        if step.opname == "RETURN_VALUE" and before != "LOAD_CONST None":
            return False
        if step.opname == "RETURN_CONST" and step.argval is not None:
            return False
        returns |= step.opname in ("RETURN_VALUE", "RETURN_CONST")
        before = f"{step.opname} {step.argval}"
    return returns  # Otherwise it always raises.


def yields(function: Callable[..., Any] | Runnable[Any, Any]) -> bool:
    """Return whether a function is a generator function, sync or async."""
    code = code_of(function)
    return code is not None and bool(code.co_flags & YIELDING)


def declared_result(function: Callable[..., Any] | Runnable[Any, Any]) -> Any:
    """Return the declared type of a function's result; `Any` if it is unknown."""
    target, code = inspect.unwrap(unwrapped(function)), code_of(function)
    if code is None or code.co_flags & YIELDING:
        return Any
    try:
        return get_type_hints(target).get("return", Any)
    except Exception:  # noqa: BLE001 - a name may be undefined, or be no type
        return Any


def forgotten(function: Callable[..., Any] | Runnable[Any, Any]) -> str | None:
    """Return the line on which a function forgets to return the result it computes, or None.

    The function has no `return` with a value. It drops a name, a dict, an f-string, a comparison,
    or the result of a function that only computes (in `_PURE`) or that makes a `Decision`.
    """
    code = code_of(function)
    if code is None or not _gives_none(code):
        return None
    known: Any = getattr(inspect.unwrap(unwrapped(function)), "__globals__", {})
    for name, line in _dropped(code):
        found = known.get(name, vars(builtins).get(name))
        if name == "" or any(found is each for each in _PURE) or _makes_decision(found):
            return f"line {line} of {Path(code.co_filename).name}"
    return None


def _makes_decision(function: Any) -> bool:
    is_ours = str(getattr(function, "__module__", "")).startswith("graph_retry.")
    return is_ours and getattr(function, "__annotations__", {}).get("return") == "Decision"


@cache
def _dropped(code: CodeType) -> list[tuple[str, int]]:
    """List the results that code computes and drops, as (name of the called function, line).

    Without a call, the name is "". Any other name comes from the bytecode that begins at the same
    place as the call, if this bytecode loads only one name.
    """
    steps, found = [*get_instructions(code)], list[tuple[str, int]]()
    for place, (before, step) in enumerate(itertools.pairwise(steps)):
        at = before.positions
        if step.opname != "POP_TOP" or at is None:
            continue
        if _COMPUTING.match(before.opname) and before.argval != "self":  # As in `self.n: int`.
            found.append(("", at.lineno or 0))
        elif before.opname.startswith("CALL"):
            # Positions are lines and columns. Here the first line and the first column matter.
            same = [s for s in steps[:place] if s.positions and s.positions[0::2] == at[0::2]]
            same = [each for each in same if each.positions != at]  # The steps of the call itself.
            names = [each.argval for each in same if each.opname == "LOAD_GLOBAL"]
            if len(names) == 1 and {each.opname for each in same} <= _NAMING:
                found.append((names[0], at.lineno or 0))
    return found


def code_of(function: Callable[..., Any] | Runnable[Any, Any]) -> CodeType | None:
    """Return the code object of a function; None for a runnable or for code in C."""
    target: Any = inspect.unwrap(unwrapped(function))
    if not (inspect.isfunction(target) or inspect.ismethod(target)):
        target = getattr(target, "func", None) or getattr(target, "__call__", None)  # noqa: B004
    code = getattr(target, "__code__", None)  # For a method, this is the code of its function.
    return code if isinstance(code, CodeType) else None
