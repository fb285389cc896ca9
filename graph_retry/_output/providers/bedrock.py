"""Read the JSON answers of Bedrock's `converse`, and botocore's error codes."""

from __future__ import annotations

from typing import Any

from graph_retry._output.providers.provider import (
    ErrorWords,
    Provider,
    as_object,
    at,
    finishing,
)


def _of_json(given: dict[str, Any]) -> Any | None:
    """Convert an answer of `converse` to the shape of Anthropic's messages."""
    if at(given, "output", "message", "role") != "assistant" or "stopReason" not in given:
        return None
    blocks: list[Any] = []
    for block in given["output"]["message"]["content"]:
        if "toolUse" in block:
            used = block["toolUse"]
            blocks.append({**used, "type": "tool_use", "id": used.get("toolUseId")})
        elif thought := at(block, "reasoningContent", "reasoningText", "text"):
            blocks.append({"type": "thinking", "thinking": thought})
        elif "text" in block:
            blocks.append({"type": "text", "text": block["text"]})
    usage, stopped = given.get("usage"), given["stopReason"]
    return as_object({"content": blocks, "stop_reason": stopped, "usage": usage})


PROVIDER = Provider(
    of_json=_of_json,
    finish_words=finishing("refused", "guardrail_intervened", "content_filtered"),
    error_words=ErrorWords(
        quota=frozenset({"servicequotaexceeded"}),
        denied=frozenset(
            {"accessdenied", "expiredtoken", "invalidsignature", "unrecognizedclient"}
        ),
        busy=frozenset(
            {"internalfailure", "internalserver", "modelerror", "modelnotready", "modelstreamerror"}
            | {"modeltimeout", "provisionedthroughputexceeded", "requestlimitexceeded"}
            | {"requesttimeout", "serviceunavailable", "slowdown", "throttling", "toomanyrequests"}
        ),
        rejected=frozenset({"validation"}),
    ),
)
