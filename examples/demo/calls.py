"""The demo's model call, counted on disk before it starts: a crash cannot hide one."""

import importlib
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graph_retry import AttemptContext
from nodes.extract import Extraction, ask_script


class NoModelError(Exception):
    """The chat model that was asked for cannot be made here; the text says what to do."""


@dataclass(frozen=True)
class CallLog:
    """A table of all calls that were started, beside the checkpoints in the same file."""

    path: Path

    def add(self, thread: str, attempt: int, key: str) -> None:
        """Write down that a call starts."""
        with closing(sqlite3.connect(self.path, timeout=30)) as database, database:
            database.execute(
                "CREATE TABLE IF NOT EXISTS model_calls (thread TEXT, attempt INTEGER, key TEXT)"
            )
            database.execute("INSERT INTO model_calls VALUES (?, ?, ?)", (thread, attempt, key))

    def count(self, thread: str) -> tuple[int, int]:
        """Return how many calls a thread made, and how many different ones."""
        with closing(sqlite3.connect(self.path, timeout=30)) as database:
            rows = database.execute(
                "SELECT COUNT(*), COUNT(DISTINCT key) FROM model_calls WHERE thread = ?", (thread,)
            )
            calls, distinct = rows.fetchone()
        return int(calls), int(distinct)


def chat_model(name: str, temperature: float = 1.0) -> Any:
    """Make a real chat model from a name such as `openai:gpt-4.1-mini`.

    Raises:
        NoModelError: If a package or the key is missing.
    """
    provider = name.partition(":")[0]
    try:
        chat_models: Any = importlib.import_module("langchain.chat_models")
    except ImportError:
        msg = (
            f"The model {name!r} needs LangChain: "
            f".venv/bin/pip install langchain langchain-{provider}"
        )
        raise NoModelError(msg) from None
    try:
        return chat_models.init_chat_model(name, temperature=temperature)
    except Exception as error:  # noqa: BLE001 (each provider has an error of its own)
        msg = (
            f"The model {name!r} cannot be used: {error}\n"
            f"Is langchain-{provider} installed, and {provider.upper()}_API_KEY set?"
        )
        raise NoModelError(msg) from None


def ask_model(params: Extraction, context: AttemptContext) -> Any:
    """Ask the scripted model, or a real one if the name has a provider in it."""
    if ":" not in params.model:
        return ask_script(params, context)
    model = chat_model(params.model, params.temperature)
    return model.invoke(f"{params.prompt}\n\n{params.document}")
