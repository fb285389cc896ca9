"""What the command does with the ledgers of a whole database: export corrections, evaluate."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

from graph_retry.cli.exits import ExitCode, Stop
from graph_retry.cli.screen import Screen
from graph_retry.cli.source import Source
from graph_retry.corrections import Format, aexport


def write_corrections(
    source: Source,
    screen: Screen,
    out: Path,
    format: str,
    shares: list[str] | None,
    selection: dict[str, Any],
) -> None:
    """Export the corrections of a database, and say what was written and what was not."""
    opened = _database(source)
    if format not in get_args(Format):
        raise Stop(ExitCode.USAGE, f"`--format` is {format!r}: give {', '.join(get_args(Format))}.")
    known: Any = format
    split = None if shares is None else dict(map(_share, shares))
    selected: Any = {name: value for name, value in selection.items() if value}
    exported = source.runner.run(aexport(opened, out, known, split=split, **selected))
    for path, count in exported.written.items():
        screen.say(f"{count} written to {path}")
    for why, count in sorted(exported.left_out.items()):
        screen.say(f"{count} left out: {why}", "quiet")


def _database(source: Source) -> Any:
    if not source.is_local:
        what = "this reads every thread of a database: name it with `--db`."
        raise Stop(ExitCode.USAGE, what)
    return source.opened


def _share(text: str) -> tuple[str, float]:
    name, _, share = text.partition("=")
    try:
        return name, float(share)
    except ValueError:
        what = f"`--split` is {text!r}: give a part and its share, such as `train=0.8`."
        raise Stop(ExitCode.USAGE, what) from None
