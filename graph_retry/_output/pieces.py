"""Put the pieces of a streamed answer together: the text so far, and what it was in the end."""

from __future__ import annotations

from typing import Any, cast

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolCallChunk
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGenerationChunk
from pydantic import BaseModel

from graph_retry._issues import describe
from graph_retry._json import is_array, is_object
from graph_retry._output.completion import Completion
from graph_retry._output.provider_objects import message_of, token_counts


class Pieces:
    """What has come of one stream.

    A piece is text, a `Completion`, a LangChain message chunk, or what OpenAI's, Anthropic's or
    Google's own client streams. Where pieces are objects, as LangChain's output parsers stream
    them, each one is the value as far as it is known, and the last one is the result.
    """

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._chunks: list[AIMessageChunk] = []
        self._said: dict[str, Any] = {}
        self._value: Any = None

    def add(self, piece: Any) -> tuple[str, list[ToolCallChunk]]:
        """Take a piece; return the text in it, and the pieces of tool calls.

        Raises:
            TypeError: If it is nothing that is known.
        """
        if isinstance(piece, str | Completion):
            return self._add_text(piece), []
        chunk = None if is_object(piece) or is_array(piece) else _chunk_of(piece)
        if chunk is not None:
            if not self._chunks:
                self._chunks = [AIMessageChunk(content=text) for text in self._texts]
            self._chunks.append(chunk)
            return str(chunk.text), chunk.tool_call_chunks
        if not (is_object(piece) or is_array(piece) or isinstance(piece, BaseModel)):
            raise TypeError(
                f"the stream gave {describe(piece)}: a piece must be text, a `Completion`, a "
                "message chunk, or an object that is the value so far"
            )
        self._value = piece
        return "", []

    def _add_text(self, piece: str | Completion) -> str:
        piece = Completion(piece) if isinstance(piece, str) else piece
        text, reason = piece.text, piece.finish_reason
        said = {"usage": piece.usage, "finish_reason": reason}
        self._said |= {name: value for name, value in said.items() if value is not None}
        if self._chunks:
            self._chunks.append(_chunk(text, finish_reason=reason))
        self._texts.append(text)
        return text

    def result(self) -> Any:
        """Return what the stream gave as a call that does not stream returns it."""
        if self._value is not None:
            return self._value
        if self._chunks:
            first, *others = self._chunks
            return first + others if others else first
        text = "".join(self._texts)
        return Completion(text, **self._said) if self._said else text


def _chunk_of(piece: Any) -> AIMessageChunk | None:
    """Return the message chunk that a piece stands for, or None if it is nothing known."""
    if isinstance(piece, AIMessageChunk):
        return piece
    if isinstance(piece, ChatGenerationChunk):
        return cast("AIMessageChunk", piece.message)
    for read in (_of_openai, _of_anthropic):
        chunk = read(piece)
        if chunk is not None:
            return chunk
    message = message_of(piece)
    return None if message is None else _of_message(message)


def _of_message(message: BaseMessage) -> AIMessageChunk:
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    usage = message.usage_metadata if isinstance(message, AIMessage) else None
    return AIMessageChunk(
        content=message.content,
        tool_calls=calls,
        usage_metadata=usage,
        response_metadata=message.response_metadata,
        additional_kwargs=message.additional_kwargs,
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
    return _chunk(
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
        return _chunk(getattr(delta, "text", "") or "", calls=_partial_input(piece, delta))
    if kind == "content_block_start" and getattr(piece.content_block, "type", "") == "tool_use":
        block = piece.content_block
        call = tool_call_chunk(name=block.name, args="", id=block.id, index=piece.index)
        return _chunk("", calls=[call])
    if kind == "message_start":
        read = getattr(getattr(piece.message, "usage", None), "input_tokens", None) or 0
        return _chunk("", usage={"input_tokens": read, "output_tokens": 0, "total_tokens": read})
    if kind == "message_delta":
        made = getattr(getattr(piece, "usage", None), "output_tokens", None) or 0
        usage = {"input_tokens": 0, "output_tokens": made, "total_tokens": made}
        return _chunk("", usage=usage, finish_reason=getattr(delta, "stop_reason", None))
    known = {"content_block_start", "content_block_stop", "message_stop", "ping"}
    # The SDK's helper adds events of its own that repeat what these say.
    repeated = {"text", "input_json", "thinking", "citation", "signature"}
    return _chunk("") if kind in known | repeated else None


def _partial_input(piece: Any, delta: Any) -> list[ToolCallChunk]:
    json_text = getattr(delta, "partial_json", None)
    if not json_text:
        return []
    return [tool_call_chunk(name=None, args=json_text, id=None, index=piece.index)]


def _chunk(
    text: str,
    *,
    calls: list[ToolCallChunk] | None = None,
    usage: Any = None,
    finish_reason: Any = None,
    refusal: Any = None,
) -> AIMessageChunk:
    return AIMessageChunk(
        content=text,
        tool_call_chunks=calls or [],
        usage_metadata=usage,
        response_metadata={"finish_reason": finish_reason} if finish_reason else {},
        additional_kwargs={"refusal": refusal} if refusal else {},
    )
