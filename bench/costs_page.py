"""The table of the reader's costs, as `docs/reading.md` has it.

Run `python -m bench.costs_page` after a change of `costs.py`: it writes the table into the page. A
test compares the two.
"""

from pathlib import Path

from graph_retry.lossless.beside import REASONS
from graph_retry.lossless.weighted.costs import (
    ACCIDENTS,
    LOSSES,
    NOTATIONS,
    SLIPS,
    SURPRISES,
)

PAGE = Path(__file__).parents[1] / "docs" / "reading.md"
BEGIN, END = "<!-- costs: from costs.py -->\n", "<!-- end of costs -->\n"
GROUPS = {
    "Another notation of the same value (grade `format`)": NOTATIONS,
    "A slip: one mark is missing or too many (grade `assumed`)": SLIPS,
    "An accident: at most one of them is repaired (grade `assumed`)": ACCIDENTS,
    "A surprise: it changes no value, but makes another reading more likely": SURPRISES,
    "A loss: data is missing, and a reading with one is refused": LOSSES,
}


def costs() -> str:
    """Return the table in Markdown: what writers do, its costs, and why they do it."""
    parts = []
    for title, rows in GROUPS.items():
        parts += [f"**{title}**\n", "| what came | alone | habit | why |", "|---|---:|---:|---|"]
        for row in rows.values():
            told = row.told[0].upper() + row.told[1:]
            parts.append(f"| {told} | {row.lone} | {row.habit} | {row.why} |")
        parts[-1] += "\n"
    reasons = dict.fromkeys(REASONS)
    parts += ["**Text beside an answer that refuses it**\n", "| reason | kind |", "|---|---|"]
    parts += [f"| {told} | `{kind}` |" for told, kind in reasons]
    return "\n".join(parts) + "\n"


def page(text: str) -> str:
    """Return the page with its table made anew."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{costs()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
