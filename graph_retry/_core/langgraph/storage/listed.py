"""List the checkpoints of a saver, whatever its `list` knows of LangGraph's options."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import Parameter, signature
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

from graph_retry._core.ground.functions.awaiting import each_of, is_async_only, is_sync
from graph_retry._core.langgraph.storage.checkpoints import namespace_of, thread_id_of
from graph_retry.lossless._ground import error_text, text_of

_MOST = 1_000_000
"""How many checkpoints are listed at most. Savers exist that list 100 if no limit is given."""


async def list_checkpoints(
    saver: BaseCheckpointSaver[Any], thread: RunnableConfig | None, **options: Any
) -> list[CheckpointTuple]:
    """List the checkpoints of a thread or of all threads, newest first.

    The options are `filter`, `before` and `limit`. Savers exist that do not know them, or ignore
    them in silence: what such a saver lists too much is left out here.
    """
    listed = await _listed(saver, thread, options)
    found = [saved for saved in listed if _is_wanted(saved, thread, options)]
    if len(found) < len(listed) and "limit" in options:
        listed = await _listed(saver, thread, {**options, "limit": None})
        found = [saved for saved in listed if _is_wanted(saved, thread, options)]
    found.sort(key=lambda saved: saved.checkpoint["id"], reverse=True)
    return found[: options.get("limit")]


def _is_wanted(
    saved: CheckpointTuple, thread: RunnableConfig | None, options: Mapping[str, Any]
) -> bool:
    place = (thread or {}).get("configurable", {})
    before: Any = (options.get("before") or {}).get("configurable", {}).get("checkpoint_id")
    metadata: Mapping[str, Any] = saved.metadata
    return (
        str(place.get("thread_id", thread_id_of(saved))) == thread_id_of(saved)
        and place.get("checkpoint_ns", namespace_of(saved)) == namespace_of(saved)
        and (before is None or saved.checkpoint["id"] < before)
        and all(metadata.get(key) == value for key, value in options.get("filter", {}).items())
    )


async def _listed(
    saver: BaseCheckpointSaver[Any], thread: RunnableConfig | None, options: Mapping[str, Any]
) -> list[CheckpointTuple]:
    known = signature(saver.list if is_sync() else saver.alist).parameters
    has_all = any(one.kind is Parameter.VAR_KEYWORD for one in known.values())
    given = {
        name: value
        for name, value in {"limit": _MOST, **options}.items()
        if value is not None and (has_all or name in known)
    }
    while True:
        try:
            return [one async for one in each_of(saver.list, saver.alist, thread, **given)]
        except NotImplementedError as error:
            raise NotImplementedError(
                f"`{type(saver).__name__}` does not list checkpoints (it has no `list`)"
            ) from error
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            if thread is not None or is_async_only(error):
                raise
            raise NotImplementedError(
                f"`{type(saver).__name__}` does not list the checkpoints of all threads "
                f"({error_text(error)})"
            ) from error
        except RuntimeError as error:
            # LangGraph's in-memory saver raises this while another thread saves.
            if "changed size during iteration" not in text_of(error):
                raise
