"""Find the reviews a thread waits for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.serde.types import INTERRUPT
from langgraph.pregel import Pregel
from langgraph.types import Interrupt, StateSnapshot

from graph_retry._attempts import records_in
from graph_retry._langgraph.checkpoints import newest_checkpoint, waits_for
from graph_retry._namespaces import parts_of as steps_of
from graph_retry._redact import shown_record
from graph_retry._review.clients.ag_ui import INTERVENTION
from graph_retry._review.review import Review, parts_of
from graph_retry._run.keeping import whole
from graph_retry._state import ANSWER, LOOP, is_open
from graph_retry._threads.calls import reader_of
from graph_retry._threads.graphs import (
    get_state,
    is_local,
    saver_of,
)
from graph_retry._threads.remote_runs import RemoteRuns, http_status
from graph_retry._wording import quoted_with_article


@dataclass(frozen=True, kw_only=True)
class Waiting(Review):
    """A review and where it waits.

    `graph` is None where nothing but a checkpointer is known. `call_config` tells where the call's
    own state is, if an answer can be written there.
    """

    interrupt_id: str
    graph: Any = field(repr=False)
    config: RunnableConfig = field(repr=False)
    call_config: RunnableConfig | None = field(default=None, repr=False)

    @property
    def namespace(self) -> str:
        """Where the state of the call is."""
        return namespace_in(self.value)


HOW_CONFIG = 'pass {"configurable": {"thread_id": …}}'
"""A hint for messages: a config that names a thread."""

WaitingT = TypeVar("WaitingT", bound=Waiting)


async def shown_reviews(graph: Any, config: RunnableConfig, kind: type[WaitingT]) -> list[WaitingT]:
    """Return a thread's open reviews as users see them."""
    return await whole_reviews(graph, await find_reviews(graph, config, kind))


async def whole_reviews(source: Any, reviews: Sequence[WaitingT]) -> list[WaitingT]:
    """Return reviews with the records of their histories made whole, where that can be read."""
    made: list[WaitingT] = []
    for review in reviews:
        where = source if review.graph is None else review.graph
        read = reader_of(where, review.thread_id, review.namespace)
        history = list(map(shown_record, await whole(review.history, read)))
        made.append(replace(review, history=history))
    return made


async def find_reviews(graph: Any, config: RunnableConfig, kind: type[WaitingT]) -> list[WaitingT]:
    """Read a thread's state and return its open reviews."""
    if not hasattr(graph, "get_state"):
        came = quoted_with_article(type(graph).__name__)
        raise TypeError(f"`graph` is {came}: pass what `compile(checkpointer=…)` gives.")
    thread_id = check_thread(graph, config)
    snapshot = await get_state(graph, config, subgraphs=True)
    calls, local = dict(_calls(snapshot)), is_local(graph)
    where: dict[str, Any] = {"graph": graph, "config": config}
    reviews: list[WaitingT] = []
    for question in snapshot.interrupts:
        value = intervention(question.value)
        # A call made in a task is shown once for the task and once for itself.
        if value is None or value["review_id"] in [review.review_id for review in reviews]:
            continue
        call = calls.get(question.id)
        saved = None if call else await _saved_call(graph, config, value)
        values: Any = call.values if call else saved and saved.checkpoint["channel_values"]
        # LangGraph shows a question until its node has ended, so also one that has its answer:
        # while that is applied, or after a crash on the way.
        if call:
            waits = is_open(values, value["review_id"]) and call.next == ("review",)
        elif saved:
            waits = waits_for(saved, value["review_id"])
        else:
            waits = local or not await _has_moved(graph, snapshot, question)
        if waits:
            _check_place(graph, namespace_in(value))
            parts = parts_of(value, records_in(values), thread_id)
            place = call.config if call and local else None
            reviews.append(kind(interrupt_id=question.id, call_config=place, **where, **parts))
    return reviews


def check_thread(graph: Any, config: RunnableConfig) -> str | None:
    """Return the thread id in a config; None where it is in a config that the graph has of its own.

    Raises:
        TypeError: If it is no config.
        ValueError: If neither names a thread.
    """
    thread_id = thread_of(config)
    own = cast("RunnableConfig", getattr(graph, "config", None) or {})
    if thread_id is None and thread_of(own) is None:
        raise ValueError(f"`config` names no thread: {HOW_CONFIG}.")
    return thread_id


def _check_place(graph: Any, namespace: str) -> None:
    """Refuse a call that an answer would not reach, since a graph around it keeps nothing."""
    for name, _ in steps_of(namespace)[:-1]:
        node = graph.nodes.get(name) if isinstance(graph, Pregel) else None
        graph = node and node.bound
        if isinstance(graph, Pregel) and graph.checkpointer is False:
            raise ValueError(
                f"the graph in node `{name}` is compiled with `checkpointer=False`, so calls in it "
                "start anew with each answer: compile it without that argument."
            )


def intervention(value: Any) -> dict[str, Any] | None:
    """Return an interrupt's value if it is a question of ours."""
    asked = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    return asked if asked.get("type") == INTERVENTION else None


def namespace_in(question: Mapping[str, Any]) -> str:
    """Return where the state of the call is that asks a question."""
    return str(question["checkpoint_ns"])


def thread_of(config: RunnableConfig) -> str | None:
    """Return the thread id in a config.

    Raises:
        TypeError: If it is no config.
    """
    if not isinstance(cast("object", config), Mapping):
        raise TypeError(f"`config` is {config!r:.80}: {HOW_CONFIG}.")
    place = cast("object", config.get("configurable", {}))
    if not isinstance(place, Mapping):
        raise TypeError(f"`configurable` is {place!r:.80}: {HOW_CONFIG}.")
    thread_id: object = cast("Any", place).get("thread_id")
    return None if thread_id is None else str(thread_id)


def _calls(snapshot: StateSnapshot) -> Iterator[tuple[str, StateSnapshot]]:
    """Walk down to the node-form calls, whose state a decision can be written to."""
    for task in snapshot.tasks:
        inner = task.state if isinstance(task.state, StateSnapshot) else snapshot
        if isinstance(inner.values, dict) and LOOP in inner.values:
            for question in task.interrupts:
                yield question.id, inner
        elif inner is not snapshot:
            yield from _calls(inner)


async def _saved_call(
    graph: Any, config: RunnableConfig, value: dict[str, Any]
) -> CheckpointTuple | None:
    """Read a function-form call's newest checkpoint, which the graph itself does not show."""
    saver = saver_of(graph)
    if saver is None:
        return None
    return await newest_checkpoint(saver, thread_of(config), namespace_in(value))


KEPT: dict[str, Any] = {}
"""In place of a question: the call was not made again, and keeps the answer that it was given."""


async def question_now(review: Waiting) -> dict[str, Any] | None:
    """Return the current question of a function-form call, even if the thread does not show it."""
    if review.call_config is not None:
        return None
    saved = await _saved_call(review.graph, review.config, review.value)
    if saved and saved.checkpoint["channel_values"].get(ANSWER) is not None:
        return KEPT
    for _, channel, asked in (saved and saved.pending_writes) or ():
        question = intervention(asked[0].value) if channel == INTERRUPT else None
        if saved and question and waits_for(saved, question["review_id"]):
            return question
    return None


async def _has_moved(graph: Any, snapshot: StateSnapshot, question: Interrupt) -> bool:
    """Return whether a function-form call on a server has continued since it asked.

    If a task failed or its run was cancelled, the server still shows answered questions.
    """
    asked_at = question.value.get("checkpoint_id")
    if asked_at is None:
        return False
    namespace = namespace_in(question.value)
    place = {"thread_id": thread_of(snapshot.config), "checkpoint_ns": namespace}
    try:
        newest = await get_state(graph, {"configurable": place})
    except Exception as error:
        if http_status(error) not in (400, 404):
            raise
        # An older server does not show the state of such a call, only who answered by which id.
        answers = await RemoteRuns(graph, snapshot.config).answers()
        return question.id in [name for _, _, name in answers]
    return newest.config.get("configurable", {}).get("checkpoint_id") not in (None, asked_at)
