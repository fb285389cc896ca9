"""The inbox: every review that waits, whatever its thread, newest first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.serde.types import INTERRUPT
from langgraph.types import Interrupt

from graph_retry._attempts import records_in
from graph_retry._awaiting import run_async, run_sync
from graph_retry._engine.checkpoints import list_checkpoints
from graph_retry._engine.state import LOOP, is_open, loop_of
from graph_retry._review.shown import parts_of
from graph_retry._threads.config import check_placeless, on_thread
from graph_retry._threads.graphs import is_local
from graph_retry._threads.lock import storage_of
from graph_retry._threads.remote_reviews import list_remote_reviews
from graph_retry._threads.reviews import find_reviews, intervention, whole_reviews
from graph_retry.answering import PendingReview

_PAGE = 100
"""Checkpoints read at a time."""


def list_reviews(
    source: Any, *, limit: int | None = None, config: RunnableConfig | None = None
) -> list[PendingReview]:
    """List the reviews that wait in all threads, the last asked first.

    Args:
        source: A compiled graph, whose checkpointer is searched for its own reviews; or a
            checkpointer, whose reviews can only be looked at; or a client of `langgraph_sdk`,
            which lists every graph's reviews on a server, those of threads in `error` included.
        limit: Reviews to return at most (default: all).
        config: What the runs that answers start need beside their thread: other keys of
            `configurable`, tags, metadata, callbacks. Each review's `config` has it.

    Example:
        >>> from graph_retry import retry_llm_call
        >>> from langgraph.checkpoint.memory import InMemorySaver
        >>> from langgraph.func import entrypoint
        >>> @entrypoint(checkpointer=InMemorySaver())
        ... def count(prompt):
        ...     return retry_llm_call(lambda given: given, prompt, output=int)
        >>> for name in ("ada", "bob"):
        ...     _ = count.invoke("many", {"configurable": {"thread_id": name}})
        >>> [(review.thread_id, review.attempt) for review in list_reviews(count)]
        [('bob', 1), ('ada', 1)]
    """
    return run_sync(_listed(source, limit, config))


async def alist_reviews(
    source: Any, *, limit: int | None = None, config: RunnableConfig | None = None
) -> list[PendingReview]:
    """Do what `list_reviews` does, from async code."""
    return await run_async(_listed(source, limit, config))


async def _listed(
    source: Any, limit: int | None, config: RunnableConfig | None
) -> list[PendingReview]:
    return await whole_reviews(source, await find_all(source, limit, config))


async def find_all(
    source: Any, limit: int | None = None, config: RunnableConfig | None = None
) -> list[PendingReview]:
    """List the reviews of a source, inside a flow.

    Raises:
        TypeError: If `source` is nothing that keeps threads, or `config` is no config.
        ValueError: If `config` names a thread.
    """
    base = check_placeless(config)
    saver: Any = cast("Any", source).checkpointer if is_local(source) else source
    if isinstance(saver, BaseCheckpointSaver):
        graph = source if is_local(source) else None
        return _newest(await _saved_reviews(cast("Any", saver), graph, base), limit)
    if hasattr(source, "threads") and hasattr(source, "runs"):
        reviews: list[PendingReview] = await list_remote_reviews(source, base, PendingReview)
        return _newest(reviews, limit)
    raise TypeError(
        f"`source` is {type(source).__name__}: pass a compiled graph with a checkpointer, a "
        "checkpointer, or a client that `langgraph_sdk.get_sync_client` (or `get_client`) makes."
    )


def _newest(reviews: list[PendingReview], limit: int | None) -> list[PendingReview]:
    reviews.sort(key=lambda review: review.asked_at or "", reverse=True)
    return reviews[:limit]


@dataclass
class _Thread:
    """What the checkpoints of one thread tell, read from the newest to the oldest.

    Questions stand beside a checkpoint of the outermost graph; whether one is still open is told
    by the newest checkpoint of its call. An `update_state` of the outermost graph hides its
    questions from LangGraph: then those of the checkpoint before it count.
    """

    hidden: str = ""
    """The checkpoint before such updates."""
    questions: dict[str, Interrupt] | None = None
    """The questions by review; None until their checkpoint was read."""
    calls: dict[str, dict[str, Any] | None] = field(default_factory=dict[str, Any])
    """The newest state of each call; None if it does not wait."""

    def read(self, saved: CheckpointTuple) -> None:
        """Take in the next checkpoint; one that was read before changes nothing."""
        namespace = str(saved.config.get("configurable", {}).get("checkpoint_ns", ""))
        sought = self.questions is None and self.hidden in ("", saved.checkpoint["id"])
        if not namespace and sought:
            self._read_questions(saved)
        elif namespace and namespace not in self.calls:
            values = saved.checkpoint["channel_values"]
            waits = LOOP in values and loop_of(values)["review"] is not None
            self.calls[namespace] = values if waits else None

    def _read_questions(self, saved: CheckpointTuple) -> None:
        writes = saved.pending_writes or ()
        asked = [question for write in writes if write[1] == INTERRUPT for question in write[2]]
        parent = (saved.parent_config or {}).get("configurable", {}).get("checkpoint_id")
        if saved.metadata.get("source") == "update" and not asked and parent:
            self.hidden = str(parent)
            return
        ours = [question for question in asked if intervention(question.value)]
        self.questions = {question.value["review_id"]: question for question in ours}

    def waiting(self) -> Iterator[tuple[Interrupt, dict[str, Any]]]:
        """Yield the questions that are open, each with the state of its call."""
        for review_id, question in (self.questions or {}).items():
            values = self.calls.get(question.value["checkpoint_ns"])
            if values is not None and is_open(values, review_id):
                yield question, values


async def _threads_in(saver: BaseCheckpointSaver[Any]) -> dict[str, _Thread]:
    """Read page after page, so that no more than one is held at a time."""
    ordered = storage_of(saver) in ("sqlite", "postgres")  # by id, over all threads
    before: RunnableConfig | None = None
    threads: defaultdict[str, _Thread] = defaultdict(_Thread)
    while True:
        page = await list_checkpoints(saver, None, before=before, limit=_PAGE if ordered else None)
        page.sort(key=lambda saved: saved.checkpoint["id"], reverse=True)
        for saved in page:
            threads[str(saved.config.get("configurable", {})["thread_id"])].read(saved)
        if not ordered or len(page) < _PAGE:
            return threads
        # Copied checkpoints share an id: the last one is read again, lest its twin be missed.
        before = {"configurable": {"checkpoint_id": f"{page[-1].checkpoint['id']}~"}}


async def _saved_reviews(
    saver: BaseCheckpointSaver[Any], graph: Any, base: RunnableConfig
) -> list[PendingReview]:
    """List the reviews that wait in a checkpointer, or those of a graph in it."""
    reviews: list[PendingReview] = []
    for thread_id, thread in (await _threads_in(saver)).items():
        config = on_thread(base, thread_id)
        for question, values in thread.waiting():
            value = question.value
            if graph is None or value["checkpoint_ns"].partition(":")[0] in graph.nodes:
                parts = parts_of(value, records_in(values), thread_id)
                where: Any = {"graph": graph, "config": config, "hidden": thread.hidden}
                reviews.append(PendingReview(interrupt_id=question.id, **where, **parts))
    return await _without_dropped(reviews)


async def _without_dropped(reviews: list[PendingReview]) -> list[PendingReview]:
    """Look at hidden reviews again: an update may have been meant to start anew."""
    sure: list[PendingReview] = []
    for review in reviews:
        if review.hidden and review.graph is not None:
            shown = await find_reviews(review.graph, review.config, PendingReview)
            sure += [same for same in shown if same.review_id == review.review_id]
        else:
            sure.append(review)
    return sure
