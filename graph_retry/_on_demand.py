"""Public names of a package whose modules are loaded when a program asks for one of them.

`import graph_retry` loads the modules that every call uses. A ready hook, or the functions that
answer reviews, are loaded by the programs that import them.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any


def on_demand(package: str, *modules: str) -> Callable[[str], Any]:
    """Make the `__getattr__` of a package that has public names in modules not loaded yet.

    A name of its `__all__` is looked for in the modules, in order.
    """

    def load(name: str) -> Any:
        if name in import_module(package).__all__:
            for module in modules:
                found = import_module(f"{package}.{module}")
                if hasattr(found, name):
                    return getattr(found, name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return load
