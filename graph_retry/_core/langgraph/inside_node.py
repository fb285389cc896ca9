"""Show the subgraph of a reviewed node in `get_state` of the outer graph.

LangGraph looks for the state of a node's subgraph in the namespace of the node's task. But each
attempt of a reviewed node starts the subgraph anew, in a namespace of its own. This module leads
`get_state` to the newest attempt.
"""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Any, cast

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import START, StateGraph
from langgraph.types import StateSnapshot

from graph_retry._core.ground.functions.awaiting import run_async, run_sync, sync_or_async
from graph_retry._core.ground.json import digest
from graph_retry._core.langgraph.storage.checkpoints import newest_checkpoint, place_of
from graph_retry._core.langgraph.storage.stores import store_of
from graph_retry._core.state.namespaces import (
    CONFIG_NAMESPACE,
    call_namespace_of,
    namespace_named,
    parts_of,
)
from graph_retry._core.state.position import loop_of

_STEP = "call"  # The step of a call's loop that runs the node.


def subgraph_of(node: Runnable[Any, Any], name: str) -> Runnable[Any, Any] | None:
    """Return a copy of a node's subgraph. Its `get_state` shows the node's newest attempt.

    Return None if LangGraph finds no subgraph in the node.
    """
    probe = StateGraph(cast("Any", dict)).add_node("node", cast("Any", node))
    graphs = cast("Any", probe.add_edge(START, "node").compile()).get_subgraphs()
    found: Any = next((graph for _, graph in graphs), None)
    if found is None:
        return None
    shown: Any = copy.copy(found)
    vars(shown).update(_Reading(found, name).methods())
    return cast("Runnable[Any, Any]", shown)


class _Reading:
    """Methods of a subgraph that read and write its state in the node's newest attempt."""

    def __init__(self, graph: Any, name: str) -> None:
        self._graph, self._name = graph, name

    def methods(self) -> dict[str, Callable[..., Any]]:
        return {
            "get_state": self._get_state,
            "aget_state": self._aget_state,
            "get_state_history": self._history,
            "aget_state_history": self._ahistory,
            **{way: partial(self._write, way) for way in ("update_state", "bulk_update_state")},
            **{way: partial(self._awrite, way) for way in ("aupdate_state", "abulk_update_state")},
        }

    def _get_state(self, config: RunnableConfig, **options: Any) -> StateSnapshot:
        inside = run_sync(self._inside(config))
        return _moved(self._graph.get_state(inside, **options), inside, config)

    async def _aget_state(self, config: RunnableConfig, **options: Any) -> StateSnapshot:
        inside = await run_async(self._inside(config))
        return _moved(await self._graph.aget_state(inside, **options), inside, config)

    def _history(self, config: RunnableConfig, **options: Any) -> Iterator[StateSnapshot]:
        inside = run_sync(self._inside(config))
        for each in self._graph.get_state_history(inside, **options):
            yield _moved(each, inside, config)

    async def _ahistory(
        self, config: RunnableConfig, **options: Any
    ) -> AsyncIterator[StateSnapshot]:
        inside = await run_async(self._inside(config))
        async for each in self._graph.aget_state_history(inside, **options):
            yield _moved(each, inside, config)

    def _write(self, way: str, config: RunnableConfig, *args: Any, **options: Any) -> Any:
        inside = run_sync(self._inside(config, is_write=True))
        return _back(getattr(self._graph, way)(inside, *args, **options), inside, config)

    async def _awrite(self, way: str, config: RunnableConfig, *args: Any, **options: Any) -> Any:
        inside = await run_async(self._inside(config, is_write=True))
        return _back(await getattr(self._graph, way)(inside, *args, **options), inside, config)

    async def _inside(self, config: RunnableConfig, *, is_write: bool = False) -> RunnableConfig:
        """Return the config of the newest attempt, or of the attempt that has the given checkpoint.

        Raises:
            ValueError: If `is_write`, and the node waits for an answer to its review. The next
                attempt starts anew, so the update would be lost.
        """
        known: dict[str, Any] = {**config.get("configurable", {})}
        # LangGraph also lends the checkpointer to a subgraph under a private key.
        lent = (cast("Any", one) for one in known.values() if isinstance(one, BaseCheckpointSaver))
        saver: BaseCheckpointSaver[Any] | None = next(lent, None)
        task, thread = namespace_named(known), str(known.get("thread_id"))
        if saver is None or not task:
            return config
        call = call_namespace_of(task, self._name, digest(self._name))
        loop = await newest_checkpoint(saver, thread, call) if is_write else None
        if loop is not None and loop_of(loop.checkpoint["channel_values"])["review"] is not None:
            raise ValueError(
                f"`{self._name}` waits for an answer to its review, and its subgraph starts anew "
                "after it, so an update of the subgraph would be lost: answer with "
                "`resume(graph, config, edit(…))`."
            )
        newest, namespace = "", task
        for attempt in await store_of(saver).namespaces(thread, f"{call}|{_STEP}:"):
            if len(parts_of(attempt)) == len(parts_of(call)) + 1:
                place = place_of(thread, attempt, known.get("checkpoint_id"))
                saved = await sync_or_async(saver.get_tuple, saver.aget_tuple, place)
                if saved is not None and saved.checkpoint["id"] > newest:
                    newest, namespace = saved.checkpoint["id"], attempt
        return {**config, "configurable": {**known, CONFIG_NAMESPACE: namespace}}


def _moved(shown: StateSnapshot, inside: RunnableConfig, outside: RunnableConfig) -> StateSnapshot:
    """Return a snapshot with each namespace under the node's task, where `get_state` looks."""
    tasks = tuple(
        each._replace(state=_moved(each.state, inside, outside))
        if isinstance(each.state, StateSnapshot)
        else each._replace(state=_back(each.state, inside, outside))
        for each in shown.tasks
    )
    config, before = (_back(one, inside, outside) for one in (shown.config, shown.parent_config))
    return shown._replace(config=config, parent_config=before, tasks=tasks)


def _back(config: Any, inside: RunnableConfig, outside: RunnableConfig) -> Any:
    """Turn a config inside an attempt into a config under the node's task."""
    if config is None:
        return None
    known = config["configurable"]
    long, short = (namespace_named(each.get("configurable", {})) for each in (inside, outside))
    place = f"{short}{namespace_named(known).removeprefix(long)}"
    return {**config, "configurable": {**known, CONFIG_NAMESPACE: place}}
