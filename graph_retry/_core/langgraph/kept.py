"""Read the checkpoints that hold the whole records of a call, from a saver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver

from graph_retry._core.langgraph.checkpoints import read_checkpoint
from graph_retry._core.state.kept import Reader
from graph_retry.records import KeptIn


def saved_at(saver: BaseCheckpointSaver[Any], thread_id: str | None, namespace: str) -> Reader:
    """Return a function that reads the checkpoints of one call from a saver."""

    async def read(place: KeptIn) -> Mapping[str, Any] | None:
        saved = await read_checkpoint(saver, record_place(thread_id, namespace, place))
        return saved and saved.checkpoint["channel_values"]

    return read


def record_place(thread_id: str | None, namespace: str, place: KeptIn) -> RunnableConfig:
    """Return the config of a checkpoint; `place` may name a namespace other than the call's."""
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": namespace, **place}}
