"""The commands of `graph-retry`, with their options. Typer shows their docstrings as help."""

from __future__ import annotations

from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from graph_retry.desk.cli.answering.answer_reviews import Desk
from graph_retry.desk.cli.answering.bulk import answer_from
from graph_retry.desk.cli.answering.decide import from_words
from graph_retry.desk.cli.data import corrections, evaluate
from graph_retry.desk.cli.exits import ExitCode, Stop
from graph_retry.desk.cli.screen import Screen
from graph_retry.desk.cli.session import Label, login, on_source, warn
from graph_retry.desk.cli.show import INBOX, as_json, inbox_rows, show_ledger, show_review
from graph_retry.desk.cli.source import Source
from graph_retry.desk.cli.watch import watch as watch_for
from graph_retry.desk.cli.web import serve
from graph_retry.plugins import as_repr

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"graph-retry {version('graph-retry')}")
        raise typer.Exit


_VERSION = typer.Option(
    "--version", callback=_print_version, is_eager=True, help="Show it and exit."
)


@app.callback()
def options(version: Annotated[bool, _VERSION] = False) -> None:
    """Find, read and answer the reviews of waiting model calls."""


_BY = typer.Option(
    metavar="NAME",
    envvar="GRAPH_RETRY_BY",
    help="The name of the person who answers (default: your login).",
)
_REVIEW = typer.Option(metavar="ID", help="Answer only the review with this id.")
_FILE = typer.Option(
    metavar="FILE",
    help="Answer the reviews in FILE (`-`: stdin). Without --apply, the command only shows them.",
)
_RUN = typer.Option(
    metavar="COMMAND", help="Run this for each review, with the review as JSON on stdin."
)
_EVERY = typer.Option(
    metavar="SECONDS", min=0.1, help="Seconds between two readings of the reviews."
)
_PORT = typer.Option(
    metavar="PORT", min=0, max=65_535, help="The port to serve on (0: any free port)."
)

_THREAD = typer.Argument(
    metavar="THREAD", help="The id of a thread, or the beginning of the id of a waiting thread."
)

Thread = Annotated[str, _THREAD]
By = Annotated[str | None, _BY]


@app.command()
@on_source
def inbox(
    source: Source,
    screen: Screen,
    *,
    label: Label = None,
    json: Annotated[
        bool, typer.Option("--json", help="Write each review as a line of JSON.")
    ] = False,
) -> None:
    """List the open reviews, newest first."""
    reviews = source.inbox(dict(label or ()))
    if json:
        for review in reviews:
            screen.say(as_json(review))
    elif reviews:
        screen.table(INBOX, inbox_rows(reviews))
    else:
        screen.say("Nothing waits.")


@app.command()
@on_source
def show(source: Source, screen: Screen, *, thread: Thread) -> None:
    """Show the open reviews and all attempts of a thread."""
    thread = source.thread(thread)
    reviews, ledgers = source.reviews(thread), source.ledgers(thread)
    for review in reviews:
        show_review(screen, review)
    for ledger in ledgers:
        show_ledger(screen, ledger)
    standing = "" if reviews else source.standing(thread).told
    if standing:
        screen.say(standing)
    if not (reviews or ledgers or standing):
        raise Stop(ExitCode.NOTHING, f"thread {as_repr(thread)} has no attempts here.")


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
@on_source
def answer(
    source: Source,
    screen: Screen,
    *,
    given: typer.Context,
    thread: Annotated[str | None, _THREAD] = None,
    review: Annotated[str | None, _REVIEW] = None,
    by: By = None,
    file: Annotated[Path | None, _FILE] = None,
    apply: Annotated[bool, typer.Option("--apply", help="With --file: send the answers.")] = False,
) -> None:
    """Answer open reviews, and continue their threads.

    Without THREAD, the command asks you about each thread of the inbox. With THREAD, it asks about
    this thread. With a decision after THREAD, it sends the decision without asking:

    approve, edit FIELD=VALUE, reject REASON, respond FILE, comment WORDS, or any other decision
    that the prompt offers.
    """
    source.require_graph()
    words, desk = given.args, Desk(source, screen, by or login())
    if file is not None:
        if thread is not None or review is not None:
            raise Stop(ExitCode.USAGE, "leave THREAD out: the lines of `--file` name the threads.")
        code = answer_from(source, screen, file, desk.by, apply=apply)
    elif apply:
        raise Stop(
            ExitCode.USAGE,
            "`--apply` needs `--file`. All other answers are sent at once: leave `--apply` out.",
        )
    elif not (words or screen.has_person):
        what = "give THREAD and one answer" if thread is None else "give one answer after THREAD"
        ways = "approve, edit FIELD=VALUE, reject REASON, respond FILE, comment WORDS"
        raise Stop(ExitCode.USAGE, f"there is no terminal to ask you: {what}: {ways}.")
    elif thread is None:
        code = desk.walk()
    else:
        whole = source.thread(thread, exactly=not screen.has_person)
        decide = partial(from_words, words)
        code = desk.give(whole, review, decide) if words else desk.ask(whole, review)
    if code:
        raise Stop(code)


@app.command("continue")
@on_source
def go_on(source: Source, screen: Screen, *, thread: Thread) -> None:
    """Continue a thread after a crash or a cancelled run."""
    source.require_graph()
    whole = source.thread(thread, exactly=not screen.has_person)
    Desk(source, screen, None).go_on(whole)


@app.command()
@on_source
def watch(
    source: Source,
    screen: Screen,
    *,
    label: Label = None,
    every: Annotated[float, _EVERY] = 5.0,
    bell: Annotated[bool, typer.Option("--bell", help="Ring the terminal's bell.")] = False,
    run: Annotated[str | None, _RUN] = None,
) -> None:
    """List new reviews as they appear, until Ctrl-C."""
    labels = dict(label or ())
    watch_for(source, screen, labels, every=every, bell=bell, command=run, warn=warn)


@app.command()
@on_source
def web(
    source: Source,
    screen: Screen,
    *,
    port: Annotated[int, _PORT] = 8765,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Show reviews only, without answers.")
    ] = False,
    by: By = None,
) -> None:
    """Show and answer the open reviews in a browser."""
    serve(source, screen, port=port, by=by or login(), read_only=read_only)


app.command()(on_source(corrections))
app.command()(on_source(evaluate))
