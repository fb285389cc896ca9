"""Turn what providers' own clients return into the LangChain message it stands for.

The objects are known by their shape, so that none of the clients has to be installed: OpenAI's chat
completions (LiteLLM, Groq, vLLM and others return the same) and responses, Anthropic's messages,
Google's responses, these as JSON, LangChain's generations, and what an agent returns. Arguments of
tool calls that come as text stay text: `completion` reads them as it reads any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, InvalidToolCall, ToolCall

from graph_retry._issues import ABSENT, attempt
from graph_retry._json import is_array, is_object
from graph_retry._output.provider_json import response_of_json


class ResponseError(Exception):
    """A response came that holds an error, its `body`, in place of an answer."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__(str(body.get("message") or body))
        self.body = body


def raise_error_in(result: Any) -> None:
    """Raise the error in a response without choices: OpenRouter and other gateways send such.

    Raises:
        ResponseError: If there is one.
    """
    body, failed = attempt(_error_body, result)  # of an object that may be anything
    if body and not failed:
        raise ResponseError(body)


def _error_body(result: Any) -> dict[str, Any] | None:
    is_json = is_object(result)
    choices, error = (
        result.get(name, ABSENT) if is_json else getattr(result, name, ABSENT)
        for name in ("choices", "error")
    )
    body = error if is_object(error) else getattr(error, "__dict__", None)
    has_none = choices is None or choices == []
    return body if has_none and is_object(body) else None


def message_of(result: Any) -> BaseMessage | None:
    """Return the message a client's object stands for, or None if it is nothing known."""
    if isinstance(result, str | bytes | int | float | BaseMessage):
        return result if isinstance(result, BaseMessage) else None
    response = response_of_json(result) or result
    for read in (_of_agent, _of_generation, _of_chat, _of_response, _of_anthropic, google_message):
        message = read(response)
        if message is not None:
            return message
    return None


def _of_agent(result: Any) -> BaseMessage | None:
    """Read the state of an agent, LangChain's `ModelResponse`, or a result with `include_raw`."""
    if not is_object(result):
        messages = getattr(result, "result", None)
        value = getattr(result, "structured_response", None)
    elif result.keys() == {"raw", "parsed", "parsing_error"}:
        # Of several tool calls LangChain parses the first, and of broken ones none.
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
    """Read LangChain's `LLMResult`, `ChatResult` or one generation."""
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


def _of_chat(result: Any) -> AIMessage | None:
    """Read OpenAI's chat completion."""
    choices: Any = getattr(result, "choices", None)
    said = getattr(choices[0], "message", None) if choices else None
    if said is None or not hasattr(said, "content"):
        return None
    made: list[Any] = getattr(said, "tool_calls", None) or []
    calls = [
        _text_call(call.function.name, call.function.arguments, getattr(call, "id", None))
        for call in made
        if hasattr(call, "function")
    ]
    older = getattr(said, "function_call", None)
    if older is not None and not calls:
        calls = [_text_call(older.name, older.arguments, None)]
    return _message(
        said.content,
        calls,
        usage=getattr(result, "usage", None),
        finish_reason=getattr(choices[0], "finish_reason", None),
        refusal=getattr(said, "refusal", None),
        parsed=getattr(said, "parsed", None),
    )


def _of_response(result: Any) -> AIMessage | None:
    """Read OpenAI's response."""
    text, output = getattr(result, "output_text", None), getattr(result, "output", None)
    if not isinstance(text, str) or not is_array(output):
        return None
    items: list[Any] = output
    calls = [
        _text_call(item.name, item.arguments, getattr(item, "call_id", None))
        for item in items
        if getattr(item, "type", None) == "function_call"
    ]
    contents: list[list[Any]] = [getattr(item, "content", None) or [] for item in items]
    parts = [part for content in contents for part in content]
    refusals = [part.refusal for part in parts if getattr(part, "type", None) == "refusal"]
    reason = getattr(getattr(result, "incomplete_details", None), "reason", None)
    return _message(
        text,
        calls,
        usage=getattr(result, "usage", None),
        finish_reason=reason or getattr(result, "status", None),
        refusal=refusals[0] if refusals else None,
        parsed=getattr(result, "output_parsed", None),
    )


def _of_anthropic(result: Any) -> AIMessage | None:
    """Read Anthropic's message."""
    content = getattr(result, "content", None)
    if not is_array(content) or not hasattr(result, "stop_reason"):
        return None
    blocks: list[Any] = content
    text = "".join(block.text for block in blocks if getattr(block, "type", None) == "text")
    calls = [
        ToolCall(name=block.name, args=block.input, id=block.id)
        for block in blocks
        if getattr(block, "type", None) == "tool_use"
    ]
    usage = getattr(result, "usage", None)
    return _message(text, calls, usage=usage, finish_reason=result.stop_reason)


def google_message(result: Any) -> AIMessage | None:
    """Read a response of Google's `genai`, or a piece of one; a blocked prompt has no candidate."""
    candidates: Any = getattr(result, "candidates", None)
    usage = getattr(result, "usage_metadata", None)
    if not candidates:
        feedback = getattr(result, "prompt_feedback", None)
        is_google = hasattr(result, "candidates") and (feedback or usage)
        return _message("", [], usage=usage, refusal=blocked(feedback)) if is_google else None
    if not hasattr(candidates[0], "content"):
        return None
    parts: list[Any] = getattr(candidates[0].content, "parts", None) or []
    reason = getattr(candidates[0], "finish_reason", None)
    calls = [part.function_call for part in parts if getattr(part, "function_call", None)]
    said = [part for part in parts if not getattr(part, "thought", None)]
    return _message(
        "".join(getattr(part, "text", None) or "" for part in said),
        [ToolCall(name=call.name, args=dict(call.args or {}), id=None) for call in calls],
        usage=usage,
        finish_reason=getattr(reason, "name", reason),
        parsed=getattr(result, "parsed", None),
    )


def blocked(feedback: Any) -> str | None:
    """Return why Google gave a prompt to no model, from its `prompt_feedback`."""
    given = feedback if is_object(feedback) else getattr(feedback, "__dict__", {})
    reason = given.get("block_reason")
    said = given.get("block_reason_message") or getattr(reason, "name", reason)
    return f"the prompt was blocked: {said}" if said else None


def _text_call(name: Any, arguments: Any, identifier: Any) -> InvalidToolCall:
    return InvalidToolCall(
        type="invalid_tool_call", name=name, args=arguments or "", id=identifier, error=None
    )


def _message(
    text: Any,
    calls: Sequence[Mapping[str, Any]],
    *,
    usage: Any,
    finish_reason: Any = None,
    refusal: Any = None,
    parsed: Any = None,
) -> AIMessage:
    return AIMessage(
        text if isinstance(text, str) else "",
        tool_calls=cast("Any", [call for call in calls if is_object(call["args"])]),
        invalid_tool_calls=cast("Any", [call for call in calls if not is_object(call["args"])]),
        usage_metadata=cast("Any", token_counts(usage)),
        response_metadata={"finish_reason": finish_reason},
        additional_kwargs={"refusal": refusal, "parsed": parsed},
    )


def token_counts(usage: Any) -> Mapping[str, int] | None:
    """Return token counts under LangChain's names, of OpenAI's, Anthropic's or Google's."""
    read = [
        next((n for name in names if isinstance(n := getattr(usage, name, None), int)), None)
        for names in (
            ("input_tokens", "prompt_tokens", "prompt_token_count"),
            ("output_tokens", "completion_tokens", "candidates_token_count"),
        )
    ]
    if hasattr(usage, "prompt_token_count"):  # Google counts thoughts apart, and leaves out zeros
        read = [read[0] or 0, (read[1] or 0) + (getattr(usage, "thoughts_token_count", 0) or 0)]
    if None in read:
        return None
    given, made = cast("list[int]", read)
    total = getattr(usage, "total_tokens", getattr(usage, "total_token_count", None))
    total = total if isinstance(total, int) else given + made
    return {"input_tokens": given, "output_tokens": made, "total_tokens": total}
