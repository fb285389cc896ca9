"""Leave earlier records in the checkpoints that hold them, and make ledgers whole again.

Every checkpoint of a loop stores the ledger, and some savers store all of state each time. So of
earlier attempts the present state has but the place where their records are.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

from graph_retry._awaiting import collect, sync_or_async
from graph_retry._params.patch import diff_views, initial_patch
from graph_retry.ledger import filled, ledgers_in, params_at, readable, records_in
from graph_retry.records import Attempt, KeptIn

_SMALL = 4_000
"""Characters of JSON that earlier records may take in state: fewer are not worth the reading."""

Reader = Callable[[KeptIn], Awaitable[Mapping[str, Any] | None]]
"""Reads the state values of a checkpoint; None if it is gone or not shown."""


def are_bulky(earlier: Sequence[Attempt]) -> bool:
    """Tell whether records should not be stored again with every later checkpoint."""
    whole = [
        # The first params stay in state in any case.
        {**each, "params_patch": each["params_patch"] if place else None}
        for place, each in enumerate(earlier)
        if not each["kept_in"]
    ]
    return len(json.dumps(whole, default=str)) > _SMALL


def stub(record: Attempt) -> Attempt:
    """Return what state keeps of a record: all of it, unless it is in another checkpoint."""
    if not record.get("kept_in"):
        return record
    known = record.get("params_patch") is not None
    names = ("number", "kept_in", *(("params_patch", "params_types") if known else ()))
    fields = cast("dict[str, Any]", record)
    return cast("Attempt", {name: fields[name] for name in names})


def slimmed(earlier: Sequence[Attempt], place: KeptIn) -> list[Attempt]:
    """Return the updates that leave records to a checkpoint which holds those not left before.

    Of all params in between only the last ones stay known, by what differs from the first.
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
    made: list[Attempt] = []
    last: KeptIn | None = None
    kept: list[Attempt] = []
    for record in attempts:
        place = record.get("kept_in")
        if place is None:
            made.append(record)
            continue
        number = record["number"]
        if place != last:  # several are often kept in one
            last, kept = place, readable(records_in(await read(place)))
        same = [each for each in kept if each["number"] == number and not each["kept_in"]]
        if not same:
            made.append(filled(record))
            continue
        found, params = same[0], params_at(kept, number)
        if params is not None and (not made or made[-1].get("kept_in")):
            # Its own patch is on params that are not known here.
            found["params_patch"] = initial_patch(params.view)
        made.append(found)
    return made


async def list_checkpoints(
    saver: BaseCheckpointSaver[Any], thread: RunnableConfig | None, **options: Any
) -> list[CheckpointTuple]:
    """List the checkpoints of a thread, or of all, those of one namespace newest first."""
    while True:
        try:
            return await collect(saver.list, saver.alist, thread, **options)
        except RuntimeError as error:
            # LangGraph's in-memory saver raises this while another thread saves.
            if "changed size during iteration" not in str(error):
                raise


def located(values: Mapping[str, Any], namespace: str) -> dict[str, Any]:
    """Return a call's state for use in another namespace: with this one named in its ledger."""
    moved = {
        key: [
            cast("Attempt", {**each, "kept_in": {"checkpoint_ns": namespace, **place}})
            if (place := each.get("kept_in"))
            else each
            for each in records
        ]
        for key, records in ledgers_in(values)
    }
    return {**values, **moved}


def saved_at(saver: BaseCheckpointSaver[Any], thread_id: str | None, namespace: str) -> Reader:
    """Return what reads the checkpoints of a call from its thread's saver."""

    async def read(place: KeptIn) -> Mapping[str, Any] | None:
        found = await saved_tuple(saver, place_of(thread_id, namespace, place))
        return found and found.checkpoint["channel_values"]

    return read


def place_of(thread_id: str | None, namespace: str, place: KeptIn) -> RunnableConfig:
    """Return the config of a checkpoint that a call with this namespace names."""
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": namespace, **place}}


async def newest_tuple(
    saver: BaseCheckpointSaver[Any], thread_id: str | None, namespace: str
) -> CheckpointTuple | None:
    """Read the newest checkpoint of a namespace, if it has one."""
    place = {"thread_id": thread_id, "checkpoint_ns": namespace}
    return await sync_or_async(saver.get_tuple, saver.aget_tuple, {"configurable": place})


async def saved_tuple(
    saver: BaseCheckpointSaver[Any], config: RunnableConfig
) -> CheckpointTuple | None:
    """Read one checkpoint, or None: a saver that keeps only the newest may answer with that."""
    wanted = config.get("configurable", {})["checkpoint_id"]
    found = await sync_or_async(saver.get_tuple, saver.aget_tuple, config)
    return found if found is not None and found.checkpoint["id"] == wanted else None
