"""Read a piece of a stream as the LangChain message chunk that it stands for."""

from __future__ import annotations

from typing import Any, cast

from langchain_core.messages import AIMessage, AIMessageChunk, ToolCallChunk
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGenerationChunk

from graph_retry._json import is_array
from graph_retry._output.provider_objects import google_message, message_of, token_counts


def chunk_of(piece: Any) -> tuple[AIMessageChunk | None, dict[str, Any]]:
    """Return the message chunk that a piece stands for, or None if it is nothing known.

    The usage and the finish reason of a piece of Google's replace earlier ones, and come apart;
    others tell what is to be added.
    """
    if isinstance(piece, AIMessageChunk):
        return piece, {}
    if isinstance(piece, ChatGenerationChunk):
        return cast("AIMessageChunk", piece.message), {}
    for read in (_of_openai, _of_anthropic):
        chunk = read(piece)
        if chunk is not None:
            return chunk, {}
    of_google = google_message(piece)
    if of_google is not None:
        finish_reason = of_google.response_metadata["finish_reason"]
        said = {"usage": of_google.usage_metadata, "finish_reason": finish_reason}
        return _of_google(of_google), said
    message = message_of(piece)
    return _of_message(message) if isinstance(message, AIMessage) else None, {}


def _of_message(message: AIMessage) -> AIMessageChunk:
    return AIMessageChunk(
        content=message.content,
        tool_calls=message.tool_calls,
        usage_metadata=message.usage_metadata,
        response_metadata=message.response_metadata,
        additional_kwargs=message.additional_kwargs,
    )


def _of_google(message: AIMessage) -> AIMessageChunk:
    # What Google's client parsed of one piece is not the answer.
    refusal = message.additional_kwargs["refusal"]
    return AIMessageChunk(
        content=message.content,
        tool_calls=message.tool_calls,
        additional_kwargs={"refusal": refusal} if refusal else {},
    )


def _of_openai(piece: Any) -> AIMessageChunk | None:
    """Read a chunk of OpenAI's chat completions; the last one may have the usage alone."""
    choices: Any = getattr(piece, "choices", None)
    if not is_array(choices) or not hasattr(piece, "usage"):
        return None
    usage = token_counts(piece.usage)
    if not choices:
        return AIMessageChunk(content="", usage_metadata=cast("Any", usage))
    choice: Any = choices[0]
    delta: Any = getattr(choice, "delta", None)
    if delta is None:
        return None
    made: list[Any] = getattr(delta, "tool_calls", None) or []
    calls: list[ToolCallChunk] = [
        tool_call_chunk(
            name=call.function.name, args=call.function.arguments, id=call.id, index=call.index
        )
        for call in made
    ]
    return make_chunk(
        delta.content or "",
        calls=calls,
        usage=usage,
        finish_reason=choice.finish_reason,
        refusal=getattr(delta, "refusal", None),
    )


def _of_anthropic(piece: Any) -> AIMessageChunk | None:
    """Read an event of Anthropic's messages; one without news of the answer is empty."""
    kind, delta = getattr(piece, "type", None), getattr(piece, "delta", None)
    if kind == "content_block_delta":
        return make_chunk(getattr(delta, "text", "") or "", calls=_partial_input(piece, delta))
    if kind == "content_block_start" and getattr(piece.content_block, "type", "") == "tool_use":
        block = piece.content_block
        call = tool_call_chunk(name=block.name, args="", id=block.id, index=piece.index)
        return make_chunk("", calls=[call])
    if kind == "message_start":
        read = getattr(getattr(piece.message, "usage", None), "input_tokens", None) or 0
        return make_chunk(
            "", usage={"input_tokens": read, "output_tokens": 0, "total_tokens": read}
        )
    if kind == "message_delta":
        made = getattr(getattr(piece, "usage", None), "output_tokens", None) or 0
        usage = {"input_tokens": 0, "output_tokens": made, "total_tokens": made}
        return make_chunk("", usage=usage, finish_reason=getattr(delta, "stop_reason", None))
    if kind in ("content_block_start", "content_block_stop", "message_stop", "ping"):
        return make_chunk("")
    # The SDK's helper adds events of its own that repeat what these say. A model of the user's may
    # have a `type` of that name, too: they are known by what else they have.
    repeats = kind in ("text", "input_json", "thinking", "citation") and hasattr(piece, "snapshot")
    repeats = repeats or (kind == "signature" and hasattr(piece, "signature"))
    return make_chunk("") if repeats else None


def _partial_input(piece: Any, delta: Any) -> list[ToolCallChunk]:
    json_text = getattr(delta, "partial_json", None)
    if not json_text:
        return []
    return [tool_call_chunk(name=None, args=json_text, id=None, index=piece.index)]


def make_chunk(
    text: str,
    *,
    calls: list[ToolCallChunk] | None = None,
    usage: Any = None,
    finish_reason: Any = None,
    refusal: Any = None,
) -> AIMessageChunk:
    """Make a message chunk of what one piece says."""
    return AIMessageChunk(
        content=text,
        tool_call_chunks=calls or [],
        usage_metadata=usage,
        response_metadata={"finish_reason": finish_reason} if finish_reason else {},
        additional_kwargs={"refusal": refusal} if refusal else {},
    )
