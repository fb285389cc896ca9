"""The console command `graph-retry` (the extra `cli`)."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the command. If the extra `cli` is missing, say so."""
    # If a descriptor is closed, the next opened file, such as the database, would take its place.
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: PTH123, SIM115 - open until the end
    try:
        from graph_retry.desk.cli.app import app  # noqa: PLC0415 - an extra, and slow to import
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.stderr.write(
            "graph-retry: the command needs the extra `cli`: install graph-retry[cli]\n"
        )
        sys.exit(2)
    app(prog_name="graph-retry")
