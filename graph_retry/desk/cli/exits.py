"""The exit codes of the command, and the exception that ends the command with one of them."""

from enum import IntEnum


class ExitCode(IntEnum):
    """The command's exit codes, explained in `docs/terminal.md`."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    NOTHING = 3
    STALE = 4
    ASKED_AGAIN = 5
    INTERRUPTED = 130


class Stop(Exception):
    """End the command with an exit code, and with a line about the reason and the remedy."""

    def __init__(self, code: ExitCode, message: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
