"""Several calls at once from one node, with all their questions shown together."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from langgraph.errors import GraphInterrupt
from langgraph.types import Interrupt

from graph_retry.pausing import watched_pause

T = TypeVar("T")


async def gather_calls(*calls: Awaitable[T]) -> list[T]:
    """Await several `aretry_llm_call`s of one node; pause once with every question they have.

    `asyncio.gather` would show the first question only and the next one after its answer.

    Returns:
        The results in the order of `calls`.

    Raises:
        Exception: The first error any of the calls ended with, after all of them have stopped.

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
        finished: list[T] = []
        for result in results:
            if isinstance(result, GraphInterrupt):
                questions.extend(result.args[0])
            elif isinstance(result, BaseException):
                raise result
            else:
                finished.append(result)
        if questions:
            raise GraphInterrupt(tuple(questions))
    return finished
