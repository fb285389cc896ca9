"""Make whole the ledgers that users read of a thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from langgraph.checkpoint.base import BaseCheckpointSaver

from graph_retry._engine.kept import Reader, place_of, saved_at, whole
from graph_retry._json import is_object
from graph_retry._threads.graphs import get_state, is_local, is_served
from graph_retry._threads.remote_runs import http_status
from graph_retry.ledger import Ledger
from graph_retry.records import KeptIn


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
    """Return what reads checkpoints of a call from a graph, a checkpointer or a server."""
    namespace = "" if namespace.startswith("state:") else namespace
    saver: Any = cast("Any", source).checkpointer if is_local(source) else source
    if isinstance(saver, BaseCheckpointSaver):
        return saved_at(cast("Any", saver), thread_id, namespace)
    return _shown_by(source if is_served(source) else None, thread_id, namespace)


def _shown_by(server: Any, thread_id: str | None, namespace: str) -> Reader:
    async def read(place: KeptIn) -> Mapping[str, Any] | None:
        config = place_of(thread_id, namespace, place)
        if not hasattr(server, "get_state"):
            return None
        try:
            found = await get_state(server, config)
        except Exception as error:
            if http_status(error) not in (400, 404):
                raise
            return None
        return found.values if is_object(found.values) else None

    return read
