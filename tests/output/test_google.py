"""What Google's client and LangChain's model of it return, from a loopback server."""

import pytest
from google import genai
from langchain_google_genai import ChatGoogleGenerativeAI
from pydantic import BaseModel

from graph_retry import AttemptsExhausted, retry_llm_call
from graph_retry._core.output.providers.exceptions import provider_kind, retry_after
from tests.provider_server import provider_server


class Person(BaseModel):
    """Somebody."""

    name: str
    age: int


ADA, BOB = '{"name": "Ada", "age": 36}', '{"name": "Bob", "age": 7}'


@pytest.fixture(scope="module")
def served():
    """Yield the server's script and the ways to ask it."""
    with provider_server() as script:
        url = script.anthropic_url
        chat = ChatGoogleGenerativeAI(
            model="scripted", base_url=url, api_key="not-a-key", max_retries=1
        )
        chat = chat.bind_tools([Person])
        with genai.Client(api_key="not-a-key", http_options={"base_url": url}) as client:
            asked = {"model": "scripted"}
            yield (
                script,
                {
                    "langchain": chat.invoke,
                    "langchain stream": chat.stream,
                    "google": lambda prompt: client.models.generate_content(
                        contents=prompt, **asked
                    ),
                    "google stream": lambda prompt: client.models.generate_content_stream(
                        contents=prompt, **asked
                    ),
                },
            )


WAYS = pytest.mark.parametrize("way", ["langchain", "langchain stream", "google", "google stream"])


def called(way, output=Person):
    """Make one call; return its output and its record."""
    records = []
    try:
        given = retry_llm_call(way, "?", output=output, review=False, on_attempt=records.append)
    except AttemptsExhausted:
        given = None
    return given, records[0]


SAID = {
    "text": (ADA, [], Person),
    "fenced text": (f"```json\n{ADA}\n```", [], Person),
    "a call": ("", [ADA], Person),
    "a call beside a draft": ('Perhaps {"name": "Eve"}?', [ADA], Person),
    "calls": ("", [ADA, BOB], list[Person]),
}


@WAYS
@pytest.mark.parametrize(("text", "calls", "output"), SAID.values(), ids=SAID)
def test_an_answer_is_read(served, way, text, calls, output):
    """Text or the arguments of function calls, with the usage counted once."""
    script, ways = served
    script.say(text, *[("Person", arguments) for arguments in calls])
    given, record = called(ways[way], output)
    names = [person.name for person in (given if isinstance(given, list) else [given])]
    assert names == ["Ada", "Bob"][: len(names)]
    assert len(names) == max(len(calls), 1)
    assert record["finish_reason"] == "STOP"
    counted = {key: record["usage"][key] for key in ("input_tokens", "output_tokens")}
    assert counted == {"input_tokens": 7, "output_tokens": 3}


FAILURES = {
    "cut off": (ADA[:-4], "length", "truncated"),
    "unsafe": ("", "SAFETY", "refusal"),
    "recited": (ADA[:-4], "RECITATION", "refusal"),
    "prohibited": ("", "PROHIBITED_CONTENT", "refusal"),
    "a blocked prompt": ("", "blocked", "refusal"),
    "a broken function call": ("", "MALFORMED_FUNCTION_CALL", "invalid_syntax"),
    "a draft and a broken call": (ADA, "MALFORMED_FUNCTION_CALL", "invalid_syntax"),
}


@WAYS
@pytest.mark.parametrize(("text", "finish", "kind"), FAILURES.values(), ids=FAILURES)
@pytest.mark.filterwarnings("default")
def test_an_answer_that_is_none_has_its_kind(served, way, text, finish, kind):
    """Also where text is wanted, and an empty one would do."""
    script, ways = served
    for output in (Person, str):
        script.say(text, finish=finish)
        given, record = called(ways[way], output)
        assert given is None
        assert record["failure"]["kind"] == kind


def refused(status, code, *details):
    """Return the body of an error as Google sends it."""
    return {"error": {"code": status, "message": "no", "status": code, "details": list(details)}}


ERRORS = {
    "busy": (
        refused(429, "RESOURCE_EXHAUSTED", {"@type": "RetryInfo", "retryDelay": "7.5s"}),
        ("transient", 7.5),
    ),
    "long": (refused(429, "RESOURCE_EXHAUSTED", {"retryDelay": "86400s"}), ("transient", 60.0)),
    "odd": (refused(429, "RESOURCE_EXHAUSTED", {"retryDelay": None}, "?"), ("transient", 0.0)),
    "down": (refused(503, "UNAVAILABLE"), ("transient", 0.0)),
    "no key": (refused(400, "INVALID_ARGUMENT", {"reason": "API_KEY_INVALID"}), ("permanent", 0.0)),
    "wrong": (refused(400, "INVALID_ARGUMENT"), ("rejected_input", 0.0)),
}


@WAYS
@pytest.mark.parametrize(("body", "expected"), ERRORS.values(), ids=ERRORS)
def test_an_error_has_its_kind_and_its_wait(served, way, body, expected):
    """Google says how long to wait, and that a key is wrong, in the details of an error."""
    script, ways = served
    script.fail(body["error"]["code"], body)
    with pytest.raises(Exception, match="no") as caught:
        list(ways[way]("?"))
    assert (provider_kind(caught.value), retry_after(caught.value)) == expected


def test_thoughts_are_no_answer():
    """Their text is left out, and their tokens are counted."""
    parts = [{"text": "Is it Ada?", "thought": True}, {"text": ADA}]
    usage = {"promptTokenCount": 7, "candidatesTokenCount": 3, "thoughtsTokenCount": 5}
    answer = genai.types.GenerateContentResponse.model_validate(
        {"candidates": [{"content": {"parts": parts}}], "usageMetadata": usage}
    )
    given, record = called(lambda prompt: answer)
    assert given == Person(name="Ada", age=36)
    assert record["usage"] == {"input_tokens": 7, "output_tokens": 8, "total_tokens": 15}


def test_the_message_about_a_broken_call_is_shown():
    """It quotes the call, and such a response has no parts, and no role."""
    told = "Malformed function call: print(api.f(x='a'))"
    candidate = {"finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": told, "content": {}}
    response = {"candidates": [candidate], "usageMetadata": {"promptTokenCount": 3}}
    _, record = called(lambda _: response)
    assert (record["raw"], record["failure"]["kind"]) == ({"text": told}, "invalid_syntax")
