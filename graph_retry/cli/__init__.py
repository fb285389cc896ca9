"""The console command `graph-retry` (the extra `cli`)."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command. If the extra is not installed, tell which one to install."""
    try:
        from graph_retry.cli.app import app  # noqa: PLC0415 - an extra, and slow to import
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.stderr.write("graph-retry: the command needs the extra `cli`: graph-retry[cli]\n")
        sys.exit(2)
    app(prog_name="graph-retry")
