"""All tables as one page of Markdown: what `docs/comparison.md` is.

Each table is made by a script of its own, in a process of its own.
Run: `python -m bench.report`, or `make bench`, which writes the page.
"""

import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

PACKAGES = ("langgraph", "langchain-core", "pydantic")


class Section(NamedTuple):
    """One table or more: a heading, what they tell, and the script that prints them."""

    title: str
    about: str
    script: str


SECTIONS = [
    Section(
        "Calls for N edits",
        "How many model calls are paid until a person's Nth edit has made the call succeed. A loop "
        "in one node runs again from its first line after each answer.",
        "edits",
    ),
    Section(
        "Recovery from malformed answers",
        "5,000 extractions with a known truth, on a scripted model that is the same for all: once "
        "in this process, once with each library's own client over loopback HTTP, set up as its "
        "documentation shows. Nobody is asked.",
        "ladder",
    ),
    Section(
        "Overhead",
        "A call that succeeds at once, against a subgraph of two nodes written by hand that keeps "
        "the call in one step and the check in another. Ratios are from one run.",
        "overhead",
    ),
    Section(
        "Bytes in the database",
        "A thread whose attempts all fail, against a node by hand that appends each attempt to a "
        "list in state. A ratio of 4 is linear.",
        "storage",
    ),
    Section(
        "Reading broken JSON",
        "A corpus of documents in many kinds of disrepair, each with the value it stands for. What "
        "is wrong was accepted, and is not what the document says. [What is read](reading.md).",
        "repair_score",
    ),
    Section(
        "Documents damaged at random",
        "Each by one character or one token. What leaves another document rather than a broken one "
        "is left out.",
        "repair_damage --cases 10000 --show 0",
    ),
    Section(
        "Judging an answer while it comes",
        "In tokens of four characters. Where the time for a character stays, the cost is linear. "
        "[Streams](streaming.md).",
        "streaming",
    ),
    Section("Import", "In fresh processes, with compiled modules.", "import_time"),
]


def printed(script: str) -> str:
    """Run a script of this folder and return what it prints."""
    name, *options = script.split()
    command = [sys.executable, "-m", f"bench.{name}", *options]
    folder = Path(__file__).parent.parent
    done = subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


def main() -> None:
    """Print the page."""
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    print(
        "# Comparison\n\n"
        f"Written by `make bench` on {datetime.now(UTC):%Y-%m-%d}: {platform.system()} on "
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"{versions}. Counts are the same everywhere; times depend on the machine, and on what "
        "else it does.\n"
    )
    for section in SECTIONS:
        tables = printed(section.script)
        print(f"## {section.title}\n\n{section.about}\n\n{tables}\n", flush=True)
    print(
        f"While this was measured the load average was {os.getloadavg()[2]:.0f} (15 minutes): "
        "where it is above the number of cores, times are too long and their ratios rough.\n"
    )
    print("What has been killed, raced and loaded is in [reliability](reliability.md).")


if __name__ == "__main__":
    main()
