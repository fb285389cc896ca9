"""Read the answers of Ollama's client to `chat` and `generate`: whole, streamed, or as JSON."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk, ToolCall

from graph_retry._output.providers.provider import (
    Provider,
    as_object,
    at,
    finishing,
    made_message,
    token_counts,
)


def _message(result: Any) -> AIMessage | None:
    """Read an answer, or a piece of one. Both have the attribute `done`."""
    if not (hasattr(result, "done") and hasattr(result, "eval_count")):
        return None
    said = getattr(result, "message", None)
    made_calls: list[Any] = getattr(said, "tool_calls", None) or []
    calls: list[Any] = [call.function for call in made_calls]
    read, made = getattr(result, "prompt_eval_count", None), result.eval_count
    return made_message(
        getattr(result, "response", None) if said is None else said.content,
        [ToolCall(name=call.name, args=dict(call.arguments), id=None) for call in calls],
        usage=token_counts(read or 0, made),  # Ollama leaves out the count of a cached prompt.
        finish_reason=getattr(result, "done_reason", None),
        reasoning=getattr(result if said is None else said, "thinking", None),
    )


def _chunk(piece: Any) -> tuple[AIMessageChunk, dict[str, Any]] | None:
    message = _message(piece)
    if message is None:
        return None
    thought = message.additional_kwargs["reasoning_content"]
    chunk = AIMessageChunk(
        content=message.content,
        tool_calls=message.tool_calls,
        additional_kwargs={"reasoning_content": thought} if thought else {},
    )
    finish_reason = message.response_metadata["finish_reason"]
    return chunk, {"usage": message.usage_metadata, "finish_reason": finish_reason}


def _of_json(given: dict[str, Any]) -> Any | None:
    is_chat = at(given, "message", "role") == "assistant" and "created_at" in given
    is_text = isinstance(given.get("response"), str) and "created_at" in given
    if not ("done" in given and (is_chat or is_text)):
        return None
    whole = {"eval_count": None, **given}
    return as_object(
        {**whole, "message": {"content": "", **given["message"]}} if is_chat else whole
    )


PROVIDER = Provider(
    message=_message,
    chunk=_chunk,
    of_json=_of_json,
    finish_words={**finishing("stopped", "stop"), **finishing("truncated", "length")},
    usage_words={"prompt_eval_count": "input_tokens", "eval_count": "output_tokens"},
)
