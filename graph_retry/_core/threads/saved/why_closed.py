"""Explain why a review can no longer be answered, and who or what ended it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import Any, NamedTuple

from langchain_core.runnables import RunnableConfig
from langgraph.types import StateSnapshot

from graph_retry._core.ground.functions.arguments import checked
from graph_retry._core.ground.functions.awaiting import sleep
from graph_retry._core.ground.functions.informing import informing
from graph_retry._core.ground.issues import literal
from graph_retry._core.ground.json import is_object
from graph_retry._core.langgraph.open_questions import intervention, namespace_in, value_in
from graph_retry._core.langgraph.storage.lock import ThreadLock, pauses
from graph_retry._core.review.deadline import EXPIRE
from graph_retry._core.state.attempts import records_in
from graph_retry._core.state.kept import whole
from graph_retry._core.state.namespaces import tasks_in
from graph_retry._core.state.position import ANSWER, is_open, loop_of, review_id_of
from graph_retry._core.threads.saved.graphs import (
    asked_by,
    get_state,
    is_remote,
    node_names,
    saver_of,
    thread_of,
)
from graph_retry._core.threads.saved.thread_state import read_newest, read_whole, reader_of
from graph_retry._core.threads.saved.view import ThreadView
from graph_retry._core.threads.server.runs import RemoteRuns, is_error_of
from graph_retry.errors import CallCancelled
from graph_retry.lossless._ground import as_repr

_ENDED_BY = {
    "input": "a new run began, with another input,",
    "fork": "the thread was run from an earlier checkpoint",
    "update": "`update_state` changed the state around its call, which the next run makes anew,",
}
"""Words for what ended an open review, by the `source` of the next checkpoint."""

_CONTINUE = "`resume(graph, config)` without a decision"

_NO_RUN = (
    "its checkpointer has no run of this thread (to answer, give the graph with the checkpointer "
    "of the run that asked; to begin a run, give its input as `start=`)"
)

_UNTIL_NOTED_S = 10.0  # The seconds that a late answer waits until the first answer is saved.


async def _readable(graph: Any, config: RunnableConfig) -> ThreadView:
    """Read all checkpoints of a thread; only the newest one if they cannot be listed."""
    views: list[ThreadView] = []
    with informing("reading what closed a review"):
        views.append(await read_whole(graph, config))
    if views:
        return views[0]
    saver = saver_of(graph)
    return ThreadView() if saver is None else await read_newest(saver, thread_of(config), [""])


async def why_closed(
    graph: Any, config: RunnableConfig, lock: ThreadLock | None, review_id: str | None
) -> str:
    """Say why a review is closed, and how to continue its thread.

    If `review_id` is None, the text is about the thread's last review. A question disappears before
    the run has saved its answer, so the function waits up to 10 seconds for the answer.
    """
    at_rest, lengths, waited = lock is None, pauses(), 0.0
    while True:
        at_rest = at_rest or (lock is not None and await lock.try_acquire())
        thread = await _readable(graph, config)
        why = _asked_again(
            thread, review_id, await _event(graph, config, review_id, thread)
        ) or await _renamed(graph, config, thread)
        if why is not None or at_rest or waited >= _UNTIL_NOTED_S:
            break
        pause = next(lengths)
        await sleep(pause)
        waited += pause
    if why is None and at_rest:  # An active run may be about to ask.
        why = _NO_RUN if thread.root is None else _not_shown(thread, review_id)
    what = "question of that id" if review_id else "question of a call"
    why = why or f"the thread shows no {what}, and no answer to one"
    state = await get_state(graph, config)
    # A server may hide the state of calls, and shows that the thread waits.
    waits = thread.waiting() or (is_remote(graph) and state.interrupts)
    if other_question(state) or (at_rest and not waits):
        why = f"{why}. {_standing(state, _CONTINUE)}".rstrip(". ")
    return why


async def standing_of(graph: Any, config: RunnableConfig, how: str) -> str:
    """Say what a thread without an open review waits for, and how to continue it.

    If a call waits in a node that this graph lacks, this graph must not continue the thread. The
    text then names the node.
    """
    elsewhere = await _renamed(graph, config, await _readable(graph, config))
    if elsewhere is not None:
        return f"{elsewhere[0].upper()}{elsewhere[1:]}."
    return _standing(await get_state(graph, config), how)


def _standing(state: StateSnapshot, how: str) -> str:
    """Say what a thread waits for, or how to continue it; "" if the thread has ended."""
    if other := other_question(state):
        return f"The thread waits for {other}."
    if not state.next:
        return ""
    nodes = ", ".join(f"`{node}`" for node in state.next)
    errors = [str(task.error) for task in state.tasks if task.error]
    if errors:
        at = f"The thread is at {nodes}, and its last run ended with {errors[0]}"
        return f"{at}: {how} continues from there."
    return f"The thread is at {nodes}: if nobody runs it, {how} continues from there."


async def closing_event(graph: Any, config: RunnableConfig, review_id: str | None = None) -> str:
    """Say what closed a review: an answer and its author, an input or an update; "" if unknown.

    If `review_id` is None, the text is about the thread's last review. If the review still waits,
    for example in another graph, the text is "".
    """
    thread = await _readable(graph, config)
    waiting = [name for name in thread.waiting().values() if review_id in (None, name)]
    return "" if waiting else await _event(graph, config, review_id, thread) or ""


async def _event(
    graph: Any, config: RunnableConfig, review_id: str | None, thread: ThreadView
) -> str | None:
    """Describe the answer, input or update that closed a review, with its time, or return None."""
    events = [
        (each.at, each.review_id, f"{each.author} answered it at {each.at}{each.what}")
        for each in await _answers(graph, config, thread)
    ]
    whose = "it" if review_id else "its last one"
    for ended, end in thread.ended_unanswered.items():
        at, how = end.checkpoint["ts"], _ENDED_BY[end.metadata.get("source", "")]
        events.append((at, ended, f"nobody had answered {whose} when {how} at {at}"))
    in_order = sorted(events, key=itemgetter(0))
    found = [event for event in in_order if review_id in (None, event[1])]
    return found[-1][2] if found else None


async def answers_to(graph: Any, config: RunnableConfig, review_id: str) -> list[tuple[str, str]]:
    """List the saved answers to a review as (time, author), earliest first.

    The author of a default decision is `system`.
    """
    answers = await _answers(graph, config, await _readable(graph, config))
    return sorted((each.at, each.author) for each in answers if each.review_id == review_id)


class _Answered(NamedTuple):
    """An answer to a review of a thread. `what` describes the answer, if known."""

    at: str
    author: str
    review_id: str
    what: str = ""


async def _answers(graph: Any, config: RunnableConfig, thread: ThreadView) -> list[_Answered]:
    notes: list[_Answered] = []
    for namespace, values in thread.calls():
        written: Any = values.get(ANSWER)
        if is_object(written):
            value: Any = written["value"] if is_object(written["value"]) else {}
            by = f"human:{value['by']}" if "by" in value else "human"
            by = "system" if value.get("type") == EXPIRE else by
            at, of = written.get("at") or "", value.get("review_id", "")
            notes.append(_Answered(at, by, of, " (not used so far)"))
        review = loop_of(values)["review"]
        notes += _notes(review["before"] if review else ())
        read = reader_of(graph, thread_of(config), namespace)
        records = await whole(records_in(values), read)
        notes += _notes(record["decision"] for record in records if record["decision"])
    if is_remote(graph):
        notes += [_Answered(*each) for each in await RemoteRuns(graph, config).answers()]
    return notes


def _asked_again(thread: ThreadView, review_id: str | None, event: str | None) -> str | None:
    """Say how a review was closed and which review replaces it. Without one, return `event`."""
    for _, values in thread.calls():
        records, review = records_in(values), loop_of(values)["review"]
        if not records or not review or not is_open(values, review["review_id"]):
            continue
        key = records[-1]["idempotency_key"]
        if review_id in [review_id_of(key, round_) for round_ in range(1, review["round"])]:
            refused = review["problem"] and f"an answer to it was refused ({review['problem']})"
            again = f"it is asked again as review {as_repr(review['review_id'])}"
            return ", and ".join(filter(None, [event or refused, again]))
    return event


def _not_shown(thread: ThreadView, review_id: str | None) -> str | None:
    """Return advice if a call waits but its thread does not show its question, or None."""
    if review_id not in thread.waiting().values():
        return None
    return (
        "the thread does not show it yet: answer the open reviews, or continue the thread with "
        "`resume(graph, config)`"
    )


async def _renamed(graph: Any, config: RunnableConfig, thread: ThreadView) -> str | None:
    """Return a text about a call that waits in a node that the graph lacks, or None."""
    waiting = thread.waiting()
    if is_remote(graph):
        values = map(intervention, await RemoteRuns(graph, config).questions())
        waiting = {namespace_in(value): value["review_id"] for value in values if value}
    own = await asked_by(graph, waiting)
    for namespace, review_id in waiting.items():
        if namespace not in own:
            names, path = await node_names(graph), tasks_in(namespace)
            known = ", ".join(f"`{name}`" for name in names)
            has = (
                f"which is different in this graph: `{path[0]}` may be a subgraph now"
                if path[0] in names
                else f"which is not in this graph (its nodes are {known})"
            )
            return (
                f"review {as_repr(review_id)} waits in node `{' > '.join(path)}`, {has}: give "
                "the graph that asked, or restore the node's old graph or name"
            )
    return None


def other_question(state: StateSnapshot) -> str:
    """Describe an open interrupt that is no review, and how to answer it; "" if there is none."""
    for question in state.interrupts:
        if value_in(question) is None:
            value: Any = question.value if is_object(question.value) else {}
            requests: list[Any] = value.get("action_requests") or [question.value]
            names = [item.get("name", item) if is_object(item) else item for item in requests]
            asked = ", ".join(literal(name, 80) for name in names[:5])
            return (
                f"another interrupt ({asked}), to be answered with LangGraph's `Command(resume=…)`"
            )
    return ""


def _notes(decisions: Iterable[Mapping[str, Any]]) -> list[_Answered]:
    return [
        _Answered(note["at"], note["author"], note.get("review_id", ""), f" ({note['type']})")
        for note in decisions
    ]


@checked
def is_rejection(error: Exception, decisions: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether `resume` raised `error` only because one of the `decisions` is a rejection.

    The run of a rejected call may end with `CallCancelled`.

    Example:
        >>> is_rejection(CallCancelled("too dear"), [{"type": "reject"}])
        True
    """
    rejects = any(decision["type"] == "reject" for decision in decisions)
    return rejects and is_error_of(CallCancelled, error)
