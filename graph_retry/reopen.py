"""Take up a call that waits for no answer: one that is over, or was cut off."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.types import StateSnapshot

from graph_retry.engine.fork import reopened
from graph_retry.engine.state import ANSWER, LOOP
from graph_retry.flow import Ask, Flow
from graph_retry.ledger import Ledger


def reopen(graph: Any, config: RunnableConfig, ledger: Ledger, answer: dict[str, Any]) -> Flow[Any]:
    """Write the answer to a call that waits for none, and run on from there."""
    here: dict[str, Any] = config.get("configurable", {})
    outer: StateSnapshot = yield Ask(graph, "get_state", (config,))
    inner: StateSnapshot = yield from _inner(graph, here, ledger.namespace)
    waits = any(f"{task.name}:{task.id}" in ledger.namespace for task in outer.tasks)
    if not ledger.namespace or (waits and inner.next):
        yield from _write(graph, here, ledger.namespace, _asked(inner.values, answer))
        return (yield Ask(graph, "invoke", (None, config)))
    if "|" in ledger.namespace or LOOP not in inner.values or not ledger.root:
        raise ValueError(
            f"the call `{ledger.name}` is over and was made inside a function or a subgraph: fork "
            "the graph before the node that made it (`get_state_history`, `update_state`)."
        )
    # A copy of the checkpoint before the node has the same tasks under new names: what they had
    # done by then is copied, too.
    start = {"configurable": {**here, "checkpoint_ns": "", "checkpoint_id": ledger.root}}
    before: StateSnapshot = yield Ask(graph, "get_state", (start,))
    fork: RunnableConfig = yield Ask(graph, "update_state", (start, None))
    after: StateSnapshot = yield Ask(graph, "get_state", (fork,))
    for old, new in zip(before.tasks, after.tasks, strict=True):
        namespace = f"{old.name}:{old.id}"
        done: StateSnapshot = yield from _inner(graph, here, namespace)
        if LOOP in done.values:
            state = done.values
            if namespace == ledger.namespace:
                state = {**state, **_asked(state, answer)}
            yield from _write(graph, here, f"{new.name}:{new.id}", state)
    return (yield Ask(graph, "invoke", (None, config)))


def _inner(graph: Any, here: dict[str, Any], namespace: str) -> Flow[StateSnapshot]:
    """Read the state of a subgraph; a node that is none has no values."""
    place = {"configurable": {**here, "checkpoint_ns": namespace}}
    try:
        snapshot: StateSnapshot = yield Ask(graph, "get_state", (place,))
    except ValueError:
        snapshot = StateSnapshot({}, (), {}, None, None, None, (), ())
    return snapshot


def _asked(state: Mapping[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    return {LOOP: reopened(state), ANSWER: {"value": answer}}


def _write(graph: Any, here: dict[str, Any], namespace: str, state: Any) -> Flow[None]:
    """Write state to a call, so that its next step is the one the state names."""
    place = {"configurable": {**here, "checkpoint_ns": namespace}}
    step = {"repair": "call", "validate": "repair", "end": "review"}.get(state[LOOP]["next"])
    yield Ask(graph, "update_state", (place, state), {"as_node": step or "revise"})
