"""OpenTelemetry spans and metrics, for applications that have set OpenTelemetry up.

Each run of a call is one span, named after OpenTelemetry's conventions for generative AI. Each
request to the model, each validation and each review has a child span. The spans of the provider's
client are inside the span of a request. The span of a review lasts from its question to its
decision. Spans hold names and numbers, and never the text of a model or a person. The name of a
reviewer is hashed.

A call may need several runs, because a pause or a crash ends a run. Each record in the ledger keeps
the `traceparent` of its run, and the span of a later run links to the spans of the earlier runs.
Without an active span, the later run also continues the trace of the first run.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from importlib import import_module
from typing import Any, ParamSpec
from weakref import WeakKeyDictionary

from graph_retry._core.ground.functions.informing import informing
from graph_retry._core.ground.json import digest, is_object
from graph_retry._core.ground.redact import Redact, redacted_in_logs
from graph_retry._core.loop.run.events import Event
from graph_retry._core.loop.run.settings import Settings
from graph_retry._core.review.deadline import now
from graph_retry.records import PEOPLE, Attempt, author_role

P = ParamSpec("P")

Ended = Callable[..., None]
"""Writes the outcome of an attempt into its span: failure, usage, finish reason.

In the span of a request, the function also takes the result of the user's function.
"""

_PROVIDERS = {
    "azure": "azure.ai.openai",
    "azure_ai": "azure.ai.inference",
    "azure_openai": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "bedrock_converse": "aws.bedrock",
    "google_genai": "gcp.gemini",
    "google_vertexai": "gcp.vertex_ai",
    "ibm": "ibm.watsonx.ai",
    "mistralai": "mistral_ai",
    "xai": "x_ai",
}
"""OpenTelemetry's names of providers, by LangChain's names, where the two differ."""

_ORIGIN = ("gen_ai.provider.name", "gen_ai.response.model")

_CLIENTS = ("openai", "anthropic")
"""Providers that are recognised by the top-level package of a result's class."""

_INSTRUMENTS = {
    "graph_retry.reviews.waiting": ("create_up_down_counter", "{review}"),
    "graph_retry.review.wait": ("create_histogram", "s"),
    "graph_retry.call.attempts": ("create_histogram", "{attempt}"),
    "gen_ai.client.token.usage": ("create_histogram", "{token}"),
}
"""The metrics: for each name, the method that creates it, and its unit."""

_made: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()
"""The metrics that already exist, by OpenTelemetry's meter provider."""


def _informs(method: Callable[P, None]) -> Callable[P, None]:
    """Decorate a method that writes to a span, so that an error in it is only logged."""

    @functools.wraps(method)
    def told(*args: P.args, **kwargs: P.kwargs) -> None:
        with informing("tracing"):
            method(*args, **kwargs)

    return told


class CallTrace:
    """The OpenTelemetry span of one run of a call. Without OpenTelemetry, it does nothing."""

    def __init__(self) -> None:
        self._span: Any = None
        self._tracer: Any = None
        with informing("tracing"):
            self._tracer = tracer()

    @property
    def kept(self) -> dict[str, Any]:
        """The field `traceparent` for the record; {} without a span."""
        kept: dict[str, Any] = {}
        with informing("tracing"):
            if self._span is not None:
                _propagator().inject(kept, _trace().set_span_in_context(self._span))
        return {name: value for name, value in kept.items() if name == "traceparent"}

    @_informs
    def begin(
        self,
        settings: Settings,
        attempts: Sequence[Attempt],
        *,
        thread: str | None,
        output_type: str | None,
    ) -> None:
        """Open the span before the run's first step, with links to the call's earlier runs."""
        if self._tracer is None or self._span is not None:
            return
        known = dict.fromkeys(record.get("traceparent", "") for record in attempts)
        before = [_after(traceparent) for traceparent in known if traceparent]
        # The parent is an active span of the application or, without one, the first run's span.
        around = _trace().get_current_span().get_span_context().is_valid
        attributes = {
            "gen_ai.operation.name": "invoke_workflow",
            "gen_ai.workflow.name": settings.name,
            "gen_ai.conversation.id": redacted_in_logs(thread, settings.redact),
            "gen_ai.output.type": output_type,
        }
        self._span = self._tracer.start_span(
            f"invoke_workflow {settings.name}",
            context=None if around or not before else before[0],
            attributes=_known(attributes),
            links=[_link(place) for place in before],
        )

    @_informs
    def observe(self, event: Event) -> None:
        """Record an event about a question, a decision or the end of the call."""
        told = event.details
        if event.kind == "review_asked":
            self._asked(told["review_id"], event.attempt, is_new=not told["again"])
        elif event.kind == "review_answered" and event.record is not None:
            self._decided(told, event.record, told["asked_at"], event.name)
        elif event.kind == "call_ended":
            self._ended(told["status"], event.attempt, event.name)

    def _asked(self, review_id: str, attempt: int, *, is_new: bool) -> None:
        _metric("graph_retry.reviews.waiting", "add", int(is_new), {})
        if self._span is not None:
            about = {"graph_retry.review_id": review_id, "graph_retry.attempt": attempt}
            self._span.add_event("graph_retry.review.asked", about)

    def _decided(
        self, decision: Mapping[str, Any], record: Attempt, asked_at: str | None, name: str
    ) -> None:
        """Record a decision as a span that lasts from its question until now."""
        ended = datetime.fromisoformat(now())
        began = ended if asked_at is None else datetime.fromisoformat(asked_at)
        about = {"graph_retry.decision": decision["decision"]}
        about["graph_retry.actor.role"] = author_role(decision["author"])
        _metric("graph_retry.reviews.waiting", "add", -1, {})
        _metric("graph_retry.review.wait", "record", (ended - began).total_seconds(), about)
        if self._tracer is None or self._span is None:
            return
        asked_in = [record["traceparent"]] if "traceparent" in record else []
        span = self._tracer.start_span(
            f"review {name}",
            context=_trace().set_span_in_context(self._span),
            start_time=_nanoseconds(began),
            links=[_link(_after(traceparent)) for traceparent in asked_in],
            attributes={
                "graph_retry.name": name,
                "graph_retry.attempt": record["number"],
                "graph_retry.review_id": decision["review_id"],
                "graph_retry.actor": digest(decision["author"]),
                **about,
            },
        )
        verdict = {"gen_ai.evaluation.name": "review"}
        verdict["gen_ai.evaluation.score.label"] = decision["decision"]
        span.add_event("gen_ai.evaluation.result", verdict)
        span.end(end_time=_nanoseconds(ended))

    def _ended(self, status: str, attempts: int, name: str) -> None:
        if status == "succeeded":
            about = {"gen_ai.workflow.name": name}
            _metric("graph_retry.call.attempts", "record", attempts, about)
        if self._span is not None:
            known = {"graph_retry.status": status, "graph_retry.attempts": attempts}
            self._span.set_attributes(known)
            if status == "exhausted":
                self._span.set_status(_trace().StatusCode.ERROR)

    @_informs
    def close(self) -> None:
        """End the span when the run ends. A second call does nothing."""
        if self._span is not None and self._span.is_recording():
            self._span.end()

    @contextmanager
    def model_call(
        self, settings: Settings, record: Attempt, params: Mapping[str, Any], request: int
    ) -> Generator[Ended, None, None]:
        """Open the span of one request, whose number within the attempt is `request`."""
        model = params.get("model")
        shown = redacted_in_logs(model, settings.redact) if isinstance(model, str) else None
        operation = {"gen_ai.operation.name": "generate_content"}
        model_asked = _known({"gen_ai.request.model": shown})
        attributes = {**operation, "graph_retry.request": request, **model_asked}
        name = " ".join(filter(None, ("generate_content", shown)))
        with self._child(name, settings.name, record, attributes) as span:

            @_informs
            def ended(outcome: Mapping[str, Any], result: Any = None) -> None:
                usage: Any = outcome.get("usage") or {}
                origin = _origin(result, settings.redact)
                for kind in ("input", "output"):
                    if (count := usage.get(f"{kind}_tokens")) is not None:
                        about = {**operation, **model_asked, **origin, "gen_ai.token.type": kind}
                        about["gen_ai.workflow.name"] = settings.name
                        _metric("gen_ai.client.token.usage", "record", count, about)
                if span is not None:
                    _tell(span, {**_outcome(outcome, settings.redact), **origin}, outcome)

            yield ended

    @contextmanager
    def validation(self, settings: Settings, record: Attempt) -> Generator[Ended, None, None]:
        """Open the span for the validation of an attempt's output."""
        with self._child(f"{settings.name} validate", settings.name, record, {}) as span:

            @_informs
            def ended(outcome: Mapping[str, Any]) -> None:
                if span is None:
                    return
                is_valid = outcome.get("failure") is None
                found = dict.fromkeys(each["code"] for each in outcome["issues"])
                codes = redacted_in_logs(", ".join(found), settings.redact)
                verdict = {
                    "gen_ai.evaluation.name": "validation",
                    "gen_ai.evaluation.score.value": float(is_valid),
                    "gen_ai.evaluation.score.label": "pass" if is_valid else "fail",
                    **_known({"gen_ai.evaluation.explanation": codes or None}),
                }
                span.add_event("gen_ai.evaluation.result", verdict)
                without = {**outcome, "usage": None, "finish_reason": None}
                _tell(span, _outcome(without, settings.redact), outcome)

            yield ended

    @contextmanager
    def _child(
        self, span_name: str, name: str, record: Attempt, attributes: Mapping[str, Any]
    ) -> Generator[Any, None, None]:
        if self._tracer is None:
            yield None
            return
        role = author_role(record["author"])
        known = {
            "graph_retry.name": name,
            "graph_retry.attempt": record["number"],
            "graph_retry.author": role if role in PEOPLE else record["author"],
            **attributes,
        }
        # Exception messages may quote private data, so OpenTelemetry must not record them.
        quiet = {"record_exception": False, "set_status_on_exception": False}
        span: Any = None
        with ExitStack() as opened:
            with informing("tracing"):
                parent = None if self._span is None else _trace().set_span_in_context(self._span)
                child = self._tracer.start_as_current_span(
                    span_name, context=parent, attributes=known, **quiet
                )
                span = child.__enter__()

                def end(*raised: Any) -> None:
                    with informing("tracing"):
                        child.__exit__(*raised)

                opened.push(end)
            yield span


def tracer() -> Any:
    """Return OpenTelemetry's tracer; None if the application has not set tracing up."""
    # Never import OpenTelemetry here: an application that has set it up has imported it.
    trace: Any = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return None
    provider = trace.get_tracer_provider()
    is_set = not isinstance(provider, trace.ProxyTracerProvider | trace.NoOpTracerProvider)
    return provider.get_tracer("graph_retry") if is_set else None


def _metric(name: str, verb: str, amount: float, about: Mapping[str, Any]) -> None:
    """Update a metric, if the application has imported OpenTelemetry's metrics."""
    metrics: Any = sys.modules.get("opentelemetry.metrics")
    if metrics is None:
        return
    provider = metrics.get_meter_provider()
    if provider not in _made:
        meter = provider.get_meter("graph_retry")
        _made[provider] = {
            known: getattr(meter, make)(known, unit=unit)
            for known, (make, unit) in _INSTRUMENTS.items()
        }
    getattr(_made[provider][name], verb)(amount, dict(about))


def _trace() -> Any:
    return sys.modules["opentelemetry.trace"]


def _propagator() -> Any:
    return import_module(
        "opentelemetry.trace.propagation.tracecontext"
    ).TraceContextTextMapPropagator()


def _after(traceparent: str) -> Any:
    """Return the span context of a saved `traceparent`, or an empty context."""
    return _propagator().extract({"traceparent": traceparent})


def _link(context: Any) -> Any:
    return _trace().Link(_trace().get_current_span(context).get_span_context())


def _known(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if value is not None}


def _nanoseconds(moment: datetime) -> int:
    return round(moment.astimezone(UTC).timestamp() * 1_000_000) * 1_000


def _tell(span: Any, attributes: Mapping[str, Any], outcome: Mapping[str, Any]) -> None:
    span.set_attributes(attributes)
    if outcome.get("failure"):
        span.set_status(_trace().StatusCode.ERROR)


def _outcome(record: Mapping[str, Any], redact: Redact | None) -> dict[str, Any]:
    failure: Any = record.get("failure")
    usage: Any = record.get("usage") or {}
    reason = redacted_in_logs(record.get("finish_reason"), redact)
    outcome: dict[str, Any] = {
        "error.type": failure and failure["type"],
        "graph_retry.failure_kind": failure and failure["kind"],
        "gen_ai.usage.input_tokens": usage.get("input_tokens"),
        "gen_ai.usage.output_tokens": usage.get("output_tokens"),
        "gen_ai.response.finish_reasons": [reason] if reason else None,
    }
    return _known(outcome)


def _origin(result: Any, redact: Redact | None) -> dict[str, Any]:
    """Return the redacted provider and model that a result names."""
    # LangChain's `with_structured_output(include_raw=True)` returns the message under `raw`.
    if is_object(result):
        result = result.get("raw")
    said: Any = getattr(result, "response_metadata", None)
    package = type(result).__module__.partition(".")[0]
    if is_object(said):
        provider = said.get("model_provider")
        model = said.get("model_name") or said.get("model")
    else:
        provider = package if package in _CLIENTS else None
        model = getattr(result, "model", None) if provider else None
    named = _PROVIDERS.get(provider, provider) if isinstance(provider, str) else None
    found = zip(_ORIGIN, (named, model), strict=True)
    return {name: redacted_in_logs(each, redact) for name, each in found if isinstance(each, str)}
