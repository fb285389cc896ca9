"""Read the whole records of a ledger back from the checkpoints that hold them.

A record in state may be a stub that names an earlier checkpoint (`kept_in`; see
`_core/loop/run/keeping.py`).
LangGraph keeps all checkpoints of a thread until somebody deletes them. A server hides some
checkpoints.
(`tests/history/test_keeping.py` deletes checkpoints.)
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast

from graph_retry._core.params.patch import initial_patch
from graph_retry._core.state.attempts import filled, listed, params_at, stored_records
from graph_retry.records import Attempt, KeptIn

Reader = Callable[[KeptIn], Awaitable[Mapping[str, Any] | None]]
"""Reads the state values of a checkpoint. Returns None if it is deleted or a server hides it."""


async def whole(attempts: Sequence[Attempt], read: Reader) -> list[Attempt]:
    """Return a ledger with whole records in place of the stubs whose checkpoints can be read."""
    attempts = listed(attempts)
    trail = _Trail(read, attempts)
    made: list[Attempt] = []
    # The loop runs from the last record to the first. `since` tells where the params of the attempt
    # after `record` are rebuilt, if that attempt was just read from its checkpoint. Params are
    # rebuilt only beside a lost record, because each time walks all patches of the ledger.
    since: tuple[Sequence[Attempt], int] | None = None
    for record in reversed(attempts):
        kept = record.get("kept_in")
        known = await trail.saved(record["number"]) if kept else record
        if known is None and since and (params := params_at(*since)) is not None:
            # `record` is lost, so the next record's patch has no base. Write its params in full.
            made[-1]["params_patch"] = initial_patch(params.view)
        since = (trail.attempts, record["number"]) if kept and known is not None else None
        made.append(filled(record) if known is None else known)
    if since and (params := params_at(*since)) is not None:
        made[-1]["params_patch"] = initial_patch(params.view)
    return made[::-1]


class _Trail:
    """Reads whole records by following stubs from checkpoint to checkpoint, last record first.

    The stubs in state name only the checkpoints of the last records. Each of these checkpoints has
    stubs that name the checkpoints of earlier records. `attempts` has the records of the checkpoint
    that was read last, as they are stored. The stubs that `listed` restores are not in `attempts`,
    because each checkpoint would then have stubs for all records.
    """

    def __init__(self, read: Reader, attempts: Sequence[Attempt]) -> None:
        self._read, self.attempts = read, attempts
        self._namespace: dict[str, Any] = {}
        self._gone: KeptIn | None = None

    async def saved(self, number: int) -> Attempt | None:
        """Return the whole record from its checkpoint; None if the checkpoint cannot be read."""
        while (record := _record(self.attempts, number)) and (place := record.get("kept_in")):
            place = cast("KeptIn", {**self._namespace, **place})
            kept = [] if place == self._gone else stored_records(await self._read(place))
            if _record(kept, number) is None:
                self._gone = place
                return None
            self.attempts = kept
            self._namespace = {key: v for key, v in place.items() if key != "checkpoint_id"}
        return record


def _record(stored: Sequence[Attempt], number: int) -> Attempt | None:
    """Return a record, or the next stub if only `listed` restores the record; None if neither."""
    for position, known in enumerate(stored):
        # `get`, because somebody may have edited the state and removed a `number`.
        here = known.get("number")
        if here == number:
            return known
        if position and type(here) is int and here > number:
            return known if known.get("kept_in") else None
    return None
