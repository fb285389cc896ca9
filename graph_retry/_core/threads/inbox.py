"""The inbox: the open reviews of all threads, newest first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver

from graph_retry._core.ground.functions.arguments import Count, async_twin, checked, in_sync
from graph_retry._core.ground.wording import quoted_with_article
from graph_retry._core.langgraph.storage.checkpoints import OpenReview
from graph_retry._core.review.deadline import is_expired
from graph_retry._core.threads.answers.resuming import resuming
from graph_retry._core.threads.reviews import PendingReview, key_of, open_reviews, whole_reviews
from graph_retry._core.threads.saved.graphs import (
    check_placeless,
    get_state,
    is_client,
    is_local,
    saver_of,
)
from graph_retry._core.threads.saved.saved_reviews import (
    list_saved_reviews,
    noted_reviews,
    read_noted,
    to_nobody,
)
from graph_retry._core.threads.saved.why_closed import (
    answers_to,
    other_question,
    standing_of,
)
from graph_retry._core.threads.server.runs import RemoteRuns
from graph_retry._core.threads.server.server_reviews import list_remote_reviews

_Last = Annotated[PendingReview, "the last review of the previous page"]


@in_sync
async def list_reviews(
    source: Any,
    *,
    limit: Count | None = None,
    before: _Last | None = None,
    config: RunnableConfig | None = None,
    labels: Mapping[str, str] | None = None,
) -> list[PendingReview]:
    """List the open reviews of all threads, newest first.

    SQLite and PostgreSQL have a table of the open reviews. If the database's user may not create
    this table, an error gives the SQL statement. After you copied threads, or restored only the
    tables of the checkpointer, run `DELETE FROM graph_retry_open_reviews`. The next listing then
    reads all threads once.

    Args:
        source: A compiled graph lists its own reviews. A checkpointer lists the reviews of all
            graphs; to answer a review, pass its graph and its `config` to `resume`. A client of
            `langgraph_sdk` lists the reviews of all graphs on the server, also those of threads
            with the status `error`. The client may miss threads of a graph that the server no
            longer has, and copied threads that have not run yet: read these by `pending_reviews`.
        limit: Maximum number of reviews to return (default: all).
        before: The last review of the previous page. Only older reviews are listed (default: start
            at the newest).
        config: Tags, metadata, callbacks and keys of `configurable` (no `thread_id`) for the runs
            that continue answered threads. Each listed review has these values in its `config`.
        labels: Only reviews of calls that have at least these `labels`.

    Raises:
        TypeError: If an argument has a wrong type.
        ValueError: If `limit` is below 0, or if `config` names a thread.

    Example:
        >>> from graph_retry.testing import waiting_thread
        >>> graph, _ = waiting_thread()
        >>> _ = graph.invoke("many", {"configurable": {"thread_id": "2"}})
        >>> [(review.thread_id, review.attempt) for review in list_reviews(graph)]
        [('2', 1), ('1', 1)]
    """
    wanted, listed = (labels or {}).items(), list[PendingReview]()
    while True:
        page = await find_all(source, None if labels else limit, before, config)
        listed += [
            review
            for review in page
            if wanted <= review.labels.items()
            and (review.deferred_until is None or is_expired(review.deferred_until))
        ]
        if limit is None or labels or len(page) < limit or len(listed) >= limit:
            break
        before = page[-1]
    return await whole_reviews(source, listed[:limit])


alist_reviews = async_twin(list_reviews)


async def find_all(
    source: Any,
    limit: Count | None = None,
    before: _Last | None = None,
    config: RunnableConfig | None = None,
    *,
    answered: bool = False,
) -> list[PendingReview]:
    """List the open reviews of a source. The histories may lack parts of earlier attempts.

    With `answered`, a checkpointer's list includes reviews with an answer that is saved but not
    applied.

    Raises:
        TypeError: If `source` has no threads.
        ValueError: If `config` names a thread.
    """
    check_source(source)
    base, saver = check_placeless(config), saver_of(source)
    page: Any = {"limit": limit, "before": before and key_of(before)}
    if saver is not None:
        graph = source if is_local(source) else None
        return await list_saved_reviews(saver, graph, base, answered=answered, **page)
    return await list_remote_reviews(source, base, **page)


def check_source(source: Any) -> None:
    """Raise `TypeError` if a source has no threads whose reviews could be listed."""
    if saver_of(source) is None and not is_client(source):
        raise TypeError(
            f"`source` is {quoted_with_article(type(source).__name__)}: give a compiled graph "
            "with a checkpointer, a checkpointer, or a client of "
            "`langgraph_sdk.get_sync_client` (or `get_client`)."
        )


@checked
class Inbox:
    """The open reviews of a source, read in parts for your own page or console.

    If there are only a few reviews, use `list_reviews`. If there are many, list them with `page`,
    and `read` the reviews that you show. When a person opens a review, read its thread with
    `in_thread`. Each method has an async form, such as `apage`.

    Args:
        source: The source, as in `list_reviews`.
        config: The config, as in `list_reviews`.

    Example:
        >>> from graph_retry.testing import waiting_thread
        >>> graph, _ = waiting_thread()
        >>> inbox = Inbox(graph)
        >>> (review,) = inbox.reviews()
        >>> [each.attempt for each in inbox.in_thread(review)], inbox.page() is None
        ([1], True)
    """

    def __init__(self, source: Any, config: RunnableConfig | None = None) -> None:
        check_source(source)
        self.source, self._config = source, check_placeless(config)

    @property
    def saver(self) -> BaseCheckpointSaver[Any] | None:
        """The checkpointer; None for a server."""
        return saver_of(self.source)

    @property
    def can_answer(self) -> bool:
        """Whether the reviews can be answered. A checkpointer without a graph cannot answer."""
        return self.saver is not self.source

    @property
    def is_remote(self) -> bool:
        """Whether the threads are on a server."""
        return self.saver is None

    @in_sync
    async def reviews(self, limit: int | None = None) -> list[PendingReview]:
        """List all open reviews, also deferred ones. Their histories may lack parts of attempts."""
        return await find_all(self.source, limit, None, self._config)

    areviews = async_twin(reviews)

    @in_sync
    async def page(
        self,
        before: str | None = None,
        limit: int = 500,
        fill: Annotated[Callable[[int, int], Any], "a function `(read, threads)`"]
        | None = to_nobody,
    ) -> tuple[list[OpenReview], str | None] | None:
        """List one page of the table of open reviews, newest first.

        A checkpointer keeps a table of open reviews, so that listing them reads no thread. The
        first listing of a database reads each thread once to fill the table. After each thread, it
        calls `fill(read, threads)` with the number of threads read so far and of all threads. With
        `fill=None`, the table is not filled.

        Returns:
            If there is no table, None. Otherwise the rows, and the argument `before` of the next
            page (None after the last page).
        """
        fill = fill if before is None else None
        return await noted_reviews(self.source, before, limit, self._config, fill)

    apage = async_twin(page)

    @in_sync
    async def read(self, noted: Sequence[OpenReview]) -> list[PendingReview]:
        """Read the reviews of some rows. Leave out closed reviews, and delete their rows."""
        return await read_noted(self.source, noted, self._config)

    aread = async_twin(read)

    @in_sync
    async def whole(self, reviews: Sequence[PendingReview]) -> list[PendingReview]:
        """Return the reviews with the complete records of all earlier attempts."""
        return await whole_reviews(self.source, reviews)

    awhole = async_twin(whole)

    @in_sync
    async def in_thread(self, review: PendingReview) -> list[PendingReview]:
        """Read all open reviews of a review's thread, with complete records of their attempts."""
        shown = await open_reviews(review.graph, review.config)
        return await whole_reviews(review.graph, shown)

    ain_thread = async_twin(in_thread)

    @in_sync
    async def answers(self, review: PendingReview) -> list[tuple[str, str]]:
        """List the saved answers to a review as (time, author)."""
        if review.graph is None:
            return []
        return await answers_to(review.graph, review.config, review.review_id)

    aanswers = async_twin(answers)

    @in_sync
    async def answer(
        self, review: PendingReview, answers: Mapping[str, Any] | None, context: Any = None
    ) -> Any:
        """Answer reviews in the thread of a review, by review id, as `resume` does."""
        return await resuming(review.graph, review.config, None, answers, context=context)

    aanswer = async_twin(answer)

    @in_sync
    async def stop(self, review: PendingReview) -> bool:
        """Cancel the server's run that an answer to a review started. The saved state stays.

        Returns:
            Whether there was such a run. Other runs of the thread continue.
        """
        return await RemoteRuns(review.graph, review.config).cancel(review.interrupt_id)

    astop = async_twin(stop)


@dataclass(frozen=True)
class Standing:
    """How a thread without an open review can continue.

    told: What the thread waits for, or how to continue it. Empty if the thread has ended.
    other: A description of a question by another library. Empty if there is none.
    is_unfinished: Whether steps are left to run.
    """

    told: str
    other: str
    is_unfinished: bool


@in_sync
async def standing(graph: Any, config: RunnableConfig, how: str = "`resume`") -> Standing:
    """Describe how a thread without an open review can continue. `how` names what continues it.

    Example:
        >>> from graph_retry.testing import waiting_thread
        >>> graph, _ = waiting_thread()
        >>> standing(graph, {"configurable": {"thread_id": "2"}})
        Standing(told='', other='', is_unfinished=False)
    """
    state = await get_state(graph, config)
    told = await standing_of(graph, config, how)
    return Standing(told, other_question(state), bool(state.next))


astanding = async_twin(standing)
