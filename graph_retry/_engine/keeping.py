"""Keep the state of a loop as small as its last attempt, and whole again when the call ends."""

from __future__ import annotations

from typing import Any

from langgraph.runtime import get_runtime
from langgraph.types import Overwrite

from graph_retry._engine.kept import (
    are_bulky,
    place_of,
    saved_at,
    saved_tuple,
    slimmed,
    stub,
    whole,
)
from graph_retry._engine.plan import Plan
from graph_retry._engine.run_config import current_saver
from graph_retry._engine.state import LOOP, Loop, call_namespace, current_thread
from graph_retry.hooks._budget import spent_on
from graph_retry.ledger import decision_ids, merge_attempts
from graph_retry.records import Attempt, KeptIn


async def leave_earlier(
    plan: Plan[Any], before: list[Attempt], update: dict[str, Any]
) -> dict[str, Any]:
    """Return a step's update such that earlier attempts stay where they are saved.

    Records are left there in the update that opens a further attempt, and made whole in the one
    that ends the call: so its outputs, its errors and whoever reads the thread find all in one
    place. What the loop must know of them at each step goes into its position.
    """
    key = plan.settings.keys["attempts"]
    written = update.get(key)
    anew = isinstance(written, Overwrite)
    given: Any = written.value if isinstance(written, Overwrite) else written
    after = merge_attempts(None if anew else before, given)
    loop: Any = update.get(LOOP) or {}
    ends = loop.get("next") == "end"
    changes: list[Attempt] = []
    if ends:
        made = await whole_here(after)
        changes = [each for each, was in zip(made, after, strict=True) if was.get("kept_in")]
        update[LOOP] = {**loop, "seen": [], "spent": None}
    elif len(after) > 1 and after[-1]["number"] not in [each["number"] for each in before]:
        changes = await _slimmed_here(after[:-1], before)
        update[LOOP] = _noted(plan, loop, changes, before) if changes else loop
    if anew:
        records = merge_attempts(after, changes)
        return {**update, key: Overwrite(records if ends else [stub(each) for each in records])}
    return {**update, key: [*changes, *(given or [])]} if changes else update


async def whole_here(attempts: list[Attempt], last: int = 0) -> list[Attempt]:
    """Return the ledger of the call whose step is running, all or the `last` records whole."""
    wanted = attempts[-last:]
    saver = current_saver()
    if saver is None or not any(each.get("kept_in") for each in wanted):
        return attempts
    read = saved_at(saver, current_thread(), call_namespace())
    return [*attempts[:-last], *(await whole(wanted, read))]


def _noted(plan: Plan[Any], loop: Loop, stubs: list[Attempt], before: list[Attempt]) -> Loop:
    """Note in the position what must stay known of records that leave the state."""
    numbers = [each["number"] for each in stubs]
    left = [each for each in before if each["number"] in numbers and not each["kept_in"]]
    spent = spent_on(left, plan.settings.budget, loop["spent"])
    return {**loop, "seen": [*loop["seen"], *decision_ids(left)], "spent": spent}


async def _slimmed_here(earlier: list[Attempt], before: list[Attempt]) -> list[Attempt]:
    """Return the updates for records that the checkpoint of the running step holds."""
    if not (are_bulky(earlier) and all(each in before for each in earlier)):
        return []
    place = await _place()
    return slimmed(earlier, place) if place else []


async def _place() -> KeptIn | None:
    """Return the checkpoint the running step started from, if it is saved and will be kept."""
    saver = current_saver()
    here = get_runtime().execution_info
    if saver is None or here is None or not here.checkpoint_id:
        return None
    place: KeptIn = {"checkpoint_id": here.checkpoint_id}
    found = await saved_tuple(saver, place_of(current_thread(), call_namespace(), place))
    # Only where the one before it is there, too: there are savers that keep only the newest, and
    # durabilities that save only the last of a run.
    parent = found and found.parent_config
    earlier = (await saved_tuple(saver, parent)) if parent else None
    return None if earlier is None else place
