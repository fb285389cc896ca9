"""LangChain's wrappers of a message: generations, an agent's state, a result with `include_raw`."""

from __future__ import annotations

from typing import Any, cast

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk

from graph_retry._json import is_array, is_object
from graph_retry._output.providers.provider import Provider


def _message(result: Any) -> BaseMessage | None:
    return _of_agent(result) or _of_generation(result)


def _of_agent(result: Any) -> BaseMessage | None:
    """Read the state of an agent, `ModelResponse`, or a result with `include_raw`."""
    if not is_object(result):
        messages = getattr(result, "result", None)
        value = getattr(result, "structured_response", None)
    elif result.keys() == {"raw", "parsed", "parsing_error"}:
        # LangChain parses only the first of several tool calls, and no broken ones.
        raw, parsed = result["raw"], result["parsed"]
        has_calls = isinstance(raw, AIMessage) and (raw.tool_calls or raw.invalid_tool_calls)
        messages, value = [raw], None if has_calls else parsed
    else:
        messages, value = result.get("messages"), result.get("structured_response")
    if not is_array(messages) or not messages or not isinstance(messages[-1], AIMessage):
        return None
    return messages[-1] if value is None else _with_value(messages[-1], value)


def _with_value(message: AIMessage, value: Any) -> AIMessage:
    extra = {**message.additional_kwargs, "parsed": value}
    return message.model_copy(update={"additional_kwargs": extra})


def _of_generation(result: Any) -> BaseMessage | None:
    """Read `LLMResult`, `ChatResult` or one generation."""
    generations = getattr(result, "generations", None)
    first: Any = result
    if is_array(generations) and generations:
        first = generations[0][0] if is_array(generations[0]) else generations[0]
    elif not hasattr(result, "generation_info"):
        return None
    message = getattr(first, "message", None)
    if isinstance(message, BaseMessage):
        return message
    text = getattr(first, "text", None)
    return AIMessage(text) if isinstance(text, str) else None


def _chunk(piece: Any) -> tuple[AIMessageChunk, dict[str, Any]] | None:
    if isinstance(piece, ChatGenerationChunk):
        return cast("AIMessageChunk", piece.message), {}
    return (piece, {}) if isinstance(piece, AIMessageChunk) else None


PROVIDER = Provider(message=_message, chunk=_chunk)
