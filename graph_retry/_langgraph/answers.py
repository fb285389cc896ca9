"""Write an answer into the saved state of a call that LangGraph shows no way to.

`update_state` with a `checkpoint_ns` looks for the graph of that namespace among the subgraphs, by
the names of the nodes around it, and then writes into the checkpoint whatever graph was found.
Found in `Pregel.update_state`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph

from graph_retry._awaiting import sync_or_async
from graph_retry._langgraph.checkpoints import check_clock, newest_checkpoint
from graph_retry._namespaces import parts_of
from graph_retry._state import ANSWER


async def write_answer(
    saver: BaseCheckpointSaver[Any],
    graph: CompiledStateGraph[Any, Any, Any, Any],
    thread_id: str | None,
    namespace: str,
    note: Mapping[str, Any],
) -> bool:
    """Write an answer into the state of a call that a node's code made; False if that fails.

    LangGraph updates the state of a subgraph only through the graphs around it. The loop of a
    function (`graph`) is part of no graph, so here it is wrapped in graphs of one node each, with
    the names in its namespace. Nothing runs in them.
    """
    call = await newest_checkpoint(saver, thread_id, namespace)
    # A retry node that was invoked by hand may have its state under other keys.
    if call is None or not call.checkpoint["channel_values"].keys() <= graph.channels.keys():
        return False
    await check_clock(call)
    names = [part.name for part in parts_of(namespace)]
    for number, name in enumerate(reversed(names), start=1):
        builder = StateGraph(cast("Any", dict)).add_node(name, graph).set_entry_point(name)
        graph = builder.compile(checkpointer=saver if number == len(names) else None)
    place: RunnableConfig = {"configurable": {"thread_id": thread_id, "checkpoint_ns": namespace}}
    await sync_or_async(
        graph.update_state, graph.aupdate_state, place, {ANSWER: note}, as_node="review"
    )
    return True
