"""Which calls a thread made: read from a graph, a checkpointer or a server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.pregel import Pregel
from langgraph.types import StateSnapshot
from typing_extensions import TypeIs

from graph_retry._engine.kept import Checkpoints
from graph_retry._flow import Ask, Flow
from graph_retry._threads.remote_calls import read_served
from graph_retry._threads.saved import SavedThread
from graph_retry.ledger import Ledger, ledgers_in
from graph_retry.records import Attempt


def read_ledgers(graph: Any, config: RunnableConfig) -> Flow[list[Ledger]]:
    """Read a thread's ledgers: of its calls, those with an attempt that is shown."""
    return [ledger for ledger in (yield from read_calls(graph, config)) if ledger.attempts]


def read_calls(graph: Any, config: RunnableConfig) -> Flow[list[Ledger]]:
    """Read a thread's calls; those without an attempt, or whose state is not shown, are empty."""
    saved = yield from read_saved(graph, config)
    if is_served(graph):
        saved = yield from read_served(graph, config)
    found = {ledger.namespace: ledger for ledger in saved.ledgers()} if saved else {}
    if isinstance(graph, BaseCheckpointSaver) or (saved and not saved.roots):  # never run
        return list(found.values())
    snapshot: StateSnapshot = yield Ask(graph, "get_state", (config,), {"subgraphs": True})
    # What is only in the state: where the checkpoints of a call were deleted.
    known = [_keys(ledger.attempts) for ledger in found.values()]
    for namespace, records in _shown(snapshot, ""):
        if _keys(records) not in known:
            found.setdefault(namespace, Ledger(records, namespace))
    return list(found.values())


def _keys(records: list[Attempt]) -> list[str]:
    return [each.get("idempotency_key", "") for each in records]


def is_local(graph: object) -> TypeIs[Pregel[Any, Any, Any, Any]]:
    """Tell a graph of this process from one on a server."""
    return isinstance(graph, Pregel)


def is_served(graph: object) -> bool:
    """Tell a graph on a server from one of this process, and from a checkpointer."""
    return not isinstance(graph, Pregel | BaseCheckpointSaver)


def read_saved(graph: Any, config: RunnableConfig) -> Flow[SavedThread | None]:
    """Read what a local graph's saver keeps of a thread, inside a flow."""
    saver: Any = cast("Any", graph).checkpointer if is_local(graph) else graph
    if not isinstance(saver, BaseCheckpointSaver):
        return None
    saved = SavedThread(cast("Any", saver), config.get("configurable", {}).get("thread_id", ""))
    checkpoints: list[CheckpointTuple] = yield Ask(Checkpoints(saved.saver, saved.place()), "read")
    for each in checkpoints:
        saved.add(each)
    return saved


def _shown(snapshot: StateSnapshot, namespace: str) -> Iterator[tuple[str, list[Attempt]]]:
    """Walk a snapshot and the subgraphs it shows."""
    for key, records in ledgers_in(snapshot.values):
        # One given to a node ends with an attempt that is still to be made.
        if namespace or records[-1]["status"] != "running":
            yield namespace or f"state:{key}", records
    for task in snapshot.tasks:
        if isinstance(task.state, StateSnapshot):
            inner = task.state.config.get("configurable", {}).get("checkpoint_ns", "")
            yield from _shown(task.state, inner)
