"""Print all tables of measurements as one page of Markdown, which is `bench/results.md`.

Each table comes from its own script, which runs in its own process.
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
    """One section of the page: a heading, a text about its tables, and the script for them."""

    title: str
    about: str
    script: str


SECTIONS = [
    Section(
        "Calls for N edits",
        "The number of paid model calls until a person's Nth edit makes the call succeed. A loop "
        "inside one node pays more, because LangGraph runs the node again from its first line "
        "after each answer.",
        "edits",
    ),
    Section(
        "Recovery from malformed answers",
        "5,000 extractions with known results, on the same scripted model for all libraries. The "
        "first table runs in one process. The second uses each library's own client over loopback "
        "HTTP, set up as its documentation shows. No person is asked.",
        "ladder",
    ),
    Section(
        "Overhead",
        "A call that succeeds at the first attempt, compared with a handwritten subgraph of two "
        "nodes, one for the call and one for the check. Both sides of a ratio are from the same "
        "run. The time is processor time of all threads.",
        "overhead",
    ),
    Section(
        "Bytes in the database",
        "A thread whose attempts all fail, compared with a handwritten node that appends each "
        "attempt to a list in state. A ratio of 4 means that the storage grows linearly.",
        "storage",
    ),
    Section(
        "Reading broken JSON",
        "A corpus of broken documents, each with its correct value. A `wrong` reading is one that "
        "was accepted with another value. See `docs/reading.md`.",
        "repair_score",
    ),
    Section(
        "Documents damaged at random",
        "Each document is damaged in one character or one token. Damage that makes another valid "
        "document, and not a broken one, is left out.",
        "repair_damage --cases 10000 --show 0",
    ),
    Section(
        "Judging an answer while it comes",
        "The answers come in tokens of four characters. If the time for each character stays the "
        "same for longer answers, the cost is linear. See `docs/streaming.md`.",
        "streaming",
    ),
    Section(
        "Import",
        "Each import runs in a fresh process, with compiled modules. `import graph_retry` loads "
        "almost nothing: a name is loaded when it is first used. The time is processor time.",
        "import_time",
    ),
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
        "# Measurements\n\n"
        f"Written by `make bench` on {datetime.now(UTC):%Y-%m-%d}: {platform.system()} on "
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"{versions}. Counts are the same on every machine. Times depend on the machine and its "
        "load.\n"
    )
    for section in SECTIONS:
        tables = printed(section.script)
        print(f"## {section.title}\n\n{section.about}\n\n{tables}\n", flush=True)
    print(
        f"While this was measured the load average was {os.getloadavg()[2]:.0f} (15 minutes): "
        "if it is above the number of cores, times are too long and their ratios are rough.\n"
    )
    print("For the tests with crashes, races and load, see `docs/reliability.md`.")


if __name__ == "__main__":
    main()
