"""Take up a call on a server that waits for no answer: fork the graph, and tell the fork's run."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.pregel.remote import RemoteException
from langgraph.types import StateSnapshot

from graph_retry.engine.fork import REFUSED
from graph_retry.flow import Ask, Flow
from graph_retry.forks.adopt import FORKED, Forked
from graph_retry.forks.task_ids import path_of
from graph_retry.ledger import Ledger
from graph_retry.threads.reading import read_calls
from graph_retry.threads.served_calls import place_after
from graph_retry.threads.served_runs import ServedRuns
from graph_retry.threads.waiting import thread_of


def refork(graph: Any, config: RunnableConfig, ledger: Ledger, answer: dict[str, Any]) -> Flow[Any]:
    """Copy the checkpoint the call was made from, and run on from the copy.

    The calls of that run find by themselves what they did before; the one meant is told the answer.
    """
    head: StateSnapshot = yield Ask(graph, "get_state", (config,))
    place = {"thread_id": thread_of(config), "checkpoint_ns": "", "checkpoint_id": ledger.root}
    old: StateSnapshot = yield Ask(graph, "get_state", ({"configurable": place},))
    within = tuple(f"{task.name}:{task.id}|" for task in old.tasks if task.state is not None)
    calls = (yield from read_calls(graph, config)) if within else []
    if any(call.namespace.startswith(within) for call in calls):
        raise ValueError(
            f"the call `{ledger.title}` was made in a subgraph or beside one with calls, and those "
            "are lost in a fork on a server: fork the graph before the node (`get_state_history`, "
            "`update_state`) and let it make them again."
        )
    try:
        return (yield from _run_from(graph, config, old, ledger.namespace, answer))
    except RemoteException as error:
        told: Any = error.args[0]
        if REFUSED not in str(told):
            raise
        with suppress(RemoteException):  # the thread becomes what it was, and ends as it had ended
            yield from _run_from(graph, config, head)
        raise ValueError(told["message"]) from error


def _run_from(
    graph: Any, config: RunnableConfig, old: StateSnapshot, call: str = "", answer: Any = None
) -> Flow[Any]:
    """Make a copy of a checkpoint the newest one; if something is to be done there, do it."""
    copied = yield Ask(graph, "update_state", (old.config, None), {"as_node": "__copy__"})
    new: StateSnapshot = yield Ask(graph, "get_state", (copied,))
    if not new.next:
        return None
    was = place_after(old)
    told: Forked = {
        "tasks": {
            after.id: (before.id, path_of(before.name, before.id, was))
            for before, after in zip(old.tasks, new.tasks, strict=True)
        },
        "old": was,
        "new": place_after(new),
        "call": call,
        "answer": answer,
    }
    there: Any = {**config.get("configurable", {}), FORKED: [json.dumps(told)]}
    return (yield from ServedRuns(graph, {**config, "configurable": there}).answer({}, {}))
