"""The questions that a thread shows to people. Only these questions can be answered.

LangGraph gives a plain answer (one without an interrupt id) to the first question of the run. After
a crash, nobody may have seen that question yet. If a task makes several calls, the question may
belong to a call that the person has not seen.

LangGraph saves questions as writes to the channel INTERRUPT, and answers as writes to RESUME. Both
are beside the newest checkpoint of the outermost graph until the step ends. (Observed by reading
the writes of a thread after each kind of answer.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.serde.types import INTERRUPT, RESUME
from langgraph.config import get_config
from langgraph.types import Interrupt

from graph_retry._functions.awaiting import SharedReads
from graph_retry._langgraph.checkpoints import (
    NO_TASK,
    newest_checkpoint,
    put_writes,
    waits_for,
)
from graph_retry._langgraph.run_config import began_at, call_namespace, has_answer, saver_in
from graph_retry._state.namespaces import outermost
from graph_retry._texts.json import is_object
from graph_retry.records import INTERVENTION

_GIVEN = "graph_retry_given"
"""The key of the mark that replaces a plain answer in the thread after a question received it."""


class Shown(NamedTuple):
    """The facts about a question before it is asked.

    `is_ours` means that the thread already shows this question. `is_for_another` means that a
    waiting answer is meant for a different question.
    """

    is_ours: bool = True
    is_for_another: bool = False
    saver: BaseCheckpointSaver[Any] | None = None
    thread: CheckpointTuple | None = None

    async def note_given(self, answer: Any) -> bool:
        """Mark a plain answer in the thread as used; return whether it had already been used.

        If a thread runs without a new answer, LangGraph gives the old answer to the next question.
        The mark shows that the answer is old. A marked answer that arrives again is removed.
        """
        before = is_object(answer) and answer.keys() == {_GIVEN}
        if self.saver is not None and self.thread is not None:
            marked = None if before or not self.is_ours else {_GIVEN: True}
            for task, channel, value in self.thread.pending_writes or ():
                if channel == RESUME and value == answer:
                    await put_writes(self.saver, self.thread.config, [(RESUME, marked)], task)
        return before


async def look_at_shown(review_id: str, reads: SharedReads) -> Shown:
    """Find the question for which an answer waits, before `interrupt` takes that answer.

    An answer was sent before this run. Therefore the questions that the thread showed when the
    first call of the execution looked (`reads`) tell more than those of a later moment.
    """
    configurable = get_config().get("configurable", {})
    saver = saver_in(configurable)
    if saver is None or not has_answer(configurable):
        return Shown()
    thread_id = str(configurable["thread_id"])
    thread = await reads.get("thread", partial(newest_checkpoint, saver, thread_id, ""))
    questions = list(questions_of(thread))
    if any(question.get("review_id") == review_id for question in questions):
        return Shown(saver=saver, thread=thread)
    for question in questions:
        namespace = question.get("checkpoint_ns")
        if namespace == call_namespace():
            continue  # The call already has the answer to this earlier question.
        call = None if namespace is None else await newest_checkpoint(saver, thread_id, namespace)
        if call is None or waits_for(call, question.get("review_id")):
            return Shown(is_ours=False, is_for_another=True)
    return Shown(is_ours=False, saver=saver, thread=thread)


def intervention(value: Any) -> dict[str, Any] | None:
    """Return the value of an interrupt if graph-retry raised it; otherwise None."""
    return value if is_object(value) and value.get("type") == INTERVENTION else None


def namespace_in(question: Mapping[str, Any]) -> str:
    """Return the namespace of the call that asks a question."""
    return str(question["checkpoint_ns"])


async def drop_plain_answer(saver: BaseCheckpointSaver[Any], thread: CheckpointTuple) -> None:
    """Remove a plain answer from a thread before a run with answers by id.

    The plain answer belongs to an earlier run. LangGraph keeps the answer until the outermost node
    ends, and would give it to the next `interrupt` in that node, even for another question.
    """
    for task, channel, value in thread.pending_writes or ():
        if channel == RESUME and task == NO_TASK and value is not None:
            await put_writes(saver, thread.config, [(RESUME, None)], task)


def was_sent_before(asked_at: str | None) -> bool:
    """Return whether the run that brings an answer was created before its question was asked.

    Therefore the second click of a double click does not answer the next question.
    """
    created = created_at(get_config().get("metadata", {}).get("run_id"))
    return created is not None and asked_at is not None and created < asked_at


def sent_at(caller: RunnableConfig | None) -> str | None:
    """Return the best known time of the answer that resumed this run.

    On a server, this time is the creation of the run. Without a server, it is the start of the
    node, because the code of the node may run for long before it makes the call again.
    """
    created = created_at(get_config().get("metadata", {}).get("run_id"))
    return created or began_at((caller or {}).get("configurable", {}))


def created_at(run_id: Any) -> str | None:
    """Return the creation time in a run's id (a server's is a UUID of version 7), or None.

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


def questions_of(thread: CheckpointTuple | None) -> Iterator[dict[str, Any]]:
    """Yield each question's payload; an open interrupt of the user's own code gives `{}`."""
    writes: Any = (thread and thread.pending_writes) or ()
    answered = {task for task, channel, _ in writes if channel == RESUME}
    for task, channel, questions in writes:
        for question in questions if channel == INTERRUPT else ():
            if (asked := intervention(question.value)) is not None:
                yield asked
            elif task not in answered:
                yield {}


def asked_in(state: Any) -> list[Any]:
    """Return the interrupt values in a run's result. A server's result has interrupts as dicts."""
    found: list[Any] = state.get("__interrupt__") or [] if is_object(state) else []
    return [getattr(interrupt, "value", None) or interrupt["value"] for interrupt in found]


def interventions(interrupts: Iterable[Interrupt]) -> Iterator[tuple[Interrupt, dict[str, Any]]]:
    """Yield the interrupts that graph-retry raised, each with its value."""
    for interrupt in interrupts:
        if (value := intervention(interrupt.value)) is not None:
            yield interrupt, value


def shown_at(thread: CheckpointTuple | None) -> Iterator[tuple[Interrupt, dict[str, Any]]]:
    """Yield graph-retry's interrupts that a thread shows, including answered ones.

    A question inside a `@task` of an entrypoint is written twice: by that task, and later by the
    entrypoint's own task, when the entrypoint waits for its result. Only then can it be answered.
    """
    for task, channel, questions in (thread and thread.pending_writes) or ():
        if channel == INTERRUPT:
            for question, asked in interventions(questions):
                first = outermost(namespace_in(asked))
                if first.id in ("", task):
                    yield question, asked
