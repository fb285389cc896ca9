"""Take up a call that waits for no answer: one that is over, or was cut off."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import Checkpoint, CheckpointTuple
from langgraph.checkpoint.base.id import uuid6
from langgraph.graph import END, StateGraph
from langgraph.types import PregelTask, StateSnapshot
from typing_extensions import TypedDict

from graph_retry.engine.fork import reopened
from graph_retry.engine.state import ANSWER, LOOP
from graph_retry.engine.transitions import FOLLOWERS
from graph_retry.flow import Ask, Flow
from graph_retry.forks.carry import Move
from graph_retry.ledger import Ledger
from graph_retry.threads.reading import read_saved
from graph_retry.threads.saved import SavedThread


def reopen(graph: Any, config: RunnableConfig, ledger: Ledger, answer: dict[str, Any]) -> Flow[Any]:
    """Write the answer to a call that waits for none, and run on from there."""
    saved, call = (yield from read_saved(graph, config)), ledger.namespace
    if saved is None or call not in saved.newest or (call and ledger.root not in saved.roots):
        raise ValueError(
            f"the call `{ledger.title}` is over and its checkpoints are gone: give the node "
            "`attempts` in its input, or call it again."
        )
    state: dict[str, Any] = saved.newest[call].checkpoint["channel_values"]
    update = {LOOP: reopened(state), ANSWER: {"value": answer}}
    if not call:  # the node is the outermost graph
        yield Ask(graph, "update_state", (config, update), {"as_node": "revise"})
        return (yield Ask(graph, "invoke", (None, config)))
    old, head = saved.roots[ledger.root], saved.newest[""]
    namespace = yield from _fork(graph, saved, old, call)
    steps, place = _steps(state, namespace, saved.saver), saved.place(checkpoint_ns=namespace)
    yield Ask(steps, "update_state", (place, None), {"as_node": END})  # where it was cut off
    yield Ask(steps, "update_state", (place, update), {"as_node": "revise"})
    try:
        return (yield Ask(graph, "invoke", (None, config)))
    except ValueError:  # the answer is refused: the thread stays what it was
        yield from _fork(graph, saved, head)
        raise


def _fork(graph: Any, saved: SavedThread, old: CheckpointTuple, call: str = "") -> Flow[str]:
    """Make a copy of a checkpoint of the outermost graph the newest one, with what was done."""
    before: StateSnapshot = yield Ask(graph, "get_state", (old.config,))
    Move(saved, old, old, [(task, task) for task in before.tasks], call).names()
    step = saved.steps[old.checkpoint["id"]] + 1
    fresh = {"id": str(uuid6(clock_seq=step)), "ts": datetime.now(UTC).isoformat()}
    checkpoint = cast("Checkpoint", {**old.checkpoint, **fresh})
    metadata: Any = {"source": "fork", "step": step, "parents": {}}
    config: RunnableConfig = yield Ask(saved.saver, "put", (old.config, checkpoint, metadata, {}))
    new = CheckpointTuple(config, checkpoint, metadata, old.config, [])
    after: StateSnapshot = yield Ask(graph, "get_state", (config,))
    tasks: dict[Any, PregelTask] = {task.path: task for task in after.tasks}
    pairs = [(task, tasks[task.path]) for task in before.tasks]
    return (yield from Move(saved, old, new, pairs, call).run())


def _steps(state: Mapping[str, Any], namespace: str, saver: Any) -> Any:
    """Return a graph through which a call's state can be written, wherever the call is made.

    A function's call is a graph only while the function runs; this one has its place, its state and
    the names of its steps.
    """
    keys: Any = cast("Any", TypedDict)("Keys", {key: Any for key in state if ":" not in key})
    builder = StateGraph[Any, Any, Any, Any](keys)
    for name in (*FOLLOWERS, "recall", "give_up"):
        builder.add_node(name, lambda state: state)
    graph: Any = builder.set_entry_point("revise").add_edge("revise", "review").compile()
    for part in reversed(namespace.split("|")):
        name = part.partition(":")[0]
        if not name.isdigit():
            around = StateGraph[Any, Any, Any, Any](keys).add_node(name, graph)
            graph = around.set_entry_point(name).compile(saver)
    return graph
