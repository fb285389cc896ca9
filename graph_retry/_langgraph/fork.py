"""Fork a thread so that each call in the fork continues from its earlier state.

The tasks of a fork get new ids, so their calls do not find their saved state. They search the calls
made from the checkpoint that the fork continues: LangGraph saves that checkpoint's id in their
metadata, under `parents`. LangGraph itself forks a thread that is run from an earlier checkpoint,
with a checkpoint whose parent is the earlier one. `rewind` copies the earlier checkpoint with a
note that names it. (Observed by comparing the checkpoints of a thread before and after a fork.)
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    Checkpoint,
    CheckpointTuple,
    empty_checkpoint,
)
from langgraph.graph import START
from langgraph.types import Overwrite

from graph_retry._functions.awaiting import sync_or_async
from graph_retry._langgraph.checkpoints import (
    list_checkpoints,
    namespace_of,
    parent_of,
    place_of,
    read_checkpoint,
    root_of,
    thread_id_of,
    values_of,
)
from graph_retry._langgraph.run_config import begun_from
from graph_retry._state.going_back import ForkNote, PastCalls, RewindRefused
from graph_retry._state.position import LOOP, loop_of

COPY = "__copy__"
"""The node name with which LangGraph's `update_state` copies a checkpoint to its thread's end."""

FORK = "graph_retry_fork"
"""The key of the fork note (JSON) in the metadata of the copied checkpoint.

A server accepts no metadata, so there the key is in the run's `configurable`. Its value is a list
with the JSON, because LangGraph would copy a plain string into each checkpoint.
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
    empty = empty_checkpoint()
    copy: Checkpoint = {**saved.checkpoint, "id": empty["id"], "ts": empty["ts"]}
    step = saved.metadata.get("step", -1) + 1
    told: Any = {**saved.metadata, "source": "fork", "step": step, FORK: note}
    parent = saved.parent_config or place_of(thread_id_of(saved), namespace_of(saved))
    await sync_or_async(saver.put, saver.aput, parent, copy, told, {})
    return str(copy["id"])


async def read_past_calls(
    configurable: Mapping[str, Any], saver: BaseCheckpointSaver[Any]
) -> PastCalls | None:
    """Read the calls made before a fork; None if the task began from no fork."""
    metadata, before = begun_from(configurable)
    told: Any = configurable.get(FORK)
    if not told and metadata.get("source") != "fork":
        return None
    saved = await list_checkpoints(
        saver, {"configurable": {"thread_id": str(configurable["thread_id"])}}
    )
    roots = {each.checkpoint["id"]: each for each in saved if not namespace_of(each)}
    note = told[0] if told else _note(metadata, before, roots)
    fork: ForkNote = json.loads(note)
    origins, origin = list[str](), fork["root"]
    # A fork of a fork also continues the calls that the first fork did not reach.
    while origin:
        origins.append(origin)
        root = roots.get(origin)
        before = _note(root.metadata, parent_of(root), roots) if root else fork_note("")
        origin = json.loads(before)["root"]
    here = str(configurable.get("checkpoint_map", {}).get("", ""))
    taken = continued_in(saved, {here, *origins})
    return PastCalls(fork, _made_from(origins, saved), taken) if origins else None


def _note(metadata: Mapping[str, Any], before: str, roots: Mapping[str, CheckpointTuple]) -> str:
    """Return the fork note of a checkpoint; its root is empty if the checkpoint begins no fork.

    A checkpoint by which LangGraph forks follows the one that it continues, in the next step. A
    copy has the parent of the original instead.
    """
    if FORK in metadata:
        return str(metadata[FORK])
    is_next = before in roots and roots[before].metadata.get("step", -1) + 1 == metadata.get("step")
    return fork_note(before if metadata.get("source") == "fork" and is_next else "")


def continued_in(saved: list[CheckpointTuple], roots: Collection[str]) -> set[str | None]:
    """Return the namespaces of earlier calls that calls made from these checkpoints continue."""
    return {loop_of(values)["continues"] for values in _made_from(roots, saved).values()}


def _made_from(roots: Collection[str], saved: list[CheckpointTuple]) -> dict[str, dict[str, Any]]:
    """Return the newest state of each call made from these checkpoints, oldest call first."""
    newest: dict[str, CheckpointTuple] = {}
    for checkpoint in saved:
        newest.setdefault(namespace_of(checkpoint), checkpoint)
    by_age = sorted(newest.items(), key=lambda item: str(item[1].checkpoint["id"]))
    return {
        namespace: values
        for namespace, checkpoint in by_age
        if LOOP in (values := values_of(checkpoint)) and root_of(checkpoint) in roots
    }


def continued(past: Mapping[str, Any], attempts_key: str) -> dict[str, Any]:
    """Return the state update that restores a call's earlier state."""
    kept = {key: value for key, value in past.items() if ":" not in key and key != START}
    return {**kept, attempts_key: Overwrite(past.get(attempts_key))}
