"""Fork a thread so that each call in the fork continues from its earlier state.

The tasks of a fork get new ids, so their calls do not find their saved state. Therefore the copied
checkpoint names the original one. A call that begins in the fork searches the calls made from the
original checkpoint: LangGraph saves that checkpoint's id in their metadata, under `parents`.
(Observed by comparing the checkpoints of a thread before and after a fork.)
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    Checkpoint,
    CheckpointTuple,
    empty_checkpoint,
)
from langgraph.checkpoint.base.id import uuid6
from langgraph.graph import START
from langgraph.types import Overwrite

from graph_retry._functions.awaiting import sync_or_async
from graph_retry._langgraph.checkpoints import (
    list_checkpoints,
    namespace_of,
    place_of,
    read_checkpoint,
    root_of,
    thread_id_of,
    values_of,
)
from graph_retry._state.going_back import ForkNote, PastCalls, RewindRefused
from graph_retry._state.position import LOOP, loop_of

COPY = "__copy__"
"""The node name with which LangGraph's `update_state` copies a checkpoint to its thread's end."""

FORK = "graph_retry_fork"
"""The key of the fork note (JSON) in the metadata of the copied checkpoint.

A server accepts no metadata, so there the key is in the run's `configurable`. Its value is a list
with the JSON, because LangGraph would copy a plain string into each checkpoint.
"""

_NODE = int.from_bytes(b"grfork")
"""The last 48 bits of a copied checkpoint's id; in other ids they are random.

They tell a call that it is in a fork. Other calls need not read the (perhaps large) checkpoint.
"""


def fork_note(root: str, call: str = "", answer: dict[str, Any] | None = None) -> str:
    """Return the fork note as JSON; `ForkNote` explains the fields."""
    fork: ForkNote = {"root": root, "call": call, "answer": answer}
    return json.dumps(fork)


async def put_fork(saver: BaseCheckpointSaver[Any], old: RunnableConfig, note: str) -> str:
    """Copy a checkpoint to the end of its thread, with the fork note; return the copy's id.

    The copy and the note are a single write. Therefore the next run of the thread always knows of
    the fork, even if this process crashes.
    """
    saved = await read_checkpoint(saver, old)
    if saved is None:
        raise RewindRefused("the checkpoint it goes back to is gone.")
    own_id = str(uuid6(node=_NODE, clock_seq=-2))  # `uuid6` as LangGraph calls it.
    copy: Checkpoint = {**saved.checkpoint, "id": own_id, "ts": empty_checkpoint()["ts"]}
    step = saved.metadata.get("step", -1) + 1
    told: Any = {**saved.metadata, "source": "fork", "step": step, FORK: note}
    parent = saved.parent_config or place_of(thread_id_of(saved), namespace_of(saved))
    await sync_or_async(saver.put, saver.aput, parent, copy, told, {})
    return str(copy["id"])


async def _note_of(
    configurable: Mapping[str, Any], saver: BaseCheckpointSaver[Any]
) -> ForkNote | None:
    """Return the note for the calls of this task, if it began from a fork."""
    told: Any = configurable.get(FORK)
    note: str | None = told[0] if told else None
    root_id = _root_of(configurable)
    if note is None and root_id.endswith(f"{_NODE:012x}"):
        place = place_of(str(configurable["thread_id"]), checkpoint_id=root_id)
        saved = await read_checkpoint(saver, place)
        note = saved and cast("Any", saved.metadata).get(FORK)
    return None if note is None else json.loads(note)


def _root_of(configurable: Mapping[str, Any]) -> str:
    """Return the id of the outermost graph's checkpoint from which a task began."""
    return str(configurable.get("checkpoint_map", {}).get("", ""))


async def read_past_calls(
    configurable: Mapping[str, Any], saver: BaseCheckpointSaver[Any]
) -> PastCalls | None:
    """Read the calls made from the checkpoint of a fork; None if the task began from no fork."""
    fork = await _note_of(configurable, saver)
    if fork is None:
        return None
    thread: RunnableConfig = {"configurable": {"thread_id": str(configurable["thread_id"])}}
    saved = await list_checkpoints(saver, thread)
    taken = continued_in(saved, _root_of(configurable))
    return PastCalls(fork, _made_from(fork["root"], saved), taken)


def continued_in(saved: list[CheckpointTuple], root: str) -> set[str | None]:
    """Return the namespaces of earlier calls that calls of the fork `root` already continue."""
    return {loop_of(values)["continues"] for values in _made_from(root, saved).values()}


def _made_from(root: str, saved: list[CheckpointTuple]) -> dict[str, dict[str, Any]]:
    """Return the newest state of each call made from the checkpoint `root`, oldest call first."""
    newest: dict[str, CheckpointTuple] = {}
    for checkpoint in saved:
        newest.setdefault(namespace_of(checkpoint), checkpoint)
    by_age = sorted(newest.items(), key=lambda item: str(item[1].checkpoint["id"]))
    return {
        namespace: values
        for namespace, checkpoint in by_age
        if LOOP in (values := values_of(checkpoint)) and root_of(checkpoint) == root
    }


def continued(past: Mapping[str, Any], attempts_key: str) -> dict[str, Any]:
    """Return the state update that restores a call's earlier state."""
    kept = {key: value for key, value in past.items() if ":" not in key and key != START}
    return {**kept, attempts_key: Overwrite(past.get(attempts_key))}
