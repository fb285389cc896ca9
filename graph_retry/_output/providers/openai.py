"""Read the objects of OpenAI's Chat Completions API and Responses API.

LiteLLM, Groq, vLLM, OpenRouter, Mistral's server and others return the same shapes.
"""

from __future__ import annotations

from typing import Any, cast

from langchain_core.messages import AIMessage, AIMessageChunk, ToolCallChunk
from langchain_core.messages.tool import tool_call_chunk

from graph_retry._json import is_array, is_object
from graph_retry._output.providers.provider import (
    ErrorWords,
    Provider,
    as_object,
    at,
    finishing,
    made_chunk,
    made_message,
    number_in,
    text_call,
    token_counts,
)


def _message(result: Any) -> AIMessage | None:
    return _of_chat(result) or _of_response(result)


def _of_chat(result: Any) -> AIMessage | None:
    """Read a chat completion."""
    choices: Any = getattr(result, "choices", None)
    said = getattr(choices[0], "message", None) if choices else None
    if said is None or not hasattr(said, "content"):
        return None
    made: list[Any] = getattr(said, "tool_calls", None) or []
    calls = [
        text_call(call.function.name, call.function.arguments, getattr(call, "id", None))
        for call in made
        if hasattr(call, "function")
    ]
    older = getattr(said, "function_call", None)
    if older is not None and not calls:
        calls = [text_call(older.name, older.arguments, None)]
    return made_message(
        said.content,
        calls,
        usage=_counts(getattr(result, "usage", None)),
        finish_reason=getattr(choices[0], "finish_reason", None),
        refusal=getattr(said, "refusal", None),
        parsed=getattr(said, "parsed", None),
        reasoning=_thoughts(said),
    )


def _of_response(result: Any) -> AIMessage | None:
    """Read a response of the Responses API."""
    text, output = getattr(result, "output_text", None), getattr(result, "output", None)
    if not isinstance(text, str) or not is_array(output):
        return None
    items: list[Any] = output
    calls = [
        text_call(item.name, item.arguments, getattr(item, "call_id", None))
        for item in items
        if getattr(item, "type", None) == "function_call"
    ]
    contents: list[list[Any]] = [getattr(item, "content", None) or [] for item in items]
    parts = [part for content in contents for part in content]
    refusals = [part.refusal for part in parts if getattr(part, "type", None) == "refusal"]
    reason = getattr(getattr(result, "incomplete_details", None), "reason", None)
    return made_message(
        text,
        calls,
        usage=_counts(getattr(result, "usage", None)),
        finish_reason=reason or getattr(result, "status", None),
        refusal=refusals[0] if refusals else None,
        parsed=getattr(result, "output_parsed", None),
        reasoning="\n".join(part.text for item in items for part in _summary(item)),
    )


def _thoughts(said: Any) -> Any:
    """Return the reasoning, which DeepSeek, vLLM, OpenRouter and others add to a message."""
    return getattr(said, "reasoning_content", None) or getattr(said, "reasoning", None)


def _summary(item: Any) -> list[Any]:
    is_reasoning = getattr(item, "type", None) == "reasoning"
    return (getattr(item, "summary", None) or []) if is_reasoning else []


def _chunk(piece: Any) -> tuple[AIMessageChunk, dict[str, Any]] | None:
    """Read a chunk of a chat completion. The last chunk may hold only the usage."""
    choices: Any = getattr(piece, "choices", None)
    if not is_array(choices) or not hasattr(piece, "usage"):
        return None
    usage = _counts(piece.usage)
    if not choices:
        return AIMessageChunk(content="", usage_metadata=cast("Any", usage)), {}
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
    chunk = made_chunk(
        delta.content or "",
        calls=calls,
        usage=usage,
        finish_reason=choice.finish_reason,
        refusal=getattr(delta, "refusal", None),
        reasoning=_thoughts(delta),
    )
    return chunk, {}


def _of_json(given: dict[str, Any]) -> Any | None:
    if at(given, "choices", 0, "message", "role") == "assistant":
        choices: list[Any] = given["choices"]
        whole = [{**one, "message": {"content": None, **one["message"]}} for one in choices]
        return as_object({**given, "choices": whole})
    if given.get("object") == "response" and is_array(given.get("output")):
        parts = [part for item in given["output"] for part in at(item, "content") or ()]
        text = "".join(part["text"] for part in parts if at(part, "type") == "output_text")
        return as_object({**given, "output_text": text})
    return None


def _counts(usage: Any) -> dict[str, int] | None:
    given = number_in(usage, "input_tokens", "prompt_tokens")
    made = number_in(usage, "output_tokens", "completion_tokens")
    return token_counts(given, made, getattr(usage, "total_tokens", None))


def error_body(result: Any) -> dict[str, Any] | None:
    """Return the error in a response without choices, as OpenRouter and other gateways send it."""
    choices, error = (
        result.get(name, ...) if is_object(result) else getattr(result, name, ...)
        for name in ("choices", "error")
    )
    body = error if is_object(error) else getattr(error, "__dict__", None)
    has_none = choices is None or choices == []
    return body if has_none and is_object(body) else None


PROVIDER = Provider(
    message=_message,
    chunk=_chunk,
    of_json=_of_json,
    finish_words={
        **finishing("stopped", "stop", "completed", "tool_calls", "function_call"),
        **finishing("stopped", "eos"),  # TGI's server uses this word.
        **finishing("truncated", "length", "max_output_tokens", "incomplete"),
        **finishing("truncated", "model_length"),  # Mistral's server uses this word.
        **finishing("refused", "content_filter"),
    },
    usage_words={"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens"},
    error_words=ErrorWords(
        quota=frozenset({"insufficientquota", "billinghardlimitreached", "accountdeactivated"}),
        overflow=frozenset(
            {"contextlengthexceeded", "contextwindowexceeded", "exceedcontextsizeerror"}
        ),
        filtered=frozenset(
            {"contentfilter", "contentpolicyviolation", "moderationblocked"}
            | {"responsibleaipolicyviolation"}
        ),
        denied=frozenset({"invalidapikey"}),
        busy=frozenset(
            {"internalerror", "internalservererror", "ratelimitexceeded", "servererror"}
        ),
        rejected=frozenset({"invalidrequesterror"}),
        # xAI, Moonshot, Together and Alibaba, whose APIs have OpenAI's shape, use some of these.
        overflow_text=(
            r"context (?:length|limit|size|window)|maximum prompt length|model token limit"
            r"|tokens.{0,40} must be <=|range of input length should be"
        ),
        too_large_text=r"request too large for",
        filtered_text=(
            r"content (?:filtering|management) policy|(?:by|of) (?:our|the) safety system"
            r"|(?:prompt|input) was flagged"
        ),
    ),
)
