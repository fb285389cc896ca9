"""The commands, their options and their exit codes."""

from __future__ import annotations

import getpass
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from langgraph.errors import GraphBubbleUp

from graph_retry.cli.answer import Answers
from graph_retry.cli.decide import from_options
from graph_retry.cli.exits import ExitCode, Stop, optional
from graph_retry.cli.figures import show_figures
from graph_retry.cli.place import Place, opened
from graph_retry.cli.screen import Screen, printable
from graph_retry.cli.show import INBOX, as_json, inbox_rows, show_ledger, show_review
from graph_retry.errors import StaleDecision
from graph_retry.metrics import summarize

app = typer.Typer(
    help="Find, read and answer the reviews that model calls wait for.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Thread = Annotated[str, typer.Argument(metavar="THREAD", help="The thread's id.")]
_URL = typer.Option(metavar="URL", envvar="GRAPH_RETRY_URL", help="Look on this LangGraph server.")
_DB = typer.Option(
    metavar="FILE|DSN",
    envvar="GRAPH_RETRY_DB",
    help="Or in this SQLite file or PostgreSQL database.",
)
_GRAPH = typer.Option(
    metavar="MODULE:VARIABLE",
    envvar="GRAPH_RETRY_GRAPH",
    help="With --db: the graph, also as path/to/file.py:variable. Only `answer` needs it.",
)
Url = Annotated[str | None, _URL]
Db = Annotated[str | None, _DB]
Graph = Annotated[str | None, _GRAPH]


@app.command()
def inbox(
    url: Url = None,
    db: Db = None,
    graph: Graph = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Go on until Ctrl-C.")] = False,
    every: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.1, help="Seconds between two looks.")
    ] = 2.0,
) -> None:
    """List what waits, newest first."""
    with _session(url, db, graph) as (place, screen):
        if watch:
            with suppress(KeyboardInterrupt):
                _watch(place, screen, json=json, every=every)
            return
        reviews = place.inbox()
        if json:
            for review in reviews:
                screen.say(as_json(review))
        elif reviews:
            screen.table(INBOX, inbox_rows(reviews))
        else:
            screen.say("Nothing waits.")


def _watch(place: Place, screen: Screen, *, json: bool, every: float) -> None:
    """Keep one table up to date; where it would be lines, write each review once."""
    if screen.is_terminal and not json:
        with screen.live_table(INBOX) as put:
            while True:
                put(inbox_rows(place.inbox()))
                time.sleep(every)
    seen: set[str] = set()
    while True:
        reviews = place.inbox()
        for review in reversed([each for each in reviews if each.review_id not in seen]):
            if json:
                screen.say(as_json(review))
            else:
                screen.table(INBOX, inbox_rows([review]))
        seen = {review.review_id for review in reviews}
        time.sleep(every)


@app.command()
def show(thread: Thread, url: Url = None, db: Db = None, graph: Graph = None) -> None:
    """Show what waits on a thread, and what was tried so far."""
    with _session(url, db, graph) as (place, screen):
        for review in place.reviews(thread):
            show_review(screen, review)
        _show_history(place, screen, thread)


@app.command()
def history(thread: Thread, url: Url = None, db: Db = None, graph: Graph = None) -> None:
    """Show every attempt on a thread: who changed what, why, and how it ended."""
    with _session(url, db, graph) as (place, screen):
        _show_history(place, screen, thread)


def _show_history(place: Place, screen: Screen, thread: str) -> None:
    ledgers = place.ledgers(thread)
    if not ledgers:
        raise Stop(ExitCode.NOTHING, f"no attempt of thread {thread!r} is known here.")
    for ledger in ledgers:
        show_ledger(screen, ledger)


@app.command()
def answer(
    thread: Thread,
    url: Url = None,
    db: Db = None,
    graph: Graph = None,
    approve: Annotated[
        bool, typer.Option("--approve", help="Call again with the params as shown.")
    ] = False,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="FIELD=VALUE", help="Call again with a field changed."),
    ] = None,
    reject: Annotated[
        str | None, typer.Option(metavar="REASON", help="Stop here (`-`: standard input).")
    ] = None,
    respond: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Take this as the output (`-`: standard input)."),
    ] = None,
    review: Annotated[
        str | None, typer.Option(metavar="ID", help="Which review, where several wait.")
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", envvar="GRAPH_RETRY_BY", help="Who answers.", show_default="login name"
        ),
    ] = None,
) -> None:
    """Answer what waits on a thread, and run the thread on.

    Without an answer among the options, whoever sits at the terminal is asked.
    """
    with _session(url, db, graph) as (place, screen):
        if url is None and graph is None:
            what = "an answer runs the graph on: name it with `--graph module:variable`."
            raise Stop(ExitCode.USAGE, what)
        chosen = sum([approve, bool(set_), reject is not None, respond is not None])
        if chosen > 1 or not (chosen or screen.has_person):
            what = "give one answer: `--approve`, `--set`, `--reject` or `--respond`."
            raise Stop(ExitCode.USAGE, what)
        answers = Answers(place, screen, thread, by or _login())
        decide = partial(from_options, changes=set_ or (), reason=reject, output=respond)
        code = answers.give(review, decide) if chosen else answers.ask(review)
        if code:
            raise Stop(code)


@app.command()
def metrics(
    url: Url = None,
    db: Db = None,
    graph: Graph = None,
    png: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw them into this file, too.")
    ] = None,
) -> None:
    """Show figures over the calls of all threads."""
    with _session(url, db, graph) as (place, screen):
        ledgers = [
            ledger
            for thread in place.threads()
            for ledger in place.ledgers(thread)
            if ledger.current
        ]
        show_figures(screen, summarize(ledger.attempts for ledger in ledgers))
        if png is not None:
            optional("matplotlib", "plot").use("agg")
            optional("graph_retry.plot", "plot").plot_summary(ledgers).savefig(png)
            screen.say(f"Drawn: {png}")


@contextmanager
def _session(url: str | None, db: str | None, graph: str | None) -> Generator[tuple[Place, Screen]]:
    """Open the place; turn every way to fail into a line and an exit code."""
    code, why = ExitCode.DONE, ""
    try:
        with opened(url, db, graph) as place:
            yield place, Screen()
    except Stop as stop:
        code, why = stop.code, stop.message
    except StaleDecision as error:
        code, why = ExitCode.STALE, error.message
    except (KeyboardInterrupt, EOFError):
        code, why = ExitCode.LEFT, "left; what waits goes on waiting."
    except GraphBubbleUp:
        raise
    except Exception as error:  # noqa: BLE001 - the graph's, the database's, the server's
        code, why = ExitCode.FAILED, f"{type(error).__name__}: {error}"
    if why:
        typer.echo(f"graph-retry: {printable(why)}", err=True)
    if code:
        raise typer.Exit(code)


def _login() -> str | None:
    with suppress(OSError, KeyError):  # an account without a name
        return getpass.getuser()
    return None
