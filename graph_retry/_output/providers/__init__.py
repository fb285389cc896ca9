"""The providers of models: one file each, with all that this library knows of it.

A file here makes one `PROVIDER`, and is found by being here. `provider` says what a file may tell;
`objects` reads what providers' clients return by them, `errors` what they raise.
"""

from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

from graph_retry._output.providers.provider import Provider

_FILES: list[ModuleType] = [
    import_module(f"{__name__}.{found.name}")
    for found in iter_modules(__path__)
    if found.name not in ("errors", "objects", "provider")
]
PROVIDERS: tuple[Provider, ...] = tuple(file.PROVIDER for file in _FILES)
"""All providers. No object is of two of them."""
