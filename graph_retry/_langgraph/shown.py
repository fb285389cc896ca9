"""The questions that a thread shows to people; only those can be answered.

LangGraph gives an answer that names no question to the first question of the run. After a run that
was cut off, nobody may have seen that question. Beside other calls, it may be another call's.

LangGraph saves questions as writes to the channel INTERRUPT beside the newest checkpoint of the
outermost graph, and answers as writes to RESUME, which stay until the step has ended. Found by
reading the writes of a thread after each kind of answer.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.serde.types import INTERRUPT, RESUME
from langgraph.config import get_config
from langgraph.types import Interrupt

from graph_retry._json import is_object
from graph_retry._langgraph.checkpoints import (
    NO_TASK,
    list_checkpoints,
    newest_checkpoint,
    place_of,
    put_writes,
    read_checkpoint,
    waits_for,
)
from graph_retry._langgraph.open_reviews import has_table, waiting_in
from graph_retry._langgraph.run_config import began_at, call_namespace, has_answer, saver_in
from graph_retry._namespaces import outermost

_LOG = logging.getLogger("graph_retry")
_MAX_TOLD = 1_000
_told: set[str] = set()
"""Ended reviews that were warned of."""

_GIVEN = "graph_retry_given"
"""The key under which a thread keeps a given answer."""


@dataclass(frozen=True)
class Shown:
    """The facts about a question before it is asked.

    `is_ours` tells whether the thread shows it, and `is_for_another` whether a waiting answer is
    meant for another question.
    """

    is_ours: bool = True
    is_for_another: bool = False
    saver: BaseCheckpointSaver[Any] | None = None
    thread: CheckpointTuple | None = None

    async def note_given(self, answer: Any) -> bool:
        """Mark an answer that names no question as given; tell whether it was given before.

        If the thread continues without a new answer, LangGraph gives the old one to the next
        question. A marked answer that comes again is removed from the thread.
        """
        before = is_object(answer) and answer.keys() == {_GIVEN}
        if self.saver is not None and self.thread is not None:
            marked = None if before or not self.is_ours else {_GIVEN: True}
            for task, channel, value in self.thread.pending_writes or ():
                if channel == RESUME and value == answer:
                    await put_writes(self.saver, self.thread.config, [(RESUME, marked)], task)
        return before


async def look_at_shown(review_id: str) -> Shown:
    """Read the thread's state if an answer waits for the next question."""
    configurable = get_config().get("configurable", {})
    saver = saver_in(configurable)
    if saver is None or not has_answer(configurable):
        return Shown()
    thread_id = str(configurable["thread_id"])
    thread = await newest_checkpoint(saver, thread_id, "")
    questions = list(questions_of(thread))
    if any(question.get("review_id") == review_id for question in questions):
        return Shown(saver=saver, thread=thread)
    for question in questions:
        namespace = question.get("checkpoint_ns")
        if namespace == call_namespace():
            continue  # this earlier question of the call is answered
        call = None if namespace is None else await newest_checkpoint(saver, thread_id, namespace)
        if call is None or waits_for(call, question.get("review_id")):
            return Shown(is_ours=False, is_for_another=True)
    return Shown(is_ours=False, saver=saver, thread=thread)


def namespace_in(question: Mapping[str, Any]) -> str:
    """Return the namespace of the call that asks a question."""
    return str(question["checkpoint_ns"])


async def drop_plain_answer(saver: BaseCheckpointSaver[Any] | None, thread_id: str) -> None:
    """Remove an answer that names no question from a thread that is run with other answers.

    The answer was for the run before. LangGraph keeps it until the outermost node has ended, and
    would give it to the next `interrupt` in that node, whatever that asks.
    """
    thread = None if saver is None else await newest_checkpoint(saver, thread_id, "")
    for task, channel, value in (thread and thread.pending_writes) or ():
        if saver and thread and channel == RESUME and task == NO_TASK and value is not None:
            await put_writes(saver, thread.config, [(RESUME, None)], task)


def was_sent_before(asked_at: str | None) -> bool:
    """Return whether the run of an answer was created before its question was asked.

    So the second click of a double click is not taken for an answer to the next question.
    """
    created = created_at(get_config().get("metadata", {}).get("run_id"))
    return created is not None and asked_at is not None and created < asked_at


def sent_at(caller: RunnableConfig | None) -> str | None:
    """Return when the answer was given that resumed this run, as exactly as it can be known.

    A server tells when it created the run. Without a server it is the time when the node began,
    because the node's code may run for long before it reaches the call again.
    """
    created = created_at(get_config().get("metadata", {}).get("run_id"))
    return created or began_at((caller or {}).get("configurable", {}))


def created_at(run_id: Any) -> str | None:
    """Return when a run was created, if its id has the time: a server's is a UUID of version 7.

    Example:
        >>> created_at("01a202b9-959f-769c-8f43-4d60c3bb9df1")
        '2026-11-22T10:07:26.623+00:00'
    """
    try:
        run = UUID(str(run_id))
    except ValueError:
        return None
    if run.version != 7:
        return None
    created = datetime.fromtimestamp((run.int >> 80) / 1000, UTC)
    return created.isoformat(timespec="milliseconds")


async def tell_ended_by_input(saver: BaseCheckpointSaver[Any], thread_id: str | None) -> None:
    """Warn of the open reviews that the newest input of a thread ended: nobody can answer them."""
    if has_table(saver) and not await waiting_in(saver, thread_id or ""):
        return
    inputs = await list_checkpoints(saver, place_of(thread_id), filter={"source": "input"}, limit=1)
    head = inputs[0].parent_config if inputs else None
    before = await read_checkpoint(saver, head) if head else None
    for question in questions_of(before):
        call = await newest_checkpoint(saver, thread_id, question.get("checkpoint_ns", ""))
        if call is not None and waits_for(call, question.get("review_id")):
            tell_ended(question["review_id"], question["function_name"], thread_id)


def tell_ended(review_id: str, name: str, thread_id: str | None) -> None:
    """Warn, once in a process, of an open review that a new input of its thread ended."""
    if review_id not in _told and len(_told) < _MAX_TOLD:
        _told.add(review_id)
        _LOG.warning(
            "review %s of `%s` (thread %r) was ended unanswered: the thread was given a new input; "
            "answer with `resume` before a thread is run with an input again",
            *(review_id, name, thread_id),
        )


def questions_of(thread: CheckpointTuple | None) -> Iterator[dict[str, Any]]:
    """Yield the values of all questions a thread shows; an open one that is not ours is empty."""
    writes: Any = (thread and thread.pending_writes) or ()
    answered = {task for task, channel, _ in writes if channel == RESUME}
    for task, channel, questions in writes:
        for question in questions if channel == INTERRUPT else ():
            if is_object(question.value) and "review_id" in question.value:
                yield question.value
            elif task not in answered:
                yield {}


def asked_in(state: Any) -> list[Any]:
    """Return the values of the interrupts that a run stopped at, by its result.

    A server's result has them as dicts.
    """
    found: list[Any] = state.get("__interrupt__") or [] if is_object(state) else []
    return [getattr(interrupt, "value", None) or interrupt["value"] for interrupt in found]


def interrupts_shown(thread: CheckpointTuple | None) -> Iterator[Interrupt]:
    """Yield the interrupts of ours that a thread shows, answered ones included.

    A question in a `@task` of an entrypoint is written by that task, and by the outermost one as
    soon as the entrypoint has come to its result. Only then can it be answered.
    """
    writes: Any = (thread and thread.pending_writes) or ()
    for task, channel, questions in writes:
        for question in questions if channel == INTERRUPT else ():
            if is_object(question.value) and "checkpoint_ns" in question.value:
                first = outermost(namespace_in(question.value))
                if not first.is_task or first.id == task:
                    yield question
