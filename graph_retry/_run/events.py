"""Report the events of a call: to the stream of the node that made the call, and to the log."""

from __future__ import annotations

import logging
from typing import Any

from graph_retry._langgraph.run_config import thread_in_logs, writer_of
from graph_retry._run.running import current_run

_LOG = logging.getLogger("graph_retry.reviews")


def emit(event: str, name: str, attempt: int, **details: Any) -> None:
    """Stream one custom event, such as `{"type": "graph_retry", "event": "attempt_started", …}`.

    The event belongs to the node that made the call, so a stream shows it without `subgraphs=True`.
    """
    write = writer_of(current_run().caller)
    write({"type": "graph_retry", "event": event, "name": name, "attempt": attempt, **details})


def log_review(event: str, name: str, attempt: int, review_id: str, author: str = "") -> None:
    """Log that a review was asked or answered, with names only: no text of a model or a person."""
    by = f" by {author.partition(':')[0]}" if author else ""
    what = "review %s of `%s` (attempt %s, %s) was %s%s"
    _LOG.info(what, review_id, name, attempt, thread_in_logs(), event, by)
