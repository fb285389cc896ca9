"""Put the lists of one stream together, which come as a whole that grows or element by element."""

from __future__ import annotations

from typing import Any

from graph_retry._json import is_array, is_number, is_object
from graph_retry._streams import without_half


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
            # One element, and then the same one with more to it, may still be two elements.
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
        return str(after).startswith(str(before).removesuffix(".0"))  # `1`, and then `12`
    return bool(before == after)
