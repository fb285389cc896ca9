"""Read the ledgers of a thread: every call it made, whatever became of it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.pregel import Pregel
from langgraph.types import StateSnapshot
from typing_extensions import TypeIs

from graph_retry.flow import Ask, Flow, adrive, drive
from graph_retry.ledger import Ledger, ledgers_in
from graph_retry.records import Attempt
from graph_retry.threads.saved import SavedThread
from graph_retry.threads.served_calls import read_served

STATE = "state:"
"""Begins the namespace of a ledger that is known from the outermost graph's state only."""


def attempts_of(graph: Any, config: RunnableConfig) -> list[Ledger]:
    """Read the ledgers of a thread: live, paused, finished or cancelled, oldest call first.

    Both forms, subgraphs and `Send` branches are read from the graph's checkpointer, and so are
    the calls of earlier runs and forks. A server (`RemoteGraph`) shows function-form calls if the
    outermost graph's state has the key `attempts`; a `UserWarning` tells of others. A checkpointer
    alone will do in place of a graph.

    Example:
        >>> from graph_retry import edit, resume, retry_llm_call
        >>> from langgraph.checkpoint.memory import InMemorySaver
        >>> from langgraph.func import entrypoint
        >>> @entrypoint(checkpointer=InMemorySaver())
        ... def count(prompt):
        ...     return retry_llm_call(lambda given: given, prompt, output=int)
        >>> config = {"configurable": {"thread_id": "1"}}
        >>> _ = count.invoke("many", config)
        >>> resume(count, config, edit(value="3"))
        3
        >>> (ledger,) = attempts_of(count, config)
        >>> [attempt["author"] for attempt in ledger.attempts], ledger.params_diff(2)
        (['caller', 'human'], [{'path': '/value', 'before': 'many', 'after': '3'}])
    """
    return drive(_told_ledgers(graph, config))


async def aattempts_of(graph: Any, config: RunnableConfig) -> list[Ledger]:
    """Do what `attempts_of` does, from async code."""
    return await adrive(_told_ledgers(graph, config))


def _told_ledgers(graph: Any, config: RunnableConfig) -> Flow[list[Ledger]]:
    """Read a thread's ledgers, and warn of those that a server does not show."""
    calls = yield from read_calls(graph, config)
    empty = [each for each in calls if not each.attempts]
    if empty and is_served(graph):
        snapshot: StateSnapshot = yield Ask(graph, "get_state", (config,))
        runs = tuple(f"{task.name}:{task.id}" for task in snapshot.tasks if not task.interrupts)
        hidden = [each.title for each in empty if not each.namespace.startswith(runs)]
        if hidden:
            warnings.warn(
                f"the server does not show the attempts of calls that were made "
                f"({', '.join(hidden)}): give the state of the outermost graph the key `attempts` "
                "(nothing needs to write it), or read them where the checkpointer is.",
                stacklevel=4,
            )
    return [ledger for ledger in calls if ledger.attempts]


def read_ledgers(graph: Any, config: RunnableConfig) -> Flow[list[Ledger]]:
    """Read a thread's ledgers, as `attempts_of` does, inside a flow."""
    return [ledger for ledger in (yield from read_calls(graph, config)) if ledger.attempts]


def read_calls(graph: Any, config: RunnableConfig) -> Flow[list[Ledger]]:
    """Read a thread's calls; those without an attempt, or whose state is not shown, are empty."""
    saved = yield from read_saved(graph, config)
    if is_served(graph):
        saved = yield from read_served(graph, config)
    found = {ledger.namespace: ledger for ledger in saved.ledgers()} if saved else {}
    if isinstance(graph, BaseCheckpointSaver) or (saved and not saved.roots):  # never run
        return list(found.values())
    snapshot: StateSnapshot = yield Ask(graph, "get_state", (config,), {"subgraphs": True})
    # What is only in the state: where the checkpoints of a call were deleted.
    known = [[each["idempotency_key"] for each in ledger.attempts] for ledger in found.values()]
    for namespace, records in _shown(snapshot, ""):
        if [each["idempotency_key"] for each in records] not in known:
            found.setdefault(namespace, Ledger(records, namespace))
    return list(found.values())


def is_local(graph: object) -> TypeIs[Pregel[Any, Any, Any, Any]]:
    """Tell a graph of this process from one on a server."""
    return isinstance(graph, Pregel)


def is_served(graph: object) -> bool:
    """Tell a graph on a server from one of this process, and from a checkpointer."""
    return not isinstance(graph, Pregel | BaseCheckpointSaver)


def read_saved(graph: Any, config: RunnableConfig) -> Flow[SavedThread | None]:
    """Read what a local graph's saver keeps of a thread, inside a flow."""
    saver: Any = cast("Any", graph).checkpointer if is_local(graph) else graph
    if not isinstance(saver, BaseCheckpointSaver):
        return None
    saved = SavedThread(cast("Any", saver), config.get("configurable", {}).get("thread_id", ""))
    yield Ask(saved, "read", (saved.place(),))
    return saved


def is_asked(records: list[Attempt]) -> bool:
    """Tell a ledger given to a node from one it wrote: the last attempt is still to be made."""
    return records[-1]["status"] == "running"


def _shown(snapshot: StateSnapshot, namespace: str) -> Iterator[tuple[str, list[Attempt]]]:
    """Walk a snapshot and the subgraphs it shows."""
    for key, records in ledgers_in(snapshot.values):
        if namespace or not is_asked(records):
            yield namespace or f"{STATE}{key}", records
    for task in snapshot.tasks:
        if isinstance(task.state, StateSnapshot):
            inner = task.state.config.get("configurable", {}).get("checkpoint_ns", "")
            yield from _shown(task.state, inner)
