"""Find reviews that nobody can answer: the thread went on although a call still waits."""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.serde.types import ERROR, INTERRUPT, RESUME

from graph_retry.engine.state import ANSWER, loop_of
from graph_retry.flow import Flow
from graph_retry.ledger import Ledger, records_in
from graph_retry.threads.reading import read_saved


def swallowed_calls(graph: Any, config: RunnableConfig) -> Flow[list[Ledger]]:
    """Read from a thread's checkpoints which calls with an open review it has left behind.

    A call is left behind where the node around it is done, or its graph is past it, though the
    call still waits. What a new input, a fork or an edited state abandoned does not count. All
    checkpoints of the thread are read, so ask where something seems to be missing. Of a
    `RemoteGraph`, or a run with `durability="exit"` that ended, nothing is known.
    """
    thread = yield from read_saved(graph, config)
    line, newest = (thread.line(), thread.newest) if thread else (set[str](), {})
    found: list[Ledger] = []
    for namespace, saved in newest.items():
        values = saved.checkpoint["channel_values"]
        parents: dict[str, str] = saved.metadata.get("parents", {})
        if (
            loop_of(values)["review"]
            and values.get(ANSWER) is None
            and parents.get("") in line
            and any(_is_past(newest.get(at), parents[at], at, namespace) for at in parents)
        ):
            found.append(Ledger(records_in(values), namespace))
    return found


def _is_past(now: CheckpointTuple | None, checkpoint_id: str, place: str, namespace: str) -> bool:
    """Tell whether the graph in `place` went past the step in which the call was made."""
    if now is None:  # a task in a node keeps no checkpoints of its own
        return False
    if now.checkpoint["id"] != checkpoint_id:
        return now.metadata.get("source") == "loop"
    inside = namespace.removeprefix(place).removeprefix("|")
    task = inside.partition("|")[0].rpartition(":")[2]
    return any(
        write[0] == task and write[1] not in (ERROR, INTERRUPT, RESUME)
        for write in now.pending_writes or ()
    )
