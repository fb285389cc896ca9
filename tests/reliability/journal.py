"""What processes that may be killed tell the one that kills them."""

import json
import os
from pathlib import Path
from typing import Any

from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

SAVERS: dict[tuple[str, str], Any] = {
    ("sqlite", "sync"): SqliteSaver,
    ("sqlite", "async"): AsyncSqliteSaver,
    ("postgres", "sync"): PostgresSaver,
    ("postgres", "async"): AsyncPostgresSaver,
}
"""The saver classes by store and mode."""


class Journal:
    """A file that processes append whole lines to: what is written survives a kill."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_APPEND | os.O_CREAT | os.O_WRONLY)

    def note(self, event: str, **told: Any) -> None:
        """Write one event down."""
        os.write(self._file, (json.dumps({"event": event, **told}) + "\n").encode())


def read(path: Path) -> list[dict[str, Any]]:
    """Return the events of a journal."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


LIVES: list[Any] = []
"""The life of this process, to which its user code tells what it does."""


def noting(event: str, **told: Any) -> None:
    """Note what user code does; the code of a scene holds nothing that differs between lives."""
    LIVES[-1].note(event, **told)
