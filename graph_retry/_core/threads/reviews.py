"""`PendingReview`: an open review of a thread, as the lists of reviews return it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from langchain_core.runnables import RunnableConfig

from graph_retry._core.ground.functions.arguments import WrongArgumentError, async_twin, in_sync
from graph_retry._core.ground.json import digest
from graph_retry._core.langgraph.open_questions import namespace_in
from graph_retry._core.langgraph.storage.checkpoints import OpenReview, open_review, values_of
from graph_retry._core.review.answers import Answer
from graph_retry._core.review.review_record import IN_JSON, Review, parts_of
from graph_retry._core.state.attempts import records_in
from graph_retry._core.state.kept import whole
from graph_retry._core.threads.answers.resuming import resuming
from graph_retry._core.threads.saved.graphs import check_compiled, thread_of
from graph_retry._core.threads.saved.thread_state import open_questions, reader_of
from graph_retry._core.threads.saved.view import Asked
from graph_retry.records import shown_record


@dataclass(frozen=True, kw_only=True)
class PendingReview(Review):
    """An open review of a thread. Answer it with its method `answer`.

    `graph` is None if the review was listed from a checkpointer without a graph. Such a review
    cannot be answered. `unapplied` is a saved answer that no run has applied yet, or None.
    """

    interrupt_id: str
    graph: Any = field(repr=False)
    config: RunnableConfig = field(repr=False)
    unapplied: dict[str, Any] | None = field(default=None, repr=False)
    _shown: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Remember the params, because an approval means them even if code changes the object."""
        object.__setattr__(self, "_shown", digest(self.params))

    def __hash__(self) -> int:
        """Let a review be a key, although its fields hold dicts."""
        return hash(self.review_id)

    @property
    def namespace(self) -> str:
        return namespace_in(self.value)

    def to_json(self) -> dict[str, Any]:
        """Return the review as plain JSON, for an endpoint that lists open reviews.

        To answer, a client sends back `thread_id` and `review_id`. The JSON has neither the earlier
        attempts (see `history`) nor the JSON Schema of an answer (see `value`).

        Example:
            >>> from graph_retry import edit, pending_reviews, resume
            >>> from graph_retry.testing import waiting_thread
            >>> graph, config = waiting_thread()
            >>> (review,) = pending_reviews(graph, config)
            >>> shown = review.to_json()
            >>> shown["thread_id"], shown["params"], shown["allowed_decisions"][:2]
            ('1', {'value': 'many'}, ['approve', 'edit'])
            >>> config = {"configurable": {"thread_id": shown["thread_id"]}}
            >>> resume(graph, config, answers={shown["review_id"]: edit(value="3")})
            3
        """
        shown = {name: getattr(self, name) for name in IN_JSON}
        return {**shown, "allowed_decisions": self.allowed_decisions}

    @in_sync
    async def answer(self, decision: Answer, *, context: Any = None) -> Any:
        """Answer this review and continue the thread; see `resume`."""
        if digest(self.params) != self._shown:
            raise WrongArgumentError(
                "`params` of this review were changed in place, which changes no call: read the "
                "review again, and give the changes as `edit(…)`."
            )
        answers = {self.review_id: decision}
        return await resuming(self.graph, self.config, answers=answers, context=context)

    aanswer = async_twin(answer)


async def open_reviews(graph: Any, config: RunnableConfig) -> list[PendingReview]:
    """Return the open reviews of a thread, with histories that may lack some parts."""
    check_compiled(graph)
    questions = await open_questions(graph, config)
    return [review_of(asked, graph, config) for asked in questions]


async def whole_reviews(source: Any, reviews: Sequence[PendingReview]) -> list[PendingReview]:
    """Return the reviews with complete records of the earlier attempts, read from checkpoints.

    If a checkpoint was deleted, the records in it stay incomplete.
    """
    made: list[PendingReview] = []
    for review in reviews:
        where = source if review.graph is None else review.graph
        read = reader_of(where, review.thread_id, review.namespace)
        history = list(map(shown_record, await whole(review.history, read)))
        made.append(replace(review, history=history))
    return made


def review_of(asked: Asked, graph: Any, config: RunnableConfig) -> PendingReview:
    """Convert a question that a thread shows to a `PendingReview`."""
    history = records_in(values_of(asked.call))
    where: dict[str, Any] = {"graph": graph, "config": config}
    parts = parts_of(asked.value, history, thread_of(config))
    return PendingReview(
        interrupt_id=asked.interrupt_id, unapplied=asked.unapplied, **where, **parts
    )


def newest_first(
    reviews: Sequence[PendingReview], before: str | None, limit: int | None
) -> list[PendingReview]:
    """Return at most `limit` reviews that are older than the key `before`, newest first."""
    by_key = {key_of(review): review for review in reviews}
    older = [key for key in sorted(by_key, reverse=True) if before is None or key < before]
    return [by_key[key] for key in older[:limit]]


def key_of(review: PendingReview) -> str:
    return entry_of(review).place


def entry_of(review: PendingReview) -> OpenReview:
    return open_review(review.thread_id, review.namespace, review.review_id, review.asked_at)
