"""Several processes answer the same reviews of one database: who wins, and what is called.

`same`: 8 processes answer one review on each of 50 threads, in an order of their own, the winner
twice. `fan`: 4 processes answer a `Send` of 20 in random batches, two answers a branch, in each
form. `running`: an answer comes while the retry of an earlier one runs. `takeover`: a process asks
and is killed, and another one goes on.
Run: `python -m bench.races`
"""

import subprocess
import sys
import time
from pathlib import Path

from bench.crash import database
from tests.postgres_server import running_server

ROOT = Path(__file__).parent.parent
SCENES = {"same": 50, "fan": 4, "running": 16, "takeover": 16}


def main() -> None:
    """Print what each scene counted, on each database."""
    with running_server() as dsn:
        for number, (scene, size) in enumerate(SCENES.items()):
            for store in ("sqlite", "postgres"):
                location = database(dsn, number) if store == "postgres" else ""
                started = time.perf_counter()
                words = (scene, store, location, str(size))
                done = subprocess.run(
                    [sys.executable, "-m", "tests.reliability.races", *words],
                    cwd=ROOT,
                    stdout=subprocess.PIPE,
                    text=True,
                    check=True,
                )
                took = time.perf_counter() - started
                print(f"{scene:9} {size:>3} {store:9} {took:5.1f} s {done.stdout}", flush=True)


if __name__ == "__main__":
    main()
