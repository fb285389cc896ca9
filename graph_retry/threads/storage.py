"""Tell the kinds of checkpointers apart, without importing any of them."""

from __future__ import annotations

from typing import Literal

_MODULE = "langgraph.checkpoint."


def storage_of(saver: object) -> Literal["memory", "sqlite", "postgres", "other"]:
    """Return what a checkpointer of LangGraph's, or one derived from it, keeps its threads in."""
    for kind in type(saver).__mro__:
        storage = kind.__module__.removeprefix(_MODULE).partition(".")[0]
        if kind.__module__.startswith(_MODULE) and storage in ("memory", "sqlite", "postgres"):
            return storage  # type: ignore[return-value] # one of them, as the line above says
    return "other"
