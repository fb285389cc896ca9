"""What the providers' clients raise, and how long they ask to wait."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import anthropic
import botocore.exceptions
import httpx
import openai
import pytest

from graph_retry._output.failures import failure_of
from graph_retry._output.provider_errors import retry_after

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
}


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
