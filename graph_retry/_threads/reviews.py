"""Find the reviews a thread waits for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

from langchain_core.runnables import RunnableConfig
from langgraph.pregel import Pregel
from langgraph.types import Interrupt, StateSnapshot

from graph_retry._attempts import records_in
from graph_retry._engine.checkpoints import newest_checkpoint
from graph_retry._engine.keeping import whole
from graph_retry._engine.state import ANSWER, LOOP, is_open, loop_of
from graph_retry._issues import literal
from graph_retry._json import is_object
from graph_retry._redact import shown_record
from graph_retry._review.payload import INTERVENTION
from graph_retry._review.shown import Review, parts_of
from graph_retry._threads.calls import read_ledgers, read_saved, reader_of
from graph_retry._threads.graphs import (
    get_state,
    is_local,
    is_remote,
    node_names,
    saver_of,
)
from graph_retry._threads.hidden import hidden_calls
from graph_retry._threads.remote_runs import RemoteRuns, http_status
from graph_retry._threads.saved import SavedThread
from graph_retry._wording import quoted_with_article
from graph_retry.records import Attempt


@dataclass(frozen=True, kw_only=True)
class Waiting(Review):
    """A review and where it waits.

    `graph` is None where nothing but a checkpointer is known. `call_config` tells where the call's
    own state is, if an answer can be written there. A `hidden` one is out of LangGraph's sight
    since somebody updated the state of the graph around it; `resume` brings it back, and `hidden`
    is the checkpoint its call was made from.
    """

    interrupt_id: str
    graph: Any = field(repr=False)
    config: RunnableConfig = field(repr=False)
    call_config: RunnableConfig | None = field(default=None, repr=False)
    hidden: str = field(default="", repr=False)


HOW_CONFIG = 'pass {"configurable": {"thread_id": …}}'
"""What a config is like that names a thread."""

WaitingT = TypeVar("WaitingT", bound=Waiting)


async def shown_reviews(graph: Any, config: RunnableConfig, kind: type[WaitingT]) -> list[WaitingT]:
    """Return a thread's open reviews as users see them."""
    return await whole_reviews(graph, await find_reviews(graph, config, kind))


async def whole_reviews(source: Any, reviews: Sequence[WaitingT]) -> list[WaitingT]:
    """Return reviews with the records of their histories made whole, where that can be read."""
    made: list[WaitingT] = []
    for review in reviews:
        where = source if review.graph is None else review.graph
        read = reader_of(where, review.thread_id, review.value["checkpoint_ns"])
        history = list(map(shown_record, await whole(review.history, read)))
        made.append(replace(review, history=history))
    return made


async def find_reviews(graph: Any, config: RunnableConfig, kind: type[WaitingT]) -> list[WaitingT]:
    """Read a thread's state and return its open reviews."""
    thread_id = thread_of(config)
    if not hasattr(graph, "get_state"):
        came = quoted_with_article(type(graph).__name__)
        raise TypeError(f"`graph` is {came}: pass what `compile(checkpointer=…)` gives.")
    own = cast("RunnableConfig", getattr(graph, "config", None) or {})
    if thread_id is None and thread_of(own) is None:
        raise ValueError(f"`config` names no thread: {HOW_CONFIG}.")
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
        values = call.values if call else await _saved_call(graph, config, value)
        if values is None and not local and await _has_moved(graph, snapshot, question):
            continue
        # LangGraph shows a question until its node has ended: an answered one while its answer
        # is applied, too, and after a crash on the way.
        if values is None or (is_open(values, value["review_id"]) and _is_reached(call)):
            _check_place(graph, value["checkpoint_ns"])
            parts = parts_of(value, records_in(values), thread_id)
            place = call.config if call and local else None
            reviews.append(kind(interrupt_id=question.id, call_config=place, **where, **parts))
    for lost in await hidden_calls(graph, config, snapshot):
        parts = parts_of(lost.question.value, records_in(lost.values), thread_id)
        reviews.append(kind(interrupt_id=lost.question.id, hidden=lost.root, **where, **parts))
    return reviews


def _is_reached(call: StateSnapshot | None) -> bool:
    """Tell whether the question was saved, too: a crash may come between it and its message."""
    return call is None or call.next == ("review",)


def _check_place(graph: Any, namespace: str) -> None:
    """Refuse a call that an answer would not reach, since a graph around it keeps nothing."""
    for part in namespace.split("|")[:-1]:
        name = part.partition(":")[0]
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
) -> dict[str, Any] | None:
    """Read a function-form call's state, which the graph itself does not show."""
    saver = saver_of(graph)
    if saver is None:
        return None
    saved = await newest_checkpoint(saver, thread_of(config), value["checkpoint_ns"])
    return None if saved is None else saved.checkpoint["channel_values"]


async def is_unanswered(review: Waiting) -> bool:
    """Tell whether a function-form call of this process still has the question it had."""
    if review.call_config is not None:
        return False
    values = await _saved_call(review.graph, review.config, review.value)
    return values is not None and is_open(values, review.review_id)


async def _has_moved(graph: Any, snapshot: StateSnapshot, question: Interrupt) -> bool:
    """Tell whether a function-form call on a server went on after it asked.

    Where a task failed, or its run was cancelled, the server shows answered questions, too.
    """
    asked_at = question.value.get("checkpoint_id")
    if asked_at is None:
        return False
    namespace = question.value["checkpoint_ns"]
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


async def who_answered(graph: Any, config: RunnableConfig, review_id: str | None) -> str | None:
    """Say who answered a review and when, as far as the thread tells; None is the last one.

    The answer of a run that goes on may not be written down yet: then nothing is returned.
    """
    notes: list[tuple[str, str, str]] = []
    saved = await read_saved(graph, config)
    for namespace, values in saved.calls() if saved else ():
        written: Any = values.get(ANSWER)
        if is_object(written):
            value: Any = written["value"] if is_object(written["value"]) else {}
            by = f"human:{value['by']}" if "by" in value else "human"
            notes.append((written.get("at") or "", by, value.get("review_id", "")))
        read = reader_of(graph, thread_of(config), namespace)
        notes += _notes(await whole(records_in(values), read))
    if is_remote(graph):
        notes += await RemoteRuns(graph, config).answers()
        for ledger in await read_ledgers(graph, config):
            read = reader_of(graph, thread_of(config), ledger.namespace)
            notes += _notes(await whole(ledger.attempts, read))
    for at, author, answered in sorted(notes, reverse=True):
        if review_id in (None, answered):
            return f"{author} answered it at {at}"
    return await _renamed(graph, config, saved)


async def _renamed(graph: Any, config: RunnableConfig, saved: SavedThread | None) -> str | None:
    """Name the node of a call that waits, if the graph has none of that name."""
    if is_remote(graph):
        values = map(intervention, await RemoteRuns(graph, config).questions())
        waiting = [(value["checkpoint_ns"], value["review_id"]) for value in values if value]
    else:
        waiting = [
            (namespace, review["review_id"])
            for namespace, values in (saved.calls() if saved and is_local(graph) else ())
            if (review := loop_of(values)["review"]) and is_open(values, review["review_id"])
        ]
    nodes = await node_names(graph) if waiting else []
    for namespace, review_id in waiting:
        node = namespace.partition(":")[0]
        if node and node not in nodes:
            return (
                f"review {review_id!r} waits in node `{node}`, which the graph does not have (its "
                f"nodes are {', '.join(f'`{name}`' for name in nodes)}): give the node its old "
                "name back"
            )
    return None


async def other_question(graph: Any, config: RunnableConfig) -> str:
    """Name an interrupt that is no review, such as an approval of LangChain's middleware."""
    for question in (await get_state(graph, config)).interrupts:
        if intervention(question.value) is None:
            value: Any = question.value if is_object(question.value) else {}
            requests: list[Any] = value.get("action_requests") or [question.value]
            names = [item.get("name", item) if is_object(item) else item for item in requests]
            asked = ", ".join(literal(name, 80) for name in names[:5])
            return (
                f"; but the thread waits for an interrupt of another kind ({asked}), which is "
                "answered with LangGraph's `Command(resume=…)`"
            )
    return ""


def _notes(attempts: list[Attempt]) -> list[tuple[str, str, str]]:
    """List when and by whom attempts were reviewed, and the review's id."""
    decisions = [attempt["decision"] for attempt in attempts]
    return [(note["at"], note["author"], note.get("review_id", "")) for note in decisions if note]
