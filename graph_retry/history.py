"""Read the ledgers of a thread: every call it made, whatever became of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.pregel import Pregel
from langgraph.types import StateSnapshot
from typing_extensions import TypeIs

from graph_retry.engine.state import LOOP
from graph_retry.flow import Ask, Flow, adrive, drive
from graph_retry.ledger import Ledger, ledgers_in, records_in
from graph_retry.records import Attempt

STATE = "state:"
"""Begins the namespace of a ledger that is known from the outermost graph's state only."""


def attempts_of(graph: Any, config: RunnableConfig) -> list[Ledger]:
    """Read the ledgers of a thread: live, paused, finished or cancelled, oldest call first.

    Both forms, subgraphs and `Send` branches are read from the graph's checkpointer, and so are
    the calls of earlier runs and forks. A `RemoteGraph` tells what its thread's state shows:
    node-form calls that are paused or whose `attempts` the graph keeps. A checkpointer alone will
    do in place of a graph.

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
    return drive(read_ledgers(graph, config))


async def aattempts_of(graph: Any, config: RunnableConfig) -> list[Ledger]:
    """Do what `attempts_of` does, from async code."""
    return await adrive(read_ledgers(graph, config))


def read_ledgers(graph: Any, config: RunnableConfig) -> Flow[list[Ledger]]:
    """Read a thread's ledgers, as `attempts_of` does, inside a flow."""
    saved = yield from read_saved(graph, config)
    found = {ledger.namespace: ledger for ledger in saved.ledgers()} if saved else {}
    if isinstance(graph, BaseCheckpointSaver):
        return [ledger for ledger in found.values() if ledger.attempts]
    snapshot: StateSnapshot = yield Ask(graph, "get_state", (config,), {"subgraphs": True})
    # What is only in the state: on a server, or where a run with `durability="exit"` kept no more.
    known = [[each["idempotency_key"] for each in ledger.attempts] for ledger in found.values()]
    for namespace, records in _shown(snapshot, ""):
        if [each["idempotency_key"] for each in records] not in known:
            found.setdefault(namespace, Ledger(records, namespace))
    return [ledger for ledger in found.values() if ledger.attempts]


def is_local(graph: object) -> TypeIs[Pregel[Any, Any, Any, Any]]:
    """Tell a graph of this process from one on a server."""
    return isinstance(graph, Pregel)


def read_saved(graph: Any, config: RunnableConfig) -> Flow[SavedThread | None]:
    """Read what a local graph's saver keeps of a thread, inside a flow."""
    saver: Any = cast("Any", graph).checkpointer if is_local(graph) else graph
    if not isinstance(saver, BaseCheckpointSaver):
        return None
    saved = SavedThread(cast("Any", saver), config.get("configurable", {}).get("thread_id", ""))
    yield Ask(saved, "read", (saved.place(),))
    return saved


class SavedThread:
    """What a saver keeps of a thread, which lists the newest checkpoints of a namespace first.

    `first` and `newest` are checkpoints by namespace, `roots` those of the outermost graph by id,
    and `steps` the step of each.
    """

    def __init__(self, saver: BaseCheckpointSaver[Any], thread_id: str) -> None:
        self.saver, self.thread_id = saver, thread_id
        self.first: dict[str, CheckpointTuple] = {}
        self.newest: dict[str, CheckpointTuple] = {}
        self.roots: dict[str, CheckpointTuple] = {}
        self.steps: dict[str, int] = {}

    def place(self, **place: str | None) -> RunnableConfig:
        """Return a config for a place in the thread."""
        return {"configurable": {"thread_id": self.thread_id, **place}}

    def read(self, place: RunnableConfig) -> None:
        """Read from the saver, from sync code."""
        for saved in self.saver.list(place):
            self._sort_in(saved)

    async def aread(self, place: RunnableConfig) -> None:
        """Read from the saver, from async code."""
        async for saved in self.saver.alist(place):
            self._sort_in(saved)

    def _sort_in(self, saved: CheckpointTuple) -> None:
        namespace = _setting(saved.config, "checkpoint_ns")
        self.newest.setdefault(namespace, saved)
        self.first[namespace] = saved
        self.steps[saved.checkpoint["id"]] = saved.metadata.get("step", -1)
        if not namespace:
            self.roots[saved.checkpoint["id"]] = saved

    def calls(self) -> Iterator[dict[str, Any]]:
        """Yield the newest state values of each call."""
        for saved in self.newest.values():
            if LOOP in saved.checkpoint["channel_values"]:
                yield saved.checkpoint["channel_values"]

    def ledgers(self) -> Iterator[Ledger]:
        """Yield the calls, oldest first, each with the root checkpoint its node started from."""
        starts = {
            str(write[0]): root
            for root, saved in self.roots.items()
            for write in saved.pending_writes or ()
        }
        line = self.line()
        for namespace in sorted(self.first, key=self._age):
            saved = self.newest[namespace]
            values = saved.checkpoint["channel_values"]
            if LOOP in values:
                task = namespace.partition("|")[0].partition(":")[2]
                root = starts.get(task) or _root(saved)
                yield Ledger(records_in(values), namespace, root, not root or root in line)

    def _age(self, namespace: str) -> tuple[str, str]:
        """Return what sorts namespaces by their beginning; a carried one began like the other."""
        return self.first[namespace].checkpoint["id"], _root(self.newest[namespace])

    def line(self) -> set[str]:
        """Return the root checkpoints that led to the present one, those forked from left out."""
        line: set[str] = set()
        here, after = next(iter(self.roots), ""), ""
        while here in self.roots:
            if not after or self.roots[after].metadata.get("source") == "loop":
                line.add(here)
            parent = self.roots[here].parent_config
            here, after = _setting(parent, "checkpoint_id") if parent else "", here
        return line


def _root(saved: CheckpointTuple) -> str:
    return saved.metadata.get("parents", {}).get("", "")


def _setting(config: RunnableConfig, key: str) -> str:
    return str(config.get("configurable", {}).get(key, ""))


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
