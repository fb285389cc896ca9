"""The real OpenAI client against a misbehaving loopback server: each failure takes its route."""

import httpx
import pytest
from langchain_openai import ChatOpenAI
from langgraph.types import RetryPolicy
from pydantic import BaseModel

from graph_retry import AttemptsExhausted, aretry_llm_call, retry_llm_call
from tests.provider_server import provider_server

POLICY = RetryPolicy(initial_interval=0.01, max_attempts=3)


class Person(BaseModel):
    """What is asked for."""

    name: str


class Ask(BaseModel):
    """What may be changed."""

    prompt: str = "Who?"
    max_tokens: int = 10


@pytest.fixture
def ask(mode):
    """Yield `(script, ask)`: the server's script and a way to run one call, never reviewed."""
    with provider_server() as script, httpx.Client() as client:

        def run(on_retry=None, **options):
            options = {"review": False, "output": Person, **options}

            def build(http_async=None):
                return ChatOpenAI(
                    model="scripted",
                    base_url=script.url,
                    api_key="not-a-key",
                    max_retries=0,
                    http_client=client,
                    http_async_client=http_async,
                )

            if not mode.is_async:
                chat = build()

                def call(params):
                    return chat.invoke(params.prompt, max_tokens=params.max_tokens)

                return retry_llm_call(call, Ask(), on_retry, **options)

            async def arun():
                async with httpx.AsyncClient() as http_async:
                    chat = build(http_async)

                    async def call(params):
                        return await chat.ainvoke(params.prompt, max_tokens=params.max_tokens)

                    return await aretry_llm_call(call, Ask(), on_retry, **options)

            return mode.run(arun)

        yield script, run


def failed(run, *args, **options):
    """Run a call that gives up; return its last attempt."""
    with pytest.raises(AttemptsExhausted) as caught:
        run(*args, **options)
    return caught.value.attempts[-1]


@pytest.mark.parametrize(("status", "code"), [(429, "rate_limit_exceeded"), (500, "oops")])
def test_a_transient_error_is_tried_again_inside_the_attempt(ask, status, code):
    """Two bad answers, then a good one: one attempt, three requests at the server."""
    script, run = ask
    script.fail(status, code, retry_after="0")
    script.fail(status, code)
    script.say('{"name": "Ada"}')
    records = []
    assert run(transient=POLICY, on_attempt=records.append) == Person(name="Ada")
    assert (len(script.requests), len(records), records[0]["tries"]) == (3, 1, 3)


def test_a_transient_error_that_stays_is_one_failed_attempt(ask):
    """The policy's limit holds, counted at the server."""
    script, run = ask
    for _ in range(3):
        script.fail(429, "rate_limit_exceeded")
    record = failed(run, transient=POLICY)
    assert (record["failure"]["kind"], record["tries"]) == ("transient", 3)
    assert len(script.requests) == 3


def test_retry_after_is_waited_for(ask, monkeypatch):
    """The provider's own delay is kept, besides the policy's back-off."""
    waited = []
    monkeypatch.setattr("graph_retry._core.ground.functions.awaiting.time.sleep", waited.append)

    async def asleep(seconds):
        waited.append(seconds)

    script, run = ask
    script.fail(429, "rate_limit_exceeded", retry_after="7")
    script.say('{"name": "Ada"}')
    monkeypatch.setattr("graph_retry._core.ground.functions.awaiting.asyncio.sleep", asleep)
    assert run(transient=POLICY) == Person(name="Ada")
    assert 7.0 in waited


def test_quota_for_good_is_permanent_and_not_tried_again(ask):
    """`insufficient_quota` comes as a 429, too, but no retry helps."""
    script, run = ask
    script.fail(429, "insufficient_quota")
    record = failed(run, lambda error, attempt, params: Ask(prompt="again"), transient=POLICY)
    assert record["failure"]["kind"] == "permanent"
    assert len(script.requests) == 1


@pytest.mark.parametrize(
    ("status", "kind"), [(401, "permanent"), (400, "rejected_input"), (404, "rejected_input")]
)
def test_client_errors_are_told_apart(ask, status, kind):
    """A bad key is not the params' fault, a bad request is."""
    script, run = ask
    script.fail(status, "no")
    assert failed(run)["failure"]["kind"] == kind
    assert len(script.requests) == 1


def test_a_hanging_request_ends_with_the_timeout(ask):
    """The attempt fails as transient; the request was made once."""
    script, run = ask
    script.hang()
    record = failed(run, timeout=1.5)
    assert record["failure"]["kind"] == "transient"
    assert "1.5 s" in record["failure"]["message"]
    assert len(script.requests) == 1


def test_a_cut_off_answer_is_truncated_and_a_hook_may_raise_the_cap(ask):
    """`finish_reason=length` is never read as success; the next request has the larger cap."""
    script, run = ask
    script.say('{"name": "Ad', finish="length")
    script.say('{"name": "Ada"}')

    def more(error, attempt, params):
        assert error.kind == "truncated"
        return params.model_copy(update={"max_tokens": 2 * params.max_tokens})

    assert run(more, auto_retries=1) == Person(name="Ada")
    caps = [request.get("max_completion_tokens") for request in script.requests]
    assert caps == [10, 20]


def test_a_refusal_is_recorded_as_one(ask):
    """The provider's refusal text is the failure's message."""
    script, run = ask
    script.say(None, refusal="I cannot help with that")
    record = failed(run)
    assert record["failure"]["kind"] == "refusal"
    assert "cannot help" in record["failure"]["message"]


def test_bad_json_goes_back_as_feedback(ask):
    """The second request carries the errors; usage is recorded for both."""
    script, run = ask
    script.say('{"nam": "Ada"}')
    script.say('{"name": "Ada"}')
    records = []
    done = run(feedback="errors_only", auto_retries=1, on_attempt=records.append)
    assert done == Person(name="Ada")
    first, second = (request["messages"][-1]["content"] for request in script.requests)
    assert first == "Who?"
    assert second.startswith("Who?")
    assert "/name" in second
    assert [record["usage"]["total_tokens"] for record in records] == [10, 10]
