"""A thread that waits for a person, to try what reads and answers reviews."""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint

from graph_retry import retry_llm_call
from graph_retry.plugins import checked


@checked
def waiting_thread(
    given: Any = "many", output: Any = int, **options: Any
) -> tuple[Any, RunnableConfig]:
    """Make a graph that waits for a person, and run it: to try a page, a reviewer or an answer.

    Its one call `count` returns its params `given`, which are not the `output` that is wanted.

    Args:
        given: The params.
        output: The output type.
        options: Options of the call, such as `labels`.

    Returns:
        The graph, and the config that names its thread.

    Example:
        >>> from graph_retry import pending_reviews
        >>> graph, config = waiting_thread()
        >>> [(review.function_name, review.params) for review in pending_reviews(graph, config)]
        [('count', {'value': 'many'})]
    """

    def count(params: Any) -> Any:
        return params

    @entrypoint(checkpointer=InMemorySaver())
    def graph(params: Any) -> Any:
        return retry_llm_call(count, params, output=output, **options)

    config = RunnableConfig(configurable={"thread_id": "1"})
    graph.invoke(given, config)
    return graph, config
