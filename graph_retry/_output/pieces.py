"""Join the pieces of a streamed answer: the text so far, and the whole at the end."""

from __future__ import annotations

from typing import Any, Literal

from langchain_core.messages import AIMessageChunk, ToolCallChunk, message_chunk_to_message
from langchain_core.runnables import AddableDict
from pydantic import BaseModel

from graph_retry._issues import describe
from graph_retry._json import is_array, is_number, is_object
from graph_retry._output.completion import Completion
from graph_retry._output.providers.objects import chunk_of
from graph_retry._output.providers.provider import made_chunk
from graph_retry._streams import joined, without_half

_Kind = Literal["text", "keys", "list", "value", "scalar"]


class Pieces:
    """The pieces of one stream, or of one key of the dicts that a LangChain chain streams.

    A piece is text, a `Completion`, a LangChain message chunk, or what OpenAI's, Anthropic's or
    Google's own client streams; None is a piece without news. Runnables that make a dict stream it
    key by key. Any other dict, or model, is the value as far as it is known: the last one counts.
    """

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._chunks: list[AIMessageChunk] = []
        self._said: dict[str, Any] = {}
        self._keys: dict[str, Pieces] = {}
        self._list = ListPieces()
        self._value: Any = None
        self._kind: _Kind | None = None

    def add(self, piece: Any) -> tuple[str, list[ToolCallChunk]]:
        """Take a piece; return the text in it, and the pieces of tool calls.

        Raises:
            TypeError: If it is nothing that can be put together with what came before.
        """
        if isinstance(piece, str | Completion):
            return self._add_text(piece), []
        if piece is None:
            return "", []
        is_json = is_object(piece) or is_array(piece)
        chunk, said = (None, {}) if is_json else chunk_of(piece)
        if chunk is None:
            self._add_value(piece)
            return "", []
        self._expect("text", piece)
        if not self._chunks:
            self._chunks = [AIMessageChunk(content=text) for text in self._texts]
        self._chunks.append(chunk)
        self._note(said)
        return str(chunk.text), chunk.tool_call_chunks

    def _add_text(self, piece: str | Completion) -> str:
        piece = Completion(piece) if isinstance(piece, str) else piece
        text = piece.text
        if text:  # a piece without text may only carry the usage
            self._expect("text", text)
        self._note({"usage": piece.usage, "finish_reason": piece.finish_reason})
        if self._chunks:
            self._chunks.append(made_chunk(text))
        self._texts.append(text)
        return text

    def _note(self, said: dict[str, Any]) -> None:
        """Keep the provider's metadata so far."""
        self._said |= {name: value for name, value in said.items() if value is not None}

    def _add_value(self, piece: Any) -> None:
        """Add a piece that is not text."""
        if isinstance(piece, AddableDict):
            self._expect("keys", piece)
            for key, value in piece.items():
                self._keys.setdefault(key, Pieces()).add(value)
        elif is_array(piece):
            self._expect("list", piece)
            self._list.add(piece)
        elif is_object(piece) or isinstance(piece, BaseModel):
            self._expect("value", piece)
            self._value = piece
        else:
            # Any other value is whole: a chain gives it in one piece.
            is_first = self._kind is None
            self._expect("scalar", piece)
            if not (is_first or (is_number(piece) and continues(self._value, piece))):
                raise _unknown(piece)
            self._value = piece

    def _expect(self, kind: _Kind, piece: Any) -> None:
        """Note what kind of pieces come; what came before is not dropped for another kind."""
        if self._kind not in (None, kind):
            raise _unknown(piece)
        self._kind = kind

    def result(self, *, as_message: bool = False) -> Any:
        """Return the result of the stream, in the form of a call that does not stream.

        Message chunks stay the chunk they add up to, which keeps what was cut off as it came; with
        `as_message` they become the message.

        Raises:
            TypeError: If it cannot be known.
        """
        if self._kind == "keys":
            return self._dict(as_message=as_message)
        if self._kind == "list":
            return self._list.result()
        if self._kind in ("value", "scalar"):
            return self._value
        if self._chunks:
            whole = self._message()
            return message_chunk_to_message(whole) if as_message else whole
        text = joined(self._texts)
        return Completion(text, **self._said) if self._said else text

    def _message(self) -> AIMessageChunk:
        first, *others = self._chunks
        whole = first + others if others else first
        if "usage" in self._said:
            whole.usage_metadata = self._said["usage"]
        if "finish_reason" in self._said:
            whole.response_metadata["finish_reason"] = self._said["finish_reason"]
        return whole

    def _dict(self, *, as_message: bool) -> dict[str, Any]:
        made = {
            key: None if parts.is_empty else parts.result(as_message=as_message)
            for key, parts in self._keys.items()
        }
        # LangChain's parsers stream nothing if there is nothing to read.
        return {"parsed": None, **made} if made.keys() == {"raw", "parsing_error"} else made

    @property
    def is_empty(self) -> bool:
        """Whether only None came."""
        return not (self._kind or self._texts or self._chunks or self._said)


def _unknown(piece: Any) -> TypeError:
    return TypeError(
        f"the stream gave {describe(piece)}, and something else before: a piece must be text, a "
        "`Completion` or a message chunk, or each must be the value so far"
    )


class ListPieces:
    """The lists that a stream has given.

    LangChain's JSON parser gives the list as far as it is known, again and again; its list parsers
    give the elements, one a piece. A list that grows is one that continues the list before.
    """

    def __init__(self) -> None:
        self._first: list[Any] | None = None
        self._last: list[Any] = []
        self._joined: list[Any] = []
        self._may_grow, self._may_join = True, True

    def add(self, piece: list[Any]) -> None:
        """Take the next list."""
        if self._last and self._may_join:
            self._may_grow = self._may_grow and continues(self._last, piece)
            # If the second piece begins with the first, they may still be two elements.
            grows = self._may_grow and (len(piece) > 1 or self._last[0] in ("", {}, []))
            self._may_join = not grows
        self._first = piece if self._first is None else self._first
        self._last = piece
        if self._may_join:
            self._joined += piece

    def result(self) -> list[Any]:
        """Return the whole list.

        Raises:
            TypeError: If the pieces can be read either way, with another result.
        """
        if self._may_grow and self._may_join and self._first and self._joined != self._last:
            raise TypeError(
                "the stream gave lists of one element that continue one another: whether that is "
                "one list that grows or one element after the other cannot be seen; return what "
                "the chain's `invoke` gives, not its stream"
            )
        return self._last if self._may_grow else self._joined


def continues(before: Any, after: Any) -> bool:
    """Return whether an incomplete value may have grown into another one."""
    if is_object(before) and is_object(after):
        return all(key in after and continues(before[key], after[key]) for key in before)
    if is_array(before) and is_array(after):
        return len(before) <= len(after) and all(map(continues, before, after))
    if isinstance(before, str) and isinstance(after, str):
        return after.startswith(without_half(before))
    if is_number(before) and is_number(after):
        # A number may grow from `1` to `12`.
        return str(after).startswith(str(before).removesuffix(".0"))
    return bool(before == after)
