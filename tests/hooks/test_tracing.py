"""OpenTelemetry spans: around the call and the validation, once each, whatever is resumed."""

import sys

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import RetryPolicy
from opentelemetry import trace
from opentelemetry.trace import StatusCode

from graph_retry import Completion, aretry_llm_call, edit, retry_llm_call
from graph_retry._core.loop.run.tracing import tracer
from graph_retry.threads import rewind
from tests.loops import Model, answer, one_call, refused, thread

USAGE = {"input_tokens": 6, "output_tokens": 4, "total_tokens": 10}


def reply(params):
    """Answer by `n`: a time-out, a wrong type, no JSON, a refusal, or what is right."""
    texts = {1: '{"n": "x"}', 2: "no", 4: '{"n": 1}'}
    if params["n"] == 0:
        raise TimeoutError("slow: the secret prompt")
    reason = "content_filter" if params["n"] == 3 else "stop"
    return Completion(texts.get(params["n"], ""), USAGE, reason)


COMMON = {"graph_retry.name": "count", "graph_retry.attempt": 1, "graph_retry.author": "caller"}
REQUEST = {
    **COMMON,
    "gen_ai.operation.name": "generate_content",
    "gen_ai.request.model": "small",
    "graph_retry.request": 1,
}
ANSWERED = {
    "gen_ai.usage.input_tokens": 6,
    "gen_ai.usage.output_tokens": 4,
    "gen_ai.response.finish_reasons": ("stop",),
}


def failed(kind, error):
    """Return the attributes of a failure."""
    return {"graph_retry.failure_kind": kind, "error.type": error}


NAME = "generate_content small"
CASES = {
    0: [(NAME, REQUEST | failed("transient", "TimeoutError"))],
    1: [
        (NAME, REQUEST | ANSWERED),
        ("count validate", COMMON | failed("invalid_schema", "ValidationError")),
    ],
    2: [
        (NAME, REQUEST | ANSWERED),
        ("count validate", COMMON | failed("invalid_syntax", "InvalidJSON")),
    ],
    3: [
        (
            NAME,
            REQUEST
            | ANSWERED
            | failed("refusal", "Refusal")
            | {"gen_ai.response.finish_reasons": ("content_filter",)},
        )
    ],
    4: [(NAME, REQUEST | ANSWERED), ("count validate", COMMON)],
}


def parts(spans):
    """Return the spans inside the runs of calls, as they ended."""
    return [span for span in spans() if not span.name.startswith("invoke_workflow")]


def runs(spans):
    """Return the spans of the runs, as they ended."""
    return [span for span in spans() if span.name.startswith("invoke_workflow")]


@pytest.mark.parametrize("n", CASES)
def test_spans_tell_what_became_of_an_attempt(form, mode, spans, n):
    """A failure is an ERROR where it came to light; no text of the model or an error is told."""
    graph = one_call(form, mode, Model(reply), InMemorySaver())
    mode.invoke(graph, {"params": {"n": n, "model": "small"}}, thread())
    assert [(span.name, dict(span.attributes)) for span in parts(spans)] == CASES[n]
    for span in parts(spans):
        failed = "error.type" in span.attributes
        status = StatusCode.ERROR if failed else StatusCode.UNSET
        assert (span.status.status_code, span.status.description) == (status, None)
        verdicts = [dict(event.attributes) for event in span.events]
        label = "fail" if failed else "pass"
        validates = span.name == "count validate"
        assert [each["gen_ai.evaluation.score.label"] for each in verdicts] == [label] * validates


def test_spans_inside_the_call_nest_in_it(form, mode, spans):
    """A provider's own span is a child of the attempt's; the validation comes after both."""

    def model(params):
        with trace.get_tracer_provider().get_tracer("client").start_as_current_span("chat"):
            return '{"n": 1}'

    graph = one_call(form, mode, mode.colour(model), InMemorySaver(), timeout=30.0)
    mode.invoke(graph, {"params": {}}, thread())
    inner, attempt, validation = parts(spans)
    assert (inner.name, attempt.name) == ("chat", "generate_content")
    assert inner.parent.span_id == attempt.context.span_id
    assert attempt.start_time <= inner.start_time <= inner.end_time <= attempt.end_time
    assert attempt.end_time <= validation.start_time


def test_spans_belong_to_the_span_around_the_call(spans):
    """They show up inside the trace of whoever called."""
    with trace.get_tracer_provider().get_tracer("app").start_as_current_span("request") as parent:
        retry_llm_call(lambda params: "1", {}, output=int)
    attempt, validation, run, _ = spans()
    assert run.parent.span_id == parent.get_span_context().span_id
    for span in (attempt, validation):
        assert span.parent.span_id == run.context.span_id


def test_resumes_and_steps_that_run_again_open_no_second_span(form, mode, checkpointer, spans):
    """Hooks that fail, questions asked again and answers make spans of new attempts alone."""
    broken = [True]

    def hook(error, attempt, params):
        if broken:
            raise KeyError("typo")

    graph = one_call(form, mode, Model(reply), checkpointer, mode.colour(hook))
    with pytest.raises(KeyError):
        mode.invoke(graph, {"params": {"n": 1}}, thread())
    broken.clear()
    mode.invoke(graph, None, thread())
    refused(mode, graph, thread(), "nonsense")
    answer(mode, graph, thread(), edit(n=4))
    made = [(span.name, span.attributes.get("graph_retry.author")) for span in parts(spans)]
    assert made == [
        ("generate_content", "caller"),
        ("count validate", "caller"),
        ("review count", None),
        ("generate_content", "human"),
        ("count validate", "human"),
    ]


def test_no_span_names_a_person(spans):
    """An attempt tells the kind of its author, also after a rewind with a decision by name."""
    graph = one_call("node", None, Model(reply), InMemorySaver())
    graph.invoke({"params": {"n": 1}}, thread())
    rewind(graph, thread(), attempt=1, decision={**edit(n=4), "by": "ada"})
    authors = [span.attributes.get("graph_retry.author") for span in parts(spans)]
    assert authors[-2:] == ["rewind", "rewind"]


def test_each_request_of_a_transport_retry_is_a_span(mode, spans):
    """They are numbered, and what failed is an ERROR, although the attempt succeeds."""
    left = [TimeoutError("slow"), '{"n": 1}']

    def model(params):
        step = left.pop(0)
        if isinstance(step, Exception):
            raise step
        return step

    policy = RetryPolicy(max_attempts=2, initial_interval=0.0, jitter=False)
    graph = one_call("node", mode, mode.colour(model), InMemorySaver(), transient=policy)
    mode.invoke(graph, {"params": {}}, thread())
    first, second, _ = parts(spans)
    assert [span.attributes["graph_retry.request"] for span in (first, second)] == [1, 2]
    assert first.attributes["error.type"] == "TimeoutError"
    assert "error.type" not in second.attributes


def test_tracing_makes_no_task_of_its_own(form, mode, monkeypatch, request):
    """What is saved is the same with tracing and without."""

    def saved():
        saver = InMemorySaver()
        graph = one_call(form, mode, Model(reply), saver)
        mode.invoke(graph, {"params": {"n": 1}}, thread())
        listed = mode.call(saver, "list", thread())
        return sorted(
            (one.config["configurable"]["checkpoint_ns"].count(":"), len(one.pending_writes or ()))
            for one in listed
        )

    before = saved()
    request.getfixturevalue("spans")
    assert saved() == before


def test_a_private_model_name_is_redacted(spans):
    """`redact` is applied to what a span tells of the params."""
    hidden = {"redact": lambda text: text.replace("acme-", "")}
    retry_llm_call(lambda params: "1", {"model": "acme-large"}, output=int, **hidden)
    assert parts(spans)[0].attributes["gen_ai.request.model"] == "large"
    retry_llm_call(lambda params: "1", {"model": {"a": 1}}, output=int)
    assert "gen_ai.request.model" not in parts(spans)[2].attributes


async def test_calls_side_by_side_keep_their_spans_apart(spans):
    """Each is a child of the span it was made in, not of its neighbour's."""
    import asyncio

    both = asyncio.Barrier(2)

    async def model(params):
        async with both:
            return "1"

    async def request(name):
        with trace.get_tracer_provider().get_tracer("app").start_as_current_span(name) as parent:
            await aretry_llm_call(model, {"name": name}, output=int, name=name)
        return name, parent.get_span_context().span_id

    parents = dict(await asyncio.gather(request("a"), request("b")))
    names = {span.context.span_id: span.name[-1] for span in runs(spans)}
    assert sorted(names.values()) == ["a", "b"]
    for span in runs(spans):
        assert span.parent.span_id == parents[span.name[-1]]
    for span in parts(spans):
        if span.parent is not None:
            assert names[span.parent.span_id] == span.attributes["graph_retry.name"]


def test_without_tracing_nothing_is_traced(monkeypatch):
    """The package is not even looked for: only an application that set tracing up has it loaded."""
    monkeypatch.setattr(trace, "get_tracer_provider", trace.ProxyTracerProvider)
    assert tracer() is None
    monkeypatch.setattr(trace, "get_tracer_provider", trace.NoOpTracerProvider)
    assert tracer() is None
    monkeypatch.delitem(sys.modules, "opentelemetry.trace")
    assert tracer() is None
    assert retry_llm_call(lambda params: "1", {}, output=int) == 1
    assert "opentelemetry.trace" not in sys.modules
