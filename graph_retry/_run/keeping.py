"""Leave earlier records in the checkpoints that hold them, and make ledgers whole again.

Every checkpoint of a loop stores the ledger, and some savers store all of state in each checkpoint.
With all records in state, storage would grow with the square of the attempts. So until the call
ends, state holds only the place of an earlier record: the checkpoint that has it whole.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.runtime import get_runtime
from langgraph.types import Overwrite

from graph_retry._attempts import (
    decision_ids,
    filled,
    listed,
    merge_attempts,
    params_at,
    readable,
    records_in,
    without_implied,
)
from graph_retry._langgraph.checkpoints import read_checkpoint
from graph_retry._langgraph.run_config import call_namespace, current_saver, current_thread
from graph_retry._params.codec import Encoded
from graph_retry._params.patch import diff_views, initial_patch
from graph_retry._state import LOOP, Loop
from graph_retry.hooks._budget import Budget
from graph_retry.options import Settings
from graph_retry.records import Attempt, KeptIn

_SMALL = 4_000
"""Characters of JSON that earlier records may take in state: a read costs more than fewer."""

Reader = Callable[[KeptIn], Awaitable[Mapping[str, Any] | None]]
"""Reads the state values of a checkpoint; None if it is deleted, or a server does not show it."""


async def leave_earlier(
    settings: Settings, before: list[Attempt], update: dict[str, Any]
) -> dict[str, Any]:
    """Return a step's update with earlier records left in their checkpoints.

    The update that opens an attempt leaves the records before it. The update that ends the call
    brings all records back, so that the last state and the errors have the whole ledger. The
    position keeps the facts that each step needs of records that are not in state.
    """
    key = settings.keys["attempts"]
    written = update.get(key)
    anew = isinstance(written, Overwrite)
    given: Any = written.value if isinstance(written, Overwrite) else written
    after = merge_attempts(None if anew else before, given)
    loop: Any = update.get(LOOP) or {}
    ends = loop.get("next") == "end"
    changes: list[Attempt] = []
    if ends:
        made = await whole_here(after)
        changes = [new for new, old in zip(made, after, strict=True) if old.get("kept_in")]
        update[LOOP] = {**loop, "seen": [], "spent": None}
    elif len(after) > 1 and after[-1]["number"] not in [old["number"] for old in before]:
        changes = await _slimmed_here(after[:-1], before)
        update[LOOP] = _noted(settings, loop, changes, before) if changes else loop
    if not (anew or (ends and changes)):
        return {**update, key: [*changes, *(given or [])]} if changes else update
    records = merge_attempts(after, changes)
    kept = records if ends else without_implied(list(map(stub, records)))
    return {**update, key: Overwrite(kept)}


async def whole_here(attempts: list[Attempt], last: int = 0) -> list[Attempt]:
    """Return the ledger of the running step's call with its records whole, or the `last` ones."""
    wanted = attempts[-last:]
    saver = current_saver()
    if saver is None or not any(attempt.get("kept_in") for attempt in wanted):
        return attempts
    read = saved_at(saver, current_thread(), call_namespace())
    return [*attempts[:-last], *(await whole(wanted, read))]


def _noted(settings: Settings, loop: Loop, stubs: list[Attempt], before: list[Attempt]) -> Loop:
    """Note in the position what each step must know of the records that leave the state."""
    numbers = [attempt["number"] for attempt in stubs]
    left = [old for old in before if old["number"] in numbers and not old["kept_in"]]
    spent = (settings.budget or Budget()).spent_on(left, loop["spent"])
    return {**loop, "seen": [*loop["seen"], *decision_ids(left)], "spent": spent}


async def _slimmed_here(earlier: list[Attempt], before: list[Attempt]) -> list[Attempt]:
    """Return the updates that leave records in the checkpoint which the running step began from."""
    if not (are_bulky(earlier) and all(attempt in before for attempt in earlier)):
        return []
    place = await _place()
    return slimmed(earlier, place) if place else []


async def _place() -> KeptIn | None:
    """Return the checkpoint that the running step began from, if it is saved and will be kept."""
    saver = current_saver()
    here = get_runtime().execution_info
    if saver is None or here is None or not here.checkpoint_id:
        return None
    place: KeptIn = {"checkpoint_id": here.checkpoint_id}
    saved = await read_checkpoint(saver, place_of(current_thread(), call_namespace(), place))
    # Only if the checkpoint before it exists as well. Some savers keep only the newest one, and
    # some durabilities save only the last one of a run.
    parent = saved and saved.parent_config
    earlier = (await read_checkpoint(saver, parent)) if parent else None
    return None if earlier is None else place


def are_bulky(earlier: Sequence[Attempt]) -> bool:
    """Return whether records are too large to be stored in every later checkpoint."""
    whole = [
        # The first params stay in state.
        {**attempt, "params_patch": attempt["params_patch"] if place else None}
        for place, attempt in enumerate(earlier)
        if not attempt["kept_in"]
    ]
    return len(json.dumps(whole, default=str)) > _SMALL


def stub(record: Attempt) -> Attempt:
    """Return the part of a record that state keeps: all of it, unless a checkpoint has it."""
    if not record.get("kept_in"):
        return record
    known = record.get("params_patch") is not None
    names = ("number", "kept_in", *(("params_patch", "params_types") if known else ()))
    fields = cast("dict[str, Any]", record)
    if record.get("redacted"):
        names = (*names, "redacted")
    return cast("Attempt", {name: fields[name] for name in names})


def slimmed(earlier: Sequence[Attempt], place: KeptIn) -> list[Attempt]:
    """Return the updates that leave records in a checkpoint; some were left in others before.

    State keeps the params of the first record, and the difference of the last record's params.
    """
    first, last = params_at(earlier[:1]), params_at(earlier)
    updates: list[Attempt] = []
    for record in earlier[1:]:
        if record["kept_in"] is None or record["params_patch"] is not None:
            left: Any = {**record, "kept_in": record["kept_in"] or place, "params_patch": None}
            updates.append(stub(left))
    if earlier[0]["kept_in"] is None:
        updates.insert(0, stub({**earlier[0], "kept_in": place}))
    if len(earlier) > 1 and first is not None and last is not None:
        patch = diff_views(first.view, last.view)
        updates[-1].update({"params_patch": patch, "params_types": last.types})
    return updates


async def whole(attempts: Sequence[Attempt], read: Reader) -> list[Attempt]:
    """Return a ledger with its records made whole, as far as their checkpoints can be read."""
    attempts = listed(attempts)
    trail = _Trail(read, attempts)
    made: list[Attempt] = []
    params: Encoded | None = None  # the params of the attempt after `record`, if it was just read
    for record in reversed(attempts):
        kept = record.get("kept_in")
        known = await trail.saved(record["number"]) if kept else record
        if known is None and params is not None:
            # The next record's patch starts from params that are unknown here.
            made[-1]["params_patch"] = initial_patch(params.view)
        params = trail.params_at(record["number"]) if kept and known is not None else None
        made.append(filled(record) if known is None else known)
    if params is not None:
        made[-1]["params_patch"] = initial_patch(params.view)
    return made[::-1]


class _Trail:
    """Reads records from the last to the first, each in the checkpoint that its successor names.

    State names only the last places. The checkpoint of a record names the places before it.
    """

    def __init__(self, read: Reader, attempts: Sequence[Attempt]) -> None:
        self._read, self._attempts = read, attempts
        self._namespace: dict[str, Any] = {}
        self._gone: KeptIn | None = None

    async def saved(self, number: int) -> Attempt | None:
        """Return a record as its checkpoint has it; None if that cannot be read."""
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
        # Somebody may have edited the state and removed a `number`.
        return next((known for known in self._attempts if known.get("number") == number), None)


def saved_at(saver: BaseCheckpointSaver[Any], thread_id: str | None, namespace: str) -> Reader:
    """Return a reader of the checkpoints of a call in a saver."""

    async def read(place: KeptIn) -> Mapping[str, Any] | None:
        saved = await read_checkpoint(saver, place_of(thread_id, namespace, place))
        return saved and saved.checkpoint["channel_values"]

    return read


def place_of(thread_id: str | None, namespace: str, place: KeptIn) -> RunnableConfig:
    """Return the config of a place in a thread; it is in the call's namespace unless it says so."""
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": namespace, **place}}
