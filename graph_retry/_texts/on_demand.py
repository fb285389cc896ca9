"""Load modules, and compile patterns, when a program first uses them: the import must be fast.

`import graph_retry` loads only the modules that every call uses. The hooks, and the functions
that answer reviews, are loaded by programs that import them.
"""

import re
from collections.abc import Callable
from importlib import import_module
from typing import Any, cast


def on_demand(package: str, *modules: str) -> Callable[[str], Any]:
    """Return the `__getattr__` for a package whose public names are in modules not loaded yet.

    The modules are searched in order for a name of the package's `__all__`.
    """

    def load(name: str) -> Any:
        if name in import_module(package).__all__:
            for module in modules:
                found = import_module(f"{package}.{module}")
                if hasattr(found, name):
                    return getattr(found, name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return load


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
