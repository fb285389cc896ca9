"""Read the checkpoints of a saver, sync or async.

Beside a checkpoint LangGraph saves what the tasks of its step have written: `pending_writes`, each
with the task's id and a channel. A step is saved with `put_writes` before the next checkpoint, so
after a crash in between only the writes tell. Found by ending processes at each write.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

from graph_retry._awaiting import collect, sleep, sync_or_async
from graph_retry._langgraph.storage import query, storage_of
from graph_retry._state import ANSWER, LOOP, is_open
from graph_retry.errors import ReplayMismatch

_WAITED = 1.0
"""Seconds of difference between two clocks that are waited for."""


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
    place = {"thread_id": thread_id, "checkpoint_ns": namespace}
    return await sync_or_async(saver.get_tuple, saver.aget_tuple, {"configurable": place})


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
        return True  # the process takes it along
    if storage == "other":
        return await read_checkpoint(saver, {"configurable": dict(place)}) is not None
    sql = (
        "SELECT 1 FROM checkpoints WHERE thread_id = %s AND checkpoint_ns = %s"
        " AND checkpoint_id = %s"
    )
    values = (place["thread_id"], place["checkpoint_ns"], place["checkpoint_id"])
    return bool(await query(saver, sql, *values))


async def check_clock(saved: CheckpointTuple | None) -> None:
    """Refuse to save after a checkpoint that is newer than now; a moment is waited for.

    LangGraph orders the checkpoints of a thread by the time in their ids. What a machine saves
    whose clock is behind would not be the newest: never found again, and its calls repeated.

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
    """Return whether a call's newest checkpoint still waits for this review's answer.

    It does not once an answer is written, by `resume` or by the step that took it: where a crash
    came before the checkpoint that these writes lead to, the next run applies them.
    """
    taken = any(channel in (LOOP, ANSWER) for _, channel, _ in saved.pending_writes or ())
    return not taken and is_open(saved.checkpoint["channel_values"], review_id)


async def put_writes(
    saver: BaseCheckpointSaver[Any],
    config: RunnableConfig,
    writes: Sequence[tuple[str, Any]],
    task_id: str,
) -> None:
    """Write a task's writes beside the checkpoint of its step."""
    await sync_or_async(saver.put_writes, saver.aput_writes, config, writes, task_id)
