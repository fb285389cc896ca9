"""Find the nodes that ask a person, and warn about a node that is added too late to ask one."""

from __future__ import annotations

import logging
from typing import Any, cast

from langgraph.graph import StateGraph
from langgraph.pregel import Pregel

_LOG = logging.getLogger("graph_retry")


def asks(node: object) -> bool:
    """Return whether a node asks a person, itself or by a node of its subgraph."""
    inner: Any = cast("Any", node).nodes.values() if isinstance(node, Pregel) else ()
    return getattr(cast("Any", node), "asks", False) or any(asks(each.bound) for each in inner)


def tell_compiled(builder: StateGraph[Any, Any, Any, Any]) -> None:
    """Log a warning if a graph was compiled from the builder, because its nodes ask nobody."""
    if builder.compiled:
        _LOG.warning(
            "`review_nodes` came after `compile`, so the nodes of the graph compiled before ask "
            "nobody: compile the builder again, and use this graph."
        )


class Complete(dict[str, Any]):
    """The nodes of a graph after `review_nodes`. Adding a node that asks nobody logs a warning."""

    def __setitem__(self, name: str, spec: Any) -> None:
        if not (name in self or spec.is_error_handler or asks(spec.runnable)):
            _LOG.warning(
                "node `%s` was added after `review_nodes`, so it asks nobody: call `review_nodes` "
                "after `add_node`, or name the other nodes in its `nodes=`.",
                name,
            )
        super().__setitem__(name, spec)
