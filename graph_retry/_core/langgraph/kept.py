"""Read the whole records of a ledger back from the checkpoints that hold them.

A record in state may be a stub that names an earlier checkpoint (`kept_in`; see
`_core/loop/run/keeping.py`).
LangGraph keeps all checkpoints of a thread until somebody deletes them, and a server hides some.
(`tests/history/test_keeping.py` deletes checkpoints.)
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver

from graph_retry._core.langgraph.checkpoints import read_checkpoint
from graph_retry._core.params.patch import Encoded, initial_patch
from graph_retry._core.state.attempts import filled, listed, params_at, readable, records_in
from graph_retry.records import Attempt, KeptIn

Reader = Callable[[KeptIn], Awaitable[Mapping[str, Any] | None]]
"""Reads the state values of a checkpoint. Returns None if it is deleted or a server hides it."""


async def whole(attempts: Sequence[Attempt], read: Reader) -> list[Attempt]:
    """Return a ledger with whole records in place of the stubs whose checkpoints can be read."""
    attempts = listed(attempts)
    trail = _Trail(read, attempts)
    made: list[Attempt] = []
    # The loop runs from the last record to the first. `params` are those of the attempt after
    # `record`, if that attempt was just read from its checkpoint.
    params: Encoded | None = None
    for record in reversed(attempts):
        kept = record.get("kept_in")
        known = await trail.saved(record["number"]) if kept else record
        if known is None and params is not None:
            # `record` is lost, so the next record's patch has no base. Write its params in full.
            made[-1]["params_patch"] = initial_patch(params.view)
        params = trail.params_at(record["number"]) if kept and known is not None else None
        made.append(filled(record) if known is None else known)
    if params is not None:
        made[-1]["params_patch"] = initial_patch(params.view)
    return made[::-1]


class _Trail:
    """Follows stubs from checkpoint to checkpoint, from the last record to the first.

    State names the checkpoints of only the last stubs. Each of these checkpoints names the
    checkpoints of the records before it.
    """

    def __init__(self, read: Reader, attempts: Sequence[Attempt]) -> None:
        self._read, self._attempts = read, attempts
        self._namespace: dict[str, Any] = {}
        self._gone: KeptIn | None = None

    async def saved(self, number: int) -> Attempt | None:
        """Return the whole record from its checkpoint; None if the checkpoint cannot be read."""
        while (record := self._here(number)) and (place := record.get("kept_in")):
            place = cast("KeptIn", {**self._namespace, **place})
            kept = [] if place == self._gone else readable(records_in(await self._read(place)))
            if number not in [known["number"] for known in kept]:
                self._gone = place
                return None
            self._attempts = kept
            self._namespace = {key: place[key] for key in ("checkpoint_ns",) if key in place}
        return record

    def params_at(self, number: int) -> Encoded | None:
        """Return the params of a record that was just read."""
        return params_at(self._attempts, number)

    def _here(self, number: int) -> Attempt | None:
        # `get`, because somebody may have edited the state and removed a `number`.
        return next((known for known in self._attempts if known.get("number") == number), None)


def saved_at(saver: BaseCheckpointSaver[Any], thread_id: str | None, namespace: str) -> Reader:
    """Return a function that reads the checkpoints of one call from a saver."""

    async def read(place: KeptIn) -> Mapping[str, Any] | None:
        saved = await read_checkpoint(saver, record_place(thread_id, namespace, place))
        return saved and saved.checkpoint["channel_values"]

    return read


def record_place(thread_id: str | None, namespace: str, place: KeptIn) -> RunnableConfig:
    """Return the config of a checkpoint; `place` may name a namespace other than the call's."""
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": namespace, **place}}
