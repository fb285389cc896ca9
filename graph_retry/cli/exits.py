"""How the command ends."""

from __future__ import annotations

import importlib
from enum import IntEnum
from typing import Any


class ExitCode(IntEnum):
    """What the shell is told; `docs/terminal.md` has the table."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    NOTHING = 3
    STALE = 4
    ASKED_AGAIN = 5
    LEFT = 130


class Stop(Exception):
    """Ends the command with a code, and a line that says why and what to do."""

    def __init__(self, code: ExitCode, message: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def optional(module: str, extra: str) -> Any:
    """Import a module of an extra.

    Raises:
        Stop: If it is not installed.

    Example:
        >>> optional("no_such_module", "plot")
        Traceback (most recent call last):
        ...
        graph_retry.cli.exits.Stop: this needs the extra `plot`: graph-retry[plot]
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        what = f"this needs the extra `{extra}`: graph-retry[{extra}]"
        raise Stop(ExitCode.USAGE, what) from None
