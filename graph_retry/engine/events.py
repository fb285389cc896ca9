"""Events on the custom stream: what happens in the loop, as it happens."""

from __future__ import annotations

from typing import Any

from langgraph.config import get_stream_writer


def emit(event: str, name: str, attempt: int, **details: Any) -> None:
    """Write one event, e.g. `{"type": "graph_retry", "event": "attempt_started", …}`."""
    get_stream_writer()(
        {"type": "graph_retry", "event": event, "name": name, "attempt": attempt, **details}
    )
