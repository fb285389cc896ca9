"""The failure table: which exception and which answer is of which kind, and what follows."""

import httpx
import openai
import pytest
from langchain_core import exceptions
from langchain_core.exceptions import OutputParserException
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import TypeAdapter, ValidationError

from graph_retry import Completion, approve, edit, retry_llm_call
from graph_retry._core.output.failures import (
    BudgetExceededError,
    failure_of,
    finish_kind,
    is_complete,
)
from graph_retry.records import APPROVAL, FAILURE_KINDS, OWN_TYPES, FailureKind
from tests.loops import Model, answer, one_call, reviews, thread

REQUEST = httpx.Request("POST", "http://127.0.0.1/v1")


def response(status, **headers):
    """Make a provider's response."""
    return httpx.Response(status, headers=headers, request=REQUEST)


def of_openai(status, code=None):
    """Raise what the real client raises for a status."""
    body = {"message": "no", "code": code, "type": code}
    client = openai.OpenAI(api_key="none", base_url="http://127.0.0.1")
    return client._make_status_error("no", body=body, response=response(status))


class GoogleError(Exception):
    """An exception as google-genai and google-api-core make them: the status is `code`."""

    def __init__(self, code):
        super().__init__("no")
        self.code = code


class AnthropicStatusError(Exception):
    """An exception with a `status_code`."""

    def __init__(self, status_code):
        super().__init__("no")
        self.status_code = status_code


def of_langchain(name, *, is_retryable):
    """Return LangChain's model error of this name; older versions have none, so its look-alike."""
    known = getattr(exceptions, name, None)
    return (known or type(name, (Exception,), {"is_retryable": is_retryable}))("no")


class ReadTimeoutError(Exception):
    """A client library's own time-out."""


def invalid():
    """Return a pydantic error."""
    try:
        TypeAdapter(int).validate_python("x")
    except ValidationError as error:
        return error


EXCEPTIONS = [
    (TimeoutError("30 s"), "transient"),
    (ConnectionResetError("gone"), "transient"),
    (httpx.ConnectError("gone"), "transient"),
    (httpx.ReadTimeout("gone"), "transient"),
    (httpx.RemoteProtocolError("gone"), "transient"),
    (httpx.HTTPStatusError("no", request=REQUEST, response=response(503)), "transient"),
    (httpx.HTTPStatusError("no", request=REQUEST, response=response(422)), "rejected_input"),
    (openai.APIConnectionError(request=REQUEST), "transient"),
    (openai.APITimeoutError(request=REQUEST), "transient"),
    (of_openai(400), "rejected_input"),
    (of_openai(400, "context_length_exceeded"), "context_overflow"),
    (of_openai(401), "permanent"),
    (of_openai(403), "permanent"),
    (of_openai(404), "rejected_input"),
    (of_openai(409), "transient"),
    (of_openai(429), "transient"),
    (of_openai(429, "insufficient_quota"), "permanent"),
    (of_openai(500), "transient"),
    (GoogleError(429), "transient"),
    (GoogleError(403), "permanent"),
    (GoogleError(400), "rejected_input"),
    (GoogleError("RESOURCE"), "rejected_input"),
    (AnthropicStatusError(529), "transient"),
    (AnthropicStatusError(402), "permanent"),
    (ReadTimeoutError("slow"), "transient"),
    (of_langchain("ModelRateLimitError", is_retryable=True), "transient"),
    (of_langchain("ModelConnectionError", is_retryable=True), "transient"),
    (of_langchain("ModelAuthenticationError", is_retryable=False), "permanent"),
    (of_langchain("ModelInvalidRequestError", is_retryable=False), "rejected_input"),
    (PermissionError("key file"), "permanent"),
    (BudgetExceededError("spent"), "permanent"),
    (OutputParserException("no JSON"), "invalid_syntax"),
    (invalid(), "invalid_schema"),
    (ValueError("anything else"), "rejected_input"),
]


@pytest.mark.parametrize(
    ("error", "kind"),
    EXCEPTIONS,
    ids=lambda each: each if isinstance(each, str) else repr(each)[:40],
)
def test_an_exception_has_a_kind(error, kind):
    """By status, by LangChain's class, by the name of a client's class; never by its text."""
    failure = failure_of(error)
    assert (failure["kind"], failure["type"]) == (kind, type(error).__name__)
    assert failure["message"] == str(error)[:4_000]


@pytest.mark.parametrize(
    ("reason", "kind", "complete"),
    [
        ("stop", None, True),
        ("end_turn", None, True),
        ("STOP", None, True),
        ("length", "truncated", False),
        ("max_tokens", "truncated", False),
        ("MAX_TOKENS", "truncated", False),
        ("model_context_window_exceeded", "context_overflow", False),
        ("content_filter", "refusal", None),
        ("SAFETY", "refusal", None),
        ("refusal", "refusal", None),
        ("SPII", "refusal", None),
        ("UNEXPECTED_TOOL_CALL", "invalid_syntax", None),
        ("tool_calls", None, True),
        (None, None, None),
    ],
)
def test_a_finish_reason_has_a_kind(reason, kind, complete):
    """Providers' words for the same thing, in either case."""
    assert (finish_kind(reason), is_complete(reason)) == (kind, complete)


def raising(error):
    """Make an answer that is an exception."""

    def reply(params):
        if params["n"]:
            return '{"n": 1}'
        raise error

    return reply


def giving(value):
    """Make an answer that is a value, until `n` is raised."""
    return lambda params: '{"n": 1}' if params["n"] else value


WORDS = AIMessage("", additional_kwargs={"refusal": "I will not."})
ROWS = [
    ("transient", raising(TimeoutError("slow")), True),
    ("invalid_syntax", giving("no JSON here"), True),
    ("invalid_schema", giving('{"n": "x"}'), True),
    ("truncated", giving(Completion('{"n": ', finish_reason="length")), True),
    ("truncated", giving(Completion("", finish_reason="length")), True),
    ("context_overflow", raising(of_openai(400, "context_length_exceeded")), True),
    ("refusal", giving(WORDS), True),
    ("invalid_syntax", giving("I'm sorry, but I can't help with that."), True),
    ("refusal", giving(Completion('{"n": 1}', finish_reason="content_filter")), True),
    ("rejected_input", raising(of_openai(400)), True),
    ("permanent", raising(of_openai(401)), False),
]


@pytest.mark.parametrize(("kind", "reply", "hooks"), ROWS)
def test_each_kind_takes_its_route(form, mode, kind, reply, hooks):
    """Hooks come first for what other params may mend; the rest goes to a person at once."""
    asked = []

    def hook(error, attempt, params):
        asked.append(error.kind)
        return {"n": 1}

    model = Model(reply)
    graph = one_call(form, mode, model, InMemorySaver(), mode.colour(hook), auto_retries=1)
    state = mode.invoke(graph, {"params": {"n": 0}}, thread())

    assert asked == ([kind] if hooks else [])
    if not hooks:
        (review,) = reviews(mode, graph, thread())
        assert review.failure["kind"] == kind
        assert f"a {kind} failure is not retried automatically" in review.value["note"]
        state = answer(mode, graph, thread(), edit(n=1))
    assert state["output"] == {"n": 1}
    assert len(model.calls) == 2
    assert FAILURE_KINDS[kind].for_hooks == hooks


def test_every_kind_is_in_the_table():
    """No kind is without a route, and each route is tested."""
    from typing import get_args

    assert set(FAILURE_KINDS) == set(get_args(FailureKind)) == {kind for kind, _, _ in ROWS}


def test_the_caller_may_classify_otherwise(form, mode):
    """`classify` decides first; None leaves it to the table."""
    seen = []

    def classify(error):
        seen.append(type(error).__name__)
        return "permanent" if "never" in str(error) else None

    def reply(params):
        raise KeyError("n") if params["n"] else ValueError("never again")

    model = Model(reply)
    graph = one_call(form, mode, model, InMemorySaver(), classify=classify)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    (review,) = reviews(mode, graph, thread())
    assert review.failure["kind"] == "permanent"
    answer(mode, graph, thread(), approve())
    (review,) = reviews(mode, graph, thread())
    answer(mode, graph, thread(), edit(n=1))
    (review,) = reviews(mode, graph, thread())
    assert review.failure["kind"] == "rejected_input"
    assert seen == ["ValueError", "ValueError", "KeyError"]


@pytest.mark.parametrize(
    ("classify", "told"),
    [
        (lambda _: "permament", "`classify` returned 'permament' for a `ValueError`, which is no"),
        (lambda error: error.status, "AttributeError: 'ValueError' object has no attribute"),
    ],
)
def test_a_mistake_in_classify_loses_no_request(form, mode, classify, told, caplog):
    """The failed request is paid, so it is kept, and a person sees the mistake in its failure."""
    model = Model(raising(ValueError("no")))
    graph = one_call(form, mode, model, InMemorySaver(), classify=classify)
    mode.invoke(graph, {"params": {"n": 0}}, thread())

    (review,) = reviews(mode, graph, thread())
    assert review.failure["kind"] == "permanent"
    assert review.failure["message"].startswith("no (`classify` failed: ")
    assert told in review.failure["message"]
    assert told in caplog.text
    assert len(model.calls) == 1


@pytest.mark.parametrize("name", sorted(OWN_TYPES))
def test_a_class_of_the_user_is_not_taken_for_one_of_ours(name):
    """What the package writes into `type` is a fact; a namesake has its module before it."""
    theirs = type(name, (Exception,), {"__module__": "app.errors"})
    assert failure_of(theirs("no"))["type"] == f"app.errors.{name}"


def test_an_error_of_the_users_own_class_awaits_no_approval(form, mode):
    """The headline of a question tells what happened, and not how a class is named."""
    theirs = type(APPROVAL, (Exception,), {})
    graph = one_call(form, mode, Model(raising(theirs("no"))), InMemorySaver())
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    (review,) = reviews(mode, graph, thread())
    assert "awaits approval" not in review.title


@pytest.mark.parametrize(
    ("error", "is_unknown"), [(KeyError("choices"), True), (ConnectionError("lost"), False)]
)
def test_a_default_kind_is_no_known_kind(error, is_unknown):
    """An unknown exception is `rejected_input` by default, and the failure says so."""
    assert failure_of(error).get("is_unknown", False) is is_unknown
    assert "is_unknown" not in failure_of(error, "rejected_input")


def test_usage_that_is_no_dict_is_told(caplog):
    """A budget would count it as nothing. The answer is kept, because it is paid for."""
    assert retry_llm_call(lambda _: Completion("7", usage=12), {}, output=int) == 7
    assert "the `usage` of a `Completion` is 12, and is dropped: give a dict" in caplog.text
