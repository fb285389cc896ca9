"""Reviews that an `update_state` of the graph around their calls took out of LangGraph's sight."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.serde.types import INTERRUPT
from langgraph.pregel import Pregel
from langgraph.types import Interrupt, StateSnapshot

from graph_retry._engine.identity import identity_of
from graph_retry._engine.running import RetryGraph
from graph_retry._engine.saved_state import saved_call
from graph_retry._engine.state import ANSWER, LOOP, loop_of
from graph_retry._threads.calls import read_saved
from graph_retry._threads.graphs import is_local
from graph_retry._threads.saved import SavedThread, parent_of


@dataclass(frozen=True)
class HiddenCall:
    """A call that waits unseen: its state, its last question, and the checkpoint it began from."""

    values: dict[str, Any]
    question: Interrupt
    root: str


async def hidden_calls(graph: Any, config: RunnableConfig, head: StateSnapshot) -> list[HiddenCall]:
    """Find the open reviews that an update of a thread's newest state, `head`, hid; read only.

    They come back when the thread runs on, if their calls are still made with the same params. Of a
    retry node that is known before; of a function it is taken for granted.
    """
    is_update = (head.metadata or {}).get("source") == "update" and head.next
    if not is_update or not is_local(graph) or config.get("configurable", {}).get("checkpoint_id"):
        return []
    saved = await read_saved(graph, config)
    return list(_hidden(graph, saved, head)) if saved else []


def _hidden(
    graph: Pregel[Any, Any, Any, Any], saved: SavedThread, head: StateSnapshot
) -> Iterator[HiddenCall]:
    line = [checkpoint.checkpoint["id"] for checkpoint in _updates(saved)]
    begun = {saved.root_of(namespace) for namespace in saved.newest if namespace}
    if len(line) < 2 or begun & {*line[:-1]}:  # it has begun anew
        return
    for namespace, call in saved.newest.items():
        values = call.checkpoint["channel_values"]
        waits = LOOP in values and loop_of(values)["next"] == "review" and not values.get(ANSWER)
        node = namespace.partition(":")[0]
        if not waits or saved.root_of(namespace) != line[-1] or node not in head.next:
            continue
        if namespace.count("|") == 0 and not _is_same(graph, node, values, head.values):
            continue
        for _, channel, asked in call.pending_writes or ():
            if channel == INTERRUPT:
                yield HiddenCall(values, asked[0], line[-1])


def _updates(saved: SavedThread) -> list[CheckpointTuple]:
    """Return the newest checkpoint and those it updates, down to the one that asked.

    Nothing is returned where somebody went back: there a later checkpoint ran, too.
    """
    line: list[CheckpointTuple] = []
    here = saved.newest.get("")
    while here is not None:
        line.append(here)
        asked = any(channel == INTERRUPT for _, channel, _ in here.pending_writes or ())
        if here.metadata.get("source") != "update" or (asked and len(line) > 1):
            break
        here = saved.roots.get(parent_of(here))
    ids = {checkpoint.checkpoint["id"] for checkpoint in line}
    others = (checkpoint for root, checkpoint in saved.roots.items() if root not in ids)
    return [] if any(parent_of(other) in ids for other in others) else line


def _is_same(
    graph: Pregel[Any, Any, Any, Any], node: str, values: dict[str, Any], now: dict[str, Any]
) -> bool:
    """Tell whether a retry node would be called with the params it waits with."""
    bound = graph.nodes[node].bound
    call = saved_call(values, "params")
    if not isinstance(bound, RetryGraph) or bound.plan is None or call is None:
        return True
    plan = bound.plan
    try:
        params = plan.codec.load(now.get(plan.settings.keys["params"]), {})
    except (TypeError, ValueError):
        return False
    return identity_of(*params) == call.identity
