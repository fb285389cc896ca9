"""A caller's config: the place in a thread, and its other values for a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from langchain_core.runnables import RunnableConfig

_PLACE = frozenset({"thread_id", "checkpoint_id", "checkpoint_ns", "checkpoint_map"})


def besides_place(config: RunnableConfig | None) -> dict[str, Any]:
    """Return the values of `configurable` other than the place in a thread."""
    configurable = (config or {}).get("configurable", {})
    return {key: value for key, value in configurable.items() if key not in _PLACE}


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
    named = ", ".join(f"`{key}`" for key in config.get("configurable", {}) if key in _PLACE)
    if named:
        raise ValueError(f"`config` has {named}, and each review has its own thread: {how}.")
    return config


def on_thread(config: RunnableConfig, thread_id: str) -> RunnableConfig:
    """Return a config for a thread with all that a placeless one gives."""
    return {**config, "configurable": {**config.get("configurable", {}), "thread_id": thread_id}}
