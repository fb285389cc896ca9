"""Read LangChain's messages: the answer, the reasoning, the refusal and the finish reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk

from graph_retry._core.ground.json import is_array, is_number, is_object
from graph_retry._core.output.providers.provider import first, found

_REASONING = (
    "additional_kwargs.reasoning_content",
    "additional_kwargs.reasoning",
    "additional_kwargs.reasoning.summary.*.text",
    "content.*:thinking.thinking",
    "content.*:reasoning.reasoning",
    "content.*:reasoning.summary.*.text",
    "content.*:reasoning_content.reasoning_content.text",
)
_ENDS = ("finish_reason", "stop_reason", "done_reason")
_ENDS_OF_RESPONSE = ("incomplete_details.reason", "status")
"""The places in the metadata of OpenAI's Responses API."""


def message_in(result: Any) -> BaseMessage | None:
    """Return the message inside an agent's state or another result of LangChain, or None."""
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
    if is_object(result):
        return None
    alone = result if hasattr(result, "generation_info") else None
    generation = first(result, ("generations.0.0", "generations.0")) or alone
    message, text = first(generation, ("message",)), first(generation, ("text",))
    if isinstance(message, BaseMessage):
        return message
    return AIMessage(text) if isinstance(text, str) else None


def chunk_in(piece: Any) -> AIMessageChunk | None:
    chunk: Any = piece.message if isinstance(piece, ChatGenerationChunk) else piece
    return chunk if isinstance(chunk, AIMessageChunk) else None


def reasoning_in(message: BaseMessage) -> str:
    """Return a message's reasoning, from its content blocks and its `additional_kwargs`."""
    thoughts = [thought for path in _REASONING for thought in found(message, path)]
    return "\n".join(thought for thought in thoughts if isinstance(thought, str))


def refusal_in(message: BaseMessage) -> str | None:
    """Return the refusal from the content blocks of OpenAI's Responses API, or None."""
    block = first(message, ("content.*:refusal", "content.*.value:refusal"))
    return None if block is None else block.get("refusal") or "the model declined"


def finish_reason(metadata: Mapping[str, Any]) -> str | None:
    """Return the provider's finish reason from a message's metadata."""
    of_response = _ENDS_OF_RESPONSE if metadata.get("object") == "response" else ()
    words = [word for path in (*_ENDS, *of_response) for word in found(metadata, path)]
    return next((word for word in words if isinstance(word, str)), None)


def mean_logprob(result: Any) -> float | None:
    """Return the mean log-probability of an answer's tokens, or None if the provider gave none.

    Example:
        >>> given = {"logprobs": {"content": [{"logprob": -0.5}, {"logprob": -1.5}]}}
        >>> mean_logprob(AIMessage("yes", response_metadata=given))
        -1.0
    """
    tokens = found(result, "response_metadata.logprobs.content.*.logprob")
    tokens = tokens or found(result, "choices.0.logprobs.content.*.logprob")  # OpenAI's own client
    return sum(tokens) / len(tokens) if tokens and all(map(is_number, tokens)) else None
