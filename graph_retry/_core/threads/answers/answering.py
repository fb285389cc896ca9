"""List and answer the reviews of one thread.

No answer may be lost, applied twice or given to a different review.
"""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.types import Durability

from graph_retry._core.ground.functions.arguments import async_twin, in_sync
from graph_retry._core.review.answers import Answer, Answers
from graph_retry._core.threads.answers.resuming import resuming
from graph_retry._core.threads.reviews import PendingReview, open_reviews, whole_reviews


@in_sync
async def pending_reviews(graph: Any, config: RunnableConfig) -> list[PendingReview]:
    """List the open reviews of a thread, in the order of LangGraph's tasks.

    The list includes the reviews in subgraphs and in `Send` branches. `graph` is a compiled graph
    or a `RemoteGraph`.

    Example:
        >>> from graph_retry.testing import waiting_thread
        >>> graph, config = waiting_thread()
        >>> [(review.function_name, review.attempt) for review in pending_reviews(graph, config)]
        [('count', 1)]
    """
    return await whole_reviews(graph, await open_reviews(graph, config))


apending_reviews = async_twin(pending_reviews)


@in_sync
async def resume(
    graph: Any,
    config: RunnableConfig,
    decision: Answer = None,
    *,
    answers: Answers | None = None,
    start: Any = None,
    context: Any = None,
    durability: Durability | None = None,
    wait: float = 600.0,
) -> Any:
    """Answer the open reviews of a thread, and continue the thread.

    Each decision is saved in the thread before it is applied. If the process dies after that,
    `resume(graph, config)` without a decision continues. The thread is locked until the graph stops
    again, so the first of several answers to a review wins. If a decision cannot be applied,
    `AnswerRefused` is raised, and the question is asked again.

    A run that asks a question holds the thread's lock until the run ends. While another `Send`
    branch still runs, the review is already listed, but an answer waits for the lock. On
    PostgreSQL, each schema has its own locks. If each tenant has a schema, set it in the connection
    string (`options=-csearch_path=…`). If a session sets the schema only later, threads of two
    tenants with the same id share one lock.

    Args:
        graph: The compiled graph, or a `RemoteGraph`.
        config: The config with the `thread_id`. Its other values (keys of `configurable`, tags,
            metadata, callbacks) apply to the run.
        decision: The result of `approve()`, `edit(…)`, `reject(…)`, `respond(…)`, or the JSON of a
            decision. If it has no `review_id`, exactly one review must be open when `resume` is
            called. The decision applies to this review.
        answers: A dict of decisions by `review_id` (or interrupt id), in place of `decision`. The
            dict may answer some or all open reviews.
        start: The input for a new thread, in a job that may run twice or be killed. A new thread
            starts with this input. If the run of a thread was interrupted, the thread continues
            without the input. A thread that waits for people or has ended is left unchanged.
            `start` cannot be combined with an answer.
        context: LangGraph's `context` for the run. LangGraph does not save the context, so a graph
            with a `context_schema` needs it again (on a server: JSON, a dataclass or a model).
        durability: LangGraph's `durability` for the run (default: `sync`; on a server, the server's
            default). With any other value, a crash can repeat calls that have just finished.
        wait: Maximum seconds to wait while another process runs the thread and the review is open.

    Returns:
        The graph's state, as `graph.invoke` returns it.

    Raises:
        AnswerRefused: If an answer was not applied. The question is asked again, and the model was
            not called for this answer.
        StaleDecision: If the review is no longer open: somebody else answered it, or it expired.
        TimeoutError: If another process still runs the thread after `wait` seconds.
        ValueError: If several reviews are open and `decision` names none of them, or if the graph
            or the thread is missing.
        TypeError: If `answers` is not a dict of decisions.

    Example:
        >>> from graph_retry import edit
        >>> from graph_retry.testing import waiting_thread
        >>> graph, config = waiting_thread()
        >>> resume(graph, config, edit(value="3"))
        3
    """
    how: Any = {"durability": durability, "wait": wait, "context": context, "start": start}
    return await resuming(graph, config, decision, answers, **how)


aresume = async_twin(resume)
