"""The calls of a thread on a server, which shows checkpoints one namespace at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.types import PregelTask, StateSnapshot

from graph_retry.engine.state import LOOP
from graph_retry.flow import Ask, Flow
from graph_retry.forks.task_ids import Place, called_task, path_of
from graph_retry.ledger import CALL_TASK, Ledger, records_in
from graph_retry.params.jsonlike import is_object
from graph_retry.review.payload import INTERVENTION
from graph_retry.threads.saved import SavedThread
from graph_retry.threads.served_runs import http_status

_LIMIT = 1_000
"""Checkpoints of a graph that are looked at: as many as a server gives at once."""

_GAP = 4
"""Tasks of its own that an async function may call before or between the library's."""

_PATIENCE = 300
"""Reads that may find nothing before functions not known to call are looked at less closely."""


class ServedThread(SavedThread):
    """What a server shows of a thread; of calls only the newest checkpoint.

    The state of a function-form call is shown as far as the outermost graph's state has the same
    keys, and by older servers not at all.
    """

    def __init__(self, graph: Any, thread_id: str) -> None:
        super().__init__(graph, thread_id)
        self.snapshots: dict[str, list[StateSnapshot]] = {}
        self.vain_reads = 0

    def read(self, place: RunnableConfig, **options: Any) -> None:
        """Read from the server, from sync code."""
        for snapshot in cast("Any", self.saver).get_state_history(place, **options):
            self._keep(snapshot)

    async def aread(self, place: RunnableConfig, **options: Any) -> None:
        """Read from the server, from async code."""
        async for snapshot in cast("Any", self.saver).aget_state_history(place, **options):
            self._keep(snapshot)

    def _keep(self, snapshot: StateSnapshot) -> None:
        config, metadata = cast("Any", snapshot.config), cast("Any", snapshot.metadata)
        here = config["configurable"]
        self.snapshots.setdefault(here["checkpoint_ns"], []).append(snapshot)
        values = snapshot.values if is_object(snapshot.values) else {}
        checkpoint: Any = {"id": here["checkpoint_id"], "channel_values": values}
        writes = [(task.id, "", None) for task in snapshot.tasks]
        self._sort_in(CheckpointTuple(config, checkpoint, metadata, snapshot.parent_config, writes))

    def values(self, namespace: str) -> dict[str, Any]:
        """Return what is shown of a namespace's newest state."""
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
            self._sort_in(CheckpointTuple(self.place(checkpoint_ns=namespace), *unknown))
        self.values(namespace).setdefault(LOOP, None)


def read_served(graph: Any, config: RunnableConfig) -> Flow[ServedThread]:
    """Read the calls of a thread on a server."""
    thread = ServedThread(graph, config.get("configurable", {}).get("thread_id", ""))
    yield from _read_graph(thread, "", "")
    return thread


def place_after(snapshot: StateSnapshot, namespace: str = "") -> Place:
    """Return where the tasks of a checkpoint run."""
    config, metadata = cast("Any", snapshot.config), cast("Any", snapshot.metadata)
    return Place(config["configurable"]["checkpoint_id"], metadata["step"] + 1, namespace)


@dataclass(frozen=True)
class _Task:
    """A task of a graph, and where it ran."""

    task: PregelTask
    place: Place

    @property
    def namespace(self) -> str:
        return f"{self.place.namespace}|{self.task.name}:{self.task.id}".removeprefix("|")

    def asking(self) -> Iterator[str]:
        """Yield the namespaces of the calls that asked last."""
        for question in self.task.interrupts:
            value = question.value if is_object(question.value) else {}
            namespace = str(value.get("checkpoint_ns"))
            if value.get("type") == INTERVENTION and namespace.startswith(self.namespace):
                yield namespace

    def called(self) -> Iterator[str]:
        """Yield the namespaces of async calls, whether or not they were made."""
        path = path_of(self.task.name, self.task.id, self.place)
        here = self.place._replace(namespace=self.namespace)
        for index in count():
            yield f"{self.namespace}|{CALL_TASK}:{called_task(CALL_TASK, here, path, index)}"


def _read_graph(thread: ServedThread, namespace: str, root: str) -> Flow[None]:
    """Read a graph's history, and the calls and graphs in it."""
    yield Ask(thread, "read", (thread.place(checkpoint_ns=namespace),), {"limit": _LIMIT})
    tasks = [
        _Task(task, place_after(snapshot, namespace))
        for snapshot in thread.snapshots.get(namespace, [])
        for task in snapshot.tasks
        if not task.name.startswith("__")
    ]
    callers = {each.task.name for each in tasks if any(each.asking())}
    for each in tasks:
        began = root or each.place.checkpoint_id
        if each.task.state is None:
            if (yield from _read_function(thread, each, began, calls=each.task.name in callers)):
                callers.add(each.task.name)
        elif (yield from _is_shown(thread, each.namespace)):
            del thread.snapshots[each.namespace]
            if LOOP not in thread.values(each.namespace):
                yield from _read_graph(thread, each.namespace, began)


def _read_function(thread: ServedThread, function: _Task, root: str, *, calls: bool) -> Flow[bool]:
    """Read the calls a function made, and tell if there are any; it `calls` at other times."""
    found, is_sync = set(function.asking()), False
    for number in count():  # of the graphs the function ran
        namespace = f"{function.namespace}|{number}" if number else function.namespace
        if not (yield from _is_shown(thread, namespace)):
            break
        is_sync = is_sync or bool(records_in(thread.values(namespace)))
        if calls or is_sync:
            found.add(namespace)
    gap = _GAP if calls or thread.vain_reads < _PATIENCE else 0
    for namespace in () if is_sync else function.called():
        if (yield from _is_shown(thread, namespace)):
            found.add(namespace)
        elif (gap := gap - 1) < 0:
            break
    for namespace in found:
        thread.note_call(namespace, root)
    return bool(found)


def _is_shown(thread: ServedThread, namespace: str) -> Flow[bool]:
    """Read the newest checkpoint of a namespace, if there is one and the server shows it."""
    try:
        yield Ask(thread, "read", (thread.place(checkpoint_ns=namespace),), {"limit": 1})
    except Exception as error:
        if http_status(error) not in (400, 404):
            raise
    thread.vain_reads += namespace not in thread.newest
    return namespace in thread.newest
