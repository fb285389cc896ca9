"""What `import graph_retry`, and then its first names, add to `import langgraph.graph`.

`import graph_retry` itself loads almost nothing: a name is loaded when it is first used.

With compiled modules, as after an installation: a first process that compiles them is not counted.

Run: `python -m bench.import_time`
"""

import os
import statistics
import subprocess
import sys

from bench.markdown import table

ROUNDS = 15
TIMED = (
    "import time; started = time.process_time(); import langgraph.graph; "
    "middle = time.process_time(); import graph_retry; after = time.process_time(); "
    "from graph_retry import create_retry_node, edit, resume, retry_llm_call; "
    "ended = time.process_time(); print(middle - started, after - middle, ended - after)"
)

MEASURED = (
    "`import langgraph.graph`",
    "`import graph_retry` adds",
    "`from graph_retry import retry_llm_call, …` adds",
)


def main() -> None:
    """Print the medians and the worst cases in milliseconds of processor time."""
    found: list[list[float]] = []
    environment = {
        name: os.environ[name] for name in os.environ if name != "PYTHONDONTWRITEBYTECODE"
    }
    for _ in range(1 + ROUNDS):
        done = subprocess.run(
            [sys.executable, "-c", TIMED],
            capture_output=True,
            text=True,
            check=True,
            env=environment,
        )
        found.append([float(each) * 1000 for each in done.stdout.split()])
    rows = [
        [what, f"{statistics.median(times):.0f} ms", f"{max(times):.0f} ms"]
        for what, times in zip(MEASURED, zip(*found[1:], strict=True), strict=True)
    ]
    print(table(["", "median", "worst"], rows))


if __name__ == "__main__":
    main()
