"""Read and write the checkpoints of a saver, sync or async.

Beside a checkpoint, LangGraph saves the writes of the tasks that start from it (`pending_writes`),
each with the task's id and a channel. `put_writes` saves the writes before the next checkpoint
exists. After a crash in between, only the writes show that a task finished. Writes under the id
`NO_TASK` belong to no task. The next run adds these writes to the state that it starts from.
(Observed by killing processes at each write, and read in `PregelLoop._first`.)
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, cast
from uuid import UUID

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    empty_checkpoint,
)
from langgraph.checkpoint.serde.types import INTERRUPT, RESUME
from langgraph.types import StateSnapshot

from graph_retry._core.ground.functions.awaiting import (
    sleep,
    sync_or_async,
    to_its_end,
)
from graph_retry._core.ground.json import address_key, digest, is_object
from graph_retry._core.state.position import ANSWER, LOOP, is_open
from graph_retry.errors import ReplayMismatch
from graph_retry.lossless._ground import as_repr
from graph_retry.records import KeptIn

_WAITED = 1.0
"""The most seconds by which a clock may be behind. `check_clock` waits out such a difference."""

_NEXT = "branch:to:"
"""With this begins the channel by which a step of LangGraph starts the next one."""

NO_TASK = str(UUID(int=0))
"""The task id under which LangGraph saves writes that belong to no task."""

PLACE = frozenset({"thread_id", "checkpoint_id", "checkpoint_ns", "checkpoint_map"})
"""The keys of `configurable` that name a place in a thread."""


def place_of(
    thread_id: str | None, namespace: str = "", checkpoint_id: str | None = None
) -> RunnableConfig:
    """Return the config that names a namespace of a thread, or one checkpoint there."""
    place: dict[str, Any] = {"thread_id": thread_id, "checkpoint_ns": namespace}
    at = {} if checkpoint_id is None else {"checkpoint_id": checkpoint_id}
    return {"configurable": place | at}


def namespace_of(saved: CheckpointTuple | StateSnapshot) -> str:
    """Return the namespace that a checkpoint, or the state at one, is in."""
    return str(saved.config.get("configurable", {}).get("checkpoint_ns", ""))


def thread_id_of(saved: CheckpointTuple) -> str:
    """Return the thread that a checkpoint belongs to."""
    return str(saved.config.get("configurable", {}).get("thread_id", ""))


def parent_of(saved: CheckpointTuple) -> str:
    """Return the id of the checkpoint before `saved`; empty if `saved` is the first."""
    before = saved.parent_config or {}
    return str(before.get("configurable", {}).get("checkpoint_id", ""))


def root_of(saved: CheckpointTuple) -> str:
    """Return the id of the outermost graph's checkpoint whose step saved this checkpoint."""
    return saved.metadata.get("parents", {}).get("", "")


def line_of(roots: Mapping[str, CheckpointTuple]) -> dict[str, bool]:
    """Return whether each of a thread's roots led to the newest root, and was not forked away.

    The roots are the checkpoints of the outermost graph by id, newest first. Of the deleted roots,
    only the parent of the oldest root in the line is known.
    """
    line = dict.fromkeys(roots, False)
    here, after, is_step = next(iter(roots), ""), "", True
    while here in roots:
        line[here] = is_step or is_copy(roots[after].metadata, roots[here])
        is_step = roots[here].metadata.get("source") == "loop"
        here, after = parent_of(roots[here]), here
    if here and roots[after].metadata.get("source") != "fork":
        line[here] = is_step
    return line


def is_copy(metadata: Mapping[str, Any], parent: CheckpointTuple) -> bool:
    """Return whether the checkpoint with this metadata and parent copies another checkpoint.

    LangGraph's copy of a checkpoint has the same parent as the original, and a later step.
    """
    step: int = metadata.get("step", -1)
    return step > parent.metadata.get("step", -1) + 1


def values_of(saved: CheckpointTuple) -> dict[str, Any]:
    """Return the state that the next run starts from, including an answer in `pending_writes`."""
    values = saved.checkpoint["channel_values"]
    for task, channel, value in saved.pending_writes or ():
        if task == NO_TASK and channel == ANSWER:
            return {**values, ANSWER: value}
    return values


def writers_of(saved: CheckpointTuple) -> set[str]:
    """Return the ids of the tasks that have writes beside a checkpoint."""
    return {str(write[0]) for write in saved.pending_writes or ()}


def as_saved(snapshot: StateSnapshot) -> CheckpointTuple:
    """Convert a server's state snapshot to a checkpoint.

    A snapshot has no writes. They are derived: a task that is not in `next` has written its result.
    """
    config, metadata = cast("Any", snapshot.config), cast("Any", snapshot.metadata or {})
    values = snapshot.values if is_object(snapshot.values) else {}
    writes: list[Any] = []
    for task in snapshot.tasks:
        asked = [(task.id, INTERRUPT, task.interrupts)] if task.interrupts else []
        ended = [] if task.name in snapshot.next else [(task.id, LOOP, None)]
        writes += [(task.id, "", None), *asked, *ended]
    checkpoint: Any = {
        "id": config["configurable"].get("checkpoint_id", ""),
        "ts": snapshot.created_at,
        "channel_values": values,
    }
    return CheckpointTuple(config, checkpoint, metadata, snapshot.parent_config, writes)


def unread(place: RunnableConfig) -> CheckpointTuple:
    """Return an empty checkpoint, for a place whose checkpoint is deleted or not shown."""
    checkpoint: Any = {"id": "", "channel_values": {}}
    return CheckpointTuple(place, checkpoint, {})


def without_state(saved: CheckpointTuple) -> CheckpointTuple:
    """Return a copy of a checkpoint without its state, to save memory."""
    return saved._replace(checkpoint={**saved.checkpoint, "channel_values": {}})


async def newest_checkpoint(
    saver: BaseCheckpointSaver[Any], thread_id: str | None, namespace: str
) -> CheckpointTuple | None:
    """Read the newest checkpoint of a namespace, if it has one."""
    place = place_of(thread_id, namespace)
    return await sync_or_async(saver.get_tuple, saver.aget_tuple, place)


async def read_checkpoint(
    saver: BaseCheckpointSaver[Any], config: RunnableConfig
) -> CheckpointTuple | None:
    """Read one checkpoint; None if it is deleted, even if the saver returns a newer one."""
    wanted = config.get("configurable", {})["checkpoint_id"]
    saved = await sync_or_async(saver.get_tuple, saver.aget_tuple, config)
    return saved if saved is not None and saved.checkpoint["id"] == wanted else None


async def check_clock(saved: CheckpointTuple | None) -> None:
    """Refuse to run if the newest checkpoint is from the future; if it is only a little, wait.

    LangGraph orders the checkpoints of a thread by the time in their ids. If a machine's clock is
    behind, its checkpoints do not become the newest. Then a resume misses them and repeats calls.

    Raises:
        ReplayMismatch: If this machine's clock is behind the clock of the checkpoint's machine.
    """
    if saved is None:
        return
    saved_at = datetime.fromisoformat(saved.checkpoint["ts"])
    behind = (saved_at - datetime.now(UTC)).total_seconds()
    if behind > _WAITED:
        raise ReplayMismatch(
            f"the clock of this machine is {behind:.0f} seconds behind the one that saved this "
            f"thread last, at {saved_at.isoformat(timespec='seconds')}: LangGraph would take what "
            "is saved now for older and not find it again. Set the clock, or continue the "
            "thread later. Nothing was called."
        )
    if behind > 0:
        await sleep(behind)


def waits_for(saved: CheckpointTuple, review_id: str | None) -> bool:
    """Return whether a call's newest checkpoint still waits for this review's answer."""
    return not is_answered(saved) and is_open(saved.checkpoint["channel_values"], review_id)


def has_answer(saved: CheckpointTuple, task_id: str) -> bool:
    """Return whether an answer to a plain interrupt of a task is saved beside a checkpoint."""
    writes = saved.pending_writes or ()
    return any(task == task_id and channel == RESUME for task, channel, _ in writes)


def is_answered(saved: CheckpointTuple) -> bool:
    """Return whether an answer is written beside the newest checkpoint of a call that asked.

    The answer was written by `resume` or by the `review` step. If the process crashed before the
    next checkpoint, the next run applies these writes.

    Raises:
        ReplayMismatch: If the saver mixes the writes of several checkpoints.
    """
    writers = {task for task, channel, _ in saved.pending_writes or () if channel == LOOP}
    # A step is a single task, and one update of the state may have been cut off beside it.
    if len(writers) > 2:
        raise ReplayMismatch(
            "the checkpointer returns the writes of earlier checkpoints beside the newest one of "
            f"{as_repr(namespace_of(saved))}, so that nobody can tell whether its review is "
            "answered, and LangGraph itself would resume with old answers. Use one that keeps "
            "them apart, such as a saver of the same package that is not shallow; "
            "`graph_retry.testing.check_store` tells which do. Nothing was called."
        )
    return any(channel in (LOOP, ANSWER) for _, channel, _ in saved.pending_writes or ())


def unapplied_answer(saved: CheckpointTuple, review_id: str) -> dict[str, Any] | None:
    """Return the answer to this review that `resume` has saved and no run has applied yet."""
    if not is_open(saved.checkpoint["channel_values"], review_id):
        return None
    answers = (note for _, channel, note in saved.pending_writes or () if channel == ANSWER)
    return next((note for note in answers if is_object(note)), None)


async def without_part(
    saver: BaseCheckpointSaver[Any], saved: CheckpointTuple, ended: str
) -> CheckpointTuple:
    """Leave out a step of a call of which only a part was saved when the process ended.

    LangGraph takes whatever is saved of a step for all of it, and not every saver saves the writes
    of a step whole or not at all. A copy of the checkpoint has none of them beside it, so that the
    step is made again. `ended` is the last channel that the last step of a call writes.
    """
    writes = [write for write in saved.pending_writes or () if write[0] != NO_TASK]
    steps = {task for task, channel, _ in writes if not channel.startswith("__")}
    whole = {task for task, channel, _ in writes if channel.startswith(_NEXT) or channel == ended}
    if steps <= whole:
        return saved
    copy: Checkpoint = {**saved.checkpoint, "id": empty_checkpoint()["id"]}
    place = place_of(thread_id_of(saved), namespace_of(saved), saved.checkpoint["id"])
    await put_checkpoint(saver, place, copy, saved.metadata)
    copied = await newest_checkpoint(saver, thread_id_of(saved), namespace_of(saved))
    answers = [note for _, channel, note in saved.pending_writes or () if channel == ANSWER]
    if copied is None or not answers:
        return copied or saved
    await write_answer(saver, copied, answers[0])
    return copied._replace(pending_writes=[(NO_TASK, ANSWER, answers[0])])


async def write_answer(
    saver: BaseCheckpointSaver[Any], asked: CheckpointTuple, note: Mapping[str, Any]
) -> None:
    """Write an answer into the state of the call that asked, beside its newest checkpoint.

    The next run of the thread continues the call with this answer. The answer is a single write, so
    it is saved completely or not at all. A saver numbers the writes of a task by their places in a
    list, and keeps the first write of each number. LangGraph saves the writes of all commands under
    the same task, and only their answers take no number, so the count of these writes is free.

    Raises:
        ReplayMismatch: If the clock of this machine is behind.
    """
    await check_clock(asked)
    taken = sum(write[0] == NO_TASK for write in asked.pending_writes or ())
    await put_writes(saver, asked.config, [*[(RESUME, None)] * taken, (ANSWER, note)], NO_TASK)


async def put_writes(
    saver: BaseCheckpointSaver[Any],
    config: RunnableConfig,
    writes: Sequence[tuple[str, Any]],
    task_id: str,
) -> None:
    """Save writes of a task beside a checkpoint."""
    put = sync_or_async(saver.put_writes, saver.aput_writes, config, writes, task_id)
    await to_its_end(put)


async def put_checkpoint(
    saver: BaseCheckpointSaver[Any],
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
) -> None:
    """Save a checkpoint that has no new versions of channels."""
    await to_its_end(sync_or_async(saver.put, saver.aput, config, checkpoint, metadata, {}))


def saved_at(
    saver: BaseCheckpointSaver[Any], thread_id: str | None, namespace: str
) -> Callable[[KeptIn], Awaitable[Mapping[str, Any] | None]]:
    """Return a function that reads the checkpoints of one call from a saver."""

    async def read(place: KeptIn) -> Mapping[str, Any] | None:
        saved = await read_checkpoint(saver, record_place(thread_id, namespace, place))
        return saved and saved.checkpoint["channel_values"]

    return read


def record_place(thread_id: str | None, namespace: str, place: KeptIn) -> RunnableConfig:
    """Return the config of a checkpoint; `place` may name a namespace other than the call's."""
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": namespace, **place}}


class OpenReview(NamedTuple):
    """A call that waits for a person, as its storage lists it: by `place`, so by time."""

    thread_id: str
    namespace: str
    review_id: str
    place: str

    @property
    def key(self) -> str:
        """The `key` of its review."""
        return address_key(self.thread_id, self.review_id)


def open_review(
    thread_id: str | None, namespace: str, review_id: str, asked_at: str | None
) -> OpenReview:
    """Return the entry of a call that waits."""
    # The digest keeps places unique: a copied thread has the same review id and time.
    place = f"{asked_at or ''}/{review_id}/{digest(str(thread_id), namespace)}"
    return OpenReview(thread_id or "", namespace, review_id, place)


def is_over(entry: OpenReview, root: CheckpointTuple | None, call: CheckpointTuple | None) -> bool:
    """Return whether a review is closed for good, although its thread does not show the review.

    A review is closed if its call has continued, or if the thread has left the step that made the
    call (a new run of that step has a new namespace). Neither holds for a call about to ask.
    """
    if call is None or not waits_for(call, entry.review_id):
        return True
    begun_from = root_of(call)
    return bool(begun_from) and root is not None and root.checkpoint["id"] > begun_from
