"""Answer reviews as `resume` does, but let the user's code run the graph."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from langchain_core.runnables import RunnableConfig

from graph_retry._core.ground.functions.arguments import checked
from graph_retry._core.ground.functions.awaiting import naming_twin, run_async, run_sync
from graph_retry._core.ground.wording import quoted_with_article
from graph_retry._core.review.answers import Answer, Answers
from graph_retry._core.threads.answers.resuming import take_thread
from graph_retry._core.threads.saved.graphs import is_local
from graph_retry.errors import CallCancelled


@contextmanager
@checked
def resumption(
    graph: Any,
    config: RunnableConfig,
    decision: Answer = None,
    *,
    answers: Answers | None = None,
    start: Any = None,
    wait: float = 600.0,
) -> Generator[Any, None, None]:
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
    with naming_twin("aresumption"):
        taken = take_thread(_local(graph), config, decision, answers, start=start, wait=wait)
        thread = run_sync(taken)
    with thread:
        try:
            yield thread.given
        except CallCancelled as error:
            run_sync(thread.check_in_time(error))
            raise
    run_sync(thread.check())


@asynccontextmanager
@checked
async def aresumption(
    graph: Any,
    config: RunnableConfig,
    decision: Answer = None,
    *,
    answers: Answers | None = None,
    start: Any = None,
    wait: float = 600.0,
) -> AsyncGenerator[Any, None]:
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
    taken = take_thread(_local(graph), config, decision, answers, start=start, wait=wait)
    thread = await run_async(taken)
    with thread:
        try:
            yield thread.given
        except CallCancelled as error:
            await run_async(thread.check_in_time(error))
            raise
    await run_async(thread.check())


def _local(graph: Any) -> Any:
    if graph is None or is_local(graph):
        return graph
    came = quoted_with_article(type(graph).__name__)
    raise TypeError(
        f"`graph` is {came}: the run of a graph on a server is streamed by its "
        'client, with `command={"resume": {review.interrupt_id: decision}}` and '
        '`multitask_strategy="reject"`.'
    )
