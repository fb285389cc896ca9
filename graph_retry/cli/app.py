"""The commands, their options and their exit codes."""

from __future__ import annotations

import getpass
import warnings
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from langgraph.errors import GraphBubbleUp

from graph_retry.answering import PendingReview
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

_URL = typer.Option(metavar="URL", envvar="GRAPH_RETRY_URL", help="Look on a LangGraph server.")
_DB = typer.Option(metavar="FILE|DSN", envvar="GRAPH_RETRY_DB", help="Or in SQLite or PostgreSQL.")
_GRAPH_HELP = "With --db: module:variable or path/to/file.py:variable. Only `answer` needs it."
_GRAPH = typer.Option(metavar="GRAPH", envvar="GRAPH_RETRY_GRAPH", help=_GRAPH_HELP)
_BY = typer.Option(metavar="NAME", envvar="GRAPH_RETRY_BY", help="Who answers (default: you).")
_SET = typer.Option("--set", metavar="FIELD=VALUE", help="Call again with a field changed.")

Thread = Annotated[str, typer.Argument(metavar="THREAD", help="The thread's id.")]
Url = Annotated[str | None, _URL]
Db = Annotated[str | None, _DB]
Graph = Annotated[str | None, _GRAPH]
Json = Annotated[bool, typer.Option("--json", help="Write a JSON object a line.")]
Watch = Annotated[bool, typer.Option("--watch", help="Go on until Ctrl-C.")]
Every = Annotated[float, typer.Option(metavar="SECONDS", min=0.1, help="Between two looks.")]
Approve = Annotated[bool, typer.Option("--approve", help="Call again with the params as shown.")]
Set = Annotated[list[str] | None, _SET]
Reject = Annotated[str | None, typer.Option(metavar="REASON", help="Stop here (`-`: from stdin).")]
Respond = Annotated[str | None, typer.Option(metavar="FILE", help="Take this output (`-`: stdin).")]
ReviewId = Annotated[str | None, typer.Option(metavar="ID", help="Which one, where several wait.")]
By = Annotated[str | None, _BY]
Png = Annotated[Path | None, typer.Option(metavar="FILE", help="Draw them into this file, too.")]


@app.command()
def inbox(
    url: Url = None,
    db: Db = None,
    graph: Graph = None,
    json: Json = False,
    watch: Watch = False,
    every: Every = 2.0,
) -> None:
    """List what waits, newest first."""
    with _session(url, db, graph) as (place, screen):
        if watch:
            with suppress(KeyboardInterrupt):
                _watch(place, screen, json=json, every=every)
        elif not _list(screen, place.inbox(), json=json) and not json:
            screen.say("Nothing waits.")


def _list(screen: Screen, reviews: list[PendingReview], *, json: bool) -> bool:
    """Write reviews, and tell whether there are any."""
    for review in reviews if json else ():
        screen.say(as_json(review))
    if reviews and not json:
        screen.table(INBOX, inbox_rows(reviews))
    return bool(reviews)


def _watch(place: Place, screen: Screen, *, json: bool, every: float) -> None:
    """Keep one table up to date; where it would be lines, write each review once."""
    if screen.is_terminal and not json:
        with screen.live_table(INBOX) as put:
            place.watch(every, lambda reviews: put(inbox_rows(reviews)))
    seen: set[str] = set()

    def tell(reviews: list[PendingReview]) -> None:
        nonlocal seen
        _list(screen, [each for each in reviews if each.review_id not in seen][::-1], json=json)
        seen = {review.review_id for review in reviews}

    place.watch(every, tell)


@app.command()
def show(thread: Thread, url: Url = None, db: Db = None, graph: Graph = None) -> None:
    """Show what waits on a thread, and what was tried so far."""
    with _session(url, db, graph) as (place, screen):
        reviews = place.reviews(thread)
        for review in reviews:
            show_review(screen, review)
        _show_history(place, screen, thread, known=bool(reviews))


@app.command()
def history(thread: Thread, url: Url = None, db: Db = None, graph: Graph = None) -> None:
    """Show every attempt on a thread: who changed what, why, and how it ended."""
    with _session(url, db, graph) as (place, screen):
        _show_history(place, screen, thread)


def _show_history(place: Place, screen: Screen, thread: str, *, known: bool = False) -> None:
    ledgers = place.ledgers(thread)
    if not (ledgers or known):
        raise Stop(ExitCode.NOTHING, f"no attempt of thread {thread!r} is known here.")
    for ledger in ledgers:
        show_ledger(screen, ledger)


@app.command()
def answer(
    thread: Thread,
    url: Url = None,
    db: Db = None,
    graph: Graph = None,
    approve: Approve = False,
    changes: Set = None,
    reject: Reject = None,
    respond: Respond = None,
    review: ReviewId = None,
    by: By = None,
) -> None:
    """Answer what waits on a thread, and run the thread on.

    Without an answer among the options, whoever sits at the terminal is asked.
    """
    with _session(url, db, graph) as (place, screen):
        if url is None and graph is None:
            what = "an answer runs the graph on: name it with `--graph module:variable`."
            raise Stop(ExitCode.USAGE, what)
        chosen = sum([approve, bool(changes), reject is not None, respond is not None])
        if chosen > 1 or not (chosen or screen.has_person):
            what = "give one answer: `--approve`, `--set`, `--reject` or `--respond`."
            raise Stop(ExitCode.USAGE, what)
        answers = Answers(place, screen, thread, by or _login())
        decide = partial(from_options, changes=changes or (), reason=reject, output=respond)
        code = answers.give(review, decide) if chosen else answers.ask(review)
        if code:
            raise Stop(code)


@app.command()
def metrics(url: Url = None, db: Db = None, graph: Graph = None, png: Png = None) -> None:
    """Show figures over the calls of all threads."""
    with _session(url, db, graph) as (place, screen):
        found = [ledger for thread in place.threads() for ledger in place.ledgers(thread)]
        ledgers = [ledger for ledger in found if ledger.current]
        if not ledgers:
            raise Stop(ExitCode.NOTHING, "no call is known here.")
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
        with warnings.catch_warnings(), opened(url, db, graph) as place:
            warnings.showwarning = _tell
            yield place, Screen()
    except Stop as stop:
        code, why = stop.code, stop.message
    except StaleDecision as error:
        code, why = ExitCode.STALE, error.message
    except (KeyboardInterrupt, EOFError):
        code, why = ExitCode.LEFT, "left; what waits goes on waiting."
    except (GraphBubbleUp, BrokenPipeError):  # who read along has left: typer ends quietly
        raise
    except Exception as error:  # noqa: BLE001 - the graph's, the database's, the server's
        where = f" (server: {url})" if url else ""
        code, why = ExitCode.FAILED, f"{type(error).__name__}: {error}{where}"
    if why:
        _tell(why)
    if code:
        raise typer.Exit(code)


def _tell(message: Warning | str, *_: Any, **__: Any) -> None:
    typer.echo(f"graph-retry: {printable(str(message))}", err=True)


def _login() -> str | None:
    with suppress(OSError, KeyError):  # an account without a name
        return getpass.getuser()
    return None
