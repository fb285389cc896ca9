"""Read and check the config that a user passes: its thread, and its other `configurable` values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from langchain_core.runnables import RunnableConfig

from graph_retry._langgraph.checkpoints import PLACE

HOW_CONFIG = 'pass {"configurable": {"thread_id": …}}'
"""The advice in errors about a config that names no thread."""


def besides_place(config: RunnableConfig | None) -> dict[str, Any]:
    """Return the values of `configurable` without those that name a thread or a checkpoint."""
    configurable = (config or {}).get("configurable", {})
    return {key: value for key, value in configurable.items() if key not in PLACE}


def check_placeless(config: RunnableConfig | None) -> RunnableConfig:
    """Return a config for many threads, after checking that it names no thread.

    Raises:
        TypeError: If it is not a config.
        ValueError: If it names a thread or a checkpoint.
    """
    how = 'pass what their runs need beside it, such as {"configurable": {"user_id": …}}'
    if config is None:
        return {}
    if not isinstance(cast("object", config), Mapping):
        raise TypeError(f"`config` is {config!r:.80}: {how}.")
    named = ", ".join(f"`{key}`" for key in config.get("configurable", {}) if key in PLACE)
    if named:
        raise ValueError(f"`config` has {named}, and each review has its own thread: {how}.")
    return config


def on_thread(config: RunnableConfig, thread_id: str) -> RunnableConfig:
    """Return a copy of a config, with a thread added."""
    return {**config, "configurable": {**config.get("configurable", {}), "thread_id": thread_id}}


def thread_of(config: RunnableConfig) -> str | None:
    """Return the thread id in a config; None if it names no thread.

    Raises:
        TypeError: If it is not a config.
    """
    if not isinstance(cast("object", config), Mapping):
        raise TypeError(f"`config` is {config!r:.80}: {HOW_CONFIG}.")
    place = cast("object", config.get("configurable", {}))
    if not isinstance(place, Mapping):
        raise TypeError(f"`configurable` is {place!r:.80}: {HOW_CONFIG}.")
    thread_id: object = cast("Any", place).get("thread_id")
    return None if thread_id is None else str(thread_id)


def check_thread(graph: Any, config: RunnableConfig) -> None:
    """Check that the given config or the graph's own config names a thread.

    Raises:
        TypeError: If the given config is not a config.
        ValueError: If neither config names a thread.
    """
    own = cast("RunnableConfig", getattr(graph, "config", None) or {})
    if thread_of(config) is None and thread_of(own) is None:
        raise ValueError(f"`config` names no thread: {HOW_CONFIG}.")
