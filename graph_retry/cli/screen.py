"""Where the command writes: tables and colours in a terminal, plain lines anywhere else."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Literal

from rich import box
from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

Tone = Literal["plain", "good", "bad", "quiet"]
Rows = Sequence[Sequence[str]]

_STYLES: dict[Tone, str] = {"plain": "", "good": "green", "bad": "red", "quiet": "dim"}
_SPACES = "\n\t\u00a0\u202f\u3000"


class Screen:
    """Standard output. Texts are never read as markup, and cannot steer the terminal."""

    def __init__(self) -> None:
        self._console = Console(highlight=False)
        self.is_terminal = sys.stdout.isatty() and not self._console.is_dumb_terminal

    @property
    def has_person(self) -> bool:
        """Whether somebody can be asked."""
        return sys.stdin.isatty() and sys.stdout.isatty()

    def title(self, text: str) -> None:
        """Start a section."""
        if self.is_terminal:
            rule = Rule(Text(printable(text), "bold"), align="left", style="blue")
            self._console.print("", rule, sep="\n")
        else:
            self.say(f"\n== {text}")

    def say(self, text: str, tone: Tone = "plain") -> None:
        """Write some lines."""
        if self.is_terminal:
            self._console.print(Text(printable(text), _STYLES[tone]))
        else:
            sys.stdout.write(f"{printable(text)}\n")
            sys.stdout.flush()

    def table(self, columns: Sequence[str], rows: Rows) -> None:
        """Write a table; where there is no terminal, a line per row that names its columns."""
        if not self.is_terminal:
            for row in rows:
                told = [f"{name}: {cell}" for name, cell in zip(columns, row, strict=True) if cell]
                self.say("  " + " | ".join(told).replace("\n", "\n      "))
            return
        table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
        for column in columns:
            table.add_column(column, overflow="fold")
        for row in rows:
            table.add_row(*(Text(printable(cell), overflow="fold") for cell in row))
        self._console.print(table)


def printable(text: str) -> str:
    r"""Spell out control characters: what a model wrote must not steer a terminal.

    Example:
        >>> printable("a\x1b[2Jb")
        'a\\x1b[2Jb'
    """
    return "".join(c if c.isprintable() or c in _SPACES else repr(c)[1:-1] for c in text)
