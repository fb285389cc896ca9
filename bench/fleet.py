"""Many workers and reviewers on one PostgreSQL: jobs that ask, and workers that are killed.

The queue is procrastinate, as in `examples/several_workers.py`. Every fifth job asks a person.
Reviewer processes list what waits and answer it. Workers are killed in the middle of their work and
replaced. At the end every job must be done once, with one answer for each question, and a call must
have been made again only where a killed worker had it in flight. `--server` runs the same graph on
`langgraph dev`, which has the workers and the queue itself; there nothing is killed.
Run: `python -m bench.fleet [--workers 4] [--reviewers 2] [--jobs 200] [--kills 5] [--at-once 1]
[--server]`; `--at-once` is the number of jobs that a worker runs at the same time.
"""

import argparse
import logging
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from asyncio import run, sleep, to_thread
from collections import Counter
from pathlib import Path
from typing import Any, cast

import psycopg
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.func import entrypoint
from langgraph_sdk import get_sync_client
from procrastinate import App, PsycopgConnector
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

from bench.markdown import table
from graph_retry import AttemptContext, GraphRetryError, aresume, aretry_llm_call, edit
from graph_retry.threads import aattempts_of, alist_reviews, list_reviews
from tests.dev_server import dev_server
from tests.postgres_server import running_server

POOL = 2
"""Connections of a process in its pool. The lock of a thread takes one more."""

URL, CALLS = os.environ.get("FLEET_URL", ""), os.environ.get("FLEET_CALLS")
HOW = {"autocommit": True, "row_factory": dict_row}
pool: Any = AsyncConnectionPool(URL, kwargs=HOW, min_size=1, max_size=POOL, open=False)
logging.getLogger("procrastinate").setLevel("ERROR")  # it says that this module is run as a script
queue = App(connector=PsycopgConnector())


def note(file: str, key: str) -> None:
    """Note a call where there is no database of ours."""
    with Path(file).open("a") as calls:
        calls.write(f"{key}\n")


async def count(params: dict[str, Any], context: AttemptContext) -> str:
    """Stand in for a model that takes its time, and is wrong about every fifth page at first."""
    if CALLS:
        await to_thread(note, CALLS, context.idempotency_key)
    else:
        async with pool.connection() as log:
            await log.execute("INSERT INTO calls VALUES (%s)", (context.idempotency_key,))
    await sleep(0.02)
    return "a few" if params["page"] % 5 == 0 and not params["care"] else str(params["page"])


@entrypoint()
async def read(page: int) -> int:
    """Read one page."""
    return await aretry_llm_call(count, {"page": page, "care": False}, output=int)


def graph_now() -> Any:
    """Give the graph a saver of the pool."""
    return cast("Any", read.copy(update={"checkpointer": AsyncPostgresSaver(pool)}))


@queue.task(name="work")
async def work(page: int) -> None:
    """Run a page's thread; run it on if a worker has died with it."""
    config: Any = {"configurable": {"thread_id": str(page)}}
    await aresume(graph_now(), config, start=page)


async def worker(at_once: int) -> None:
    """Work until the process is ended."""
    async with pool, queue.open_async(pool):
        await queue.run_worker_async(
            concurrency=at_once,
            listen_notify=False,
            fetch_job_polling_interval=0.2,
            update_heartbeat_interval=0.5,
            stalled_worker_timeout=3,
        )


async def reviewer() -> None:
    """Answer what waits until the process is ended; somebody else may be faster."""
    async with pool:
        graph = graph_now()
        while True:
            found = await alist_reviews(graph, limit=10)
            random.shuffle(found)
            for review in found:
                try:
                    await review.aanswer(edit(care=True))
                except GraphRetryError:
                    await sleep(0)
            await sleep(0.2)


def start(kind: str, at_once: int = 1) -> "subprocess.Popen[bytes]":
    """Start a process of the fleet."""
    command = [sys.executable, "-W", "ignore", "-m", "bench.fleet", "--be", kind]
    command += ["--at-once", str(at_once)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


async def main(workers: int, reviewers: int, jobs: int, kills: int, at_once: int) -> None:
    """Run the fleet, and print what a job costs."""
    seen = Counter[str]()
    async with pool, queue.open_async(pool), pool.connection() as log:
        graph = graph_now()
        await graph.checkpointer.setup()
        await queue.schema_manager.apply_schema_async()
        await log.execute("CREATE TABLE calls (key text)")
        await work.batch_defer_async(*({"page": page} for page in range(1, jobs + 1)))
        before, database_s = await facts(log), database_seconds(log)
        began = time.monotonic()
        fleet = [start("worker", at_once) for _ in range(workers)]
        others = [start("reviewer") for _ in range(reviewers)]
        left = kills
        while (done := await finished(log)) < jobs:
            if left and done > jobs * (kills - left + 1) / (kills + 2):
                victim = fleet.pop(random.randrange(len(fleet)))
                victim.send_signal(signal.SIGKILL)
                victim.wait()
                fleet.append(start("worker", at_once))
                left -= 1
            for job in await queue.job_manager.get_stalled_jobs(seconds_since_heartbeat=2):
                await queue.job_manager.retry_job(job)
            await look(log, seen)
            await sleep(0.25)
        seconds = time.monotonic() - began
        for process in (*fleet, *others):
            process.send_signal(signal.SIGKILL)
            process.wait()
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        after, database_s = await facts(log), database_seconds(log) - database_s
        await check(graph, log, jobs, (kills - left) * at_once)
        cpu = used.ru_utime + used.ru_stime
        told = [
            ["jobs, workers, reviewers, kills", f"{jobs}, {workers}, {reviewers}, {kills - left}"],
            ["jobs of a worker at the same time", str(at_once)],
            ["seconds by the clock", f"{seconds:.0f}"],
            ["processor seconds of workers and reviewers, per job", f"{cpu / jobs:.3f}"],
            ["processor seconds of PostgreSQL, per job", f"{database_s / jobs:.3f}"],
            ["MB of memory of the largest process", f"{used.ru_maxrss / 1e3:.0f}"],
            ["transactions per job", f"{(after['commits'] - before['commits']) / jobs:.0f}"],
            ["rows per job", f"{(after['rows'] - before['rows']) / jobs:.0f}"],
            ["kB per job, with indexes", f"{(after['bytes'] - before['bytes']) / jobs / 1e3:.0f}"],
            ["connections at most", seen["connections"]],
            ["looks at which somebody waited for a lock", f"{seen['waits']} of {seen['looks']}"],
            ["longest transaction seen", f"{seen['longest']} ms"],
        ]
        print(table(["measured", "figure"], told))


def database_seconds(log: Any) -> float:
    """Return the processor time of all processes of the database, those that ended included."""
    _, postmaster, *_ = stat(log.info.backend_pid)
    every = [stat(int(each.name)) for each in Path("/proc").iterdir() if each.name.isdecimal()]
    ticks = sum(sum(times[:2]) for _, parent, times in every if parent == postmaster)
    return (ticks + sum(stat(postmaster)[2])) / os.sysconf("SC_CLK_TCK")


def stat(pid: int) -> tuple[int, int, list[int]]:
    """Return a process, its parent, and the ticks of it and of its children that have ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return pid, 0, [0] * 4
    return pid, int(fields[1]), [*map(int, fields[11:15])]


async def finished(log: Any) -> int:
    """Count the threads whose last value is saved: those that have ended."""
    row = await log.execute(
        "SELECT count(*) AS n FROM (SELECT DISTINCT ON (thread_id) thread_id, checkpoint FROM"
        " checkpoints WHERE checkpoint_ns = '' ORDER BY thread_id, checkpoint_id DESC) AS newest"
        " WHERE checkpoint -> 'channel_versions' ? '__end__'"
    )
    return int((await row.fetchone())["n"])


async def facts(log: Any) -> dict[str, int]:
    """Read what the database has counted; its own queries count, too, but once a look."""
    row = await log.execute(
        "SELECT (SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()) AS"
        " commits, (SELECT sum(pg_total_relation_size(relid)) FROM pg_stat_user_tables) AS bytes,"
        " (SELECT sum(n_live_tup) FROM pg_stat_user_tables) AS rows"
    )
    return {name: int(value or 0) for name, value in (await row.fetchone()).items()}


async def look(log: Any, seen: Counter[str]) -> None:
    """Take a sample of what the server is doing."""
    row = await (
        await log.execute(
            "SELECT count(*) AS connections,"
            " count(*) FILTER (WHERE wait_event_type = 'Lock') AS waits,"
            " coalesce(max(extract(epoch FROM now() - xact_start)) * 1000, 0)::int AS longest"
            " FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    ).fetchone()
    seen["looks"] += 1
    seen["waits"] += row["waits"] > 0
    for name in ("connections", "longest"):
        seen[name] = max(seen[name], row[name])


async def check(graph: Any, log: Any, jobs: int, kills: int) -> None:
    """Hold every job to its value, and count calls and answers."""
    for page in range(1, jobs + 1):
        config: Any = {"configurable": {"thread_id": str(page)}}
        (ledger,) = await aattempts_of(graph, config)
        assert (await graph.aget_state(config)).values == page
        assert len(ledger.attempts) == 1 + (page % 5 == 0), (page, ledger.attempts)
    row = await log.execute("SELECT count(*) AS calls, count(DISTINCT key) AS keys FROM calls")
    found = await row.fetchone()
    assert found["keys"] == jobs + jobs // 5, found
    assert found["calls"] - found["keys"] <= kills, found


def on_langgraph_server(jobs: int) -> None:
    """Run the graph's jobs on LangGraph's development server, answer, and count as for a fleet."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        calls = folder / "calls"
        os.environ["FLEET_CALLS"] = str(calls)
        with (
            dev_server(folder, {"read": f"{__file__}:read"}) as url,
            get_sync_client(url=url) as client,
        ):
            threads = {
                client.threads.create(graph_id="read")["thread_id"]: page + 1
                for page in range(jobs)
            }
            for thread, page in threads.items():
                client.runs.create(thread, "read", input=page)
            answers = 0
            while any(client.threads.get(thread)["status"] != "idle" for thread in threads):
                for review in list_reviews(client):
                    review.answer(edit(care=True))
                    answers += 1
                time.sleep(0.2)
            for thread, page in threads.items():
                assert client.threads.get(thread)["values"] == page
        keys = calls.read_text().split()
    assert len(keys) == len(set(keys)) == jobs + jobs // 5, len(keys)
    told = [["jobs", jobs], ["calls", len(keys)], ["answers", answers]]
    print(table(["on LangGraph Server (`langgraph dev`)", "figure"], told))


def in_a_server() -> None:
    """Start a server, and the fleet in a process that knows its address."""
    with running_server() as dsn:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("CREATE DATABASE fleet")
        command = [sys.executable, "-m", "bench.fleet", *sys.argv[1:], "--be", "lead"]
        env = {**os.environ, "FLEET_URL": dsn.replace("/postgres?", "/fleet?")}
        subprocess.run(command, env=env, check=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (
        ("workers", 4),
        ("reviewers", 2),
        ("jobs", 200),
        ("kills", 5),
        ("at-once", 1),
    ):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--be", choices=["lead", "worker", "reviewer"], help=argparse.SUPPRESS)
    parser.add_argument("--server", action="store_true")
    given = vars(parser.parse_args())
    role = given.pop("be")
    if given.pop("server"):
        on_langgraph_server(given["jobs"])
    elif role is None:
        in_a_server()
    else:
        roles = {
            "lead": lambda: main(**given),
            "worker": lambda: worker(given["at_once"]),
            "reviewer": reviewer,
        }
        run(roles[role]())
