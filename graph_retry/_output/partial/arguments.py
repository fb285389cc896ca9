"""The answer in a stream's tool calls, as a text that grows like any other."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.messages import ToolCallChunk
from pydantic_core import from_json

from graph_retry._output.validator import Validator


class GrowingArguments:
    """Takes the pieces of tool calls; gives, piece by piece, the text that the whole will be.

    Where a list is wanted, the calls are its elements. Otherwise the first call is the answer if it
    is named after the output type: one of another name may stand beside the call that is it, so
    nothing is known of it before the end.
    """

    def __init__(self, validator: Validator) -> None:
        self._wants_list = validator.wants_list
        self._wanted = validator.name
        self._is_known = True
        self._count = 0
        self._index: int | None = None
        self._id: str | None = None
        self._name = ""
        self._arguments: list[str] = []

    def add(self, chunks: Sequence[ToolCallChunk]) -> str:
        """Take pieces of calls; return what they add to the text."""
        return "".join(map(self._add, chunks))

    def _add(self, chunk: ToolCallChunk) -> str:
        separator = "" if self._continues(chunk) else self._begin(chunk["index"])
        self._id = self._id or chunk["id"]
        self._name += chunk["name"] or ""
        self._arguments.append(chunk["args"] or "")
        is_answer = self._wants_list or (self._count == 1 and self._name == self._wanted)
        return separator + self._arguments[-1] if self._is_known and is_answer else ""

    def _continues(self, chunk: ToolCallChunk) -> bool:
        """Return whether LangChain adds a piece to the call that came last."""
        same_index = self._count > 0 and self._index == chunk["index"] is not None
        return same_index and (not self._id or chunk["id"] in {None, "", self._id})

    def _begin(self, index: int | None) -> str:
        """Begin another call; return what stands in front of it in a list."""
        # One that has no whole arguments yet may go on later, and the order of the text with it.
        if self._count and not _is_json("".join(self._arguments)):
            self._is_known = False
        separator = ", " if self._count else "["
        self._count += 1
        self._index, self._id, self._name, self._arguments = index, None, "", []
        return separator if self._wants_list else ""


def _is_json(text: str) -> bool:
    try:
        from_json(text)
    except ValueError:
        return False
    return True
