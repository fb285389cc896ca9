"""A saved thread: all its calls, and the checkpoints that led to the present."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

from graph_retry._attempts import records_in
from graph_retry._namespaces import outermost
from graph_retry._state import LOOP
from graph_retry.ledger import Ledger

_WAITS = {"review": True, "end": False}
"""Whether a call waits for a person, by the step that its saved position names."""


class SavedThread:
    """The checkpoints of a thread in a saver, which lists those of a namespace newest first.

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

    def add(self, saved: CheckpointTuple) -> None:
        """Add a checkpoint, of each namespace the newest first."""
        namespace = _setting(saved.config, "checkpoint_ns")
        self.newest.setdefault(namespace, saved)
        self.first[namespace] = saved
        self.steps[saved.checkpoint["id"]] = saved.metadata.get("step", -1)
        if not namespace:
            self.roots[saved.checkpoint["id"]] = saved

    def calls(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the namespace and the newest state values of each call."""
        for namespace, saved in self.newest.items():
            if LOOP in saved.checkpoint["channel_values"]:
                yield namespace, saved.checkpoint["channel_values"]

    def ledgers(self) -> Iterator[Ledger]:
        """Yield the calls, oldest first, each with the root checkpoint its node started from."""
        line = self.line()
        for namespace in sorted(self.first, key=self._age):
            saved = self.newest[namespace]
            values = saved.checkpoint["channel_values"]
            if LOOP in values:
                root = self.root_of(namespace)
                # One that is not kept, as under `durability="exit"`, was not forked from.
                current = root in line or root not in self.roots
                position: Any = values[LOOP] or {}
                waits = _WAITS.get(position.get("next", ""))
                yield Ledger(records_in(values), namespace, root, current, waits)

    def root_of(self, namespace: str) -> str:
        """Return the root checkpoint that a namespace was begun from."""
        return self._starts.get(outermost(namespace).id) or _root(self.newest[namespace])

    @cached_property
    def _starts(self) -> dict[str, str]:
        """Root checkpoints by the tasks that wrote something there."""
        return {
            str(write[0]): root
            for root, saved in self.roots.items()
            for write in saved.pending_writes or ()
        }

    def _age(self, namespace: str) -> tuple[str, str]:
        """Return the key that sorts namespaces by their beginning."""
        return self.first[namespace].checkpoint["id"], _root(self.newest[namespace])

    def line(self) -> set[str]:
        """Return the root checkpoints that led to the present one, those forked from left out."""
        line: set[str] = set()
        here, after = next(iter(self.roots), ""), ""
        while here in self.roots:
            forked = after and self.roots[after].metadata.get("source") != "loop"
            # One that LangGraph copied stands beside the copy: its parent led to both.
            if not forked or self.steps[after] > self.steps[here] + 1:
                line.add(here)
            here, after = parent_of(self.roots[here]), here
        return line


def parent_of(saved: CheckpointTuple) -> str:
    """Return the id of the checkpoint before one, empty for the first."""
    return _setting(saved.parent_config, "checkpoint_id") if saved.parent_config else ""


def _root(saved: CheckpointTuple) -> str:
    return saved.metadata.get("parents", {}).get("", "")


def _setting(config: RunnableConfig, key: str) -> str:
    return str(config.get("configurable", {}).get(key, ""))
