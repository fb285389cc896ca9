"""End a process at every write and inside user code of every scene, and count what was wrong.

One line per setting: each scene of `tests/reliability/`, sync and async, on SQLite and on
PostgreSQL with each durability, gone on with in three ways. `--only` is a pattern of settings
such as "node, sqlite sync", and `--ways` is one of the ways, such as "resume".
Run: `python -m bench.crash [--only PATTERN] [--step N]`
"""

import argparse
import itertools
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg

from tests.postgres_server import running_server
from tests.reliability.every_write import WAYS
from tests.reliability.forking import counted
from tests.reliability.more_scenes import SCENES

WORKERS = 2
STORES = tuple(itertools.product(("sqlite", "postgres"), ("sync", "async", "exit")))


def main() -> None:
    """Play the settings, two at a time, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", default="", help="a pattern: play the matching settings")
    parser.add_argument("--step", default="1", help="end at every so many moments; k8: 8 kills")
    parser.add_argument("--ways", default=",".join(WAYS), help="how to go on, with commas between")
    given = parser.parse_args()
    every = itertools.product(SCENES, STORES, ("sync", "async"))
    chosen = [
        (scene, store, mode, durability)
        for scene, (store, durability), mode in every
        if re.search(given.only, f"{scene}, {store} {mode} {durability}")
    ]
    print(f"{'':44} {'moments':>8} {'ends':>6} {'wrong':>6}")
    started, ended, faults = time.perf_counter(), 0, []
    with running_server() as dsn, ThreadPoolExecutor(WORKERS) as pool:
        place = dsn.replace("/postgres?", "/crash?")
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("CREATE DATABASE crash")

        def play(setting: tuple[str, ...]) -> Any:
            return counted("every_write", *setting, given.ways, given.step, place)

        for found in itertools.chain.from_iterable(pool.map(play, chosen)):
            ended += found["ended"]
            faults += [f"{found['setting']}: {fault}" for fault in found["faults"]]
            counts = f"{found['moments']:>8} {found['ended']:>6} {len(found['faults']):>6}"
            print(f"{found['setting']:44} {counts}", flush=True)
    print(f"{ended} ends in {(time.perf_counter() - started) / 60:.1f} minutes")
    sys.exit("\n".join(faults) or 0)


if __name__ == "__main__":
    main()
