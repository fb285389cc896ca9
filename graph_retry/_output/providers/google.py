"""Read the responses of Google's client `genai`, whose streamed pieces are responses as well."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk, ToolCall

from graph_retry._json import is_object
from graph_retry._output.providers.provider import (
    ErrorWords,
    Provider,
    as_object,
    at,
    finishing,
    made_message,
    token_counts,
)


def _message(result: Any) -> AIMessage | None:
    """Read a response, or a piece of one. The response to a blocked prompt has no candidate."""
    candidates: Any = getattr(result, "candidates", None)
    usage = getattr(result, "usage_metadata", None)
    if not candidates:
        feedback = getattr(result, "prompt_feedback", None)
        is_google = hasattr(result, "candidates") and (feedback or usage)
        refusal = blocked(feedback)
        return made_message("", [], usage=_counts(usage), refusal=refusal) if is_google else None
    if not hasattr(candidates[0], "content"):
        return None
    parts: list[Any] = getattr(candidates[0].content, "parts", None) or []
    reason = getattr(candidates[0], "finish_reason", None)
    calls = [part.function_call for part in parts if getattr(part, "function_call", None)]
    texts: dict[bool, str] = {True: "", False: ""}  # by `part.thought`
    for part in parts:
        texts[bool(getattr(part, "thought", None))] += getattr(part, "text", None) or ""
    return made_message(
        texts[False],
        [ToolCall(name=call.name, args=dict(call.args or {}), id=None) for call in calls],
        usage=_counts(usage),
        finish_reason=getattr(reason, "name", reason),
        parsed=getattr(result, "parsed", None),
        reasoning=texts[True],
    )


def _chunk(piece: Any) -> tuple[AIMessageChunk, dict[str, Any]] | None:
    """Read a piece of a stream; its usage and finish reason replace those of earlier pieces."""
    message = _message(piece)
    if message is None:
        return None
    # `parsed` is left out, because the parsed value of one piece is not the whole answer.
    told = {name: message.additional_kwargs.get(name) for name in ("refusal", "reasoning_content")}
    chunk = AIMessageChunk(
        content=message.content,
        tool_calls=message.tool_calls,
        additional_kwargs={name: text for name, text in told.items() if text},
    )
    finish_reason = message.response_metadata["finish_reason"]
    return chunk, {"usage": message.usage_metadata, "finish_reason": finish_reason}


def _of_json(given: dict[str, Any]) -> Any | None:
    return as_object(given) if at(given, "candidates", 0, "content", "role") == "model" else None


def _counts(usage: Any) -> dict[str, int] | None:
    """Return the token counts, with the thoughts added, which Google counts separately.

    Google leaves out a count of zero.
    """
    if not hasattr(usage, "prompt_token_count"):
        return None
    made = getattr(usage, "candidates_token_count", None) or 0
    made += getattr(usage, "thoughts_token_count", 0) or 0
    return token_counts(usage.prompt_token_count or 0, made, getattr(usage, "total_token_count", 0))


def blocked(feedback: Any) -> str | None:
    """Return the reason why the prompt was blocked, from `prompt_feedback`, or None."""
    given = feedback if is_object(feedback) else getattr(feedback, "__dict__", {})
    reason = given.get("block_reason")
    said = given.get("block_reason_message") or getattr(reason, "name", reason)
    return f"the prompt was blocked: {said}" if said else None


PROVIDER = Provider(
    message=_message,
    chunk=_chunk,
    of_json=_of_json,
    finish_words={
        **finishing("stopped", "stop"),
        **finishing("truncated", "max_tokens"),
        **finishing("refused", "safety", "recitation", "blocklist", "prohibited_content"),
        **finishing("refused", "spii", "language"),
        # A broken call is the failure `invalid_syntax`, which the next attempt may correct.
        **finishing("broken_call", "malformed_function_call", "unexpected_tool_call"),
        **finishing("broken_call", "too_many_tool_calls"),
    },
    usage_words={
        "prompt_token_count": "input_tokens",
        "candidates_token_count": "output_tokens",
        "total_token_count": "total_tokens",
    },
    error_words=ErrorWords(
        denied=frozenset({"apikeyinvalid", "permissiondenied", "unauthenticated"}),
        busy=frozenset(
            {"aborted", "deadlineexceeded", "internal", "resourceexhausted", "unavailable"}
        ),
        rejected=frozenset({"invalidargument"}),
        overflow_text=(
            r"(?:input )?token count.{0,60}exceeds"
            r"|exceeds? .{0,40}maximum number of (?:input )?tokens"
        ),
    ),
)
