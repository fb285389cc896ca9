"""Convert the objects of providers' own clients into LangChain messages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolCallChunk
from langchain_core.messages.tool import tool_call_chunk

from graph_retry._core.ground.issues import attempt
from graph_retry._core.ground.json import is_object, is_whole
from graph_retry._core.output.providers import PROVIDERS
from graph_retry._core.output.providers.langchain import chunk_in, message_in
from graph_retry._core.output.providers.provider import (
    Finish,
    Reply,
    all_of,
    first,
    fits,
)
from graph_retry.lossless._ground import lazy

_REPLIES = [reply for provider in PROVIDERS for reply in provider.replies]
_PIECES = [piece for provider in PROVIDERS for piece in provider.pieces]
_FINISH_WORDS: dict[str, Finish] = {
    word: kind for provider in PROVIDERS for word, kind in provider.finish_words.items()
}
_COUNTS = ("input_tokens", "output_tokens", "total_tokens")
"""LangChain's names of token counts."""
_COUNT_WORDS = {
    path.rpartition(".")[2]: name
    for reply in _REPLIES
    for name, paths in zip(_COUNTS, reply.tokens, strict=True)
    for path in paths
}
_CAPITAL = lazy(r"(?<=[a-z])([A-Z])")


class ResponseError(Exception):
    """The provider's response has an error in place of an answer. `body` is this error."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__(str(body.get("message") or body))
        self.body = body


def raise_error_in(result: Any) -> None:
    """Raise the error that a response holds in place of an answer.

    Raises:
        ResponseError: If the response holds an error.
    """
    body, failed = attempt(_error_in, result)  # An unknown object's attributes may raise.
    if body and not failed:
        raise ResponseError(body)


def _error_in(result: Any) -> dict[str, Any] | None:
    """Return the error in a response without choices, as OpenRouter and other gateways send it."""
    error = first(result, ("error",))
    body = error if is_object(error) else getattr(error, "__dict__", None)
    has_none = fits(result, {"choices": ...}) and not first(result, ("choices",))
    return body if has_none and is_object(body) else None


def message_of(result: Any) -> BaseMessage | None:
    """Convert a client's answer to a message; return None if the type of the answer is unknown.

    The answer may be an object or a dict, such as a client's `model_dump()` or the result of
    botocore's `converse`. A dict counts as an answer only if it has the provider's keys, in most
    cases with a message's role.

    Example:
        >>> said = {"role": "assistant", "content": "Hello."}
        >>> message_of({"choices": [{"message": said}]}).text
        'Hello.'
        >>> message_of({"choices": ["a", "b"]})
    """
    if isinstance(result, str | bytes | int | float | BaseMessage):
        return result if isinstance(result, BaseMessage) else None
    message = message_in(result)
    reply = _reply_of(result, _REPLIES) if message is None else None
    return message if reply is None else _message(result, reply)


def chunk_of(piece: Any) -> tuple[AIMessageChunk | None, dict[str, Any]]:
    """Convert a piece of a stream to a message chunk, or to None if its type is unknown.

    The second result is a dict with the usage and the finish reason, if these replace those of
    earlier pieces. Otherwise the dict is empty.
    """
    if (chunk := chunk_in(piece)) is not None:
        return chunk, {}
    if (reply := _reply_of(piece, [*_REPLIES, *_PIECES])) is not None:
        return _chunk(piece, reply)
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


def _reply_of(result: Any, replies: list[Reply]) -> Reply | None:
    """Return the first of the `replies` that fits a whole or streamed answer, or None."""
    is_json = is_object(result)
    known = (one for one in replies if fits(result, one.as_json if is_json else one.as_object))
    return next(known, None)


def _message(result: Any, reply: Reply) -> AIMessage:
    calls = [_call(made, reply) for made in all_of(result, reply.calls)]
    unread = [{**call, "error": None} for call in calls if not is_object(call["args"])]
    return AIMessage(
        _text(result, reply.text),
        tool_calls=cast("Any", [call for call in calls if is_object(call["args"])]),
        invalid_tool_calls=cast("Any", unread),
        usage_metadata=_usage(result, reply),
        response_metadata={"finish_reason": _finish_reason(result, reply)},
        additional_kwargs={**_extra(result, reply), "parsed": first(result, reply.parsed)},
    )


def _chunk(piece: Any, reply: Reply) -> tuple[AIMessageChunk, dict[str, Any]]:
    usage, finish_reason = _usage(piece, reply), _finish_reason(piece, reply)
    is_last = reply.is_streamed  # Only the last usage and the last finish reason count.
    chunk = AIMessageChunk(
        content=_text(piece, reply.text),
        tool_call_chunks=[_call_chunk(made, piece, reply) for made in all_of(piece, reply.calls)],
        usage_metadata=None if is_last else usage,
        response_metadata={"finish_reason": finish_reason} if finish_reason and not is_last else {},
        # `parsed` is left out, because the parsed value of one piece is not the whole answer.
        additional_kwargs={name: told for name, told in _extra(piece, reply).items() if told},
    )
    return chunk, {"usage": usage, "finish_reason": finish_reason} if is_last else {}


def _call(made: Any, reply: Reply) -> dict[str, Any]:
    """Read a call of a tool. Arguments that are text are parsed later, by `completion`."""
    given = first(made, reply.arguments)
    arguments = {**cast("Any", given)} if isinstance(given, Mapping) else given or ""
    return {"name": first(made, reply.name), "args": arguments, "id": first(made, reply.id)}


def _call_chunk(made: Any, piece: Any, reply: Reply) -> ToolCallChunk:
    call, index = _call(made, reply), all_of(made, ("index",)) or all_of(piece, ("index",))
    call["args"] = json.dumps(call["args"]) if is_object(call["args"]) else call["args"]
    return tool_call_chunk(**call, index=index[0] if index else None)


def _text(result: Any, paths: tuple[str, ...], between: str = "") -> str:
    return between.join(text for text in all_of(result, paths) if isinstance(text, str))


def _finish_reason(result: Any, reply: Reply) -> Any:
    reason = first(result, reply.finish_reason)
    return getattr(reason, "name", reason)  # Google's client has an enum.


def _extra(result: Any, reply: Reply) -> dict[str, Any]:
    refusal = first(result, reply.refusal) or blocked(result, reply.blocked)
    return {"refusal": refusal, "reasoning_content": _text(result, reply.reasoning, "\n")}


def blocked(result: Any, paths: tuple[str, ...]) -> str | None:
    """Return the reason why a prompt was blocked, if one of these paths has one, or None."""
    reason = first(result, paths)
    return f"the prompt was blocked: {getattr(reason, 'name', reason)}" if reason else None


def _usage(result: Any, reply: Reply) -> Any:
    """Return token counts under LangChain's names; None if the provider gives no numbers."""
    given, made, total = (first(result, paths) for paths in reply.tokens)
    if reply.leaves_out_zero and (is_whole(given) or is_whole(made)):
        given, made = given or 0, (made or 0) + (first(result, reply.thoughts) or 0)
    if not (is_whole(given) and is_whole(made)):
        return None
    total = total if is_whole(total) else given + made
    return dict(zip(_COUNTS, (given, made, total), strict=True))


def token_name_of(word: str) -> str | None:
    """Return LangChain's name for a provider's token count such as `prompt_tokens`, or None."""
    return _COUNT_WORDS.get(_CAPITAL.sub(r"_\1", word).lower())


def meaning_of(finish_reason: str | None) -> Finish | None:
    """Return the meaning of a provider's finish reason, or None if it is unknown."""
    return _FINISH_WORDS.get((finish_reason or "").lower())
