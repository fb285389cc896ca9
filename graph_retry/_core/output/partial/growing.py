"""Read a text that arrives in pieces: plain text, a JSON document, or arguments of tool calls.

The text so far is parsed again from time to time, to show and validate its value.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import ToolCallChunk
from pydantic_core import from_json

from graph_retry._core.ground.functions.calling import joined, without_half
from graph_retry._core.ground.issues import attempt
from graph_retry._core.ground.json import ABSENT, is_array, is_object
from graph_retry._core.output.validator import Validator
from graph_retry.lossless._ground import lazy

_STEP = 32
"""A short text is parsed again after this number of new characters."""
_GROWTH = 16
"""A long text is parsed again when it has grown by one sixteenth of its length.

All parses of a text together then read `_GROWTH + 1` times the length of the text.
"""

_SPACE = r"[\s\ufeff\u200b-\u200f\u2060]*+"
_FENCE = r"(?:(?:`{3,}|~{3,})[ \t]*(?:json[5c]?)?[ \t]*\n)?"
_THOUGHTS = r"(?s:<(think|thinking|thought|reasoning)\b[^>]*>.*?</\1>)?"
_BEGIN = lazy(rf"(?i){_SPACE}{_THOUGHTS}{_SPACE}{_FENCE}{_SPACE}(?=[{{\[])")
_MAY_BEGIN = lazy(rf"{_SPACE}(?:[<`~]|\Z)")
_IN_PROSE = lazy(
    r"(?im)(?:`{3,}|~{3,})[ \t]*(?:json[5c]?)?[ \t]*\n\s*+(?=[{\[])"  # A fence may begin in a line.
    r"|(?=\{\s*+[\"}])|^[ \t]*+(?=\[\s*+[\[{\"])"
)
_KEY = lazy(r"\"(?:[^\"\\]|\\.)*+(?:\"(\s*:\s*(?=\S))?|\Z)", re.DOTALL)


class GrowingText:
    """A text that arrives piece by piece; `value` is the text so far."""

    begins_the_text = True
    """Whether the text begins with the value. A document after prose may be only an example."""

    def __init__(self) -> None:
        self.value: Any = ABSENT
        self._pieces: list[str] = []
        self._length = 0
        self._next = 1

    @property
    def text(self) -> str:
        self._pieces = [joined(self._pieces)]
        return self._pieces[0]

    def add(self, piece: str) -> bool:
        """Add a piece, and return whether `value` may have grown."""
        self._pieces.append(piece)
        self._length += len(piece)
        if self._length < self._next:
            return False
        self._next = self._length + max(_STEP, self._length // _GROWTH)
        return self._read(self.text)

    def without_open_text(self) -> Any:
        """Return the value without an unfinished text at its end; `ABSENT` for plain text."""
        return ABSENT

    def is_exact(self) -> bool:
        """Return whether the value has every key of the text. A repeated key makes this False."""
        return True

    def _read(self, text: str) -> bool:
        self.value = without_half(text)
        return True


class GrowingDocument(GrowingText):
    """A JSON document that arrives piece by piece; `value` is the document so far.

    `value` stops growing at the first character that is not strict JSON, because the repair of the
    whole text is not known yet.
    """

    def __init__(self) -> None:
        super().__init__()
        self._start = -1
        self._ended = False

    def without_open_text(self) -> Any:
        try:
            return from_json(self.text[self._start :], allow_partial=True)
        except ValueError:
            return ABSENT

    def is_exact(self) -> bool:
        keys = sum(1 for match in _KEY.finditer(self.text, self._start) if match[1])
        return keys == _members(self.value)

    def _read(self, text: str) -> bool:
        if self._start < 0:
            self._start = self._beginning(text)
        if self._start < 0 or self._ended:
            return False
        try:
            read = without_half(text[self._start :])
            self.value = from_json(read, allow_partial="trailing-strings")
        except (TypeError, ValueError):  # The text has half a character, or is not strict JSON.
            self._ended = True
        return not self._ended

    def _beginning(self, text: str) -> int:
        """Return the position at which the document begins, or -1 while it is unknown."""
        if match := _BEGIN.match(text):
            return match.end()
        if _MAY_BEGIN.match(text):
            return -1
        self.begins_the_text = False
        match = _IN_PROSE.search(text)
        return match.end() if match else -1


def _members(value: Any) -> int:
    if is_object(value):
        return len(value) + sum(map(_members, value.values()))
    return sum(map(_members, value)) if is_array(value) else 0


class GrowingArguments:
    """Turns the pieces of tool calls into the JSON text of the answer, piece by piece.

    If a list is wanted, each call is an element. If one value is wanted, the first call is the
    answer, unless it has another name than the output type. Then a later call may be the answer,
    which is unknown until the end.
    """

    def __init__(self, validator: Validator) -> None:
        self._wants_list = validator.kinds == frozenset({"array"})
        self._wanted = validator.name
        self._is_known = True
        self._count = 0
        self._index: int | None = None
        self._id: str | None = None
        self._name = ""
        self._arguments: list[str] = []

    def add(self, chunks: Sequence[ToolCallChunk]) -> str:
        """Add pieces of calls; return the text that they add to the answer."""
        return "".join(map(self._add, chunks))

    def _add(self, chunk: ToolCallChunk) -> str:
        separator = "" if self._continues(chunk) else self._begin(chunk["index"])
        self._id = self._id or chunk["id"]
        if len(self._name) <= len(self._wanted):  # A longer name is another one.
            self._name += chunk["name"] or ""
        self._arguments.append(chunk["args"] or "")
        is_answer = self._wants_list or (self._count == 1 and self._name == self._wanted)
        return separator + self._arguments[-1] if self._is_known and is_answer else ""

    def _continues(self, chunk: ToolCallChunk) -> bool:
        """Return whether this piece belongs to the last call, by LangChain's rule."""
        same_index = self._count > 0 and self._index == chunk["index"] is not None
        return same_index and (not self._id or chunk["id"] in {None, "", self._id})

    def _begin(self, index: int | None) -> str:
        """Begin another call; return the separator before it in a list."""
        # If the last call is not complete, its arguments may continue after this call. Then the
        # order of the answer's text is unknown.
        if self._count and attempt(from_json, "".join(self._arguments))[1]:
            self._is_known = False
        separator = ", " if self._count else "["
        self._count += 1
        self._index, self._id, self._name, self._arguments = index, None, "", []
        return separator if self._wants_list else ""
