"""Write the command's output: tables and colours in a terminal, plain lines elsewhere.

Outside a terminal, the command's own lines begin at the left margin or after two spaces. The text
of a model or a provider is indented further, so that no program takes it for a line of the command.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import compress
from typing import Any, Literal

from rich import box
from rich.console import Console, Group, RenderableType
from rich.measure import Measurement
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from graph_retry.plugins import escaped

Tone = Literal["plain", "good", "bad", "quiet"]
Rows = Sequence[Sequence[str]]

_STYLES: dict[Tone, str] = {"plain": "", "good": "green", "bad": "red", "quiet": "dim"}
_LONG_WORD = 30  # A word with more characters may be broken at any place.
_INDENT = "    "

printable = partial(escaped, lines=True)
"""Escapes control characters, because a model's text must not control a terminal."""


class Screen:
    """Standard output. Texts are never read as markup, and their control characters are escaped."""

    def __init__(self) -> None:
        self._console = Console(highlight=False)
        self.is_terminal = sys.stdout.isatty() and not self._console.is_dumb_terminal

    @property
    def has_person(self) -> bool:
        """Whether a person can be asked: input and output are a terminal."""
        return sys.stdin.isatty() and sys.stdout.isatty()

    def title(self, text: str) -> None:
        """Write the heading of a section."""
        rule = Rule(Text(printable(text), "bold"), align="left", style="blue")
        self._put(Group("", rule), f"\n== {indented(text)}")

    def say(self, text: str, tone: Tone = "plain") -> None:
        """Write a sentence. Further lines are indented, because they may quote a model."""
        self._put(Text(printable(text), _STYLES[tone]), indented(text))

    def quote(self, text: str, tone: Tone = "plain") -> None:
        """Write a text of a model or provider, with every line indented."""
        padded = Padding(Text(printable(text), _STYLES[tone]), (0, 0, 0, 2))
        self._put(padded, f"{_INDENT}{indented(text)}")

    def json(self, value: Any) -> None:
        """Write a value as JSON. Line breaks in texts are escaped."""
        text = json.dumps(value, indent=2, ensure_ascii=False, default=str)
        self._put(Text(printable(text)), text)

    def _put(self, shown: RenderableType, plain: str) -> None:
        if self.is_terminal:
            self._console.print(shown)
        else:
            sys.stdout.write(f"{printable(plain)}\n")
            sys.stdout.flush()

    @contextmanager
    def progress(self, doing: str, total: int | None = None) -> Generator[Callable[[], None]]:
        """Show a progress bar in a terminal. Call the yielded function after each step."""
        if not self.is_terminal:  # Rich 14.0 writes an empty line even for a disabled bar.
            yield lambda: None
            return
        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
        with Progress(*columns, console=self._console) as bar:
            task = bar.add_task(doing, total=total)
            yield lambda: bar.advance(task)

    @contextmanager
    def working(self) -> Generator[Callable[[str], None]]:
        """Show the current activity in a terminal. The yielded function replaces the line."""
        status = self._console.status("")

        def tell(text: str) -> None:
            status.update(Text(printable(text)))
            status.start()

        try:
            yield tell
        finally:
            status.stop()

    def table(self, columns: Sequence[str], rows: Rows) -> None:
        """Write a table. Columns that are empty in every row are left out.

        Outside a terminal, each row is one line that names its columns. In a terminal that is too
        narrow for the longest words, each row becomes a list of its cells.
        """
        if not self.is_terminal:
            for row in rows:
                cells = [f"{name}: {_one_line(cell)}" for name, cell in _filled(columns, row)]
                self._put("", "  " + " | ".join(cells))
            return
        used = [any(cells) for cells in zip(*rows, strict=True)]
        if not any(used):
            return
        columns, *rows = ([*compress(row, used)] for row in (columns, *rows))
        if (widths := self._widths([columns, *rows])) is None:
            for row in rows:
                grid = Table.grid(padding=(0, 1))
                grid.add_column(no_wrap=True, style="bold")
                grid.add_column(overflow="fold")
                for name, cell in _filled(columns, row):
                    grid.add_row(name, Text(printable(cell)))
                self._console.print("", grid, sep="\n")
            return
        table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
        for column, width in zip(columns, widths, strict=True):
            table.add_column(column, width=width)
        for row in rows:
            table.add_row(*(Text(printable(cell), overflow="fold") for cell in row))
        self._console.print(table)

    def _widths(self, rows: Rows) -> list[int] | None:
        """Return the columns' widths in the terminal, or None if their longest words do not fit.

        Rich's own widths break words in narrow columns, although wide columns have free space.
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


def _filled(columns: Sequence[str], row: Sequence[str]) -> list[tuple[str, str]]:
    return [(name, cell) for name, cell in zip(columns, row, strict=True) if cell]


def indented(text: str) -> str:
    """Indent all lines after the first."""
    return text.replace("\n", f"\n{_INDENT}")


def _one_line(cell: str) -> str:
    """Escape line breaks and ` | `, which would begin another row or another cell."""
    return cell.replace("\n", r"\n").replace(" | ", r" \| ")
