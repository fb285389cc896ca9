"""Read a graph's defaults for its nodes. LangGraph applies the defaults in `compile`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any


def with_defaults(spec: Any, builder: Any) -> Any:
    """Return a node's retry policy and timeout, or the graph's defaults if the node has none.

    LangGraph keeps these defaults in a private attribute, which may be missing.
    """
    defaults = getattr(builder, "_node_defaults", None)
    kept: dict[str, Any] = {}
    for name in ("retry_policy", "timeout"):
        own = getattr(spec, name)
        kept[name] = getattr(defaults, name, None) if own is None else own
    return SimpleNamespace(**kept)
