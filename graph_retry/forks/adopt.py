"""Take calls along to a fork made on a server, where only a step of the call can read its past.

Whoever forks a thread there cannot write into the calls of the fork. So the run that goes on from
it is told which checkpoint was forked, and each call that begins in it looks for its earlier self.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from langgraph.config import get_config
from langgraph.graph import StateGraph
from langgraph.types import Overwrite, StateSnapshot
from typing_extensions import TypedDict

from graph_retry.engine.fork import REFUSED, reopened
from graph_retry.engine.plan import Plan
from graph_retry.engine.state import ANSWER, LOOP, call_namespace, loop_of, schemas
from graph_retry.engine.transitions import FOLLOWERS
from graph_retry.flow import Ask, Flow
from graph_retry.forks.task_ids import Moved, Path, Place, moved_task
from graph_retry.ledger import records_in
from graph_retry.records import Attempt

FORKED = "graph_retry_fork"
"""Where a run's `configurable` tells of the fork, as JSON: in a list, or it would be copied to the
metadata of each checkpoint."""


class Forked(TypedDict):
    """What a call is told: its task's old id and path by the new one, and what to do differently.

    `old` and `new` are where the tasks of the checkpoint that was forked ran, and those of the fork
    run; `call` is the namespace of the call to take up again, and `answer` what decides it.
    """

    tasks: dict[str, tuple[str, Path]]
    old: Place
    new: Place
    call: str
    answer: dict[str, Any]


def adopted(plan: Plan[Any], state: Mapping[str, Any]) -> Flow[dict[str, Any] | None]:
    """Return the state of the same call before the fork, or None where it has to begin."""
    told: Any = get_config().get("configurable", {}).get(FORKED)
    if not told or ANSWER in state:  # a call that has begun has this key
        return None
    fork: Forked = json.loads(told[0])
    namespace = _before(fork, call_namespace())
    if namespace is None:
        return None
    key, values = plan.settings.keys["attempts"], (yield from _read(plan, namespace)).values
    taken = {**values, key: Overwrite(values.get(key))}
    if namespace == fork["call"]:
        number, made = fork["answer"]["rewind"]["attempt"], len(records_in(values))
        if not 1 <= number <= made:
            raise ValueError(f"{REFUSED}`attempt` is {number}, and the call has {made}.")
        return {**taken, LOOP: reopened(values), ANSWER: {"value": fork["answer"]}}
    if ANSWER not in values or loop_of(values)["next"] not in FOLLOWERS["call"]:
        return None
    if namespace.partition("|")[0] == fork["call"].partition("|")[0]:  # both of one node
        retaken = yield from _read(plan, fork["call"])
        if values[key][0]["started_at"] > _end(records_in(retaken.values)[-1]):
            return None
    return taken


def _end(attempt: Attempt) -> str:
    """Return when an attempt was over; carried over or not, a call keeps its times."""
    made = datetime.fromisoformat(attempt["started_at"]) + timedelta(seconds=attempt["duration_s"])
    return str(attempt["decision"]["at"]) if attempt["decision"] else made.isoformat()


def _before(fork: Forked, namespace: str) -> str | None:
    """Return what a call's namespace was before the fork; None if that cannot be known."""
    outer, *inner = namespace.split("|")
    name, _, task_id = outer.rpartition(":")
    if task_id not in fork["tasks"]:
        return None
    old_id, path = fork["tasks"][task_id]
    caller = Moved(old_id, tuple(path), tuple(path))
    here, was = outer, f"{name}:{old_id}"
    for part in inner:
        name, _, task_id = part.rpartition(":")
        old = part  # the number of a further graph that one function ran
        if name:
            now, then = Place(*fork["new"][:2], here), Place(*fork["old"][:2], was)
            try:
                caller = moved_task(name, task_id, now, then, (), caller)
            except ValueError:  # a graph in between made checkpoints of its own
                return None
            old = f"{name}:{caller.task_id}"
        here, was = f"{here}|{part}", f"{was}|{old}"
    return was


def _read(plan: Plan[Any], namespace: str) -> Flow[StateSnapshot]:
    """Read the state of a call of this thread."""
    settings, here = plan.settings, get_config().get("configurable", {})
    keeps, _, _ = schemas(settings.keys, None, lessons=settings.lessons is not None)
    builder = StateGraph[Any, Any, Any, Any](keeps).add_node("reader", lambda state: state)
    other = {key: here[key] for key in here if key not in ("checkpoint_id", "checkpoint_map")}
    place = {"configurable": {**other, "checkpoint_ns": namespace}}
    reader = builder.set_entry_point("reader").compile()
    snapshot: StateSnapshot = yield Ask(reader, "get_state", (place,))
    return snapshot
