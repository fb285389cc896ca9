"""How the command ends."""

from enum import IntEnum


class ExitCode(IntEnum):
    """The command's exit codes; `docs/terminal.md` has the table."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    NOTHING = 3
    STALE = 4
    ASKED_AGAIN = 5
    INTERRUPTED = 130


class Stop(Exception):
    """Ends the command with a code, and a line that says why and what to do."""

    def __init__(self, code: ExitCode, message: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
