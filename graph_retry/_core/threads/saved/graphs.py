"""Read and run the graph that a user passes, in the same way in this process and on a server."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.errors import EmptyInputError
from langgraph.pregel import Pregel
from langgraph.types import StateSnapshot
from typing_extensions import TypeIs

from graph_retry._core.ground.functions.awaiting import is_sync, sync_or_async
from graph_retry._core.ground.functions.calling import call
from graph_retry._core.ground.wording import quoted_with_article
from graph_retry._core.langgraph.storage.checkpoints import PLACE
from graph_retry._core.state.namespaces import parts_of, tasks_in
from graph_retry._core.state.position import LOOP
from graph_retry.lossless._ground import as_repr

_HOW_CONFIG = 'give {"configurable": {"thread_id": …}}'
"""The advice in errors about a config that names no thread."""


def besides_place(config: RunnableConfig | None) -> dict[str, Any]:
    """Return the values of a config's `configurable` that name no thread or checkpoint."""
    configurable = (config or {}).get("configurable", {})
    return {key: value for key, value in configurable.items() if key not in PLACE}


def check_placeless(config: RunnableConfig | None) -> RunnableConfig:
    """Return a config for many threads, after a check that it names no single thread.

    Raises:
        TypeError: If the object is not a config.
        ValueError: If the config names a thread or a checkpoint.
    """
    how = 'give only other keys that the runs need, such as {"configurable": {"user_id": …}}'
    if config is None:
        return {}
    if not isinstance(cast("object", config), Mapping):
        raise TypeError(f"`config` is {as_repr(config, 80)}: {how}.")
    named = ", ".join(f"`{key}`" for key in config.get("configurable", {}) if key in PLACE)
    if named:
        raise ValueError(
            f"`config` has {named}, but the thread of each review is known from the review: {how}."
        )
    return config


def on_thread(config: RunnableConfig, thread_id: str) -> RunnableConfig:
    return {**config, "configurable": {**config.get("configurable", {}), "thread_id": thread_id}}


def thread_of(config: RunnableConfig) -> str:
    """Return the id of the thread that a config names.

    Raises:
        TypeError: If the object is not a config.
        ValueError: If the config names no thread.
    """
    if not isinstance(cast("object", config), Mapping):
        raise TypeError(f"`config` is {as_repr(config, 80)}: {_HOW_CONFIG}.")
    place = cast("object", config.get("configurable", {}))
    if not isinstance(place, Mapping):
        raise TypeError(f"`configurable` is {as_repr(place, 80)}: {_HOW_CONFIG}.")
    thread_id: object = cast("Any", place).get("thread_id")
    if thread_id is None:
        raise ValueError(f"`config` names no thread: {_HOW_CONFIG}.")
    return str(thread_id)


def is_addressable(text: str) -> bool:
    """Return whether a value, such as a thread's id, is safe as a part of a URL's path.

    The LangGraph SDK quotes such values, but a proxy may read a quoted `/` or `..` as another path.
    """
    return not re.search(r"[/\\?#%;\x00-\x1f\x7f]", text) and text not in {"", ".", ".."}


def thread_there(config: RunnableConfig) -> str:
    """Return the thread's id for a request to a server.

    Raises:
        ValueError: If a URL with this id could be read as another URL.
    """
    thread_id = thread_of(config)
    if not is_addressable(thread_id):
        raise ValueError(
            f"`thread_id` is {as_repr(thread_id, 80)}, so the server was not asked: give the id of "
            "a thread, without `/`, `\\`, `?`, `#`, `%` and `;`."
        )
    return thread_id


def at_newest(config: RunnableConfig) -> RunnableConfig:
    """Return a copy of a config without a checkpoint id, so that it names the newest checkpoint."""
    own = {
        key: each for key, each in config.get("configurable", {}).items() if key != "checkpoint_id"
    }
    return {**config, "configurable": own}


def is_local(graph: object) -> TypeIs[Pregel[Any, Any, Any, Any]]:
    return isinstance(graph, Pregel)


def is_remote(graph: object) -> bool:
    return not isinstance(graph, Pregel | BaseCheckpointSaver)


def saver_of(source: object) -> BaseCheckpointSaver[Any] | None:
    """Return the checkpointer: `source` itself, or that of a local graph; otherwise None."""
    saver: Any = cast("Any", source).checkpointer if is_local(source) else source
    return cast("Any", saver) if isinstance(saver, BaseCheckpointSaver) else None


def is_client(source: object) -> bool:
    """Return whether an object is a sync or async client of the LangGraph SDK."""
    return hasattr(source, "threads") and hasattr(source, "runs")


def check_compiled(graph: Any) -> None:
    """Raise `TypeError` if an object is not compiled, for example if it is a `StateGraph`."""
    if not hasattr(graph, "get_state"):
        came = quoted_with_article(type(graph).__name__)
        raise TypeError(f"`graph` is {came}: give the result of `compile(checkpointer=…)`.")


async def get_state(graph: Any, config: RunnableConfig, **options: Any) -> StateSnapshot:
    """Return the state of a thread, as `graph.get_state` does.

    If a server rolled back the first run of the thread, the state is empty.
    """
    if is_remote(graph):
        thread_there(config)
    try:
        return await sync_or_async(graph.get_state, graph.aget_state, config, **options)
    except ValueError as error:
        # A graph without a checkpointer may still get one from the config.
        if not is_local(graph) or graph.checkpointer:
            raise
        raise ValueError(
            "`graph` has no checkpointer, so it has no threads: give the result of "
            "`compile(checkpointer=…)`, with the checkpointer of the run that asked."
        ) from error
    except TypeError:
        # `RemoteGraph` raises a `TypeError` for a graph or subgraph without a checkpoint.
        if is_local(graph):
            raise
        if await _is_empty(graph, config):
            return StateSnapshot({}, (), config, None, None, None, (), ())
        # The first checkpoint was saved meanwhile.
        return await sync_or_async(graph.get_state, graph.aget_state, config, **options)


async def _is_empty(graph: Any, config: RunnableConfig) -> bool:
    state = await call(client_of(graph).threads.get_state, thread_there(config))
    return state["checkpoint"] is None


def may_make(graph: Any, namespace: str) -> bool:
    """Return whether the graph may make the call that was saved under this namespace.

    The nodes of a subgraph are unknown if a function invokes it, or if it runs on a server. So such
    a subgraph may make any call.
    """
    for part in parts_of(namespace):
        if not (part.is_node and is_local(graph)):
            break
        if part.name not in graph.nodes:
            return False
        graph = graph.nodes[part.name].bound
    return not is_local(graph) or LOOP in graph.channels


async def asked_by(graph: Any, namespaces: Collection[str]) -> list[str]:
    """Return the namespaces whose calls a local or remote graph may make."""
    nodes = await node_names(graph) if namespaces else []
    return [
        each
        for each in namespaces
        if not (path := tasks_in(each)) or (path[0] in nodes and may_make(graph, each))
    ]


async def shows(graph: Any, config: RunnableConfig, interrupt_id: str) -> bool:
    """Return whether `graph` shows an interrupt in the state of a thread; True if `graph` is None.

    LangGraph shows only interrupts of the nodes that `graph` has. Another graph may have raised
    this interrupt on the thread.
    """
    if graph is None:
        return True
    state = await get_state(graph, config)
    return interrupt_id in [interrupt.id for interrupt in state.interrupts]


async def node_names(graph: Any) -> list[str]:
    """Return the names of a graph's nodes, without LangGraph's `__start__` and `__end__`."""
    if not is_local(graph):
        graph = await sync_or_async(graph.get_graph, graph.aget_graph)
    return [name for name in graph.nodes if not name.startswith("__")]


def client_of(graph: Any) -> Any:
    """Return the SDK client of a `RemoteGraph`: sync in sync code, otherwise async."""
    kind = "sync_client" if is_sync() else "client"
    client = getattr(graph, kind)
    if client is None:
        raise ValueError(f"`graph` has no `{kind}`: make the RemoteGraph with its `url`.")
    return client


async def update_state(
    graph: Any, config: RunnableConfig, values: dict[str, Any] | None, as_node: str
) -> None:
    await sync_or_async(graph.update_state, graph.aupdate_state, config, values, as_node=as_node)


async def invoke(graph: Any, given: Any, config: RunnableConfig, **options: Any) -> Any:
    """Run a graph as `graph.invoke` does. Without a checkpoint, the error names the remedy."""
    try:
        return await sync_or_async(graph.invoke, graph.ainvoke, given, config, **options)
    except EmptyInputError as error:
        if given is not None or not is_local(graph) or (await get_state(graph, config)).created_at:
            raise
        thread_id = config.get("configurable", {}).get("thread_id")
        raise EmptyInputError(
            f"thread {as_repr(thread_id)} has no checkpoint to continue from: start it with "
            "`invoke` and an input, or check its id and the storage."
        ) from error
