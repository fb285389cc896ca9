"""The model providers: one file for each, with all facts that this library knows of the provider.

Each file defines one `PROVIDER`. A new file in this folder is found without registration. An answer
is data, so that a file only lists the places of its text, its tool calls, its usage and so on.
`provider` declares the facts that a file may give, and reads a place. `objects` converts answers to
LangChain messages. `errors` reads the exceptions that the clients raise.
"""

from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

from graph_retry._core.output.providers.provider import Provider

_FILES: list[ModuleType] = [
    import_module(f"{__name__}.{found.name}")
    for found in iter_modules(__path__)
    if found.name not in ("exceptions", "langchain", "objects", "provider")
]
PROVIDERS: tuple[Provider, ...] = tuple(file.PROVIDER for file in _FILES)
"""All providers. Their order does not matter, because no object fits two of them."""
