"""Regular expressions that are compiled at first use, because the import must be fast."""

import re
from typing import Any, cast


class _Lazy:
    """An object like a compiled pattern, which compiles the pattern at the first method call."""

    def __init__(self, source: str, flags: int) -> None:
        self._source, self._flags = source, flags

    def __getattr__(self, name: str) -> Any:
        method = getattr(re.compile(self._source, self._flags), name)
        setattr(self, name, method)  # The next use finds this method without `__getattr__`.
        return method


def lazy(source: str, flags: int = 0) -> re.Pattern[str]:
    """Return a pattern whose first use compiles it."""
    return cast("re.Pattern[str]", _Lazy(source, flags))
