"""The exit codes of the command, and the exception that ends it with one."""

from enum import IntEnum


class ExitCode(IntEnum):
    """The command's exit codes; `docs/terminal.md` explains each."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    NOTHING = 3
    STALE = 4
    ASKED_AGAIN = 5
    INTERRUPTED = 130


class Stop(Exception):
    """End the command with an exit code, and with a line that tells the reason and the remedy."""

    def __init__(self, code: ExitCode, message: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
