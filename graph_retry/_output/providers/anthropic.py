"""Read the messages and the stream events of Anthropic's client."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk, ToolCall, ToolCallChunk
from langchain_core.messages.tool import tool_call_chunk

from graph_retry._json import is_array
from graph_retry._output.providers.provider import (
    ErrorWords,
    Provider,
    as_object,
    finishing,
    made_chunk,
    made_message,
    token_counts,
)

UNPARSED = "Unable to parse tool parameter JSON from model"
"""The error text of Anthropic's client for streamed tool arguments that are not JSON."""


def _message(result: Any) -> AIMessage | None:
    content = getattr(result, "content", None)
    if not is_array(content) or not hasattr(result, "stop_reason"):
        return None
    blocks: list[Any] = content
    text = "".join(block.text for block in blocks if getattr(block, "type", None) == "text")
    thoughts = [block.thinking for block in blocks if getattr(block, "type", None) == "thinking"]
    calls = [
        ToolCall(name=block.name, args=block.input, id=block.id)
        for block in blocks
        if getattr(block, "type", None) == "tool_use"
    ]
    usage = getattr(result, "usage", None)
    read, made = getattr(usage, "input_tokens", None), getattr(usage, "output_tokens", None)
    counts = token_counts(read, made, getattr(usage, "total_tokens", None))
    return made_message(
        text,
        calls,
        usage=counts,
        finish_reason=result.stop_reason,
        reasoning="\n".join(thoughts),
    )


def _chunk(piece: Any) -> tuple[AIMessageChunk, dict[str, Any]] | None:
    chunk = _of_event(piece)
    return None if chunk is None else (chunk, {})


def _of_event(piece: Any) -> AIMessageChunk | None:
    """Read a stream event as a chunk; the chunk is empty if the event adds nothing."""
    kind, delta = getattr(piece, "type", None), getattr(piece, "delta", None)
    if kind == "content_block_delta":
        calls, thought = _partial_input(piece, delta), getattr(delta, "thinking", None)
        return made_chunk(getattr(delta, "text", "") or "", calls=calls, reasoning=thought)
    if kind == "content_block_start" and getattr(piece.content_block, "type", "") == "tool_use":
        block = piece.content_block
        call = tool_call_chunk(name=block.name, args="", id=block.id, index=piece.index)
        return made_chunk("", calls=[call])
    if kind == "message_start":
        read = getattr(getattr(piece.message, "usage", None), "input_tokens", None) or 0
        return made_chunk("", usage=token_counts(read, 0))
    if kind == "message_delta":
        made = getattr(getattr(piece, "usage", None), "output_tokens", None) or 0
        reason = getattr(delta, "stop_reason", None)
        return made_chunk("", usage=token_counts(0, made), finish_reason=reason)
    if kind in ("content_block_start", "content_block_stop", "message_stop", "ping"):
        return made_chunk("")
    # The SDK's stream helper adds events that repeat the others. A user's own model may have a
    # field `type` with the same value, so such an event needs a second field to be recognized.
    repeats = kind in ("text", "input_json", "thinking", "citation") and hasattr(piece, "snapshot")
    repeats = repeats or (kind == "signature" and hasattr(piece, "signature"))
    return made_chunk("") if repeats else None


def _partial_input(piece: Any, delta: Any) -> list[ToolCallChunk]:
    json_text = getattr(delta, "partial_json", None)
    if not json_text:
        return []
    return [tool_call_chunk(name=None, args=json_text, id=None, index=piece.index)]


def _of_json(given: dict[str, Any]) -> Any | None:
    is_message = (given.get("type"), given.get("role")) == ("message", "assistant")
    return as_object({"stop_reason": None, **given}) if is_message else None


PROVIDER = Provider(
    message=_message,
    chunk=_chunk,
    of_json=_of_json,
    finish_words={
        **finishing("stopped", "end_turn", "stop_sequence", "tool_use"),
        **finishing("truncated", "max_tokens"),
        **finishing("overflowed", "model_context_window_exceeded"),
        **finishing("refused", "refusal"),
    },
    error_words=ErrorWords(
        quota=frozenset({"billingerror"}),
        overflow=frozenset({"modelcontextwindowexceeded"}),
        denied=frozenset({"authenticationerror", "permissionerror"}),
        busy=frozenset(
            {"apierror", "overloaded", "overloadederror", "ratelimiterror", "timeouterror"}
        ),
        rejected=frozenset({"invalidrequesterror", "notfounderror"}),
        overflow_text=r"(?:prompt|input) is too long",
        no_credit_text=r"credit balance is too low",
    ),
)
