"""Read the checkpoints of a saver, sync or async.

Beside a checkpoint LangGraph saves what the tasks of its step have written: `pending_writes`, each
with the task's id and a channel. A step is saved with `put_writes` before the next checkpoint, so
after a crash in between only the writes tell. Writes under the id `NO_TASK` belong to no task: they
are part of the state that the next run starts from. Found by ending processes at each write, and in
`PregelLoop._first`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast
from uuid import UUID

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.serde.types import INTERRUPT
from langgraph.types import StateSnapshot

from graph_retry._awaiting import collect, sleep, sync_or_async
from graph_retry._json import is_object
from graph_retry._langgraph.storage import query, storage_of
from graph_retry._state import ANSWER, LOOP, is_open
from graph_retry.errors import ReplayMismatch

_WAITED = 1.0
"""Seconds of difference between two clocks that are waited for."""


NO_TASK = str(UUID(int=0))
"""The task under which a checkpointer keeps what is written for no task."""


PLACE = frozenset({"thread_id", "checkpoint_id", "checkpoint_ns", "checkpoint_map"})
"""The keys of `configurable` that name a place in a thread."""


def place_of(
    thread_id: str | None, namespace: str = "", checkpoint_id: str | None = None
) -> RunnableConfig:
    """Return the config that names a namespace of a thread, or one checkpoint there."""
    place: dict[str, Any] = {"thread_id": thread_id, "checkpoint_ns": namespace}
    at = {} if checkpoint_id is None else {"checkpoint_id": checkpoint_id}
    return {"configurable": place | at}


def namespace_of(saved: CheckpointTuple) -> str:
    """Return the namespace that a checkpoint is in."""
    return str(saved.config.get("configurable", {}).get("checkpoint_ns", ""))


def thread_id_of(saved: CheckpointTuple) -> str:
    """Return the thread that a checkpoint belongs to."""
    return str(saved.config.get("configurable", {}).get("thread_id", ""))


def parent_of(saved: CheckpointTuple) -> str:
    """Return the id of the checkpoint before one; empty for the first."""
    before = saved.parent_config or {}
    return str(before.get("configurable", {}).get("checkpoint_id", ""))


def root_of(saved: CheckpointTuple) -> str:
    """Return the checkpoint of the outermost graph in whose step a checkpoint was saved."""
    return saved.metadata.get("parents", {}).get("", "")


def values_of(saved: CheckpointTuple) -> dict[str, Any]:
    """Return the state that the next run starts from, with an answer that was written beside it."""
    values = saved.checkpoint["channel_values"]
    for task, channel, value in saved.pending_writes or ():
        if task == NO_TASK and channel == ANSWER:
            return {**values, ANSWER: value}
    return values


def writers_of(saved: CheckpointTuple) -> set[str]:
    """Return the ids of the tasks that wrote something in the step of a checkpoint."""
    return {str(write[0]) for write in saved.pending_writes or ()}


def as_saved(snapshot: StateSnapshot) -> CheckpointTuple:
    """Return a server's snapshot as the checkpoint that it shows.

    A server shows no writes. A task that has ended is no longer in `next`, so it wrote its result.
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
    """Return a checkpoint in place of one that was deleted, or that a server does not show."""
    checkpoint: Any = {"id": "", "channel_values": {}}
    return CheckpointTuple(place, checkpoint, {})


def without_state(saved: CheckpointTuple) -> CheckpointTuple:
    """Return a checkpoint whose state takes no memory."""
    return saved._replace(checkpoint={**saved.checkpoint, "channel_values": {}})


async def list_checkpoints(
    saver: BaseCheckpointSaver[Any], thread: RunnableConfig | None, **options: Any
) -> list[CheckpointTuple]:
    """List the checkpoints of a thread, or of all, those of one namespace newest first."""
    while True:
        try:
            return await collect(saver.list, saver.alist, thread, **options)
        except RuntimeError as error:
            # LangGraph's in-memory saver raises this while another thread saves.
            if "changed size during iteration" not in str(error):
                raise


async def newest_checkpoint(
    saver: BaseCheckpointSaver[Any], thread_id: str | None, namespace: str
) -> CheckpointTuple | None:
    """Read the newest checkpoint of a namespace, if it has one."""
    place = place_of(thread_id, namespace)
    return await sync_or_async(saver.get_tuple, saver.aget_tuple, place)


async def read_checkpoint(
    saver: BaseCheckpointSaver[Any], config: RunnableConfig
) -> CheckpointTuple | None:
    """Read one checkpoint, or None: a saver that keeps only the newest may answer with that."""
    wanted = config.get("configurable", {})["checkpoint_id"]
    saved = await sync_or_async(saver.get_tuple, saver.aget_tuple, config)
    return saved if saved is not None and saved.checkpoint["id"] == wanted else None


async def is_saved(saver: BaseCheckpointSaver[Any], place: Mapping[str, str]) -> bool:
    """Return whether a checkpoint is saved where a process that dies leaves it behind.

    LangGraph's databases are asked without reading the state, which may hold types of the user's.
    """
    storage = storage_of(saver)
    if storage == "memory":
        return True  # if the process dies, the store dies with it
    if storage == "other":
        return await read_checkpoint(saver, {"configurable": dict(place)}) is not None
    sql = (
        "SELECT 1 FROM checkpoints WHERE thread_id = %s AND checkpoint_ns = %s"
        " AND checkpoint_id = %s"
    )
    values = (place["thread_id"], place["checkpoint_ns"], place["checkpoint_id"])
    return bool(await query(saver, sql, *values))


async def check_clock(saved: CheckpointTuple | None) -> None:
    """Refuse to save after a checkpoint that is newer than now; wait for a short difference.

    LangGraph orders the checkpoints of a thread by the time in their ids. If a machine's clock is
    behind, its checkpoints are not the newest: they are not found, and their calls are repeated.

    Raises:
        ReplayMismatch: If the clock of this machine is behind that of the one which saved it.
    """
    if saved is None:
        return
    saved_at = datetime.fromisoformat(saved.checkpoint["ts"])
    behind = (saved_at - datetime.now(UTC)).total_seconds()
    if behind > _WAITED:
        raise ReplayMismatch(
            f"the clock of this machine is {behind:.0f} seconds behind the one that saved this "
            f"thread last, at {saved_at.isoformat(timespec='seconds')}: LangGraph would take what "
            "is saved now for older and not find it again. Set the clock, or run the thread on "
            "later. Nothing was called."
        )
    if behind > 0:
        await sleep(behind)


def waits_for(saved: CheckpointTuple, review_id: str | None) -> bool:
    """Return whether a call's newest checkpoint still waits for this review's answer."""
    return not is_answered(saved) and is_open(saved.checkpoint["channel_values"], review_id)


def is_answered(saved: CheckpointTuple) -> bool:
    """Return whether an answer is written beside the newest checkpoint of a call that asked.

    `resume` writes it, or the step that took it: where a crash came before the checkpoint that
    these writes lead to, the next run applies them.
    """
    return any(channel in (LOOP, ANSWER) for _, channel, _ in saved.pending_writes or ())


async def write_answer(
    saver: BaseCheckpointSaver[Any], asked: CheckpointTuple, note: Mapping[str, Any]
) -> None:
    """Write an answer beside the newest checkpoint of the call that asked, as a part of its state.

    The next run of the thread starts the call from there. One write does it: the answer is saved
    or it is not. Savers keep the first of two such writes.

    Raises:
        ReplayMismatch: If the clock of this machine is behind.
    """
    await check_clock(asked)
    await put_writes(saver, asked.config, [(ANSWER, note)], NO_TASK)


async def put_writes(
    saver: BaseCheckpointSaver[Any],
    config: RunnableConfig,
    writes: Sequence[tuple[str, Any]],
    task_id: str,
) -> None:
    """Write a task's writes beside the checkpoint of its step."""
    await sync_or_async(saver.put_writes, saver.aput_writes, config, writes, task_id)
