"""Read the ledgers of a thread: every call it made, whatever became of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.pregel import Pregel
from langgraph.types import StateSnapshot
from typing_extensions import TypeIs

from graph_retry.engine.state import LOOP
from graph_retry.flow import Ask, Flow, adrive, drive
from graph_retry.ledger import Ledger
from graph_retry.params.jsonlike import is_array
from graph_retry.records import Attempt


def attempts_of(graph: Any, config: RunnableConfig) -> list[Ledger]:
    """Read the ledgers of a thread: live, paused, finished or cancelled, oldest call first.

    Both forms, subgraphs and `Send` branches are read from the graph's checkpointer, and so are
    the calls of earlier runs and forks. A `RemoteGraph` tells what its thread's state shows:
    node-form calls that are paused or whose `attempts` the graph keeps.

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
    saved = yield from read_thread(graph, config)
    found = {ledger.namespace: ledger for ledger in saved.ledgers()} if saved else {}
    snapshot: StateSnapshot = yield Ask(graph, "get_state", (config,), {"subgraphs": True})
    # What is only in the state: on a server, or where a run with `durability="exit"` kept no more.
    known = [[each["idempotency_key"] for each in ledger.attempts] for ledger in found.values()]
    for namespace, records in _shown(snapshot, ""):
        if [each["idempotency_key"] for each in records] not in known:
            found.setdefault(namespace, Ledger(records, namespace))
    return [ledger for ledger in found.values() if ledger.attempts]


def read_thread(graph: Any, config: RunnableConfig) -> Flow[SavedThread | None]:
    """Read all checkpoints of a thread; None where the graph has no storage of its own."""
    saver: Any = cast("Any", graph).checkpointer if is_local(graph) else None
    if not isinstance(saver, BaseCheckpointSaver):
        return None
    place = {"configurable": {"thread_id": config.get("configurable", {}).get("thread_id")}}
    thread: SavedThread = yield Ask(SavedThread(cast("Any", saver)), "read", (place,))
    return thread


def is_local(graph: object) -> TypeIs[Pregel[Any, Any, Any, Any]]:
    """Tell a graph of this process from one on a server."""
    return isinstance(graph, Pregel)


class SavedThread:
    """What a saver keeps of a thread: `newest` is the last checkpoint of each namespace."""

    def __init__(self, saver: BaseCheckpointSaver[Any]) -> None:
        self._saver = saver
        self.newest: dict[str, CheckpointTuple] = {}
        self._oldest: dict[str, str] = {}
        self._roots: dict[str, CheckpointTuple] = {}

    def read(self, place: RunnableConfig) -> SavedThread:
        """Read everything the saver has of it."""
        for saved in self._saver.list(place):
            self._sort_in(saved)
        return self

    async def aread(self, place: RunnableConfig) -> SavedThread:
        """Do what `read` does, from async code."""
        async for saved in self._saver.alist(place):
            self._sort_in(saved)
        return self

    def _sort_in(self, saved: CheckpointTuple) -> None:
        namespace = _setting(saved.config, "checkpoint_ns")
        self.newest.setdefault(namespace, saved)  # a saver lists the newest first
        self._oldest[namespace] = saved.checkpoint["id"]
        if not namespace:
            self._roots[saved.checkpoint["id"]] = saved

    def ledgers(self) -> Iterator[Ledger]:
        """Yield the calls, oldest first, each with the root checkpoint its node started from."""
        starts = {
            str(write[0]): root
            for root, saved in self._roots.items()
            for write in saved.pending_writes or ()
        }
        line = self.line()
        for namespace in sorted(self._oldest, key=self._oldest.__getitem__):
            saved = self.newest[namespace]
            values = saved.checkpoint["channel_values"]
            if LOOP in values:
                task = namespace.partition("|")[0].partition(":")[2]
                root = starts.get(task) or saved.metadata.get("parents", {}).get("", "")
                yield Ledger(records_of(values), namespace, root, not root or root in line)

    def line(self) -> set[str]:
        """Return the root checkpoints that led to the present one, those forked from left out."""
        line: set[str] = set()
        here, after = next(iter(self._roots), ""), ""
        while here in self._roots:
            if not after or self._roots[after].metadata.get("source") == "loop":
                line.add(here)
            parent = self._roots[here].parent_config
            here, after = _setting(parent, "checkpoint_id") if parent else "", here
        return line


def _setting(config: RunnableConfig, key: str) -> str:
    return str(config.get("configurable", {}).get(key, ""))


def records_of(values: Mapping[str, Any]) -> list[Attempt]:
    """Return the ledger among state values, whatever its key is called."""
    return next(_ledgers(values), ("", list[Attempt]()))[1]


def _ledgers(values: Any) -> Iterator[tuple[str, list[Attempt]]]:
    """Yield the ledgers among state values, whatever their keys are called."""
    for key, value in cast("dict[str, Any]", values if isinstance(values, dict) else {}).items():
        records = value if is_array(value) else []
        if records and isinstance(records[-1], dict) and "params_patch" in records[-1]:
            yield key, records


def _shown(snapshot: StateSnapshot, namespace: str) -> Iterator[tuple[str, list[Attempt]]]:
    """Walk a snapshot and the subgraphs it shows."""
    for key, records in _ledgers(snapshot.values):
        yield namespace or f"state:{key}", records
    for task in snapshot.tasks:
        if isinstance(task.state, StateSnapshot):
            inner = task.state.config.get("configurable", {}).get("checkpoint_ns", "")
            yield from _shown(task.state, inner)
