"""The questions that a thread shows to people. Only these questions can be answered.

LangGraph saves questions as writes to the channel INTERRUPT, and answers as writes to the channel
RESUME. Both stay in the pending writes of the outermost graph's newest checkpoint until the step
ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from importlib import import_module
from typing import Any, NamedTuple, cast
from uuid import UUID

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.serde.types import INTERRUPT, RESUME
from langgraph.config import get_config
from langgraph.types import Interrupt, StateSnapshot

from graph_retry._core.ground.json import is_object
from graph_retry._core.langgraph.run_config import began_at
from graph_retry._core.langgraph.storage.checkpoints import NO_TASK, put_writes
from graph_retry._core.state.namespaces import is_of_other, namespace_of_other, outermost
from graph_retry.records import INTERVENTION, SAVED_NAMESPACE


def intervention(value: Any) -> dict[str, Any] | None:
    """Return the value of an interrupt if graph-retry raised it; otherwise None."""
    return value if is_object(value) and value.get("type") == INTERVENTION else None


def value_in(asked: Interrupt, at: str | None = None) -> dict[str, Any] | None:
    """Return the value of the review that an interrupt opens; None if it opens no review.

    `at` is the time when the asking step began. Only questions of other libraries use it.
    """
    if (own := intervention(asked.value)) is not None:
        return own
    if not asked.response_schema and isinstance(asked.value, str | int | None):
        return None
    value = _reader().review_value(asked.value, asked.response_schema, asked.id, at)
    place = {SAVED_NAMESPACE: namespace_of_other(asked.id), "checkpoint_id": ""}
    return None if value is None else {**value, **place}


async def answer_to_other(value: dict[str, Any], given: Any) -> Any:
    """Return an answer in another library's form; raise if the answer does not fit."""
    return await _reader().answer_to(value, given)


def _reader() -> Any:
    # Imported late, because only questions of other libraries need this module.
    return import_module("graph_retry._core.review.clients.others")


def namespace_in(question: Mapping[str, Any]) -> str:
    return str(question.get(SAVED_NAMESPACE, ""))


async def drop_plain_answer(saver: BaseCheckpointSaver[Any], thread: CheckpointTuple) -> None:
    """Remove a plain answer (one without an interrupt id) that an earlier run left."""
    for task, channel, value in thread.pending_writes or ():
        if channel == RESUME and task == NO_TASK and value is not None:
            await put_writes(saver, thread.config, [(RESUME, None)], task)


def was_sent_before(asked_at: str | None) -> bool:
    """Return whether the run that brings an answer was created before its question was asked.

    If it was, the answer belongs to an earlier question. So the second click of a double click
    does not answer the next question.
    """
    created = created_at(get_config().get("metadata", {}).get("run_id"))
    return created is not None and asked_at is not None and created < asked_at


def sent_at(caller: RunnableConfig | None) -> str | None:
    """Return the best known time of the answer that resumed this run.

    On a server, this is the creation time of the run. Elsewhere, it is the time when the node
    began.
    """
    created = created_at(get_config().get("metadata", {}).get("run_id"))
    return created or began_at((caller or {}).get("configurable", {}))


def created_at(run_id: Any) -> str | None:
    """Return the creation time in a run's id (a UUID of version 7 on a server), or None.

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
    """Yield each question's payload; yield `{}` for an open interrupt of other code."""
    writes: Any = (thread and thread.pending_writes) or ()
    answered = {task for task, channel, _ in writes if channel == RESUME}
    for task, channel, questions in writes:
        for question in questions if channel == INTERRUPT else ():
            if (asked := intervention(question.value)) is not None:
                yield asked
            elif task not in answered:
                yield {}


def asked_in(state: Any) -> list[Any]:
    """Return the values of the interrupts in the result of a local or remote run."""
    found: list[Any] = state.get("__interrupt__") or [] if is_object(state) else []
    return [getattr(interrupt, "value", None) or interrupt["value"] for interrupt in found]


def result_at(state: StateSnapshot) -> Any:
    """Return the result of a run that stopped at a state: its values and `__interrupt__`."""
    values, told = cast("Any", state.values), {"__interrupt__": list(state.interrupts)}
    return {**values, **told} if is_object(values) else told


ReadInterrupt = Callable[[Interrupt], dict[str, Any] | None]
"""A function that returns the value of an interrupt's review; None without a review."""


def _own(interrupt: Interrupt) -> dict[str, Any] | None:
    return intervention(interrupt.value)


def interventions(
    interrupts: Iterable[Interrupt], read: ReadInterrupt = _own
) -> Iterator[tuple[Interrupt, dict[str, Any]]]:
    """Yield the interrupts that open reviews (those of graph-retry), each with its value."""
    for interrupt in interrupts:
        if (value := read(interrupt)) is not None:
            yield interrupt, value


class ShownQuestion(NamedTuple):
    """A question of graph-retry that a thread shows. The question may already be answered.

    If `is_apart`, the call is not inside the task that shows the question. The call may be in the
    thread of a `RemoteGraph`, or in a `@task` of an entrypoint. A `@task` shows its question, but
    only the entrypoint can be answered.
    """

    interrupt: Interrupt
    value: dict[str, Any]
    is_apart: bool = False


def questions_at(
    thread: CheckpointTuple | None, read: ReadInterrupt = _own
) -> Iterator[ShownQuestion]:
    """Yield the questions among a checkpoint's pending writes; `read` decides which ones count."""
    for task, channel, questions in (thread and thread.pending_writes) or ():
        if channel == INTERRUPT:
            for question, asked in interventions(questions, read):
                place = namespace_in(asked)
                is_apart = not is_of_other(place) and outermost(place).id not in ("", task)
                yield ShownQuestion(question, asked, is_apart)


def shown_at(thread: CheckpointTuple | None) -> Iterator[ShownQuestion]:
    """Yield the questions whose calls are inside the tasks that show them."""
    return (question for question in questions_at(thread) if not question.is_apart)
