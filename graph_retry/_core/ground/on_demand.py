"""Load the modules of public names when a program first uses them: the import must be fast.

`import graph_retry` loads only the modules that every call uses. The hooks, and the functions
that answer reviews, are loaded by programs that import them.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any


def on_demand(package: str, *modules: str, home: str = "") -> Callable[[str], Any]:
    """Return the `__getattr__` for a package whose public names are in modules not loaded yet.

    The modules are searched in order for a name of the package's `__all__`. They are in the package
    itself, or in the package `home`.
    """

    def load(name: str) -> Any:
        if name in import_module(package).__all__:
            for module in modules:
                found = import_module(f"{home or package}.{module}")
                if hasattr(found, name):
                    return getattr(found, name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return load
