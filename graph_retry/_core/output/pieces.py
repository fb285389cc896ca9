"""Join the pieces of a streamed answer into the text so far, and into the result at the end."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Literal

from langchain_core.messages import AIMessageChunk, ToolCallChunk, message_chunk_to_message
from langchain_core.runnables import AddableDict
from pydantic import BaseModel

from graph_retry._core.ground.functions.calling import joined, without_half
from graph_retry._core.ground.issues import describe
from graph_retry._core.ground.json import is_array, is_number, is_object
from graph_retry._core.output.completion import Completion
from graph_retry._core.output.providers.objects import chunk_of

_Kind = Literal["text", "keys", "list", "value", "scalar"]


class Pieces:
    """The pieces of one stream, or of one key in the dicts that a LangChain chain streams.

    A piece is text, a `Completion`, a LangChain message chunk, or a chunk of OpenAI's, Anthropic's
    or Google's own client. None adds nothing. LangChain runnables stream a dict key by key, as
    `AddableDict`. Any other dict or pydantic model is the whole value so far, and replaces the
    piece before it.
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
        """Add a piece; return its text and its tool call chunks.

        Raises:
            TypeError: If the piece cannot be joined with the pieces before it.
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
        if text:  # A piece without text may contain only the usage.
            self._expect("text", text)
        self._note({"usage": piece.usage, "finish_reason": piece.finish_reason})
        if self._chunks:
            self._chunks.append(AIMessageChunk(content=text))
        self._texts.append(text)
        return text

    def _note(self, said: dict[str, Any]) -> None:
        self._said |= {name: value for name, value in said.items() if value is not None}

    def _add_value(self, piece: Any) -> None:
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
            # A chain gives any other value in one piece, except a number, which may arrive digit by
            # digit.
            is_first = self._kind is None
            self._expect("scalar", piece)
            if not (is_first or (is_number(piece) and continues(self._value, piece))):
                raise _unknown(piece)
            self._value = piece

    def _expect(self, kind: _Kind, piece: Any) -> None:
        """Set the kind of the pieces; raise `TypeError` if earlier pieces have another kind."""
        if self._kind not in (None, kind):
            raise _unknown(piece)
        self._kind = kind

    def result(self, *, as_message: bool = False) -> Any:
        """Return the same result as a call without streaming.

        Message chunks are joined into one chunk, because only a chunk keeps the text of tool
        arguments that were cut off. `as_message` converts the joined chunk to a message.

        Raises:
            TypeError: If the pieces could mean two different results.
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
        # LangChain's parsers stream no `parsed` key if there is nothing to parse.
        return {"parsed": None, **made} if made.keys() == {"raw", "parsing_error"} else made

    @property
    def repeats(self) -> bool:
        """Whether each piece of text begins with the whole piece before and more, as if it grew.

        The last piece but one must have 8 characters, because shorter ones may agree by chance.
        """
        pairs = [*pairwise(text for text in self._texts if text)]
        grows = all(after.startswith(before) and after != before for before, after in pairs)
        return grows and bool(pairs) and len(pairs[-1][0]) >= 8

    @property
    def is_empty(self) -> bool:
        """Whether no piece has arrived, or only None."""
        return not (self._kind or self._texts or self._chunks or self._said)


def _unknown(piece: Any) -> TypeError:
    return TypeError(
        f"the stream gave {describe(piece)}, and something else before: a piece must be text, a "
        "`Completion` or a message chunk, or each must be the value so far"
    )


class ListPieces:
    """Join the lists of a stream. Each piece is either the whole list so far, or new elements.

    LangChain's JSON parser streams the whole list so far, as `[1]`, `[1, 2]`. LangChain's list
    parsers stream one new element in each piece, as `[1]`, `[2]`.
    """

    def __init__(self) -> None:
        self._first: list[Any] | None = None
        self._last: list[Any] = []
        self._joined: list[Any] = []
        self._may_grow, self._may_join = True, True

    def add(self, piece: list[Any]) -> None:
        """Add the next list. It may show which kind of stream this is."""
        if self._last and self._may_join:
            self._may_grow = self._may_grow and continues(self._last, piece)
            # Two lists of one element each are unclear. If the second element begins with the
            # first, the element may have grown, or there may be two elements.
            grows = self._may_grow and (len(piece) > 1 or self._last[0] in ("", {}, []))
            self._may_join = not grows
        self._first = piece if self._first is None else self._first
        self._last = piece
        if self._may_join:
            self._joined += piece

    def result(self) -> list[Any]:
        """Return the whole list.

        Raises:
            TypeError: If the stream may be of both kinds, and their results differ.
        """
        if self._may_grow and self._may_join and self._first and self._joined != self._last:
            raise TypeError(
                "the stream gave lists of one element that continue one another: whether that is "
                "one list that grows or one element after the other cannot be seen; return what "
                "the chain's `invoke` gives, not its stream"
            )
        return self._last if self._may_grow else self._joined


def continues(before: Any, after: Any) -> bool:
    """Return whether the incomplete value `before` may have grown into the value `after`."""
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
