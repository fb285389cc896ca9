"""The loop of `graph-retry watch`: list new reviews, ring a bell, and run a command for each."""

from __future__ import annotations

import shlex
import subprocess
import time
from collections.abc import Callable, Mapping
from typing import Any

import typer

from graph_retry.desk.cli.exits import ExitCode, Stop
from graph_retry.desk.cli.screen import Screen
from graph_retry.desk.cli.show import INBOX, as_json, inbox_rows
from graph_retry.desk.cli.source import Source
from graph_retry.plugins import as_repr, error_text


def watch(
    source: Source,
    screen: Screen,
    labels: Mapping[str, str],
    *,
    every: float,
    bell: bool,
    command: str | None,
    warn: Callable[[str], Any],
    pause: Callable[[float], Any] = time.sleep,
) -> None:
    """List each open review once, until Ctrl-C, including those that are open at the start.

    The bell rings once for all new reviews. The command runs once for each review, with the review
    as JSON on standard input. If a later reading of the source fails, a warning is written,
    and the watch continues.

    Raises:
        Stop: If the command cannot be run.
    """
    known: set[str] = set()
    looked = False
    while True:
        try:
            reviews = source.inbox(labels)
        except Exception as error:
            if not looked:  # A source that has never worked ends the command.
                raise
            warn(
                f"{type(error).__name__}: {error_text(error)}. The next reading is in {every:g} s."
            )
        else:
            new = [review for review in reviews if review.review_id not in known]
            known, looked = {review.review_id for review in reviews}, True
            if new:
                screen.table(INBOX, inbox_rows(new))
            if new and bell:
                typer.echo("\a", nl=False, err=True)
            for review in new if command else ():
                _run(command or "", as_json(review), warn)
        pause(every)


def _run(command: str, review: str, warn: Callable[[str], Any]) -> None:
    try:
        words = shlex.split(command)
        done = subprocess.run(words, input=f"{review}\n", text=True, check=False)  # noqa: S603
    except (OSError, ValueError) as error:
        raise Stop(
            ExitCode.USAGE, f"`--run` is {as_repr(command)}, which failed: {error_text(error)}."
        ) from None
    if done.returncode:
        warn(f"{words[0]} ended with exit code {done.returncode}.")
