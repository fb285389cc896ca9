"""What `import graph_retry` adds to `import langgraph.graph`, medians of alternating processes.

Run: `python bench/import_time.py`
"""

import statistics
import subprocess
import sys

ROUNDS = 15
TIMED = (
    "import time; started = time.perf_counter(); import langgraph.graph; "
    "middle = time.perf_counter(); import graph_retry; ended = time.perf_counter(); "
    "print(middle - started, ended - middle)"
)


def main() -> None:
    """Print both medians and the worst case in milliseconds."""
    base, added = [], []
    for _ in range(ROUNDS):
        done = subprocess.run(
            [sys.executable, "-c", TIMED], capture_output=True, text=True, check=True
        )
        first, second = map(float, done.stdout.split())
        base.append(first * 1000)
        added.append(second * 1000)
    print(f"import langgraph.graph   {statistics.median(base):6.1f} ms")
    print(f"import graph_retry adds  {statistics.median(added):6.1f} ms (worst {max(added):.1f})")


if __name__ == "__main__":
    main()
