"""Send reminders and escalations about a waiting review. Each is a stage, which is sent once.

A separate namespace of the review's thread has the names of the sent stages, which are deleted with
the thread. While messages are sent, the thread's lock keeps other sweeps out. A stage is saved
after its message was sent. Therefore the next sweep repeats a message that failed, and a crash
repeats at most one message.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    Checkpoint,
    CheckpointMetadata,
    empty_checkpoint,
)

from graph_retry._core.ground.functions.calling import call
from graph_retry._core.ground.json import digest, is_number
from graph_retry._core.ground.wording import passed_as
from graph_retry._core.langgraph.storage.checkpoints import (
    newest_checkpoint,
    place_of,
    put_checkpoint,
    read_checkpoint,
    waits_for,
)
from graph_retry._core.langgraph.storage.lock import ThreadLock
from graph_retry._core.review.deadline import after, is_expired
from graph_retry._core.threads.reviews import PendingReview

TOLD = "graph-retry:told"
"""The namespace of the sent stages, and the metadata key that lists them."""


@dataclass(frozen=True)
class Stage:
    """A function to call if a review still waits `seconds` after its question was asked.

    option: The option of the sweep as which the function was passed.
    """

    option: str
    seconds: float
    tell: Callable[[Any], Any]

    @property
    def name(self) -> str:
        """The name under which the stage is saved when it was sent, such as `remind 3600`."""
        return f"{'remind' if self.option == 'notify' else 'escalate'} {self.seconds}"


def stages_of(
    notify: Callable[[Any], Any] | None,
    remind_after: float | Collection[float] | None,
    escalate_to: Mapping[float, Callable[[Any], Any]] | None,
) -> list[Stage]:
    """List the stages that the options of a sweep ask for, earliest first.

    Raises:
        ValueError: If there is nobody to remind.
    """
    if (remind_after is None) != (notify is None):
        raise ValueError("`remind_after` and `notify` belong together: give both, or neither.")
    given: Any = remind_after or ()
    times: list[Any] = [given] if is_number(given) else list(given)
    stages = [Stage("notify", seconds, notify) for seconds in times if notify]
    stages += [Stage("escalate_to", at, tell) for at, tell in (escalate_to or {}).items()]
    return sorted(stages, key=lambda stage: stage.seconds)


async def remind(
    saver: BaseCheckpointSaver[Any], review: PendingReview, stages: Iterable[Stage]
) -> None:
    """Send the due stages of a review that were not sent, unless another process is sending."""
    asked_at, thread_id = review.asked_at, review.thread_id
    if asked_at is None or thread_id is None or not is_expired(review.deferred_until or asked_at):
        return
    due = [stage for stage in stages if is_expired(after(asked_at, stage.seconds))]
    if not due:
        return
    with ThreadLock(saver, thread_id) as lock:
        if not await lock.try_acquire():
            return
        namespace = review.namespace
        saved = await newest_checkpoint(saver, thread_id, namespace)
        if saved is None or not waits_for(saved, review.review_id):
            return
        # The key stays the same after the question is deferred, assigned or asked again.
        key = digest(namespace, asked_at)
        note: Any = await read_checkpoint(saver, place_of(thread_id, TOLD, key))
        told: list[str] = list(note.metadata.get(TOLD, ())) if note else []
        for stage in due:
            if stage.name not in told:
                with passed_as(stage.option):
                    await call(stage.tell, review)
                told.append(stage.name)
                await _write(saver, place_of(thread_id, TOLD), key, told)


async def _write(
    saver: BaseCheckpointSaver[Any], place: RunnableConfig, key: str, told: list[str]
) -> None:
    """Replace the checkpoint whose metadata lists the sent stages, and which has no state."""
    checkpoint: Checkpoint = {**empty_checkpoint(), "id": key}
    noted = cast("CheckpointMetadata", {TOLD: told})
    await put_checkpoint(saver, place, checkpoint, noted)
