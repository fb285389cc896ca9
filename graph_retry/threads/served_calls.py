"""The calls of a thread on a server, which shows checkpoints one namespace at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, count
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.types import PregelTask, StateSnapshot

from graph_retry.engine.state import LOOP
from graph_retry.flow import Ask, Flow
from graph_retry.forks.task_ids import MOST, Path, Place, called_task, path_of
from graph_retry.ledger import records_in
from graph_retry.params.jsonlike import is_object
from graph_retry.review.payload import INTERVENTION
from graph_retry.threads.saved import SavedThread
from graph_retry.threads.served_runs import http_status

_LIMIT = 1_000
"""Checkpoints of a graph that are looked at: as many as a server gives at once."""


class ServedThread(SavedThread):
    """What a server shows of a thread; of calls only the first and the newest checkpoint.

    The state of a function-form call is shown as far as the outermost graph's state has the same
    keys, and by older servers not at all.
    """

    def __init__(self, graph: Any, thread_id: str) -> None:
        super().__init__(graph, thread_id)
        self.snapshots: dict[str, list[StateSnapshot]] = {}

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
        kept = (snapshot.config, checkpoint, metadata, snapshot.parent_config, writes)
        self._sort_in(CheckpointTuple(*kept))

    def values(self, namespace: str) -> dict[str, Any]:
        """Return what is shown of a namespace's newest state."""
        return self.newest[namespace].checkpoint["channel_values"]

    def note_call(self, namespace: str, root: str) -> None:
        """Note that a namespace is a function's call, whether or not its state is shown."""
        if namespace not in self.newest:
            checkpoint: Any = {"id": "", "channel_values": {}}
            metadata: Any = {"parents": {"": root}}
            place = self.place(checkpoint_ns=namespace)
            self._sort_in(CheckpointTuple(place, checkpoint, metadata))
        self.values(namespace).setdefault(LOOP, None)


def read_served(graph: Any, config: RunnableConfig) -> Flow[ServedThread]:
    """Read the calls of a thread on a server."""
    thread = ServedThread(graph, config.get("configurable", {}).get("thread_id", ""))
    yield from _read_graph(thread, "", "")
    return thread


def _read_graph(thread: ServedThread, namespace: str, root: str) -> Flow[None]:
    """Read a graph's history, and the calls and graphs in it."""
    yield Ask(thread, "read", (thread.place(checkpoint_ns=namespace),), {"limit": _LIMIT})
    tasks = [
        _Task(task, place, root or place.checkpoint_id)
        for snapshot in thread.snapshots.get(namespace, [])
        for place in [_next(snapshot, namespace)]
        for task in snapshot.tasks
        if not task.name.startswith("__")
    ]
    callers: dict[str, dict[str, int]] = {}
    for each in tasks:
        if any(each.asking()):
            known = callers.setdefault(each.task.name, {})
            known |= {name: max(index, known.get(name, 0)) for name, index in each.asked()}
    for each in tasks:
        if each.task.state is None:
            yield from _read_function(thread, each, callers.get(each.task.name))
        elif (yield from _read_ends(thread, each.namespace)) and LOOP not in thread.values(
            each.namespace
        ):
            del thread.snapshots[each.namespace]
            yield from _read_graph(thread, each.namespace, each.root)


@dataclass(frozen=True)
class _Task:
    """A task of a graph: where it ran, and the outermost checkpoint it ran after."""

    task: PregelTask
    place: Place
    root: str

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

    def asked(self) -> Iterator[tuple[str, int]]:
        """Yield what async ones are called as tasks of this one, and the how-manieth they are."""
        for namespace in self.asking():
            name, _, _ = namespace.removeprefix(self.namespace).removeprefix("|").rpartition(":")
            if name and "|" not in name:
                spaces = (self.called(name, index) for index in range(MOST))
                yield name, next((at for at, each in enumerate(spaces) if each == namespace), 0)

    @cached_property
    def _path(self) -> Path:
        return path_of(self.task.name, self.task.id, self.place)

    def called(self, name: str, index: int) -> str:
        """Return the namespace of an async call."""
        here = self.place._replace(namespace=self.namespace)
        return f"{self.namespace}|{name}:{called_task(name, here, self._path, index)}"


def _read_function(
    thread: ServedThread, function: _Task, called: dict[str, int] | None
) -> Flow[None]:
    """Read the calls a function made; `called` are the names and places of those known to ask."""
    numbered = (f"{function.namespace}|{number}" for number in count(1))
    for namespace in chain([function.namespace], numbered):
        if not (yield from _read_ends(thread, namespace)):
            break
        if called is not None or records_in(thread.values(namespace)):
            thread.note_call(namespace, function.root)
    for name, highest in (called or {}).items():
        for index in count():
            namespace = function.called(name, index)
            if (yield from _read_ends(thread, namespace)):
                thread.note_call(namespace, function.root)
            elif index >= highest:
                break
    for namespace in function.asking():
        thread.note_call(namespace, function.root)


def _read_ends(thread: ServedThread, namespace: str) -> Flow[bool]:
    """Read the newest and the first checkpoint of a namespace; tell whether it is shown."""
    for options in {"limit": 1}, {"limit": _LIMIT, "filter": {"source": "input"}}:
        try:
            yield Ask(thread, "read", (thread.place(checkpoint_ns=namespace),), options)
        except Exception as error:
            if http_status(error) not in (400, 404):
                raise
        if namespace not in thread.newest:
            return False
    return True


def _next(snapshot: StateSnapshot, namespace: str) -> Place:
    """Return where the tasks of a checkpoint ran."""
    config, metadata = cast("Any", snapshot.config), cast("Any", snapshot.metadata)
    return Place(config["configurable"]["checkpoint_id"], metadata["step"] + 1, namespace)
