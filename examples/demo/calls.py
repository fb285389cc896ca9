"""The demo's model call, counted on disk before it starts: a crash cannot hide one."""

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path


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
