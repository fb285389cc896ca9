"""The compiled loop, which saves each step before the next one, and whether a run is saved."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from functools import cache
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from typing_extensions import TypedDict

from graph_retry.flow import Ask, Flow, adrive, drive


class SavingGraph(CompiledStateGraph[Any, Any, Any, Any]):
    """A compiled graph that runs with `durability="sync"` unless it is told otherwise itself.

    A graph inside another inherits the durability of the run. LangGraph's default `async` saves a
    moment later than it runs, so that a crash could repeat a finished call; with `exit` nothing of
    a finished subgraph would be saved, and its calls would be made again whenever a later call of
    the same node is answered.
    """

    def stream(
        self, input: Any, config: RunnableConfig | None = None, **options: Any
    ) -> Iterator[Any]:
        """Do what `CompiledStateGraph.stream` does, durably."""
        options["durability"] = drive(self._durability(config, options))
        return super().stream(input, config, **options)

    async def astream(
        self, input: Any, config: RunnableConfig | None = None, **options: Any
    ) -> AsyncIterator[Any]:
        """Do what `CompiledStateGraph.astream` does, durably."""
        options["durability"] = await adrive(self._durability(config, options))
        async with aclosing(cast("Any", super().astream(input, config, **options))) as parts:
            async for part in parts:
                yield part

    def _durability(self, config: RunnableConfig | None, options: dict[str, Any]) -> Flow[Any]:
        """Return what to run with; where nothing is saved LangGraph warns of any durability."""
        given = options.get("durability")
        if given is not None or "checkpoint_during" in options:
            return given
        own = isinstance(self.checkpointer, BaseCheckpointSaver)
        return "sync" if own or (yield from is_saved(config)) else None


def is_saved(config: RunnableConfig | None = None) -> Flow[bool]:
    """Tell whether this run is saved anywhere."""
    here = ensure_config(config)
    # In a namespace where nothing is, so that there is nothing to read.
    place = {**here.get("configurable", {}), "checkpoint_ns": "graph-retry:probe"}
    try:
        yield Ask(_probe(), "get_state", ({**here, "configurable": place},))
    except ValueError as error:
        if "checkpointer" not in str(error):
            raise
        return False
    return True


class _Nothing(TypedDict):
    pass


@cache
def _probe() -> Any:
    """Return a graph whose only use is to ask whether this run has a checkpointer."""
    builder = StateGraph(_Nothing).add_node("probe", lambda state: state)
    return builder.set_entry_point("probe").compile()
