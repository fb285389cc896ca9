"""Answer reviews as `resume` does, but let the user's code run the graph."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from functools import partial
from typing import Any

from langchain_core.runnables import RunnableConfig

from graph_retry._core.ground.functions.arguments import checked
from graph_retry._core.ground.functions.awaiting import naming_twin, run_async, run_sync
from graph_retry._core.ground.wording import quoted_with_article
from graph_retry._core.review.answers import Answer, Answers
from graph_retry._core.threads.answers.resuming import HeldThread, take_thread
from graph_retry._core.threads.saved.graphs import is_local
from graph_retry.errors import CallCancelled


class _Block:
    """The block after `with resumption(…)` or `async with aresumption(…)`: the same steps."""

    def __init__(self, name: str, take: Callable[[], Coroutine[Any, Any, HeldThread]]) -> None:
        self._name, self._take = name, take

    async def _begin(self) -> Any:
        self._thread = await self._take()
        return self._thread.given

    async def _end(self, error: BaseException | None) -> None:
        with self._thread:
            if isinstance(error, CallCancelled):
                await self._thread.check_in_time(error)
        if error is None:
            await self._thread.check()

    def __enter__(self) -> Any:
        if self._name != "resumption":
            raise TypeError("`aresumption` is async: write `async with aresumption(…) as given:`.")
        with naming_twin("aresumption"):
            return run_sync(self._begin())

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        run_sync(self._end(error))

    async def __aenter__(self) -> Any:
        if self._name != "aresumption":
            raise TypeError("`resumption` is sync: write `async with aresumption(…) as given:`.")
        return await run_async(self._begin())

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        await run_async(self._end(error))


@checked
def resumption(
    graph: Any,
    config: RunnableConfig,
    decision: Answer = None,
    *,
    answers: Answers | None = None,
    start: Any = None,
    wait: float = 600.0,
) -> AbstractContextManager[Any]:
    """Answer reviews as `resume` does, and run the graph yourself, for example to stream the run.

    Write `with resumption(…) as given:`. In the block, the thread is locked. Pass `given` as the
    input to the graph's `stream` (with any `stream_mode` or `version`) or `stream_events` (also
    v3). The end of the block raises an error if an answer was not applied.

    Args:
        graph: The compiled graph. A server locks its threads itself, so stream a run of its client
            instead, with `command={"resume": {review.interrupt_id: decision}}` and
            `multitask_strategy="reject"`.
        config: The config with the `thread_id`.
        decision: As for `resume`.
        answers: As for `resume`.
        start: As for `resume`. The input for the graph is then `start` or None.
        wait: Seconds to wait while another process runs the thread and the review is still open.

    Raises:
        AnswerRefused: At the end of the block, if an answer was not applied.
        StaleDecision: If the review is no longer open.
        TimeoutError: If another process still runs the thread after `wait` seconds.
        TypeError: If the graph is on a server.

    Example:
        >>> from graph_retry import edit
        >>> from graph_retry.testing import waiting_thread
        >>> graph, config = waiting_thread()
        >>> with resumption(graph, config, edit(value="3")) as given:
        ...     for update in graph.stream(given, config, stream_mode="updates"):
        ...         print(update)
        {'graph': 3}
    """
    given = (_local(graph), config, decision, answers)
    return _Block("resumption", partial(take_thread, *given, start=start, wait=wait))


@checked
def aresumption(
    graph: Any,
    config: RunnableConfig,
    decision: Answer = None,
    *,
    answers: Answers | None = None,
    start: Any = None,
    wait: float = 600.0,
) -> AbstractAsyncContextManager[Any]:
    """Do the same as `resumption`, in async code.

    Example:
        >>> import asyncio
        >>> from graph_retry import edit
        >>> from graph_retry.testing import waiting_thread
        >>> graph, config = waiting_thread()
        >>> async def review():
        ...     async with aresumption(graph, config, edit(value="3")) as given:
        ...         return [part async for part in graph.astream(given, config)]
        >>> asyncio.run(review())
        [{'graph': 3}]
    """
    given = (_local(graph), config, decision, answers)
    return _Block("aresumption", partial(take_thread, *given, start=start, wait=wait))


def _local(graph: Any) -> Any:
    if graph is None or is_local(graph):
        return graph
    came = quoted_with_article(type(graph).__name__)
    raise TypeError(
        f"`graph` is {came}: the run of a graph on a server is streamed by its "
        'client, with `command={"resume": {review.interrupt_id: decision}}` and '
        '`multitask_strategy="reject"`.'
    )
