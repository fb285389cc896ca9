"""A mapping that forgets its oldest entries, to limit the memory of a page or a console."""

from __future__ import annotations

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Newest(dict[K, V]):
    """A mapping of at most `most` entries. An entry that is set again counts as new.

    Example:
        >>> kept = Newest[str, int](2)
        >>> kept["a"], kept["b"], kept["a"], kept["c"] = 1, 2, 3, 4
        >>> kept
        {'a': 3, 'c': 4}
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: K, value: V) -> None:
        self.pop(key, None)
        super().__setitem__(key, value)
        while len(self) > self._most:
            del self[next(iter(self))]
