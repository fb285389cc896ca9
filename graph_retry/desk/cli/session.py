"""Run the command once: open the source, and turn failures into exit codes."""

from __future__ import annotations

import getpass
import os
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, NamedTuple

import typer
from langgraph.errors import GraphBubbleUp

from graph_retry.desk.cli.exits import ExitCode, Stop
from graph_retry.desk.cli.screen import Screen, indented, printable
from graph_retry.desk.cli.source import Source, open_source
from graph_retry.errors import StaleDecision
from graph_retry.plugins import as_repr, error_text

_HELP = {
    "url": ("URL", "The LangGraph server to read [or GRAPH_RETRY_URL]."),
    "db": ("FILE|DSN", "The SQLite or PostgreSQL database to read [or GRAPH_RETRY_DB]."),
    "graph": ("GRAPH", "With --db: the graph, as module:variable [or GRAPH_RETRY_GRAPH]."),
}
_WHERE = {
    name: Annotated[str | None, typer.Option(metavar=metavar, help=text)]
    for name, (metavar, text) in _HELP.items()
}
_INTERRUPTED = "interrupted; open reviews stay open."


class Pair(NamedTuple):
    """The two parts of an option that is typed as `name=text`."""

    name: str
    text: str


def pairs(metavar: str, help: str) -> Any:
    """Return an option that is typed as `name=text`. `metavar` names the two parts."""

    def pair(text: str) -> Pair:
        name, sign, rest = text.partition("=")
        if not (sign and name):
            raise typer.BadParameter(f"{as_repr(text)} must have the form {metavar}.")
        return Pair(name, rest)

    return typer.Option(metavar=metavar, parser=pair, help=help)


_LABEL = pairs("NAME=TEXT", "Only calls with this label.")
Label = Annotated[list[Pair] | None, _LABEL]


def on_source(command: Callable[..., None]) -> Callable[..., None]:
    """Add `--url`, `--db` and `--graph` to a command, and call it with the opened source.

    The first two parameters of a command are the source and the screen. The keyword parameters are
    its options. Typer reads the options from the changed signature.
    """
    _, _, *own = signature(command, eval_str=True).parameters.values()

    @wraps(command)
    def run(*, url: str | None, db: str | None, graph: str | None, **given: Any) -> None:
        with _session(url, db, graph) as (source, screen):
            command(source, screen, **given)

    where = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=option)
        for name, option in _WHERE.items()
    ]
    options = [*own, *where]
    run.__signature__ = Signature(options)  # type: ignore[attr-defined]
    run.__annotations__ = {option.name: option.annotation for option in options}
    return run


@contextmanager
def _session(
    url: str | None, db: str | None, graph: str | None
) -> Generator[tuple[Source, Screen]]:
    """Open the source. If it fails, print a line, and exit with a code."""
    code, why = ExitCode.DONE, ""
    named = {name: os.environ.get(f"GRAPH_RETRY_{name.upper()}") or None for name in _WHERE}
    if url is None and db is None:  # Either option overrides both environment variables.
        url, db = named["url"], named["db"]
    try:
        with warnings.catch_warnings(), open_source(url, db, graph or named["graph"]) as source:
            warnings.showwarning = warn
            try:
                yield source, Screen()
            except KeyboardInterrupt as cut:
                # Closing the source waits for a running sync call, so the line is written first.
                warn(error_text(cut) or _INTERRUPTED)
                code = ExitCode.INTERRUPTED
    except Stop as stop:
        code, why = stop.code, stop.message
    except StaleDecision as error:
        code, why = ExitCode.STALE, error.message
    except (KeyboardInterrupt, EOFError):
        code, why = ExitCode.INTERRUPTED, "" if code else _INTERRUPTED
    except (GraphBubbleUp, BrokenPipeError):  # Typer handles a closed pipe without a message.
        raise
    except Exception as error:  # noqa: BLE001 - of the graph, the database or the server
        where = f" (server: {url})" if url else ""
        code, why = ExitCode.FAILED, f"{type(error).__name__}: {error_text(error, 2_000)}{where}"
    if why:
        warn(why)
    if code:
        raise typer.Exit(code)


def warn(message: Warning | str, *_: Any, **__: Any) -> None:
    """Write a line to standard error."""
    typer.echo(f"graph-retry: {indented(printable(str(message)))}", err=True)


def login() -> str | None:
    """Return the login name of the person at the terminal, if the account has one."""
    with suppress(OSError, KeyError):
        return getpass.getuser()
    return None
