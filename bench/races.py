"""Several processes answer the same reviews of one database: who wins, and what is called.

`same`: 8 processes answer one review on each of 50 threads, in an order of their own, the winner
twice. `fan`: 4 processes answer a `Send` of 20 in random batches, two answers a branch, in each
form. `running`: an answer comes while the retry of an earlier one runs. `takeover`: a process asks
and is killed, and another one goes on.
Run: `python -m bench.races`
"""

import time

from bench.crash import database
from tests.postgres_server import running_server
from tests.reliability.forking import counted

SCENES = {"same": 50, "fan": 4, "running": 16, "takeover": 16}


def main() -> None:
    """Print what each scene counted, on each database."""
    with running_server() as dsn:
        for number, (scene, size) in enumerate(SCENES.items()):
            for store in ("sqlite", "postgres"):
                location = database(dsn, number) if store == "postgres" else ""
                started = time.perf_counter()
                found = counted("races", scene, store, location, str(size))
                took = time.perf_counter() - started
                print(f"{scene:9} {size:>3} {store:9} {took:5.1f} s {found}", flush=True)


if __name__ == "__main__":
    main()
