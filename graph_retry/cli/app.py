"""The commands, their options and their exit codes."""

from __future__ import annotations

import getpass
import os
import warnings
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from langgraph.errors import GraphBubbleUp

from graph_retry.cli.answering.answer import Answers, walk
from graph_retry.cli.answering.bulk import answer_from
from graph_retry.cli.answering.decide import from_words, labels_of
from graph_retry.cli.data import evaluate_calls, write_corrections
from graph_retry.cli.exits import ExitCode, Stop
from graph_retry.cli.screen import Screen, indented, printable
from graph_retry.cli.show import INBOX, as_json, inbox_rows, show_ledger, show_review
from graph_retry.cli.source import Source, open_source
from graph_retry.cli.watch import watch as watch_for
from graph_retry.cli.web import serve
from graph_retry.errors import StaleDecision

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

_URL = typer.Option(metavar="URL", help="Look on a LangGraph server [or GRAPH_RETRY_URL].")
_DB = typer.Option(metavar="FILE|DSN", help="Or in SQLite or PostgreSQL [or GRAPH_RETRY_DB].")
_GRAPH_HELP = "With --db: module:variable or path/to/file.py:variable. Only `answer` needs it."
_GRAPH = typer.Option(metavar="GRAPH", envvar="GRAPH_RETRY_GRAPH", help=_GRAPH_HELP)
_BY = typer.Option(metavar="NAME", envvar="GRAPH_RETRY_BY", help="Who answers (default: you).")
_LABEL = typer.Option(metavar="NAME=TEXT", help="Only calls with this label.")
_FILE = typer.Option(metavar="FILE", help="Show what the lines of FILE would answer (`-`: stdin).")
_RUN = typer.Option(metavar="COMMAND", help="Run it for each, with the review as JSON on stdin.")
_FORMAT = typer.Option(help="rows, openai, preference, pydantic-evals or langsmith.")
_NAME = typer.Option("--name", metavar="NAME", help="Only calls of this name.")
_SPLIT = typer.Option(metavar="PART=SHARE", help="A file a part, no thread in two of them.")
_HOW = typer.Option(metavar="KIND", help="Only supplied, overruled, confirmed, edited, …")

_CALL = typer.Option("--call", metavar="MODULE:FUNCTION", help="The function of the params.")
_OUTPUT = typer.Option(metavar="MODULE:TYPE", help="What it must give (default: anything).")
_KEEP = typer.Option(metavar="FILE", help="Keep each result, and go on from there after a crash.")

LlmCall = Annotated[str, _CALL]
Output = Annotated[str | None, _OUTPUT]
Keep = Annotated[Path | None, _KEEP]
Out = Annotated[Path, typer.Argument(metavar="FILE", help="Where to write; replaced.")]
Format = Annotated[str, _FORMAT]
Split = Annotated[list[str] | None, _SPLIT]
Call = Annotated[
    list[str] | None, typer.Option("--name", metavar="NAME", help="Only calls of this name.")
]
How = Annotated[list[str] | None, _HOW]
Thread = Annotated[str, typer.Argument(metavar="THREAD", help="The thread's id, or its beginning.")]
AnyThread = Annotated[
    str | None, typer.Argument(metavar="THREAD", help="A thread's id, or its beginning.")
]
Url = Annotated[str | None, _URL]
Db = Annotated[str | None, _DB]
Graph = Annotated[str | None, _GRAPH]
Label = Annotated[list[str] | None, _LABEL]
Json = Annotated[bool, typer.Option("--json", help="Write a JSON object a line.")]
File = Annotated[Path | None, _FILE]
Apply = Annotated[bool, typer.Option("--apply", help="With --file: answer them.")]
Every = Annotated[float, typer.Option(metavar="SECONDS", min=0.0, help="Time between two looks.")]
Bell = Annotated[bool, typer.Option("--bell", help="Ring the terminal's bell.")]
Run = Annotated[str | None, _RUN]
ReviewId = Annotated[str | None, typer.Option(metavar="ID", help="Which one, where several wait.")]
By = Annotated[str | None, _BY]
Port = Annotated[int, typer.Option(metavar="PORT", help="Port of this machine (0: any free one).")]
ReadOnly = Annotated[bool, typer.Option("--read-only", help="Only show, take no answer.")]


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"graph-retry {version('graph-retry')}")
        raise typer.Exit


_VERSION = typer.Option(
    "--version", callback=_print_version, is_eager=True, help="Show it and exit."
)
Version = Annotated[bool, _VERSION]


@app.callback()
def options(version: Version = False) -> None:
    """Find, read and answer the reviews that model calls wait for."""


@app.command()
def inbox(
    url: Url = None, db: Db = None, graph: Graph = None, label: Label = None, json: Json = False
) -> None:
    """List what waits, newest first."""
    with _session(url, db, graph) as (source, screen):
        reviews = source.inbox(labels_of(label or ()))
        if json:
            for review in reviews:
                screen.say(as_json(review))
        elif reviews:
            screen.table(INBOX, inbox_rows(reviews))
        else:
            screen.say("Nothing waits.")


@app.command()
def web(
    url: Url = None,
    db: Db = None,
    graph: Graph = None,
    port: Port = 8765,
    read_only: ReadOnly = False,
    by: By = None,
) -> None:
    """Show what waits in a browser on this machine, and take answers there."""
    with _session(url, db, graph) as (source, screen):
        serve(source, screen, port=port, by=by or _login(), read_only=read_only)


@app.command()
def show(thread: Thread, url: Url = None, db: Db = None, graph: Graph = None) -> None:
    """Show what waits on a thread, then every attempt: who changed what, and how it ended."""
    with _session(url, db, graph) as (source, screen):
        thread = source.thread(thread)
        reviews = source.reviews(thread)
        for review in reviews:
            show_review(screen, review)
        ledgers = source.ledgers(thread)
        for ledger in ledgers:
            show_ledger(screen, ledger)
        standing = "" if reviews else source.standing(thread)
        if standing:
            screen.say(standing)
        if not (reviews or ledgers or standing):
            raise Stop(ExitCode.NOTHING, f"no attempt of thread {thread!r} is known here.")


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def answer(
    given: typer.Context,
    thread: AnyThread = None,
    url: Url = None,
    db: Db = None,
    graph: Graph = None,
    review: ReviewId = None,
    by: By = None,
    file: File = None,
    apply: Apply = False,
) -> None:
    """Answer what waits, and continue the threads.

    Without THREAD, it asks you about every thread of the inbox. A decision behind THREAD is
    applied without asking: approve, edit FIELD=VALUE, reject REASON, respond FILE, comment WORDS
    and the others, each as it is typed at the prompt.
    """
    with _session(url, db, graph) as (source, screen):
        _require_graph(source)
        words, by = given.args, by or _login()
        if file is not None:
            if thread is not None or review is not None:
                raise Stop(ExitCode.USAGE, "`--file` names its threads: leave THREAD out.")
            code = answer_from(source, screen, file, by, apply=apply)
        elif not (words or screen.has_person):
            ways = "approve, edit FIELD=VALUE, reject REASON, respond FILE, comment WORDS"
            raise Stop(ExitCode.USAGE, f"say THREAD and one answer: {ways}.")
        elif thread is None:
            code = walk(source, screen, by)
        else:
            whole = source.thread(thread, exactly=not screen.has_person)
            answers = Answers(source, screen, whole, by)
            code = (
                answers.give(review, partial(from_words, words)) if words else answers.ask(review)
            )
        if code:
            raise Stop(code)


@app.command("continue")
def go_on(thread: Thread, url: Url = None, db: Db = None, graph: Graph = None) -> None:
    """Continue a thread whose run was interrupted, by a crash or a cancellation."""
    with _session(url, db, graph) as (source, screen):
        _require_graph(source)
        whole = source.thread(thread, exactly=not screen.has_person)
        Answers(source, screen, whole, None).go_on()


@app.command()
def watch(
    url: Url = None,
    db: Db = None,
    graph: Graph = None,
    label: Label = None,
    every: Every = 5.0,
    bell: Bell = False,
    run: Run = None,
) -> None:
    """List each review as it comes, until Ctrl-C."""
    with _session(url, db, graph) as (source, screen):
        labels = labels_of(label or ())
        watch_for(source, screen, labels, every=every, bell=bell, command=run, warn=_warn)


@app.command()
def corrections(
    out: Out,
    url: Url = None,
    db: Db = None,
    graph: Graph = None,
    format: Format = "rows",
    split: Split = None,
    name: Call = None,
    how: How = None,
    label: Label = None,
) -> None:
    """Write what people corrected to a file: a data set."""
    with _session(url, db, graph) as (source, screen):
        selection = {"calls": name, "how": how, "labels": labels_of(label or ())}
        write_corrections(source, screen, out, format, split, selection)


@app.command()
def evaluate(
    call: LlmCall,
    url: Url = None,
    db: Db = None,
    graph: Graph = None,
    output: Output = None,
    name: Call = None,
    label: Label = None,
    keep: Keep = None,
) -> None:
    """Make recorded calls again with another function, and count who would have been asked."""
    with _session(url, db, graph) as (source, screen):
        selection = {"calls": name, "labels_wanted": labels_of(label or ())}
        evaluate_calls(source, screen, call, output, keep, selection)


def _require_graph(source: Source) -> None:
    if not source.can_answer:
        what = "this runs the graph on: name it with `--graph module:variable`."
        raise Stop(ExitCode.USAGE, what)


@contextmanager
def _session(
    url: str | None, db: str | None, graph: str | None
) -> Generator[tuple[Source, Screen]]:
    """Open the server or database; turn every failure into a line and an exit code."""
    code, why = ExitCode.DONE, ""
    if url is None and db is None:  # an option beats the environment
        url, db = (os.environ.get(f"GRAPH_RETRY_{name}") or None for name in ("URL", "DB"))
    try:
        with warnings.catch_warnings(), open_source(url, db, graph) as source:
            warnings.showwarning = _warn
            yield source, Screen()
    except Stop as stop:
        code, why = stop.code, stop.message
    except StaleDecision as error:
        code, why = ExitCode.STALE, error.message
    except (KeyboardInterrupt, EOFError):
        code, why = ExitCode.INTERRUPTED, "interrupted; open reviews stay open."
    except (GraphBubbleUp, BrokenPipeError):  # nobody reads the output: typer ends quietly
        raise
    except Exception as error:  # noqa: BLE001 - the graph's, the database's, the server's
        where = f" (server: {url})" if url else ""
        code, why = ExitCode.FAILED, f"{type(error).__name__}: {error}{where}"
    if why:
        _warn(why)
    if code:
        raise typer.Exit(code)


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    typer.echo(f"graph-retry: {indented(printable(str(message)))}", err=True)


def _login() -> str | None:
    with suppress(OSError, KeyError):  # an account without a name
        return getpass.getuser()
    return None
