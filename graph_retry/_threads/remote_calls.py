"""The calls of a thread on a server, which shows checkpoints one namespace at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.types import PregelTask, StateSnapshot

from graph_retry._awaiting import collect
from graph_retry._json import is_object
from graph_retry._namespaces import moved, task_namespace
from graph_retry._review.clients.ag_ui import INTERVENTION
from graph_retry._state import LOOP
from graph_retry._threads.remote_runs import http_status
from graph_retry._threads.saved import SavedThread
from graph_retry.ledger import Ledger

_LIMIT = 1_000
"""Checkpoints of a graph that are looked at: as many as a server gives at once."""


class RemoteThread(SavedThread):
    """The server's view of a thread; it has only the newest checkpoint of each call.

    The state of a function-form call is shown as far as the outermost graph's state has the same
    keys, and by older servers not at all.
    """

    def __init__(self, graph: Any, thread_id: str) -> None:
        super().__init__(graph, thread_id)
        self.snapshots: dict[str, list[StateSnapshot]] = {}

    async def read(self, namespace: str, limit: int) -> None:
        """Read a namespace's newest checkpoints from the server."""
        graph, place = cast("Any", self.saver), self.place(checkpoint_ns=namespace)
        history = (graph.get_state_history, graph.aget_state_history)
        for snapshot in await collect(*history, place, limit=limit):
            self._keep(snapshot)

    def _keep(self, snapshot: StateSnapshot) -> None:
        config, metadata = cast("Any", snapshot.config), cast("Any", snapshot.metadata)
        here = config["configurable"]
        self.snapshots.setdefault(here["checkpoint_ns"], []).append(snapshot)
        values = snapshot.values if is_object(snapshot.values) else {}
        checkpoint: Any = {"id": here["checkpoint_id"], "channel_values": values}
        writes = [(task.id, "", None) for task in snapshot.tasks]
        self.add(CheckpointTuple(config, checkpoint, metadata, snapshot.parent_config, writes))

    def values(self, namespace: str) -> dict[str, Any]:
        """Return a namespace's newest state, as far as the server shows it."""
        return self.newest[namespace].checkpoint["channel_values"]

    def ledgers(self) -> Iterator[Ledger]:
        """Yield the calls, those left out that are shown and have made no attempt."""
        for ledger in super().ledgers():
            if ledger.attempts or self.values(ledger.namespace)[LOOP] is None:
                yield ledger

    def note_call(self, namespace: str, root: str) -> None:
        """Note that a namespace is a function's call, whether or not its state is shown."""
        if namespace not in self.newest:
            unknown: Any = {"id": "", "channel_values": {}}, {"parents": {"": root}}
            self.add(CheckpointTuple(self.place(checkpoint_ns=namespace), *unknown))
        self.values(namespace).setdefault(LOOP, None)


async def read_remote(graph: Any, config: RunnableConfig) -> RemoteThread:
    """Read the calls of a thread on a server."""
    thread = RemoteThread(graph, config.get("configurable", {}).get("thread_id", ""))
    await _read_graph(thread, "", "")
    return thread


async def _read_graph(thread: RemoteThread, namespace: str, root: str) -> None:
    """Read a graph's history, the retry nodes and graphs in it, and the functions' calls.

    A server cannot list the namespaces of a thread. A function's call is known by its question,
    also in another task of its node, as after a rewind: only the task differs in its namespace.
    """
    await thread.read(namespace, _LIMIT)
    tasks = [
        (task, root or cast("Any", snapshot.config)["configurable"]["checkpoint_id"])
        for snapshot in thread.snapshots.pop(namespace, [])
        for task in snapshot.tasks
        if not task.name.startswith("__")
    ]
    asked: dict[str, set[str]] = {}
    for task, _ in tasks:
        asked.setdefault(task.name, set()).update(_asking(task))
    for task, began in tasks:
        inner = task_namespace(namespace, task.name, task.id)
        if task.state is None:
            for call in sorted(asked[task.name]):
                here = moved(call, inner)
                if await _is_shown(thread, here) or call == here:
                    thread.note_call(here, began)
        elif await _is_shown(thread, inner):
            del thread.snapshots[inner]
            if LOOP not in thread.values(inner):
                await _read_graph(thread, inner, began)


def _asking(task: PregelTask) -> Iterator[str]:
    """Yield the namespaces of the calls in a task that asked last."""
    for question in task.interrupts:
        value = question.value if is_object(question.value) else {}
        if value.get("type") == INTERVENTION:
            yield str(value.get("checkpoint_ns"))


async def _is_shown(thread: RemoteThread, namespace: str) -> bool:
    """Read the newest checkpoint of a namespace, if there is one and the server shows it."""
    try:
        await thread.read(namespace, 1)
    except Exception as error:
        if http_status(error) not in (400, 404):
            raise
    return namespace in thread.newest
