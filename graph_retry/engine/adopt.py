"""Take calls along to a fork made on a server, where only a step of the call can read its past.

Whoever forks a thread there cannot write into the calls of the fork. So the run that goes on from
it is told which checkpoint was forked, and each call that begins in it looks for its earlier self.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
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

FORKED = "graph_retry_fork"
"""Where a run's `configurable` tells of the fork, as JSON: in a list, or it would be copied to the
metadata of each checkpoint."""


class Forked(TypedDict):
    """What a call is told: its task's old id and path by the new one, and what to do differently.

    `old` and `new` are the checkpoint that was forked and the fork, each with its next step; `call`
    is the namespace of the call to take up again, and `answer` what decides it.
    """

    tasks: dict[str, tuple[str, Path]]
    old: tuple[str, int]
    new: tuple[str, int]
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
    was = yield from _read(plan, namespace)
    if namespace != fork["call"]:
        values: dict[str, Any] = was.values
        taken = loop_of(values)["next"] in FOLLOWERS["call"] and ANSWER in values
        if taken and _task(namespace) == _task(fork["call"]):
            retaken = yield from _read(plan, fork["call"])
            first: str = values[plan.settings.keys["attempts"]][0]["started_at"]
            taken = first < str(retaken.created_at)
        return _moved(plan, values) if taken else None
    number = fork["answer"]["rewind"]["attempt"]
    attempts = records_in(was.values)
    if not 1 <= number <= len(attempts):
        raise ValueError(f"{REFUSED}`attempt` is {number}, and the call has {len(attempts)}.")
    return _moved(plan, was.values) | {
        LOOP: reopened(was.values),
        ANSWER: {"value": fork["answer"]},
    }


def _moved(plan: Plan[Any], values: dict[str, Any]) -> dict[str, Any]:
    key = plan.settings.keys["attempts"]
    return {**values, key: Overwrite(values[key])}


def _task(namespace: str) -> str:
    return namespace.partition("|")[0]


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
            places = Place(*fork["new"], here), Place(*fork["old"], was)
            try:
                caller = moved_task(name, task_id, *places, (), caller)
            except ValueError:  # a graph in between made checkpoints of its own
                return None
            old = f"{name}:{caller.task_id}"
        here, was = f"{here}|{part}", f"{was}|{old}"
    return was


def _read(plan: Plan[Any], namespace: str) -> Flow[StateSnapshot]:
    """Read the state of a call of this thread."""
    settings, here = plan.settings, dict(get_config().get("configurable", {}))
    for key in ("checkpoint_id", "checkpoint_map"):
        here.pop(key, None)
    keeps, _, _ = schemas(settings.keys, None, lessons=settings.lessons is not None)
    builder = StateGraph[Any, Any, Any, Any](keeps).add_node("reader", lambda state: state)
    reader = builder.set_entry_point("reader").compile()
    place = {"configurable": {**here, "checkpoint_ns": namespace}}
    snapshot: StateSnapshot = yield Ask(reader, "get_state", (place,))
    return snapshot
