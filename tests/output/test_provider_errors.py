"""What the providers' clients raise, and how long they ask to wait."""

import errno
import socket
import ssl
import urllib.error
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from enum import Enum

import anthropic
import botocore.exceptions
import httpx
import openai
import pytest

from graph_retry._core.output.failures import failure_of
from graph_retry._core.output.providers.exceptions import retry_after

REQUEST = httpx.Request("POST", "http://127.0.0.1/v1")


def response(status, **headers):
    """Make a provider's response."""
    return httpx.Response(status, headers=headers, request=REQUEST)


def of_openai(status, message="no", code=None, type_=None):
    """Return what the OpenAI client raises for a response."""
    client = openai.OpenAI(api_key="none", base_url="http://127.0.0.1")
    body = {"message": message, "code": code, "type": type_}
    return client._make_status_error(message, body=body, response=response(status))


def broken_stream(code=None, type_=None):
    """Return what the OpenAI client raises for an error event in the middle of a stream."""
    body = {"message": "no", "code": code, "type": type_}
    return openai.APIError("no", request=REQUEST, body=body)


def of_anthropic(status, type_, message="no"):
    """Return what the Anthropic client raises; in the middle of a stream the status is 200."""
    client = anthropic.Anthropic(api_key="none", base_url="http://127.0.0.1")
    body = {"type": "error", "error": {"type": type_, "message": message}}
    return client._make_status_error(message, body=body, response=response(status))


def of_bedrock(code, status, message="no"):
    """Return what botocore raises."""
    details = {
        "Error": {"Code": code, "Message": message},
        "ResponseMetadata": {"HTTPStatusCode": status, "HTTPHeaders": {"retry-after": "3"}},
    }
    return botocore.exceptions.ClientError(details, "InvokeModel")


def raised_from(cause, error=None):
    """Return an exception that was raised from another."""
    error = error or RuntimeError("the model failed")
    error.__cause__ = cause
    return error


class Rpc(Enum):
    """Status codes as gRPC has them."""

    UNAVAILABLE = 14
    UNAUTHENTICATED = 16
    INVALID_ARGUMENT = 3


def made(name, **attributes):
    """Return an exception of a client that need not be installed here."""
    error = type(name, (Exception,), {})("no")
    vars(error).update(attributes)
    return error


TOO_LONG = "prompt is too long: 210000 tokens > 200000 maximum"

ERRORS = {
    "openai, overflow": (of_openai(400, code="context_length_exceeded"), "context_overflow"),
    "openai, bad request": (of_openai(400, code="invalid_value"), "rejected_input"),
    "openai, stream breaks": (broken_stream(type_="server_error"), "transient"),
    "openai, stream limited": (broken_stream(code="rate_limit_exceeded"), "transient"),
    "openai, stream says nothing": (broken_stream(), "rejected_input"),
    "openai, stream without quota": (broken_stream(code="insufficient_quota"), "permanent"),
    "anthropic, overflow": (
        of_anthropic(400, "invalid_request_error", TOO_LONG),
        "context_overflow",
    ),
    "anthropic, 413": (of_anthropic(413, "request_too_large"), "rejected_input"),
    "anthropic, bad request": (of_anthropic(400, "invalid_request_error"), "rejected_input"),
    "anthropic, stream overloaded": (of_anthropic(200, "overloaded_error"), "transient"),
    "anthropic, stream denied": (of_anthropic(200, "authentication_error"), "permanent"),
    "anthropic, overloaded": (of_anthropic(529, "overloaded_error"), "transient"),
    "bedrock, throttled": (of_bedrock("ThrottlingException", 429), "transient"),
    "bedrock, throttled with 400": (of_bedrock("ThrottlingException", 400), "transient"),
    "bedrock, unavailable": (of_bedrock("ServiceUnavailableException", 503), "transient"),
    "bedrock, denied": (of_bedrock("AccessDeniedException", 403), "permanent"),
    "bedrock, expired with 400": (of_bedrock("ExpiredTokenException", 400), "permanent"),
    "bedrock, rejected": (of_bedrock("ValidationException", 400), "rejected_input"),
    "bedrock, overflow": (
        of_bedrock("ValidationException", 400, "Input is too long for requested model."),
        "context_overflow",
    ),
    "bedrock, no connection": (
        botocore.exceptions.EndpointConnectionError(endpoint_url="http://127.0.0.1"),
        "transient",
    ),
    "a cause": (raised_from(httpx.ReadTimeout("slow")), "transient"),
    "a cause of a cause": (raised_from(raised_from(of_openai(401))), "permanent"),
    "a cause that says nothing": (raised_from(ValueError("no")), "rejected_input"),
    "a cause beside a status": (raised_from(ConnectionError(), of_openai(422)), "rejected_input"),
    "the text of any error": (ValueError(TOO_LONG), "rejected_input"),
    "a stream that ends early": (httpx.RemoteProtocolError("incomplete chunked read"), "transient"),
    "a group": (ExceptionGroup("all", [of_openai(429), TimeoutError()]), "transient"),
    "a group, the worst": (ExceptionGroup("all", [of_openai(429), of_openai(401)]), "permanent"),
    "a group, one unknown": (ExceptionGroup("all", [of_openai(429), KeyError()]), "rejected_input"),
    "a group as the cause": (raised_from(ExceptionGroup("all", [of_openai(503)])), "transient"),
    "openrouter, stream breaks": (broken_stream(code=502), "transient"),
    "openai, one request too large": (
        of_openai(429, "Request too large for gpt on tokens per min", "rate_limit_exceeded"),
        "context_overflow",
    ),
    "openai, moderated": (of_openai(400, code="moderation_blocked"), "refusal"),
    "azure, filtered": (of_openai(400, code="content_filter"), "refusal"),
    "openrouter, moderated": (of_openai(403, "Your input was flagged"), "refusal"),
    "openai, the answer filtered": (openai.ContentFilterFinishReasonError(), "refusal"),
    "anthropic, output blocked": (
        of_anthropic(400, "invalid_request_error", "Output blocked by content filtering policy"),
        "refusal",
    ),
    "anthropic, no credit": (
        of_anthropic(400, "invalid_request_error", "Your credit balance is too low"),
        "permanent",
    ),
    "bedrock, busy tokens": (
        of_bedrock("ThrottlingException", 400, "Too many tokens, please wait."),
        "transient",
    ),
    "bedrock, 424": (of_bedrock("ModelErrorException", 424), "transient"),
    "bedrock, quota": (of_bedrock("ServiceQuotaExceededException", 400), "permanent"),
    "bedrock, no keys": (botocore.exceptions.NoCredentialsError(), "permanent"),
    "aiohttp": (made("ClientResponseError", status=429), "transient"),
    "aiohttp, denied": (made("ClientResponseError", status=401), "permanent"),
    "a status as text": (made("ApiError", status_code="503"), "transient"),
    "grpc": (made("RpcError", code=lambda: Rpc.UNAVAILABLE), "transient"),
    "grpc, denied": (made("RpcError", code=lambda: Rpc.UNAUTHENTICATED), "permanent"),
    "grpc, rejected": (made("RpcError", code=lambda: Rpc.INVALID_ARGUMENT), "rejected_input"),
    "urllib": (urllib.error.URLError(ConnectionRefusedError(111, "refused")), "transient"),
    "urllib, certificate": (
        urllib.error.URLError(ssl.SSLCertVerificationError(1, "certificate verify failed")),
        "rejected_input",
    ),
    "no name": (socket.gaierror(-3, "Temporary failure in name resolution"), "transient"),
    "no network": (OSError(errno.ENETUNREACH, "Network is unreachable"), "transient"),
    "another error of the system": (OSError(errno.ENOSPC, "No space left"), "rejected_input"),
    "a header that cannot be sent": (httpx.LocalProtocolError("illegal header"), "rejected_input"),
}

TOO_LONG_TEXTS = [
    "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
    "the request exceeds the available context size. try increasing the context size",
    "This model's maximum prompt length is 131072 but the request contains 200000 tokens.",
    "Invalid request: Your request exceeded model token limit: 8192 (requested: 9000)",
    "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096.",
    "Range of input length should be [1, 30720]",
    "This endpoint's maximum context length is 32768 tokens.",
    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
]


@pytest.mark.parametrize("text", TOO_LONG_TEXTS)
@pytest.mark.parametrize("status", [400, 422])
def test_a_refused_request_says_that_it_is_too_long(status, text):
    """Many providers have no code for it; the same words in another failure mean nothing."""
    assert failure_of(of_openai(status, text))["kind"] == "context_overflow"
    assert failure_of(of_openai(500, text))["kind"] == "transient"


@pytest.mark.parametrize(("error", "kind"), ERRORS.values(), ids=ERRORS)
def test_a_clients_exception_has_a_kind(error, kind):
    """By the provider's status or code, wherever its client keeps them, or by what caused it."""
    assert failure_of(error)["kind"] == kind


def in_seconds(seconds):
    """Spell a moment as HTTP does."""
    return format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)


WAITS = {
    "seconds": ({"retry-after": "2"}, 2.0),
    "part of a second": ({"retry-after": "0.5"}, 0.5),
    "an hour": ({"retry-after": "3600"}, 60.0),
    "negative": ({"retry-after": "-1"}, 0.0),
    "milliseconds": ({"retry-after-ms": "1500", "retry-after": "2"}, 1.5),
    "a date by the server's clock": (
        {"retry-after": "Wed, 21 Oct 2026 07:28:30 GMT", "date": "Wed, 21 Oct 2026 07:28:00 GMT"},
        30.0,
    ),
    "a date that has passed": ({"retry-after": in_seconds(-60)}, 0.0),
    "a far date": ({"retry-after": in_seconds(7_200)}, 60.0),
    "no time at all": ({"retry-after": "soon"}, 0.0),
    "seconds with their unit": ({"retry-after": "7.5s"}, 7.5),
    "milliseconds that are none": ({"retry-after-ms": "soon", "retry-after": "2"}, 2.0),
    "not a number": ({"retry-after": "nan"}, 0.0),
    "without end": ({"retry-after": "inf"}, 60.0),
    "a date without a zone": ({"retry-after": "Wed, 21 Oct 2037 07:28:00"}, 60.0),
    "none": ({}, 0.0),
}


@pytest.mark.parametrize(("headers", "seconds"), WAITS.values(), ids=WAITS)
def test_the_wait_a_provider_asks_for_is_read_and_bounded(headers, seconds):
    """In seconds, in milliseconds or as a date; a minute at most; what cannot be read is none."""
    error = httpx.HTTPStatusError("no", request=REQUEST, response=response(429, **headers))
    assert retry_after(error) == seconds
    assert retry_after(raised_from(error)) == seconds


def test_other_places_of_the_wait():
    """Botocore keeps headers in a dict; many exceptions have none."""
    assert retry_after(of_bedrock("ThrottlingException", 429)) == 3.0
    assert retry_after(ValueError()) == 0.0
    assert retry_after(made("ClientResponseError", headers={"Retry-After": "4"})) == 4.0
    limited = [
        httpx.HTTPStatusError("no", request=REQUEST, response=response(429, **{"retry-after": n}))
        for n in "25"
    ]
    assert retry_after(ExceptionGroup("all", [*limited, TimeoutError()])) == 5.0


def test_an_exception_that_fails_itself_asks_for_no_wait():
    """What an exception says of itself may be computed from a response that is closed."""

    class ClosedError(ConnectionError):
        @property
        def response(self):
            raise RuntimeError("closed")

    assert retry_after(ClosedError()) == 0.0
