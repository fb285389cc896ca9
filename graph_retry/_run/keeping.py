"""Keep long ledgers small: leave earlier records in older checkpoints, and read them back.

Every checkpoint of a loop stores the ledger, and some savers store all of state in each checkpoint.
With every record in state, storage would grow with the square of the number of attempts. Therefore,
while a call is open, state holds a stub for an earlier record: its number, and the checkpoint that
holds the whole record (`kept_in`). When the call ends, all records return to state.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

from langgraph.runtime import get_runtime
from langgraph.types import Overwrite

from graph_retry._attempts import (
    decision_ids,
    merge_attempts,
    params_at,
    without_implied,
)
from graph_retry._langgraph.checkpoints import read_checkpoint
from graph_retry._langgraph.kept import record_place, saved_at, whole
from graph_retry._langgraph.run_config import call_namespace, current_saver, current_thread
from graph_retry._params.patch import diff_views
from graph_retry._state import LOOP, Loop
from graph_retry.hooks._budget import Budget
from graph_retry.options import Settings
from graph_retry.records import Attempt, KeptIn

_SMALL = 4_000
"""Characters of JSON that earlier records may occupy in state.

Smaller ledgers stay in state, because reading a checkpoint costs more than storing them again.
"""


async def leave_earlier(
    settings: Settings, before: list[Attempt], update: dict[str, Any]
) -> dict[str, Any]:
    """Return a step's update with earlier records replaced by stubs, or with all records.

    If the update opens an attempt, the earlier records become stubs. If it ends the call, all
    records return, so that the final state and the errors hold the whole ledger. Steps need some
    facts of the records that are not in state (spent budget, decision ids): the position keeps
    these.
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
        # The whole ledger is in state again, so the position no longer has to summarize it.
        update[LOOP] = {**loop, "seen": [], "spent": None}
    elif len(after) > 1 and after[-1]["number"] not in [old["number"] for old in before]:
        changes = await _slimmed_here(after[:-1], before)
        update[LOOP] = _noted(settings, loop, changes, before) if changes else loop
    if not (anew or (ends and changes)):
        return {**update, key: [*changes, *(given or [])]} if changes else update
    # `Overwrite`, because the reducer of the key would merge these records into the old ledger.
    records = merge_attempts(after, changes)
    kept = records if ends else without_implied(list(map(stub, records)))
    return {**update, key: Overwrite(kept)}


async def whole_here(attempts: list[Attempt], last: int = 0) -> list[Attempt]:
    """Return the current call's ledger with whole records; with `last`, only those are read."""
    wanted = attempts[-last:]
    saver = current_saver()
    if saver is None or not any(attempt.get("kept_in") for attempt in wanted):
        return attempts
    read = saved_at(saver, current_thread(), call_namespace())
    return [*attempts[:-last], *(await whole(wanted, read))]


def _noted(settings: Settings, loop: Loop, stubs: list[Attempt], before: list[Attempt]) -> Loop:
    """Save in the position the decision ids and the spent budget of records that become stubs."""
    numbers = [attempt["number"] for attempt in stubs]
    left = [old for old in before if old["number"] in numbers and not old["kept_in"]]
    spent = (settings.budget or Budget()).spent_on(left, loop["spent"])
    return {**loop, "seen": [*loop["seen"], *decision_ids(left)], "spent": spent}


async def _slimmed_here(earlier: list[Attempt], before: list[Attempt]) -> list[Attempt]:
    """Return the updates that make large records stubs, if this step's checkpoint holds them."""
    if not (are_bulky(earlier) and all(attempt in before for attempt in earlier)):
        return []
    place = await _place()
    return slimmed(earlier, place) if place else []


async def _place() -> KeptIn | None:
    """Return the checkpoint that the running step started from, if it will stay in storage."""
    saver = current_saver()
    here = get_runtime().execution_info
    if saver is None or here is None or not here.checkpoint_id:
        return None
    place: KeptIn = {"checkpoint_id": here.checkpoint_id}
    saved = await read_checkpoint(saver, record_place(current_thread(), call_namespace(), place))
    # The checkpoint will stay only if its parent exists. Without a parent, the saver may keep only
    # the newest checkpoint, or the durability may save only the last checkpoint of a run.
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
    """Return a stub of a record if another checkpoint holds it; otherwise the record itself."""
    if not record.get("kept_in"):
        return record
    known = record.get("params_patch") is not None
    names = ("number", "kept_in", *(("params_patch", "params_types") if known else ()))
    fields = cast("dict[str, Any]", record)
    if record.get("redacted"):
        names = (*names, "redacted")
    return cast("Attempt", {name: fields[name] for name in names})


def slimmed(earlier: Sequence[Attempt], place: KeptIn) -> list[Attempt]:
    """Return the updates that make records stubs of `place`; existing stubs keep their places.

    State keeps the first record's params, and the patch from these to the last record's params.
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
