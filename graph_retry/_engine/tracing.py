"""OpenTelemetry spans, where an application has set tracing up.

A span opens before the model is called and closes after it, so that the spans of a provider's
client nest in it; another one is around the validation. They hold figures, and no text of the
model or of a person. Attributes have the names of OpenTelemetry's conventions for generative AI.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any

from graph_retry._redact import redacted
from graph_retry.options import Settings
from graph_retry.records import Attempt

Ended = Callable[[Mapping[str, Any]], None]
"""Tells a span what became of the attempt: its failure, usage and finish reason, if any."""


@contextmanager
def model_call_span(
    settings: Settings, record: Attempt, params: Mapping[str, Any], request: int
) -> Generator[Ended, None, None]:
    """Open the span of one request to the model; `request` counts them within the attempt."""
    model = params.get("model")
    attributes = {
        "gen_ai.operation.name": "generate_content",
        "gen_ai.request.model": redacted(model, settings.redact),
        "graph_retry.request": request,
    }
    if not isinstance(model, str):
        del attributes["gen_ai.request.model"]
    with _span(f"{settings.name} attempt", settings.name, record, attributes) as ended:
        yield ended


@contextmanager
def validation_span(settings: Settings, record: Attempt) -> Generator[Ended, None, None]:
    """Open the span in which an attempt's output is held against the output type."""
    with _span(f"{settings.name} validate", settings.name, record, {}) as ended:
        yield ended


def tracer() -> Any:
    """Return OpenTelemetry's tracer, or None in a process that has not set tracing up."""
    trace: Any = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return None
    provider = trace.get_tracer_provider()
    is_set = not isinstance(provider, trace.ProxyTracerProvider | trace.NoOpTracerProvider)
    return provider.get_tracer("graph_retry") if is_set else None


@contextmanager
def _span(
    span_name: str, name: str, record: Attempt, attributes: Mapping[str, Any]
) -> Generator[Ended, None, None]:
    opened = tracer()
    if opened is None:
        yield lambda _record: None
        return
    trace: Any = sys.modules["opentelemetry.trace"]
    known = {
        "graph_retry.name": name,
        "graph_retry.attempt": record["number"],
        "graph_retry.author": record["author"],
        **attributes,
    }
    # Messages of exceptions quote what was sent, so OpenTelemetry does not get to record them.
    options = {"attributes": known, "record_exception": False, "set_status_on_exception": False}
    with opened.start_as_current_span(span_name, **options) as span:

        def ended(record: Mapping[str, Any]) -> None:
            span.set_attributes(_outcome(record))
            if record.get("failure"):
                span.set_status(trace.StatusCode.ERROR)

        yield ended


def _outcome(record: Mapping[str, Any]) -> dict[str, Any]:
    failure: Any = record.get("failure")
    usage: Any = record.get("usage") or {}
    outcome: dict[str, Any] = {
        "error.type": failure and failure["type"],
        "graph_retry.failure_kind": failure and failure["kind"],
        "gen_ai.usage.input_tokens": usage.get("input_tokens"),
        "gen_ai.usage.output_tokens": usage.get("output_tokens"),
        "gen_ai.response.finish_reasons": [record["finish_reason"]]
        if record.get("finish_reason")
        else None,
    }
    return {name: value for name, value in outcome.items() if value is not None}
