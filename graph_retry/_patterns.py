"""Regular expressions that are compiled at their first use: importing the package needs none."""

import re
from typing import Any, cast


class _Lazy:
    """Stands for a pattern until one of its methods is used."""

    def __init__(self, source: str, flags: int) -> None:
        self._source, self._flags = source, flags

    def __getattr__(self, name: str) -> Any:
        method = getattr(re.compile(self._source, self._flags), name)
        setattr(self, name, method)  # the next use finds the compiled pattern's method
        return method


def lazy(source: str, flags: int = 0) -> re.Pattern[str]:
    """Return a pattern whose first use compiles it."""
    return cast("re.Pattern[str]", _Lazy(source, flags))
