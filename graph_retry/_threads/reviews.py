"""Find the open reviews of a thread."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.pregel import Pregel

from graph_retry._attempts import records_in
from graph_retry._langgraph.checkpoints import without_state
from graph_retry._langgraph.shown import namespace_in
from graph_retry._namespaces import parts_of as steps_of
from graph_retry._redact import shown_record
from graph_retry._review.review import Review, parts_of
from graph_retry._run.keeping import whole
from graph_retry._threads.config import check_thread, thread_of
from graph_retry._threads.graphs import check_compiled
from graph_retry._threads.reading import read_shown, reader_of
from graph_retry._threads.view import ThreadView


@dataclass(frozen=True, kw_only=True)
class Waiting(Review):
    """An open review, with the place where it waits.

    `graph` is None if the review was listed from a checkpointer without a graph. `saved` is the
    call's newest checkpoint without its state; None if it was deleted or a server hides it.
    """

    interrupt_id: str
    graph: Any = field(repr=False)
    config: RunnableConfig = field(repr=False)
    saved: CheckpointTuple | None = field(default=None, repr=False)

    @property
    def namespace(self) -> str:
        """The namespace of the call's state."""
        return namespace_in(self.value)


WaitingT = TypeVar("WaitingT", bound=Waiting)


async def shown_reviews(graph: Any, config: RunnableConfig, kind: type[WaitingT]) -> list[WaitingT]:
    """Return a thread's open reviews with whole, redacted histories."""
    return await whole_reviews(graph, await find_reviews(graph, config, kind))


async def whole_reviews(source: Any, reviews: Sequence[WaitingT]) -> list[WaitingT]:
    """Return reviews with whole records in their histories, where checkpoints can be read."""
    made: list[WaitingT] = []
    for review in reviews:
        where = source if review.graph is None else review.graph
        read = reader_of(where, review.thread_id, review.namespace)
        history = list(map(shown_record, await whole(review.history, read)))
        made.append(replace(review, history=history))
    return made


async def find_reviews(graph: Any, config: RunnableConfig, kind: type[WaitingT]) -> list[WaitingT]:
    """Read a thread's open reviews, whose histories may contain stubs."""
    check_compiled(graph)
    check_thread(graph, config)
    reviews = list(reviews_in(await read_shown(graph, config), graph, config, kind))
    for review in reviews:
        _check_place(graph, review.namespace)
    return reviews


def reviews_in(
    view: ThreadView, graph: Any, config: RunnableConfig, kind: type[WaitingT]
) -> Iterator[WaitingT]:
    """Yield the open reviews in a view of a thread."""
    for interrupt, value in view.open_questions():
        namespace = namespace_in(value)
        call = view.newest[namespace]
        yield kind(
            interrupt_id=interrupt.id,
            graph=graph,
            config=config,
            saved=without_state(call) if call.checkpoint["id"] else None,
            **parts_of(value, records_in(view.values(namespace)), thread_of(config)),
        )


def _check_place(graph: Any, namespace: str) -> None:
    """Raise if an answer cannot reach a call, because an outer graph has `checkpointer=False`."""
    for name, _ in steps_of(namespace)[:-1]:
        node = graph.nodes.get(name) if isinstance(graph, Pregel) else None
        graph = node and node.bound
        if isinstance(graph, Pregel) and graph.checkpointer is False:
            raise ValueError(
                f"the graph in node `{name}` is compiled with `checkpointer=False`, so calls in it "
                "start anew with each answer: compile it without that argument."
            )
