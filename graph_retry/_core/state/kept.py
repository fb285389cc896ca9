"""Read the whole records of a ledger from the checkpoints that hold them.

A record in state may be a stub, whose key `kept_in` names the checkpoint that has the whole record.
For example, a call with three long attempts has these checkpoints:

| checkpoint | records, as stored |
|---|---|
| A, before attempt 2 began | 1 whole |
| B, before attempt 3 began | 1: stub to A; 2 whole |
| the newest | 1: stub to A; 2: stub to B, with a patch from the first params; 3 whole |

State keeps the stub of the first record and the last eight stubs, but not the stubs between them.
To read a record without a stub, `_Trail` goes to the checkpoint of the next stub in state. That
checkpoint has the eight stubs before it.

If a checkpoint is deleted, or a server hides it, its records have no content.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast

from graph_retry._core.params.patch import initial_patch
from graph_retry._core.state.attempts import filled, listed, params_at, stored_records
from graph_retry.records import Attempt, KeptIn

Reader = Callable[[KeptIn], Awaitable[Mapping[str, Any] | None]]
"""Reads a checkpoint's state values; returns None if the checkpoint cannot be read."""


async def whole(attempts: Sequence[Attempt], read: Reader) -> list[Attempt]:
    """Return a ledger with whole records in place of the stubs that can be read."""
    attempts = listed(attempts)
    trail = _Trail(read, attempts)
    made: list[Attempt] = []
    # The loop runs from the last record to the first, so `made[-1]` is the attempt after `record`.
    # If that attempt was just read from a checkpoint, `since` has the ledger of that checkpoint and
    # the attempt's number. From these two, `params_at` rebuilds the attempt's params. This is done
    # only beside a lost record, because each rebuild walks all patches of the ledger.
    since: tuple[Sequence[Attempt], int] | None = None
    for record in reversed(attempts):
        kept = record.get("kept_in")
        known = await trail.saved(record["number"]) if kept else record
        if known is None and since and (params := params_at(*since)) is not None:
            # `record` is lost, so the next record's patch has no base. Write its params in full.
            made[-1]["params_patch"] = initial_patch(params.view)
        since = (trail.attempts, record["number"]) if kept and known is not None else None
        made.append(filled(record) if known is None else known)
    # `attempts` may be only the end of a ledger. Then the patch of its first record has no base.
    if since and (params := params_at(*since)) is not None:
        made[-1]["params_patch"] = initial_patch(params.view)
    return made[::-1]


class _Trail:
    """Reads whole records by following stubs from checkpoint to checkpoint, last record first.

    `attempts` has the records that were read last. `listed` would find implied stubs among them,
    but would make stubs for all records at each checkpoint.
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
    """Return a record; if state only implies its stub, the next stub; otherwise None."""
    for position, known in enumerate(stored):
        # `get`, because somebody may have edited the state and removed a `number`.
        here = known.get("number")
        if here == number:
            return known
        if position and type(here) is int and here > number:
            return known if known.get("kept_in") else None
    return None
