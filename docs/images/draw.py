"""Draws a review and a ledger in the terminal: `python -m docs.images.draw`, from the repository.

It plays the demo in a terminal of its own, types the answers a person might, and writes what the
screen shows as SVG, without a font or script from elsewhere.
"""

import os
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

from tests.terminal import Terminal

ROOT = Path(__file__).parent.parent.parent
WIDTH = 100
SVG = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font: {char_height}px ui-monospace, Menlo, Consolas, monospace; }}
.{unique_id}-title {{ font: bold 18px sans-serif; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">{matrix}</g>
</g>
</svg>
"""


def played(answers: list[str]) -> str:
    """Run the demo, type the answers, and return what was on the screen."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": str(WIDTH)}
    environment |= {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LINES": "50"}
    with tempfile.TemporaryDirectory() as folder:
        demo = Terminal([sys.executable, "-m", "examples.demo"], Path(folder), environment)
        for answer in answers:
            demo.wait_for("answer> ")
            demo.type(f"{answer}\n")
        demo.wait_for("Attempts of")
        demo.wait_for("Model calls")
        demo.close()
    return demo.seen


def draw(lines: list[str], name: str, title: str = "make demo") -> None:
    """Write lines as they looked in the terminal."""
    with Path(os.devnull).open("w") as nowhere:
        console = Console(record=True, width=WIDTH, file=nowhere)
        console.print(Text.from_ansi("\n".join(lines)))
    drawn = console.export_svg(title=title, code_format=SVG, unique_id=name)
    (ROOT / "docs" / "images" / f"{name}.svg").write_text(drawn)


def main() -> None:
    """Write two pictures: the first review with its answers, and the ledger at the end."""
    lines = played(["edit temprature=0", "edit temperature=0", "approve"]).splitlines()
    second = next(n for n, line in enumerate(lines) if "(attempt 2)" in line)
    ledger = next(n for n, line in enumerate(lines) if "Attempts of" in line)
    draw(lines[2 : second - 1], "review")
    draw(lines[ledger:], "ledger")


if __name__ == "__main__":
    main()
