"""OpenTelemetry spans of attempts, where an application has set tracing up."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import Any

from graph_retry.records import Attempt


def tracer() -> Any:
    """Return OpenTelemetry's tracer, or None in a process that has not set tracing up."""
    trace: Any = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return None
    provider = trace.get_tracer_provider()
    is_set = not isinstance(provider, trace.ProxyTracerProvider | trace.NoOpTracerProvider)
    return provider.get_tracer("graph_retry") if is_set else None


def write_span(tracer: Any, name: str, record: Attempt) -> None:
    """Write the span of one finished attempt: its times, figures and outcome, none of its text."""
    failure, usage = record["failure"], record["usage"] or {}
    start = int(datetime.fromisoformat(record["started_at"]).timestamp() * 1e9)
    found = {
        "graph_retry.name": name,
        "graph_retry.attempt": record["number"],
        "graph_retry.status": record["status"],
        "graph_retry.author": record["author"],
        "graph_retry.failure_kind": failure and failure["kind"],
        "error.type": failure and failure["type"],
        "gen_ai.usage.input_tokens": usage.get("input_tokens"),
        "gen_ai.usage.output_tokens": usage.get("output_tokens"),
    }
    known = {key: value for key, value in found.items() if value is not None}
    span = tracer.start_span(f"{name} attempt", start_time=start, attributes=known)
    span.end(end_time=start + int(record["duration_s"] * 1e9))
