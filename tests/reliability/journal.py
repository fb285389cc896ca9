"""What processes that may be killed tell the one that kills them."""

import itertools
import json
import os
import re
import signal
from pathlib import Path
from typing import Any

from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

MARK = re.compile(r"(?:call|answer)-\d+-\d+")


class Journal:
    """A file that processes append whole lines to: what is written survives a kill.

    A `fatal` moment kills this process right after it, so that every place between two writes is
    met, however short it lasts.
    """

    def __init__(self, path: Path, fatal: int = 0) -> None:
        self._file = os.open(path, os.O_APPEND | os.O_CREAT | os.O_WRONLY)
        self._fatal = fatal
        self._moments = itertools.count(1)
        self._seen: set[tuple[str, str]] = set()
        self.moments = 0

    def note(self, event: str, **told: Any) -> None:
        """Write one event down."""
        os.write(self._file, (json.dumps({"event": event, **told}) + "\n").encode())
        self.pass_by()

    def pass_by(self) -> None:
        """Pass a moment at which this process may have to die."""
        self.moments = next(self._moments)
        if self.moments == self._fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    def saved(self, event: str, data: Any) -> None:
        """Note the calls and answers that a finished write to the database holds."""
        for mark in sorted(set(MARK.findall(str(data)))):
            if (event, mark) not in self._seen:
                self._seen.add((event, mark))
                self.note(event, mark=mark)


def read(path: Path) -> list[dict[str, Any]]:
    """Return the events of a journal."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


class _Told:
    """A saver that notes what it has saved."""

    journal: Journal

    def put(self, config: Any, checkpoint: Any, *rest: Any) -> Any:
        self.journal.pass_by()
        done = super().put(config, checkpoint, *rest)
        self.journal.saved("state saved", checkpoint["channel_values"])
        self.journal.pass_by()
        return done

    def put_writes(self, config: Any, writes: Any, *rest: Any) -> None:
        self.journal.pass_by()
        super().put_writes(config, writes, *rest)
        self.journal.saved("write saved", writes)
        self.journal.pass_by()

    async def aput(self, config: Any, checkpoint: Any, *rest: Any) -> Any:
        self.journal.pass_by()
        done = await super().aput(config, checkpoint, *rest)
        self.journal.saved("state saved", checkpoint["channel_values"])
        self.journal.pass_by()
        return done

    async def aput_writes(self, config: Any, writes: Any, *rest: Any) -> None:
        self.journal.pass_by()
        await super().aput_writes(config, writes, *rest)
        self.journal.saved("write saved", writes)
        self.journal.pass_by()


def telling(store: str, mode: str) -> Any:
    """Return the saver class of a store and mode, made to tell a journal."""
    plain: Any = {
        ("sqlite", "sync"): SqliteSaver,
        ("sqlite", "async"): AsyncSqliteSaver,
        ("postgres", "sync"): PostgresSaver,
        ("postgres", "async"): AsyncPostgresSaver,
    }[store, mode]
    return type(plain.__name__, (_Told, plain), {})
