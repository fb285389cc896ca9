"""End the reviews that nobody answered in time: call this from a cron, a timer or a sweeper."""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import RunnableConfig

from graph_retry._awaiting import run_async, run_sync, with_async_twin
from graph_retry._review.deadline import EXPIRE, is_expired
from graph_retry._threads.resuming import resuming
from graph_retry._threads.reviews import find_reviews
from graph_retry._wording import counted
from graph_retry.answering import PendingReview
from graph_retry.errors import CallCancelled, StaleDecision
from graph_retry.inbox import find_all

__all__ = ["aexpire_reviews", "expire_reviews"]


@with_async_twin
def expire_reviews(
    source: Any, *, config: RunnableConfig | None = None, context: Any = None
) -> list[PendingReview]:
    """Apply the default decision to every review whose time is over, and run its thread on.

    A review is ended once, however many sweeps run at the same time; one that somebody answers
    meanwhile is left to them. On a server the runs are started and not waited for.

    Args:
        source: A compiled graph, or a client of `langgraph_sdk`; see `list_reviews`.
        config: What the runs need beside their thread; see `list_reviews`.
        context: LangGraph's `context` for the runs; see `resume`.

    Returns:
        The reviews that were ended, those included whose thread ends with `CallCancelled` thereby.

    Raises:
        ExceptionGroup: If threads could not be run on, after all the others were.

    Example:
        >>> from graph_retry import respond, retry_llm_call
        >>> from langgraph.checkpoint.memory import InMemorySaver
        >>> from langgraph.func import entrypoint
        >>> @entrypoint(checkpointer=InMemorySaver())
        ... def count(prompt):
        ...     return retry_llm_call(
        ...         lambda given: given, prompt, output=int,
        ...         expires_after=0.001, default_decision=respond(0),
        ...     )
        >>> config = {"configurable": {"thread_id": "1"}}
        >>> _ = count.invoke("many", config)
        >>> [review.thread_id for review in expire_reviews(count)]
        ['1']
        >>> count.get_state(config).values
        0
    """
    return run_sync(_expire(source, config, context))


async def aexpire_reviews(
    source: Any, *, config: RunnableConfig | None = None, context: Any = None
) -> list[PendingReview]:
    """Do what `expire_reviews` does, from async code."""
    return await run_async(_expire(source, config, context))


async def _expire(source: Any, config: RunnableConfig | None, context: Any) -> list[PendingReview]:
    ended: list[PendingReview] = []
    errors: list[Exception] = []
    expired: dict[str | None, list[PendingReview]] = {}
    reviews: list[PendingReview] = await find_all(source, config=config)
    for review in reviews:
        if is_expired(review.expires_at):
            expired.setdefault(review.thread_id, []).append(review)
    for together in expired.values():
        try:
            await _end(together, context)
        except (StaleDecision, TimeoutError):  # somebody else ends or answers them
            continue
        except CallCancelled:  # what a rejection is in the function form; a neighbour may wait on
            left = await find_reviews(together[0].graph, together[0].config, PendingReview)
            waiting = {review.review_id for review in left}
            ended += [review for review in together if review.review_id not in waiting]
        except Exception as error:  # noqa: BLE001 - the other threads must not wait for this one
            errors.append(error)
        else:
            ended += together
    if errors:
        raise ExceptionGroup(
            f"{counted(len(errors), 'expired thread')} could not be run on", errors
        )
    return ended


async def _end(reviews: list[PendingReview], context: Any) -> Any:
    """End the reviews of one thread.

    A sweeper that runs on the server must not wait for a run that may wait for its worker.
    """
    first = reviews[0]
    ids = [review.review_id for review in reviews]
    answers = {review_id: {"type": EXPIRE, "review_id": review_id} for review_id in ids}
    return await resuming(
        first.graph, first.config, answers=answers, wait=0.0, context=context, background=True
    )
