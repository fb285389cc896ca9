"""Detect the end of a task and the end of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Any
from weakref import ref

from langchain_core.callbacks import BaseCallbackHandler
from langgraph.checkpoint.serde.types import ERROR, INTERRUPT, RESUME

from graph_retry._core.langgraph.run_config import (
    configurables_around,
    loop_around,
    outermost_loop,
    starters,
)
from graph_retry._core.state.namespaces import namespace_named, parts_of
from graph_retry.errors import PauseSwallowed


def end_of_task(configurable: Mapping[str, Any]) -> Callable[[], bool]:
    """Return a function that tells later whether the running task has ended with a result.

    A task around the running task may also have ended. LangGraph fills the list of a task's writes
    when its node has returned. If the node has raised, LangGraph appends an `ERROR`. An interrupt
    is not in this list.
    """
    tasks = (each.args[0]() for at in configurables_around(configurable) for each in starters(at))
    lists: list[Sequence[tuple[str, Any]]] = [getattr(task, "writes", ()) for task in tasks]
    known = [(writes, len(writes)) for writes in lists]

    def has_ended() -> bool:
        ends = [
            {channel for channel, _ in list(each)[before:]} - {RESUME} for each, before in known
        ]
        return any(later and ERROR not in later for later in ends)

    return has_ended


def idleness(configurable: Mapping[str, Any]) -> Callable[[], bool]:
    """Return a function that tells whether all tasks of the outermost graph's run have stopped.

    A task of a step has writes as soon as it has returned, raised or paused.
    """
    running = ref(outermost_loop(configurable))

    def is_idle() -> bool:
        loop = running()
        if loop is None:
            return True
        writes = list(loop.checkpoint_pending_writes)
        told = {task for task, channel, _ in writes if channel in (INTERRUPT, ERROR)}
        return all(task.writes or task.id in told for task in list(loop.tasks.values()))

    return is_idle


def node_without_saver(configurable: Mapping[str, Any]) -> str | None:
    """Return the name of the node whose subgraph is compiled with `checkpointer=False`, or None.

    LangGraph resumes such a subgraph from its start. Its tasks use the checkpointer of the outer
    graph, but the state that they save is never found again.
    """
    here: Mapping[str, Any] = configurable
    while (loop := loop_around(here)) is not None:
        here = loop.config.get("configurable", {})
        if loop.checkpointer is None:
            return parts_of(namespace_named(here))[-1].name if loop.is_nested else None
    return None


class _AtEnd(BaseCallbackHandler):
    """A callback that runs checks at the end of a graph's run, which then raises their errors."""

    raise_error = run_inline = True

    def __init__(self) -> None:
        self.checks: list[Callable[[], None]] = []

    def on_chain_end(self, *_told: Any, **_more: Any) -> None:
        with ExitStack() as each:  # If one check raises, the others still run.
            for check in self.checks:
                each.callback(check)

    def on_chain_error(self, *_told: Any, **_more: Any) -> None:
        """Run the checks without raising, because the run raises its own error."""
        with suppress(PauseSwallowed):
            self.on_chain_end()


def at_run_end(configurable: Mapping[str, Any], check: Callable[[], None]) -> None:
    """Run a check when the outermost graph around a task ends its run."""
    manager = getattr(outermost_loop(configurable), "manager", None)
    if manager is None:
        return
    ends = [handler for handler in manager.handlers if isinstance(handler, _AtEnd)]
    if not ends:
        ends = [_AtEnd()]
        # Only this run gets the handler, because other runs may share the list.
        manager.handlers = [*manager.handlers, *ends]
    ends[0].checks.append(check)
