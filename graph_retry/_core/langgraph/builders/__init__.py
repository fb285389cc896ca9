"""Read the defaults that a graph gives its nodes, which LangGraph applies when it compiles."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any


def with_defaults(spec: Any, builder: Any) -> Any:
    """Return the retry policy and the timeout that a node will have: its own, or the graph's.

    LangGraph keeps the graph's defaults in a private attribute. If this attribute is missing, only
    the node's own values are returned.
    """
    defaults = getattr(builder, "_node_defaults", None)
    kept: dict[str, Any] = {}
    for name in ("retry_policy", "timeout"):
        own = getattr(spec, name)
        kept[name] = getattr(defaults, name, None) if own is None else own
    return SimpleNamespace(**kept)
