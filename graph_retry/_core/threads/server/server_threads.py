"""Read a thread on a server, which shows the checkpoints of one namespace at a time.

A server cannot list the namespaces of a thread, so this module derives them. A retry node or a
subgraph has the namespace of its task. The question of a function's call names the call's
namespace. After a rewind, the id in the namespace differs, because the node has a new task.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.types import Interrupt, StateSnapshot

from graph_retry._core.ground.functions.awaiting import each_of
from graph_retry._core.langgraph.open_questions import interventions, namespace_in
from graph_retry._core.langgraph.storage.checkpoints import as_saved, place_of, unread
from graph_retry._core.state.namespaces import is_of_other, moved, task_namespace
from graph_retry._core.state.position import LOOP
from graph_retry._core.threads.saved.graphs import (
    asked_by,
    get_state,
    is_remote,
    thread_of,
    thread_there,
)
from graph_retry._core.threads.saved.view import ThreadView
from graph_retry._core.threads.server.runs import RemoteRuns, http_status

_MOST_READ = 1_000
"""Maximum checkpoints of a graph that are read at once, which is a server's limit."""


async def read_shown_there(graph: Any, config: RunnableConfig) -> ThreadView:
    state = await get_state(graph, config)
    shown: Sequence[Interrupt] = state.interrupts
    if not shown and is_remote(graph):
        shown = await RemoteRuns(graph, config).asked()
        places = {each.id: namespace_in(value) for each, value in interventions(shown)}
        own = await asked_by(graph, places.values())  # Another graph may have asked on the thread.
        shown = [each for each in shown if places.get(each.id, "") in ("", *own)]
    view = ThreadView(shown, state.created_at)
    answered: Collection[str] | None = None
    for interrupt, value, _ in view.questions:
        place = place_of(thread_of(config), namespace_in(value))
        if is_of_other(namespace_in(value)):
            view.add(unread(place))
            continue
        snapshot = await snapshot_at(graph, place)
        is_hidden = snapshot is None or not snapshot.created_at
        # An older server hides the state of function calls, but lists the answered questions.
        if is_hidden and answered is None and is_remote(graph):
            answered = [name for _, _, name in await RemoteRuns(graph, config).answers()]
        if not is_hidden or interrupt.id not in (answered or ()):
            view.add(unread(place) if snapshot is None or is_hidden else as_saved(snapshot))
    return view


async def snapshot_at(server: Any, place: RunnableConfig) -> StateSnapshot | None:
    """Read a checkpoint from a server; None if it was deleted or is hidden."""
    try:
        is_shown = is_remote(server) and hasattr(server, "get_state")
        return await get_state(server, place) if is_shown else None
    except Exception as error:
        if http_status(error) not in (400, 404):
            raise
        return None


async def read_history(graph: Any, config: RunnableConfig) -> ThreadView:
    """Read a thread on a server, with the newest state of each call that the server shows.

    For a function's call, a server shows only the state keys that the outermost graph also has. An
    older server shows no state of such a call.
    """
    history = _History(graph, thread_there(config))
    await history.read_graph("")
    return history.view


class _History:
    def __init__(self, graph: Any, thread_id: str | None) -> None:
        self.view = ThreadView()
        self._graph, self._thread_id = graph, thread_id

    async def _read(self, namespace: str, limit: int) -> list[StateSnapshot]:
        read = (self._graph.get_state_history, self._graph.aget_state_history)
        place = place_of(self._thread_id, namespace)
        snapshots: list[StateSnapshot] = [one async for one in each_of(*read, place, limit=limit)]
        for snapshot in snapshots:
            self.view.add(as_saved(snapshot))
        return snapshots

    async def _is_shown(self, namespace: str) -> bool:
        """Read the newest checkpoint of a namespace. Return whether the server shows one."""
        try:
            await self._read(namespace, 1)
        except Exception as error:
            if http_status(error) not in (400, 404):
                raise
        return namespace in self.view.newest

    async def read_graph(self, namespace: str) -> None:
        """Read the checkpoints of a graph, and of retry nodes, subgraphs and calls inside it."""
        tasks = [
            task
            for snapshot in await self._read(namespace, _MOST_READ)
            for task in snapshot.tasks
            if not task.name.startswith("__")
        ]
        asked: dict[str, set[str]] = {}
        for task in tasks:
            shown = interventions(task.interrupts)
            asked.setdefault(task.name, set()).update(namespace_in(value) for _, value in shown)
        for task in tasks:
            inner = task_namespace(namespace, task.name, task.id)
            if task.state is None:
                for call in sorted(asked[task.name]):
                    here = moved(call, inner)
                    if await self._is_shown(here) or call == here:
                        self._note_call(here)
            elif await self._is_shown(inner) and LOOP not in self.view.values(inner):
                await self.read_graph(inner)

    def _note_call(self, namespace: str) -> None:
        """Record that a namespace belongs to a function's call, even if its state is hidden."""
        if namespace not in self.view.newest:
            self.view.add(unread(place_of(self._thread_id, namespace)))
        self.view.values(namespace).setdefault(LOOP, None)
