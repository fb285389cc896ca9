"""Read LangChain's messages: the answer, the reasoning, the refusal and the finish reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk

from graph_retry._json import is_array, is_object
from graph_retry._output.providers.provider import Provider

_THOUGHTS = ("thinking", "reasoning", "reasoning_content")
"""Types of content blocks that hold reasoning. The key of the text is often named like the type."""
_INSIDE = ("summary", "text")
"""The other keys under which such a block may have its text."""


def _message(result: Any) -> BaseMessage | None:
    return _of_agent(result) or _of_generation(result)


def _of_agent(result: Any) -> BaseMessage | None:
    """Read the state of an agent, a `ModelResponse`, or the result of `include_raw=True`."""
    if not is_object(result):
        messages = getattr(result, "result", None)
        value = getattr(result, "structured_response", None)
    elif result.keys() == {"raw", "parsed", "parsing_error"}:
        # `parsed` is not read if there are tool calls, because LangChain parses only the first of
        # several calls, and does not parse a broken one. The message has all of them.
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


def reasoning_in(message: BaseMessage) -> Iterator[str]:
    """Yield a message's reasoning, from its content blocks and its `additional_kwargs`."""
    extra, content = cast("dict[str, Any]", message.additional_kwargs), cast("Any", message.content)
    yield from _thoughts([extra.get("reasoning_content"), extra.get("reasoning")])
    for block in content if is_array(content) else []:
        if is_object(block) and block.get("type") in _THOUGHTS:
            yield from _thoughts(block)


def _thoughts(said: Any) -> Iterator[str]:
    if isinstance(said, str):
        yield said
    elif is_array(said) or is_object(said):
        parts = said if is_array(said) else [said.get(key) for key in (*_THOUGHTS, *_INSIDE)]
        for part in parts:
            yield from _thoughts(part)


def refusal_in(content: Any) -> str | None:
    """Return the refusal from the content blocks of OpenAI's Responses API, or None."""
    for block in content if is_array(content) else []:
        told = block.get("value", block) if is_object(block) else None
        if is_object(told) and told.get("type") == "refusal":
            return told.get("refusal") or "the model declined"
    return None


def finish_reason(metadata: Mapping[str, Any]) -> str | None:
    """Return the provider's word for the end of an answer, from a message's metadata."""
    for key in ("finish_reason", "stop_reason", "stopReason", "done_reason"):
        if isinstance(word := metadata.get(key), str):
            return word
    if metadata.get("object") != "response":
        return None
    details = metadata.get("incomplete_details")  # OpenAI's Responses API has this.
    reason = details.get("reason") if is_object(details) else None
    said = reason or metadata.get("status")
    return said if isinstance(said, str) else None


PROVIDER = Provider(message=_message, chunk=_chunk)
