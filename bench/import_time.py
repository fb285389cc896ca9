"""What `import graph_retry` adds to `import langgraph.graph`, medians of processes.

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
    "import time; started = time.perf_counter(); import langgraph.graph; "
    "middle = time.perf_counter(); import graph_retry; ended = time.perf_counter(); "
    "print(middle - started, ended - middle)"
)


def main() -> None:
    """Print both medians and the worst case in milliseconds."""
    base, added = [], []
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
        first, second = map(float, done.stdout.split())
        base.append(first * 1000)
        added.append(second * 1000)
    base, added = base[1:], added[1:]
    rows = [
        ["`import langgraph.graph`", f"{statistics.median(base):.0f} ms", f"{max(base):.0f} ms"],
        ["`import graph_retry` adds", f"{statistics.median(added):.0f} ms", f"{max(added):.0f} ms"],
    ]
    print(table(["", "median", "worst"], rows))


if __name__ == "__main__":
    main()
