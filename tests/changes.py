"""Changes that AGENTS.md promises to be small, made in a copy of the package."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def changed_copy(
    place: Path, edits: dict[str, tuple[str, str]], *, without: tuple[str, ...] = ()
) -> Path:
    """Copy the package, and replace one text in each file; "" puts a text at the end.

    `without` names folders that the copy does not have.
    """
    leave_out = shutil.ignore_patterns("__pycache__", *without)
    shutil.copytree(ROOT / "graph_retry", place / "graph_retry", ignore=leave_out)
    for name, (old, new) in edits.items():
        file = place / "graph_retry" / name
        text = file.read_text() if file.exists() else ""
        assert not old or text.count(old) == 1, f"{name} has not one {old!r}"
        file.write_text(text.replace(old, new) if old else text + new)
    return place


def printed(place: Path, program: str) -> list[str]:
    """Run a program with the copy, and return the lines that it prints."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(place), "MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()
