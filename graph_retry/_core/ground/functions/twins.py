"""Offer one function in two forms: for sync code, and with the prefix `a` for async code.

Both forms run the same coroutine function, and share its signature and its docstring.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar, cast

from graph_retry._core.ground.functions.arguments import checked
from graph_retry._core.ground.functions.awaiting import naming_twin, run_async, run_sync

P = ParamSpec("P")
T = TypeVar("T")


def in_sync(flow: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """Decorate a coroutine function, so that sync code can call it; its arguments are checked.

    The coroutine waits only by the functions of `awaiting`. The error for a graph that is async
    only names the async form.
    """

    @functools.wraps(flow)
    def sync(*args: P.args, **kwargs: P.kwargs) -> T:
        with naming_twin(f"a{flow.__name__}"):
            return run_sync(flow(*args, **kwargs))

    return checked(sync)


def async_twin(function: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Return the async form of a function that `in_sync` has decorated."""
    flow = cast("Callable[P, Coroutine[Any, Any, T]]", inspect.unwrap(function))
    owner, _, name = flow.__qualname__.rpartition(".")

    @functools.wraps(flow)
    async def twin(*args: P.args, **kwargs: P.kwargs) -> T:
        return await run_async(flow(*args, **kwargs))

    twin.__name__, twin.__qualname__ = f"a{name}", f"{owner}.a{name}".lstrip(".")
    twin.__doc__ = f"Do what `{name}` does, from async code.\n\n    {flow.__doc__}"
    return checked(twin)
