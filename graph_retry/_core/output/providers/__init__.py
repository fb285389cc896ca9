"""The model providers: one file for each, with all facts that this library knows about it.

Each file defines `PROVIDER`, and a new file in this folder is found without registration. A file
lists the places of the text, the tool calls, the usage and so on in the provider's answers.
`provider` declares these facts. `objects` converts answers to LangChain messages. `exceptions`
reads the exceptions of the clients.
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
