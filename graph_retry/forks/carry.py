"""Carry what the tasks of a checkpoint have done over to the same tasks of a later copy of it.

A fork and an `update_state` give pending tasks new ids, under which LangGraph knows nothing of what
they did. It is copied there with the saver's public methods: of each call and subgraph the newest
checkpoint, and the results of tasks that are over.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.serde.types import ERROR, INTERRUPT, RESUME
from langgraph.types import PregelTask

from graph_retry.flow import Ask, Flow
from graph_retry.forks.task_ids import Moved, Path, Place, moved_task, spelled
from graph_retry.threads.saved import SavedThread


@dataclass(frozen=True)
class Move:
    """A checkpoint of the outermost graph, a later copy, and pairs of their tasks.

    With a `call` (its namespace) that call is to be taken up again: what its node did after it is
    left behind, and graphs around it go back to the checkpoint it was made from.
    """

    saved: SavedThread
    old: CheckpointTuple
    new: CheckpointTuple
    tasks: list[tuple[PregelTask, PregelTask]]
    call: str = ""
    _moved: dict[str, Moved] = field(default_factory=dict[str, Moved], init=False)

    def names(self) -> dict[str, str]:
        """Return what is carried: namespaces and what they are called after it.

        Raises:
            ValueError: If something cannot be carried.
        """
        for old, new in self.tasks:
            self._moved[old.id] = Moved(new.id, cast("Path", old.path), cast("Path", new.path))
        known = [each for each in self.saved.newest if _task(each) in self._moved]
        for each in (self.old, *map(self.saved.newest.__getitem__, known)):
            if each.metadata.get("counters_since_delta_snapshot"):
                raise ValueError("a graph with a `DeltaChannel` cannot be copied: fork it instead.")
        return {each: self._renamed(each) for each in known if self._is_kept(each)}

    def run(self) -> Flow[str]:
        """Copy everything; return the namespace of `call` after it."""
        names = self.names()
        for namespace, name in names.items():
            last = self.saved.newest[namespace]
            if self._is_around(namespace):
                place = {"checkpoint_ns": namespace, "checkpoint_id": self._line[namespace]}
                last = yield Ask(self.saved.saver, "get_tuple", (self.saved.place(**place),))
            first = self.saved.first[namespace]  # tells when it began
            copied = yield from self._copy(first, name, None)
            if last.checkpoint["id"] != first.checkpoint["id"]:
                copied = yield from self._copy(last, name, first.checkpoint["id"])
            if namespace != self.call:
                yield from self._results(last, copied)
        yield from self._results(self.old, self.new.config)
        return names.get(self.call, "")

    @property
    def _line(self) -> dict[str, str]:
        return self._parents(self.call) if self.call else {}

    def _parents(self, namespace: str) -> dict[str, str]:
        """Return the checkpoints a saved namespace was begun from, by their namespaces."""
        return self.saved.newest[namespace].metadata.get("parents", {})

    def _is_around(self, namespace: str) -> bool:
        """Tell whether this is a graph with the call somewhere in it, not a function's other."""
        place = self._line.get(namespace)
        return place is not None and place not in self._parents(namespace).values()

    def _is_kept(self, namespace: str) -> bool:
        around = namespace == self.call or self._is_around(namespace)
        if not self.call or around or _task(namespace) != _task(self.call):
            return True
        own = self._parents(namespace).get(self.call)
        if own is not None and own not in self._line.values():
            return False  # a part of the call
        end = self.saved.newest[self.call].checkpoint["id"]
        return self.saved.first[namespace].checkpoint["id"] < end

    def _renamed(self, namespace: str, parents: dict[str, str] | None = None) -> str:
        """Return what a namespace is called after the move, and note its tasks' new ids."""
        parents = self._parents(namespace) if parents is None else parents
        outer, _, last = namespace.rpartition("|")
        name, _, task_id = last.rpartition(":")
        if not outer:
            return f"{name}:{self._moved[task_id].task_id}"
        base = self._renamed(outer, parents)
        if not name:  # the number of a further graph that one function ran
            return f"{base}|{last}"
        if task_id not in self._moved:
            old, new = parents[outer], self.new
            was = Place(old, self.saved.steps.get(old, -1) + 1, outer)
            becomes = was._replace(namespace=base)
            if old == self.old.checkpoint["id"]:
                becomes = Place(new.checkpoint["id"], new.metadata.get("step", -1) + 1, base)
            graph = self.saved.newest.get(outer)
            channels = graph.checkpoint["channel_versions"] if graph else {}
            caller = self._moved[_ids(outer)[-1]]
            self._moved[task_id] = moved_task(name, task_id, was, becomes, channels, caller)
        return f"{base}|{name}:{self._moved[task_id].task_id}"

    def _copy(self, saved: CheckpointTuple, name: str, parent: str | None) -> Flow[RunnableConfig]:
        place = self.saved.place(checkpoint_ns=name, checkpoint_id=parent)
        metadata = {**saved.metadata, "parents": dict(self._new_parents(saved))}
        checkpoint = saved.checkpoint
        args = (place, checkpoint, metadata, checkpoint["channel_versions"])
        config: RunnableConfig = yield Ask(self.saved.saver, "put", args)
        return config

    def _new_parents(self, saved: CheckpointTuple) -> Iterator[tuple[str, str]]:
        parents: dict[str, str] = saved.metadata.get("parents", {})
        for namespace, place in parents.items():
            is_old = place == self.old.checkpoint["id"]
            yield (
                self._renamed(namespace, parents) if namespace else "",
                self.new.checkpoint["id"] if is_old else place,
            )

    def _results(self, saved: CheckpointTuple, config: RunnableConfig) -> Flow[None]:
        """Copy what tasks of a checkpoint wrote: results, and a person's answers."""
        retaken = _ids(self.call)
        writes: dict[str, list[tuple[str, Any]]] = {}
        for task_id, channel, value in saved.pending_writes or ():
            wanted = channel == RESUME if task_id in retaken else channel not in (ERROR, INTERRUPT)
            if wanted and task_id in self._moved:
                writes.setdefault(task_id, []).append((channel, value))
        for task_id, values in writes.items():
            moved = self._moved[task_id]
            args = (config, values, moved.task_id, spelled(moved.path))
            yield Ask(self.saved.saver, "put_writes", args)


def _task(namespace: str) -> str:
    """Return the id of the outermost task a namespace is in."""
    return namespace.partition("|")[0].rpartition(":")[2]


def _ids(namespace: str) -> list[str]:
    """Return the ids of the tasks a namespace is in, the outermost first."""
    parts = (part.rpartition(":") for part in namespace.split("|"))
    return [task_id for name, _, task_id in parts if name]
