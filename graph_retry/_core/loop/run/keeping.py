"""Keep long ledgers small: earlier records stay in older checkpoints, and are read from there.

Some savers store the whole state in each checkpoint. If the state held every record, storage would
grow with the square of the number of attempts. Therefore the state of an open call holds only a
stub of each large earlier record. A stub has the record's number, and names the checkpoint with the
whole record (`kept_in`). When the call ends, all records return to the state.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

from langgraph.runtime import get_runtime
from langgraph.types import Overwrite

from graph_retry._core.langgraph.run_config import call_namespace, current_saver, current_thread
from graph_retry._core.langgraph.storage.checkpoints import read_checkpoint, record_place, saved_at
from graph_retry._core.params.patch import diff_views
from graph_retry._core.state.attempts import (
    merge_attempts,
    params_at,
    without_implied,
)
from graph_retry._core.state.kept import whole
from graph_retry._core.state.position import LOOP, no_sums
from graph_retry.records import Attempt, KeptIn

_SMALL = 4_000
"""Maximum characters of JSON that earlier records may take up in the state.

Smaller records stay in the state, because reading a checkpoint costs more than storing them again.
"""


async def with_whole_ledger(
    key: str, before: list[Attempt], update: dict[str, Any]
) -> dict[str, Any]:
    """Return the update that ends a call, with whole records in place of stubs."""
    written = update.get(key)
    anew = isinstance(written, Overwrite)
    given: Any = written.value if isinstance(written, Overwrite) else written
    after = merge_attempts(None if anew else before, given)
    # The whole ledger is in state again, so the position no longer has to summarize it.
    update = {**update, LOOP: {**update[LOOP], **no_sums()}}
    if not any(record.get("kept_in") for record in after):
        return update
    # The update needs `Overwrite`, because the reducer would merge these records into the stubs.
    return {**update, key: Overwrite(await whole_here(after))}


async def whole_here(attempts: list[Attempt], last: int = 0) -> list[Attempt]:
    """Return the ledger of the current call, with whole records in place of stubs.

    With `last=2`, only the last two records are read from their checkpoints.
    """
    wanted = attempts[-last:]
    saver = current_saver()
    if saver is None or not any(attempt.get("kept_in") for attempt in wanted):
        return attempts
    read = saved_at(saver, current_thread(), call_namespace())
    return [*attempts[:-last], *(await whole(wanted, read))]


def replaced_by(stubs: list[Attempt], attempts: list[Attempt]) -> list[Attempt]:
    """Return the whole records that `stubs` replace, for the sums over earlier records."""
    numbers = [stub["number"] for stub in stubs]
    return [old for old in in_state(attempts) if old["number"] in numbers]


def in_state(attempts: list[Attempt]) -> list[Attempt]:
    """Return the whole records. The loop's state has sums over the other records."""
    return [each for each in attempts if not each["kept_in"]]


async def slimmed_here(earlier: list[Attempt]) -> list[Attempt]:
    """Return stubs for the large earlier records in the state, before the next attempt.

    Each stub names the checkpoint from which the running step started, because this checkpoint has
    the whole records. The result is empty if the records are small, or if storage may lose the
    checkpoint.
    """
    place = await _place() if are_bulky(earlier) else None
    return slimmed(earlier, place) if place else []


async def _place() -> KeptIn | None:
    """Return the checkpoint before the running step; None if storage may lose it."""
    saver = current_saver()
    here = get_runtime().execution_info
    if saver is None or here is None or not here.checkpoint_id:
        return None
    place: KeptIn = {"checkpoint_id": here.checkpoint_id}
    saved = await read_checkpoint(saver, record_place(current_thread(), call_namespace(), place))
    # If the checkpoint has a parent, storage keeps more than one checkpoint. Without a parent, the
    # saver may keep only the newest one, or the durability may save only the last one of a run.
    parent = saved and saved.parent_config
    earlier = (await read_checkpoint(saver, parent)) if parent else None
    return None if earlier is None else place


def are_bulky(earlier: Sequence[Attempt]) -> bool:
    """Return whether records are too large to be stored again in every later checkpoint."""
    movable = [attempt for attempt in earlier if not attempt["kept_in"]]
    if movable and movable[0] is earlier[0]:
        movable[0] = {**movable[0], "params_patch": None}  # The first params stay in state.
    return len(json.dumps(movable, default=str)) > _SMALL


def stub(record: Attempt) -> Attempt:
    """Return the stub of a record that an older checkpoint holds, or any other record itself."""
    if not record.get("kept_in"):
        return record
    known = record.get("params_patch") is not None
    names = ("number", "kept_in", *(("params_patch", "params_types") if known else ()))
    fields = cast("dict[str, Any]", record)
    if record.get("redacted"):
        names = (*names, "redacted")
    return cast("Attempt", {name: fields[name] for name in names})


def stubs_again(attempts: Sequence[Attempt]) -> list[Attempt]:
    """Return a ledger for the state, with stubs for the records that older checkpoints hold."""
    return without_implied(list(map(stub, attempts)))


def slimmed(earlier: Sequence[Attempt], place: KeptIn) -> list[Attempt]:
    """Return the stubs that replace the whole records in state. Each stub names `place`.

    The state keeps the params of the first attempt. The last stub has a patch from the first params
    to the params of its own attempt. No other stub needs such a patch.
    """
    first, last = params_at(earlier[:1]), params_at(earlier)
    updates: list[Attempt] = []
    for record in earlier[1:]:
        if record["kept_in"] is None or record["params_patch"] is not None:
            moved: Any = {**record, "kept_in": record["kept_in"] or place, "params_patch": None}
            updates.append(stub(moved))
    if earlier[0]["kept_in"] is None:
        updates.insert(0, stub({**earlier[0], "kept_in": place}))
    # The last record is whole, or has the patch, so its stub is the last one of `updates`.
    if len(earlier) > 1 and first is not None and last is not None:
        patch = diff_views(first.view, last.view)
        updates[-1].update({"params_patch": patch, "params_types": last.types})
    return updates
