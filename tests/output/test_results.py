"""What a call returned is read as what it is: responses as JSON, refusals, older ways to say it."""

from types import SimpleNamespace

import pytest
from langchain_core.messages import AIMessage
from pydantic import BaseModel

from graph_retry import AttemptsExhausted, retry_llm_call
from graph_retry._core.output.completion import read_result
from graph_retry.output import build_validator

TEXT = '{"name": "Ada"}'
ARGUMENTS = {"name": "Ada"}


class Person(BaseModel):
    """A type whose fields all have defaults: anything fits it."""

    name: str = "nobody"


def chat(finish="stop", **message):
    """Return OpenAI's JSON of a chat completion."""
    return {"choices": [{"message": {"role": "assistant", **message}, "finish_reason": finish}]}


def anthropic(*blocks, stop="end_turn"):
    """Return Anthropic's JSON of a message."""
    return {"type": "message", "role": "assistant", "content": [*blocks], "stop_reason": stop}


def google(*parts, stop="STOP"):
    """Return Google's JSON of a response."""
    return {"candidates": [{"content": {"role": "model", "parts": [*parts]}, "finishReason": stop}]}


def bedrock(*blocks, stop="end_turn"):
    """Return what botocore's `converse` returns."""
    message = {"role": "assistant", "content": [*blocks]}
    usage = {"inputTokens": 1, "outputTokens": 2, "totalTokens": 3}
    return {"output": {"message": message}, "stopReason": stop, "usage": usage}


def responses(*items, **more):
    """Return OpenAI's JSON of a response."""
    return {"object": "response", "status": "completed", "output": [*items], **more}


FUNCTION = {"name": "Person", "arguments": TEXT}
CUT = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
SAID = {"type": "message", "content": [{"type": "output_text", "text": TEXT}]}

READ = {
    "chat": chat(content=TEXT),
    "chat, a tool call": chat(tool_calls=[{"id": "1", "type": "function", "function": FUNCTION}]),
    "chat, a function call": chat(function_call=FUNCTION, content=None),
    "anthropic": anthropic({"type": "text", "text": TEXT}),
    "anthropic, a tool call": anthropic(
        {"type": "text", "text": "Now:"},
        {"type": "tool_use", "id": "1", "name": "Person", "input": ARGUMENTS},
    ),
    "google": google({"text": TEXT}),
    "google, a tool call": google({"functionCall": {"name": "Person", "args": ARGUMENTS}}),
    "bedrock": bedrock({"text": TEXT}),
    "bedrock, a tool call": bedrock(
        {"text": "Now:"}, {"toolUse": {"toolUseId": "1", "name": "Person", "input": ARGUMENTS}}
    ),
    "responses": responses({"type": "reasoning", "summary": []}, SAID),
    "responses, a tool call": responses({"type": "function_call", "call_id": "1", **FUNCTION}),
    "a message with a function call": AIMessage("", additional_kwargs={"function_call": FUNCTION}),
}


@pytest.mark.parametrize("came", READ)
def test_a_response_is_read_as_the_message_it_stands_for(came):
    """As JSON it is no value of its own: a type of defaults alone would take it without a word."""
    assert retry_llm_call(lambda params: READ[came], {}, output=Person) == Person(name="Ada")


FAILED = {
    "chat, cut off": (chat("length", content="The"), "truncated"),
    "chat, declined": (chat(content=None, refusal="No."), "refusal"),
    "anthropic, cut off": (
        anthropic({"type": "text", "text": "A"}, stop="max_tokens"),
        "truncated",
    ),
    "google, filtered": (google({"text": ""}, stop="SAFETY"), "refusal"),
    "bedrock, guarded": (bedrock({"text": "No."}, stop="guardrail_intervened"), "refusal"),
    "bedrock, cut off": (bedrock({"text": "The"}, stop="max_tokens"), "truncated"),
    "responses, cut off": (responses(SAID, **CUT), "truncated"),
    "a message of responses, cut off": (
        AIMessage("The", response_metadata={"object": "response", **CUT}),
        "truncated",
    ),
    "a message of bedrock, cut off": (
        AIMessage("The", response_metadata={"stopReason": "max_tokens"}),
        "truncated",
    ),
    "a block that declines": (AIMessage([{"type": "refusal", "refusal": "No."}]), "refusal"),
    "a block of another standard": (
        AIMessage([{"type": "non_standard", "value": {"type": "refusal", "refusal": "No."}}]),
        "refusal",
    ),
}


@pytest.mark.parametrize("came", FAILED)
def test_what_the_provider_says_of_its_answer_counts(came):
    """A text that was cut off or declined is none, where plain text is wanted, too."""
    result, kind = FAILED[came]
    with pytest.raises(AttemptsExhausted) as failed:
        retry_llm_call(lambda params: result, {}, output=str, review=False)
    assert failed.value.attempts[0]["failure"]["kind"] == kind


@pytest.mark.parametrize(
    "value",
    [
        {"choices": ["a", "b"]},
        {"choices": [{"message": "hello"}]},
        {"type": "message", "content": []},
        {"output": {"message": "hello"}, "stopReason": "x"},
        {"candidates": [{"content": "a", "role": "model"}]},
        {"object": "response", "output": "text"},
        {"role": "assistant", "content": "hello"},
        {},
    ],
)
def test_data_that_looks_like_a_response_stays_data(value):
    """Only the role at its place tells."""
    assert read_result(value, build_validator(dict)).value == value


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 2**70])
def test_a_number_that_json_cannot_hold_does_not_become_text(number):
    """Python reads `NaN` in a tool call's arguments, and clients hand it over as a number."""
    call = {"name": "dict", "args": {"n": number}, "id": "1", "type": "tool_call"}
    for came in (AIMessage("", tool_calls=[call]), {"n": number}):
        with pytest.raises(AttemptsExhausted, match="a number at `/n` that JSON cannot hold"):
            retry_llm_call(lambda params, came=came: came, {}, output=dict, review=False)


@pytest.mark.parametrize("made", [dict, SimpleNamespace])
@pytest.mark.parametrize(("code", "kind"), [(429, "transient"), (401, "permanent"), (None, None)])
def test_an_error_in_place_of_an_answer_is_a_failure(made, code, kind):
    """Gateways send it with status 200, and clients raise nothing."""
    came = made(choices=None, error={"message": "no", "code": code})
    with pytest.raises(AttemptsExhausted) as failed:
        retry_llm_call(lambda params: came, {}, output=Person, review=False)
    failure = failed.value.attempts[0]["failure"]
    known = {"kind": kind} if kind else {"kind": "rejected_input", "is_unknown": True}
    assert failure == {**known, "type": "ResponseError", "message": "no"}


def test_a_response_as_json_tells_its_tokens():
    """By the names of its provider."""
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    counts = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    for came in ({**chat(content="x"), "usage": usage}, bedrock({"text": "x"})):
        assert read_result(came).usage == counts


def declared(params) -> Person:
    """Return a text, or what is declared."""
    return TEXT if params["as_text"] else Person()


@pytest.mark.parametrize(
    ("as_text", "options", "told"),
    [(True, {}, True), (False, {}, False), (True, {"output": Person}, False)],
)
def test_a_result_of_another_type_than_declared_is_logged(as_text, options, told, caplog):
    """Without `output`, nothing else compares the two."""
    retry_llm_call(declared, {"as_text": as_text}, **options)
    assert ("declares that it returns a `Person`, and its result is a `str`" in caplog.text) == told
