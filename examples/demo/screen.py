"""Where the demo writes: plain lines, or panels and colours in a terminal that has `rich`."""

import os
import sys
from collections.abc import Sequence
from typing import Literal, Protocol

Tone = Literal["plain", "good", "bad", "quiet"]
Rows = Sequence[Sequence[str]]


class Screen(Protocol):
    """What the demo needs to show itself."""

    def title(self, text: str) -> None:
        """Start a section."""

    def say(self, text: str, tone: Tone = "plain") -> None:
        """Write some lines."""

    def table(self, columns: Sequence[str], rows: Rows) -> None:
        """Write a table."""


class PlainScreen:
    """Lines for a log, a pipe or a terminal without `rich`."""

    def title(self, text: str) -> None:
        """Start a section."""
        self.say(f"\n== {text}")

    def say(self, text: str, tone: Tone = "plain") -> None:
        """Write some lines."""
        del tone
        print(printable(text), flush=True)

    def table(self, columns: Sequence[str], rows: Rows) -> None:
        """Write a row per line, the names of the columns before the values."""
        for row in rows:
            told = [f"{column}: {value}" for column, value in zip(columns, row, strict=True)]
            self.say("  " + " | ".join(told).replace("\n", "\n      "))


def open_screen(*, terminal: bool) -> Screen:
    """Return the best screen there is."""
    if terminal and os.environ.get("TERM") != "dumb":
        try:
            from examples.demo.rich_screen import RichScreen  # noqa: PLC0415 (`rich` is optional)
        except ImportError:
            return PlainScreen()
        return RichScreen()
    return PlainScreen()


def has_terminal() -> bool:
    """Tell whether a person sits at both ends."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def printable(text: str) -> str:
    r"""Spell out control characters: what a model wrote must not steer a terminal.

    Example:
        >>> printable("a\x1b[2Jb")
        'a\\x1b[2Jb'
    """
    return "".join(c if c.isprintable() or c in "\n\t" else repr(c)[1:-1] for c in text)
