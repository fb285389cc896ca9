"""The demo's screen in a terminal, with `rich`."""

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from examples.demo.screen import Rows, Tone, printable

_STYLES: dict[Tone, str] = {"plain": "", "good": "green", "bad": "red", "quiet": "dim"}
_CELLS = {"failed": "red", "succeeded": "green"}


class RichScreen:
    """Rules, tables and colours. Texts are never read as markup."""

    def __init__(self) -> None:
        self._console = Console(highlight=False)

    def title(self, text: str) -> None:
        """Start a section."""
        self._console.print()
        self._console.print(Rule(Text(printable(text), "bold"), align="left", style="blue"))

    def say(self, text: str, tone: Tone = "plain") -> None:
        """Write some lines."""
        self._console.print(Text(printable(text), _STYLES[tone]))

    def table(self, columns: Sequence[str], rows: Rows) -> None:
        """Write a table."""
        table = Table(*columns, box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
        for row in rows:
            table.add_row(*(Text(printable(cell), _CELLS.get(cell, "")) for cell in row))
        self._console.print(table)
