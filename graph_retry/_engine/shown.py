"""Which questions a thread shows to people: only those can be answered.

An answer that names no question goes to the first one that is asked in the run. After a run that
was cut off, that may be one nobody has seen; beside other calls, it may be another call's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.serde.types import INTERRUPT, RESUME
from langgraph.config import get_config

from graph_retry._engine.checkpoints import newest_checkpoint, put_writes, waits_for
from graph_retry._engine.run_config import has_answer, saver_in
from graph_retry._engine.state import call_namespace
from graph_retry._json import is_object

_GIVEN = "graph_retry_given"
"""The key of what stands in a thread for an answer that was given."""


@dataclass(frozen=True)
class Shown:
    """What is known of a question before it is asked.

    `is_ours` tells whether the thread shows it, and `is_for_another` whether a waiting answer is
    meant for another question.
    """

    is_ours: bool = True
    is_for_another: bool = False
    saver: BaseCheckpointSaver[Any] | None = None
    thread: CheckpointTuple | None = None

    async def note_given(self, answer: Any) -> bool:
        """Mark an answer that names no question as given; tell whether it was given before.

        LangGraph keeps it, and gives it to the next question, too, where the thread is run on
        without an answer. A marked one that comes again is taken out of the thread.
        """
        before = is_object(answer) and answer.keys() == {_GIVEN}
        if self.saver is not None and self.thread is not None:
            marked = None if before or not self.is_ours else {_GIVEN: True}
            for task, channel, value in self.thread.pending_writes or ():
                if channel == RESUME and value == answer:
                    await put_writes(self.saver, self.thread.config, [(RESUME, marked)], task)
        return before


async def look_at_shown(review_id: str) -> Shown:
    """Read what the thread shows, if an answer waits for the question that is to be asked."""
    configurable = get_config().get("configurable", {})
    saver = saver_in(configurable)
    if saver is None or not has_answer(configurable):
        return Shown()
    thread_id = str(configurable["thread_id"])
    thread = await newest_checkpoint(saver, thread_id, "")
    questions = list(_questions(thread))
    if any(question.get("review_id") == review_id for question in questions):
        return Shown(saver=saver, thread=thread)
    for question in questions:
        namespace = question.get("checkpoint_ns")
        if namespace == call_namespace():
            continue  # an earlier question of this call, which is answered
        call = None if namespace is None else await newest_checkpoint(saver, thread_id, namespace)
        if call is None or waits_for(call, question.get("review_id")):
            return Shown(is_ours=False, is_for_another=True)
    return Shown(is_ours=False, saver=saver, thread=thread)


def was_sent_before(asked_at: str | None) -> bool:
    """Tell whether the run of an answer was created before its question was asked."""
    return is_older(get_config().get("metadata", {}).get("run_id"), asked_at)


def is_older(run_id: Any, moment: str | None) -> bool:
    """Tell whether a run was created before a moment, as far as its id tells.

    Servers name runs by UUIDs of version 7, whose first 48 bits are milliseconds. So a second click
    that waits for the first one's run is told from an answer to what that run asks.

    Example:
        >>> run_id = "01a202b9-959f-769c-8f43-4d60c3bb9df1"
        >>> is_older(run_id, "2027-03-03T12:00:00.000+00:00")
        True
    """
    try:
        created = UUID(str(run_id))
        asked = datetime.fromisoformat(moment or "")
    except ValueError:
        return False
    return created.version == 7 and created.int >> 80 < int(asked.timestamp() * 1000)


def _questions(thread: CheckpointTuple | None) -> Iterator[dict[str, Any]]:
    """Yield the values of all questions a thread shows; an open one that is not ours is empty."""
    writes: Any = (thread and thread.pending_writes) or ()
    answered = {task for task, channel, _ in writes if channel == RESUME}
    for task, channel, questions in writes:
        for question in questions if channel == INTERRUPT else ():
            if is_object(question.value) and "review_id" in question.value:
                yield question.value
            elif task not in answered:
                yield {}
