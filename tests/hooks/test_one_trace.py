"""One call, one trace: over pauses, processes and crashes, with its questions and its figures."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from pydantic_core import PydanticCustomError

import graph_retry.threads
from graph_retry import (
    AttemptsExhausted,
    Completion,
    edit,
    pending_reviews,
    respond,
    resume,
    retry_llm_call,
)
from graph_retry._core.loop.run import tracing
from graph_retry.threads import attempts_of
from tests.hooks.test_tracing import USAGE, parts, runs
from tests.loops import Model, answer, one_call, refused, thread

ROOT = Path(__file__).parents[2]


def reply(params):
    """Be right from `n = 1` on."""
    return Completion('{"n": 1}' if params["n"] else "no", USAGE)


def test_a_paused_call_is_one_trace(form, mode, spans):
    """The run after the answer goes on in the trace of the first, and is linked to it."""
    graph = one_call(form, mode, Model(reply), InMemorySaver())
    mode.invoke(graph, {"params": {"n": 0, "model": "small"}}, thread())
    answer(mode, graph, thread(), edit(n=1))
    first, second = runs(spans)
    assert len({span.context.trace_id for span in spans()}) == 1
    assert [link.context.span_id for link in second.links] == [first.context.span_id]
    assert second.parent.span_id == first.context.span_id
    (ledger,) = mode.call(graph_retry.threads, "attempts_of", graph, thread())
    told = [attempt["traceparent"].split("-")[2] for attempt in ledger.attempts]
    assert told == [f"{span.context.span_id:016x}" for span in (first, second)]
    assert dict(first.attributes) == {
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.workflow.name": "count",
        "gen_ai.conversation.id": "1",
        "gen_ai.output.type": "json",
    }
    assert second.attributes["graph_retry.status"] == "succeeded"
    assert second.attributes["graph_retry.attempts"] == 2


def test_a_run_inside_an_applications_span_is_linked(spans):
    """A web request that answers keeps its own trace: a link says where the call came from."""
    graph = one_call("node", None, Model(reply), InMemorySaver())
    graph.invoke({"params": {"n": 0}}, thread())
    with trace.get_tracer_provider().get_tracer("app").start_as_current_span("request") as around:
        resume(graph, thread(), edit(n=1))
    first, second = runs(spans)
    assert second.context.trace_id == around.get_span_context().trace_id
    assert [link.context.trace_id for link in second.links] == [first.context.trace_id]


def test_a_question_and_its_decision_are_told(form, mode, spans):
    """The wait is a span; who decided is a hash, and nothing that was written is told."""
    graph = one_call(form, mode, Model(reply), InMemorySaver())
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    refused(mode, graph, thread(), {"type": "edit", "params": {"n": 1}, "attempt": 9})
    answer(mode, graph, thread(), {**edit(n=1), "by": "ada@example.com", "message": "canary"})
    (review,) = [span for span in parts(spans) if span.name == "review count"]
    told = dict(review.attributes)
    assert (told["graph_retry.decision"], told["graph_retry.actor.role"]) == ("edit", "human")
    assert review.start_time < review.end_time
    asked = [
        event.attributes["graph_retry.attempt"]
        for span in runs(spans)
        for event in span.events
        if event.name == "graph_retry.review.asked"
    ]
    assert asked == [1, 1]  # and once again, after the answer that was refused
    (verdict,) = review.events
    assert verdict.name == "gen_ai.evaluation.result"
    assert verdict.attributes["gen_ai.evaluation.score.label"] == "edit"
    for span in spans():
        assert "example.com" not in span.to_json()
        assert "canary" not in span.to_json()


CHILD = """
import json, os, signal, sys
from pathlib import Path
from langgraph.checkpoint.sqlite import SqliteSaver
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from graph_retry import edit, resume
from tests.hooks.test_one_trace import reply
from tests.loops import one_call, thread

exporter = InMemorySpanExporter()
trace.set_tracer_provider(TracerProvider())
trace.get_tracer_provider().add_span_processor(SimpleSpanProcessor(exporter))

def model(params):
    if params["n"] == 1:
        ended = [f"{span.context.trace_id:032x}" for span in exporter.get_finished_spans()]
        Path(sys.argv[2]).write_text(json.dumps(ended))
        os.kill(os.getpid(), signal.SIGKILL)
    return reply(params)

with SqliteSaver.from_conn_string(sys.argv[1]) as saver:
    graph = one_call("node", None, model, saver)
    graph.invoke({"params": {"n": 0}}, thread())
    if sys.argv[3] == "asked":
        model({"n": 1})
    resume(graph, thread(), edit(n=1))
"""


@pytest.mark.parametrize("killed_when", ["asked", "answered"])
@pytest.mark.slow
def test_a_killed_process_is_followed_in_another(spans, tmp_path, killed_when):
    """The process that goes on after a SIGKILL continues the trace, from the ledger alone."""
    place, told = str(tmp_path / "threads.sqlite"), tmp_path / "told.json"
    command = [sys.executable, "-c", CHILD, place, str(told), killed_when]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    killed = subprocess.run(command, check=False, env=environment)
    assert killed.returncode == -signal.SIGKILL
    (before,) = set(json.loads(told.read_text()))
    with SqliteSaver.from_conn_string(place) as saver:
        graph = one_call("node", None, Model(reply), saver)
        resume(graph, thread(), *([edit(n=1)] if killed_when == "asked" else []))
        assert pending_reviews(graph, thread()) == []
        (ledger,) = attempts_of(graph, thread())
    (run,) = runs(spans)
    assert f"{run.context.trace_id:032x}" == before
    first, second = (attempt["traceparent"] for attempt in ledger.attempts)
    (link,) = run.links
    assert f"{link.context.span_id:016x}" == first.split("-")[2]
    assert f"{run.context.span_id:016x}" == second.split("-")[2]


def test_a_call_inside_a_call_is_inside_its_span(spans):
    """The inner run is a child of the request that made it, in the same trace."""

    def outer(params):
        return str(retry_llm_call(lambda _: "1", {}, output=int, name="inner"))

    assert retry_llm_call(outer, {}, output=int, name="outer") == 1
    inner, run = runs(spans)
    (request,) = [
        span
        for span in parts(spans)
        if span.name == "generate_content" and span.parent.span_id == run.context.span_id
    ]
    assert inner.parent.span_id == request.context.span_id


def test_a_traceparent_that_cannot_be_read_ends_no_call(spans):
    """A ledger that somebody has changed by hand costs the link, and nothing else."""
    graph = one_call("node", None, Model(reply), InMemorySaver())
    graph.invoke({"params": {"n": 0}}, thread())
    (ledger,) = attempts_of(graph, thread())
    ledger.attempts[0]["traceparent"] = "nonsense"
    given = {"params": {"n": 1}, "attempts": [{**ledger.attempts[0], "status": "failed"}]}
    assert graph.invoke(given, thread("2"))["status"] == "succeeded"
    assert [link for span in runs(spans) for link in span.links if not link.context.is_valid] == []


def test_what_is_private_is_in_no_span(spans):
    """The model's name, a finish reason and the code of an issue may quote what was sent."""

    def model(params):
        said = {"model_name": "canary-9", "model_provider": "canary", "finish_reason": "canary"}
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        return AIMessage("1", response_metadata=said, usage_metadata=usage)

    def check(value):
        raise PydanticCustomError("canary_code", "no canary")

    options = {"redact": lambda text: text.replace("canary", "***"), "review": False}
    with pytest.raises(AttemptsExhausted):
        retry_llm_call(model, {"model": "canary"}, output=check, **options)
    assert "***" in str([dict(span.attributes) for span in spans()])
    assert not any("canary" in span.to_json() for span in spans())


def test_the_names_are_those_of_the_conventions():
    """Each attribute is one that OpenTelemetry's own package lists."""
    listed = {name for name in vars(gen_ai_attributes).values() if isinstance(name, str)}
    used = set(re.findall(r'"(gen_ai\.[a-z_.]+)"', Path(tracing.__file__).read_text()))
    assert used - listed == {"gen_ai.evaluation.result", "gen_ai.client.token.usage"}


def test_the_provider_is_told_where_the_answer_says_it(spans):
    """Names are OpenTelemetry's; what nobody says is left out."""

    def model(params):
        said = {"model_provider": "google_genai", "model_name": "gemini-9"}
        return AIMessage('{"n": 1}', response_metadata=said)

    one_call("node", None, model, None).invoke({"params": {"model": "small"}})
    (attempt,) = [span for span in parts(spans) if span.name.startswith("generate")]
    assert attempt.attributes["gen_ai.provider.name"] == "gcp.gemini"
    assert attempt.attributes["gen_ai.response.model"] == "gemini-9"


@pytest.fixture
def measured(monkeypatch):
    """Set metrics up as an application does, for one test; returns sums and counts by name."""
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    monkeypatch.setattr(metrics, "get_meter_provider", lambda: provider)

    def read():
        (resource,) = reader.get_metrics_data().resource_metrics
        (scope,) = resource.scope_metrics
        found = {}
        for metric in scope.metrics:
            points = metric.data.data_points
            sums = [point.value if hasattr(point, "value") else point.sum for point in points]
            found[metric.name] = (sum(sums), sum(getattr(point, "count", 1) for point in points))
        return found

    yield read
    provider.shutdown()


def test_waiting_reviews_attempts_and_tokens_are_measured(form, mode, measured):
    """What waits goes up and down; a success counts its attempts; tokens go by kind."""
    graph = one_call(form, mode, Model(reply), InMemorySaver())
    for name in ("1", "2"):
        mode.invoke(graph, {"params": {"n": 0}}, thread(name))
    assert measured()["graph_retry.reviews.waiting"][0] == 2
    refused(mode, graph, thread(), "nonsense")
    answer(mode, graph, thread(), edit(n=1))
    answer(mode, graph, thread("2"), respond({"n": 2}))
    told = measured()
    assert told["graph_retry.reviews.waiting"][0] == 0
    assert told["graph_retry.review.wait"][1] == 2
    assert told["graph_retry.call.attempts"] == (3, 2)
    assert told["gen_ai.client.token.usage"] == (30, 6)


def test_without_tracing_the_ledger_says_nothing(mode):
    """There is no field for what is not there."""
    graph = one_call("node", mode, Model(reply), InMemorySaver())
    mode.invoke(graph, {"params": {"n": 1}}, thread())
    (ledger,) = mode.call(graph_retry.threads, "attempts_of", graph, thread())
    assert "traceparent" not in ledger.attempts[0]
