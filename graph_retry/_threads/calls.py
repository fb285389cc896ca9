"""Which calls a thread made: read from a graph, a checkpointer or a server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.types import StateSnapshot

from graph_retry._attempts import ledgers_in
from graph_retry._json import is_object
from graph_retry._langgraph.checkpoints import list_checkpoints
from graph_retry._run.keeping import Reader, place_of, saved_at, whole
from graph_retry._threads.graphs import get_state, is_remote, saver_of
from graph_retry._threads.remote_calls import read_remote
from graph_retry._threads.remote_runs import http_status
from graph_retry._threads.saved import SavedThread
from graph_retry.ledger import Ledger
from graph_retry.records import Attempt, KeptIn


async def read_ledgers(graph: Any, config: RunnableConfig) -> list[Ledger]:
    """Read a thread's ledgers: of its calls, those with an attempt that is shown."""
    return [ledger for ledger in await read_calls(graph, config) if ledger.attempts]


async def read_calls(graph: Any, config: RunnableConfig) -> list[Ledger]:
    """Read a thread's calls; those without an attempt, or whose state is not shown, are empty."""
    saved = await read_saved(graph, config)
    if is_remote(graph):
        saved = await read_remote(graph, config)
    ledgers = {ledger.namespace: ledger for ledger in saved.ledgers()} if saved else {}
    if isinstance(graph, BaseCheckpointSaver) or (saved and not saved.roots):  # never run
        return list(ledgers.values())
    snapshot = await get_state(graph, config, subgraphs=True)
    # Records that are only in state: the call's checkpoints were deleted.
    known = [_keys(ledger.attempts) for ledger in ledgers.values()]
    for namespace, records in _shown(snapshot, ""):
        if _keys(records) not in known:
            ledgers.setdefault(namespace, Ledger(records, namespace))
    return list(ledgers.values())


def _keys(records: list[Attempt]) -> list[str]:
    return [record.get("idempotency_key", "") for record in records]


async def read_saved(graph: Any, config: RunnableConfig) -> SavedThread | None:
    """Read a thread from a local graph's saver, inside a flow."""
    saver = saver_of(graph)
    if saver is None:
        return None
    saved = SavedThread(saver, str(config.get("configurable", {}).get("thread_id", "")))
    for checkpoint in await list_checkpoints(saved.saver, saved.place()):
        saved.add(checkpoint)
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


async def whole_ledgers(
    source: Any, thread_id: str | None, ledgers: Sequence[Ledger]
) -> list[Ledger]:
    """Return the ledgers of a thread with their records made whole, where that can be read."""
    made: list[Ledger] = []
    for ledger in ledgers:
        read = reader_of(source, thread_id, ledger.namespace)
        made.append(replace(ledger, attempts=await whole(ledger.attempts, read)))
    return made


def reader_of(source: Any, thread_id: str | None, namespace: str) -> Reader:
    """Return a function that reads checkpoints of a call: graph, checkpointer or server."""
    namespace = "" if namespace.startswith("state:") else namespace
    saver = saver_of(source)
    if saver is not None:
        return saved_at(saver, thread_id, namespace)
    return _shown_by(source if is_remote(source) else None, thread_id, namespace)


def _shown_by(server: Any, thread_id: str | None, namespace: str) -> Reader:
    async def read(place: KeptIn) -> Mapping[str, Any] | None:
        config = place_of(thread_id, namespace, place)
        if not hasattr(server, "get_state"):
            return None
        try:
            snapshot = await get_state(server, config)
        except Exception as error:
            if http_status(error) not in (400, 404):
                raise
            return None
        return snapshot.values if is_object(snapshot.values) else None

    return read
