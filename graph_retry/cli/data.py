"""Commands on the ledgers of a whole database: export corrections, evaluate."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

from graph_retry.cli.exits import ExitCode, Stop
from graph_retry.cli.screen import Screen
from graph_retry.cli.source import Source, load_object
from graph_retry.corrections import Format, aexport
from graph_retry.evaluate import aevaluate


def write_corrections(
    source: Source,
    screen: Screen,
    out: Path,
    format: str,
    shares: list[str] | None,
    selection: dict[str, Any],
) -> None:
    """Export corrections, and print how many were written and left out."""
    if format not in get_args(Format):
        raise Stop(ExitCode.USAGE, f"`--format` is {format!r}: give {', '.join(get_args(Format))}.")
    known: Any = format
    split = None if shares is None else dict(map(_share, shares))
    selected: Any = {name: value for name, value in selection.items() if value}
    exported = source.runner.run(aexport(source.opened, out, known, split=split, **selected))
    for path, count in exported.written.items():
        screen.say(f"{count} written to {path}")
    for why, count in sorted(exported.left_out.items()):
        screen.say(f"{count} left out: {why}", "quiet")


def evaluate_calls(
    source: Source,
    screen: Screen,
    llm_call: str,
    output: str | None,
    kept: Path | None,
    selection: dict[str, Any],
) -> None:
    """Make recorded calls again with another function, and print the figures."""
    selected: Any = {name: value for name, value in selection.items() if value}
    if kept is not None:
        selected["path"] = kept
    function = load_object(llm_call, "--call")
    wanted = None if output is None else load_object(output, "--output")
    with screen.progress("calls made") as advance:

        def report(_: object) -> None:
            advance()

        selected["progress"] = report
        done = source.runner.run(aevaluate(source.opened, function, output=wanted, **selected))
    figures = done.figures()
    screen.table(("figure", "value"), [(name, _number(value)) for name, value in figures.items()])
    for why, count in sorted(done.skipped.items()):
        screen.say(f"{count} skipped: {why}", "quiet")


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:,g}"


def _share(text: str) -> tuple[str, float]:
    name, _, share = text.partition("=")
    try:
        return name, float(share)
    except ValueError:
        what = f"`--split` is {text!r}: give a part and its share, such as `train=0.8`."
        raise Stop(ExitCode.USAGE, what) from None
