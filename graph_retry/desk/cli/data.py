"""The commands that read the ledgers of all threads: `corrections` and `evaluate`."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from graph_retry.data import Format, aevaluate, aexport
from graph_retry.desk.cli.exits import ExitCode, Stop
from graph_retry.desk.cli.screen import Screen
from graph_retry.desk.cli.session import Label, Pair, pairs
from graph_retry.desk.cli.source import Source, load_object
from graph_retry.options import LLMCall
from graph_retry.plugins import check_argument, error_text

_CALL = typer.Option(
    "--call", metavar="MODULE:FUNCTION", help="The function to evaluate; it takes the params."
)
_OUTPUT = typer.Option(
    metavar="MODULE:TYPE", help="The type that the output must fit (default: any output)."
)
_PARAMS = typer.Option(
    metavar="MODULE:TYPE", help="The type in which the function gets the params (default: a dict)."
)
_KEEP = typer.Option(
    metavar="FILE", help="Save each result here. A second run continues from this file."
)


_SPLIT = pairs("PART=SHARE", "Write a file for each part, such as train=0.8 and test=0.2.")
_HOW = typer.Option(
    metavar="KIND",
    help="Only this kind: supplied, overruled, confirmed, edited, commented, approved or rejected.",
)

Name = Annotated[list[str] | None, typer.Option(metavar="NAME", help="Only calls with this name.")]


def corrections(
    source: Source,
    screen: Screen,
    *,
    out: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="The file to write. An existing file is replaced."),
    ],
    format: Annotated[Format, typer.Option(help="The form of each row.")] = "rows",
    split: Annotated[list[Pair] | None, _SPLIT] = None,
    name: Name = None,
    how: Annotated[list[str] | None, _HOW] = None,
    label: Label = None,
) -> None:
    """Write people's corrections to a file, as a data set."""
    selected: Any = _given(calls=name, how=how, labels=dict(label or ()))
    with _misuse():
        shares = {part: _share(text) for part, text in split} if split else None
        export = aexport(source.opened, out, format, split=shares, **selected)
        exported = source.runner.run(export)
    for path, count in exported.written.items():
        screen.say(f"{count} written to {path}")
    for why, count in sorted(exported.left_out.items()):
        screen.say(f"{count} left out: {why}", "quiet")


def evaluate(
    source: Source,
    screen: Screen,
    *,
    call: Annotated[str, _CALL],
    output: Annotated[str | None, _OUTPUT] = None,
    params: Annotated[str | None, _PARAMS] = None,
    name: Name = None,
    label: Label = None,
    keep: Annotated[Path | None, _KEEP] = None,
) -> None:
    """Repeat recorded calls, and count the reviews that they need."""
    function = load_object(call, "--call")
    wanted = None if output is None else load_object(output, "--output")
    params_type = None if params is None else load_object(params, "--params")
    labels = dict(label or ())
    selected: Any = _given(calls=name, labels_wanted=labels, path=keep, params_type=params_type)
    with screen.progress("calls made") as advance, _misuse():
        check_argument("--call", function, cast("Any", LLMCall)[Any, Any])
        evaluation = aevaluate(
            *(source.opened, function), output=wanted, progress=lambda _: advance(), **selected
        )
        done = source.runner.run(evaluation)
    rows = [(figure, _number(value)) for figure, value in done.figures().items()]
    screen.table(("figure", "value"), rows)
    for why, count in sorted(done.skipped.items()):
        screen.say(f"{count} skipped: {why}", "quiet")


def _given(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value}


def _share(text: str) -> Any:
    with suppress(ValueError):
        return float(text)
    return text  # `export` raises the error, which tells how to write a share.


@contextmanager
def _misuse() -> Generator[None]:
    """Turn a `ValueError` of this package into a usage error, because it is about an argument."""
    try:
        yield
    except (ValueError, FileNotFoundError) as error:
        raise Stop(ExitCode.USAGE, error_text(error, 2_000)) from None


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:,g}"
