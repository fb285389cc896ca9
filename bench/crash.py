"""Kill workers at random, hundreds of times per configuration, and count what broke.

One line per configuration: SQLite and PostgreSQL, sync and async, LangGraph's three durabilities,
node form, function form and a `Send` of three; then nodes that a `RetryPolicy` runs again, and
answers that stream; then clients that answer with a plain `Command(resume=...)` and continue with
`invoke(None)`, unmarked and marked.
Run: `python -m bench.crash [--kills 200] [--only "^sqlite sync"] [--json FILE]`
"""

import argparse
import itertools
import json
import re
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
from langgraph.checkpoint.postgres import PostgresSaver

from tests.postgres_server import running_server
from tests.reliability.crash_verdict import COUNTS, broken
from tests.reliability.crash_worker import STYLES, Setting
from tests.reliability.forking import counted

WORKERS = 2
RETRIED = ("retried-node", "retried-function")
"""Shapes whose node a `RetryPolicy` runs again."""
STREAMED = ("streamed-node", "streamed-function")
"""Shapes whose answers stream."""


def settings() -> Iterator[Setting]:
    """Yield the matrix, then the clients that do not use `resume`."""
    stores, modes = ("sqlite", "postgres"), ("sync", "async")
    durabilities, shapes = ("sync", "async", "exit"), ("node", "function", "send")
    for each in itertools.product(stores, modes, durabilities, shapes):
        yield Setting(*each)
    for each in itertools.product(stores, modes, durabilities[:2], RETRIED + STREAMED):
        yield Setting(*each)
    for store, shape, style in itertools.product(stores, ("node", "function"), STYLES):
        yield Setting(store, "sync", "async", shape, style)


def run(setting: Setting, location: str, kills: int, seed: int) -> dict[str, Any]:
    """Run one configuration in a process of its own, whose forks are the workers."""
    words = (setting.store, setting.mode, setting.durability, setting.shape, setting.answers)
    (found,) = counted("crash_matrix", *words, location, str(kills), str(seed))
    return dict(found)


def line(found: dict[str, Any]) -> str:
    """Return one line of the table."""
    counts = " ".join(f"{found.get(name, 0):>11}" for name in COUNTS)
    kills = found.get("timed", 0) + found.get("named", 0)
    return (
        f"{found['setting']:38} {kills:>5} {found['threads']:>7} {found['stuck']:>5} {counts} "
        f"{found['seconds']:>6}"
    )


def main() -> None:
    """Run the configurations, two at a time, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--kills", type=int, default=200, help="at random times, per configuration")
    parser.add_argument("--seed", type=int, default=1, help="of the draws")
    parser.add_argument("--only", default="", help="a pattern: run the matching ones")
    parser.add_argument("--json", type=Path, help="also write the counts to this file")
    given = parser.parse_args()
    chosen = [each for each in settings() if re.search(given.only, str(each))]
    started, results = time.perf_counter(), []
    for name, meaning in {"stuck": "threads that could not be brought to an end", **COUNTS}.items():
        print(f"{name:11} {meaning}")
    heads = " ".join(f"{name:>11}" for name in COUNTS)
    print(f"\n{'':38} {'kills':>5} {'threads':>7} {'stuck':>5} {heads} {'s':>6}")
    with running_server() as dsn, ThreadPoolExecutor(WORKERS) as pool:
        jobs = []
        for number, setting in enumerate(chosen):
            location = database(dsn, number) if setting.store == "postgres" else ""
            jobs.append(pool.submit(run, setting, location, given.kills, given.seed))
        for job in jobs:
            results.append(found := job.result())
            print(line(found), flush=True)
    kills = sum(found["timed"] + found.get("named", 0) for found in results)
    print(f"{kills} kills in {(time.perf_counter() - started) / 60:.1f} minutes")
    if given.json:
        given.json.write_text(json.dumps(results, indent=1))
    faults = [f"{found['setting']}: {broken(found)}" for found in results if broken(found)]
    sys.exit("\n".join(faults) or 0)


def database(dsn: str, number: int) -> str:
    """Make a database with LangGraph's tables and return its DSN."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE crash_{number}")
    location = dsn.replace("/postgres?", f"/crash_{number}?")
    with PostgresSaver.from_conn_string(location) as saver:
        saver.setup()
    return location


if __name__ == "__main__":
    main()
