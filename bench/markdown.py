"""Writes what the benchmarks print."""

from collections.abc import Iterable, Sequence


def table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Write a table, figures to the right.

    Example:
        >>> print(table(["", "calls"], [["here", 4]]))
        |  | calls |
        |---|---:|
        | here | 4 |
    """
    lines = [headings, ["---", *["---:"] * (len(headings) - 1)]]
    rule = "|".join(lines.pop())
    written = [f"| {' | '.join(str(cell) for cell in row)} |" for row in [*lines, *rows]]
    return "\n".join([written[0], f"|{rule}|", *written[1:]])
