"""Where the command writes: tables and colours in a terminal, plain lines anywhere else."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Literal

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

Tone = Literal["plain", "good", "bad", "quiet"]
Rows = Sequence[Sequence[str]]

_STYLES: dict[Tone, str] = {"plain": "", "good": "green", "bad": "red", "quiet": "dim"}
_LONG_WORD = 30  # what is longer may be broken anywhere
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
        """Write a table; where there is no terminal, a line per row that names its columns.

        In a terminal too narrow for the longest words, each row is written as a list of its cells.
        """
        if not self.is_terminal:
            for row in rows:
                cells = [f"{name}: {cell}" for name, cell in _filled(columns, row)]
                self.say("  " + " | ".join(cells).replace("\n", "\n      "))
            return
        if (widths := self._widths([columns, *rows])) is None:
            for row in rows:
                self._list(_filled(columns, row))
            return
        table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
        for column, width in zip(columns, widths, strict=True):
            table.add_column(column, width=width)
        for row in rows:
            table.add_row(*(Text(printable(cell), overflow="fold") for cell in row))
        self._console.print(table)

    def _widths(self, rows: Rows) -> list[int] | None:
        """Share the width out to columns, none below its longest word; None if that is too much.

        Rich breaks words of narrow columns in two where wide ones have room to spare.
        """
        columns = [
            [
                Measurement.get(self._console, self._console.options, Text(printable(cell)))
                for cell in column
            ]
            for column in zip(*rows, strict=True)
        ]
        widths = [min(max(cell.minimum for cell in cells), _LONG_WORD) for cells in columns]
        wanted = [max(cell.maximum for cell in cells) for cells in columns]
        room = self._console.width - sum(widths) - 3 * len(widths) + 1
        narrow_first = sorted(range(len(widths)), key=lambda place: wanted[place] - widths[place])
        for left, place in zip(range(len(widths), 0, -1), narrow_first, strict=True):
            more = max(0, min(wanted[place] - widths[place], room // left))
            widths[place], room = widths[place] + more, room - more
        return None if room < 0 else widths

    def _list(self, cells: Rows) -> None:
        grid = Table.grid(padding=(0, 1))
        grid.add_column(no_wrap=True, style="bold")
        grid.add_column(overflow="fold")
        for name, cell in cells:
            grid.add_row(name, Text(printable(cell)))
        self._console.print("", grid, sep="\n")


def _filled(columns: Sequence[str], row: Sequence[str]) -> list[tuple[str, str]]:
    return [(name, cell) for name, cell in zip(columns, row, strict=True) if cell]


def printable(text: str) -> str:
    r"""Spell out control characters: what a model wrote must not steer a terminal.

    Example:
        >>> printable("a\x1b[2Jb")
        'a\\x1b[2Jb'
    """
    return "".join(c if c.isprintable() or c in _SPACES else repr(c)[1:-1] for c in text)
