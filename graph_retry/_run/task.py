"""Run a part of a step as a LangGraph task: its result is kept when the step runs again."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

from graph_retry._awaiting import is_sync, run_sync
from graph_retry._langgraph.run_config import current_saver

T = TypeVar("T")


async def as_task(name: str, part: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a part of a step as a LangGraph task, so that a resume never repeats a finished part.

    Without a checkpointer, nothing can be resumed, so the part runs directly.
    """
    if current_saver() is None:
        return await part()
    from langgraph.func import task  # noqa: PLC0415 - a noticeable part of the import time

    make_task: Any = task(name=name)
    if is_sync():
        result: T = make_task(lambda: run_sync(part()))().result()
    else:
        result = await make_task(part)()
    return result


async def in_place(_name: str, part: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a part of a step directly, for code outside a graph; `_name` is not used."""
    return await part()


class Once(Protocol):
    """Runs a part of a step under a name: `as_task` or `in_place`."""

    async def __call__(self, name: str, part: Callable[[], Coroutine[Any, Any, T]], /) -> T: ...
