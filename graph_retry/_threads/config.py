"""A caller's config: the place in a thread, and its other values for a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from langchain_core.runnables import RunnableConfig

from graph_retry._langgraph.checkpoints import PLACE

HOW_CONFIG = 'pass {"configurable": {"thread_id": …}}'
"""A hint for messages: a config that names a thread."""


def besides_place(config: RunnableConfig | None) -> dict[str, Any]:
    """Return the values of `configurable` other than the place in a thread."""
    configurable = (config or {}).get("configurable", {})
    return {key: value for key, value in configurable.items() if key not in PLACE}


def check_placeless(config: RunnableConfig | None) -> RunnableConfig:
    """Return a config for many threads, after checking that it names no thread.

    Raises:
        TypeError: If it is no config.
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
    """Return a config for a thread with all that a placeless one gives."""
    return {**config, "configurable": {**config.get("configurable", {}), "thread_id": thread_id}}


def thread_of(config: RunnableConfig) -> str | None:
    """Return the thread id in a config.

    Raises:
        TypeError: If it is no config.
    """
    if not isinstance(cast("object", config), Mapping):
        raise TypeError(f"`config` is {config!r:.80}: {HOW_CONFIG}.")
    place = cast("object", config.get("configurable", {}))
    if not isinstance(place, Mapping):
        raise TypeError(f"`configurable` is {place!r:.80}: {HOW_CONFIG}.")
    thread_id: object = cast("Any", place).get("thread_id")
    return None if thread_id is None else str(thread_id)


def check_thread(graph: Any, config: RunnableConfig) -> None:
    """Check that a config names a thread, or the config that the graph has of its own.

    Raises:
        TypeError: If it is no config.
        ValueError: If neither names a thread.
    """
    own = cast("RunnableConfig", getattr(graph, "config", None) or {})
    if thread_of(config) is None and thread_of(own) is None:
        raise ValueError(f"`config` names no thread: {HOW_CONFIG}.")
