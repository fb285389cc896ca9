"""A program in a pseudo-terminal of its own, and a person at it."""

import os
import pty
import re
import select
import subprocess
import sys
import termios
import time

DEADLINE_S = 120.0

_LANGSMITH = "ignore:'asyncio.iscoroutinefunction' is deprecated:DeprecationWarning"
STRICT = [sys.executable, "-W", "error", "-W", _LANGSMITH]
"""Python that takes warnings as errors, but for one that LangSmith gives on Python 3.14."""

# Ctrl-C reaches a program only through its controlling terminal.
TAKE_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


class Terminal:
    """Runs a command in a terminal of 30 lines and `width` columns; `seen` is all it has written.

    Colours and movements are taken out of what `wait_for` returns, not out of `seen`.
    """

    def __init__(self, command, folder, environment, width=100):
        self._end, inner = pty.openpty()
        termios.tcsetwinsize(inner, (30, width))
        self._program = subprocess.Popen(
            [sys.executable, "-c", TAKE_TERMINAL, *command],
            cwd=folder,
            env=environment,
            stdin=inner,
            stdout=inner,
            stderr=inner,
            start_new_session=True,
        )
        os.close(inner)
        self.seen = ""
        self._unread = self._typed = ""

    def wait_for(self, text):
        """Read until `text` appears and return everything before it."""
        deadline = time.monotonic() + DEADLINE_S
        while text not in self._unread:
            assert self._ready(deadline), f"{text!r} did not appear:\n{self._unread}"
            piece = self._read()
            assert piece, f"the program ended without {text!r}:\n{self._unread}"
            self._unread += re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", piece)
        before, _, self._unread = self._unread.partition(text)
        return before

    def type(self, text):
        """Type as a person does."""
        self._typed = text
        os.write(self._end, text.encode())

    def close(self):
        """Wait for the end and return the exit code, negative for a signal."""
        deadline = time.monotonic() + DEADLINE_S
        while self._ready(deadline):
            if not self._read():
                os.close(self._end)
                return self._program.wait(DEADLINE_S)
        self._program.kill()
        self._program.wait(DEADLINE_S)
        raise AssertionError(f"the program does not end:\n{self._unread}")

    def kill(self):
        """End the process as a power cut would."""
        self._program.kill()
        return self.close()

    def _ready(self, deadline):
        """Wait for something to read.

        A Ctrl-C in the moment between a prompt and its `read` is noticed after the `read` only:
        like a person, press it again.
        """
        while time.monotonic() < deadline:
            if select.select([self._end], [], [], 5)[0]:
                return True
            if self._typed == "\x03":
                self.type(self._typed)
        return False

    def _read(self):
        try:
            piece = os.read(self._end, 65536).decode(errors="replace")
        except OSError:  # Linux says so when the other end is closed
            return ""
        self.seen += piece
        return piece
