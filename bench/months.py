"""What a process that runs for months meets: an inbox among finished threads, and growth.

Processor time is that of this process. Of PostgreSQL it is the client's; the server runs beside it.
Run: `python -m bench.months [inbox pages process growth] [--stores sqlite postgres]`
"""

import argparse
import gc
import resource
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.load import _Sync, opened
from bench.storage import text
from graph_retry import edit, resume
from graph_retry._core.langgraph.storage.checkpoints import open_review
from graph_retry._core.langgraph.storage.stores import store_of
from graph_retry.plugins import run_sync
from graph_retry.threads import list_reviews
from tests.loops import Model, one_call, thread
from tests.postgres_server import running_server

SIZES = (500, 1_000, 2_000, 4_000, 8_000)


def spent(work: Callable[[], Any]) -> float:
    """Return the processor time of some work, in milliseconds, the best of three."""
    times: list[float] = []
    for _ in range(3):
        before = time.process_time()
        work()
        times.append(time.process_time() - before)
    return 1_000 * min(times)


def say(*cells: object) -> None:
    """Print one row of a table."""
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def graph_on(saver: Any, store: str) -> Any:
    """Compile a graph of one node-form call that fails while `n` is 0."""
    if store == "sqlite":
        saver.conn.execute("PRAGMA synchronous = OFF")  # the disk is not what is measured
    return one_call("node", _Sync(), Model(goal=1), saver)


def copied(saver: Any, template: list[Any], number: int) -> None:
    """Save a thread as another one, which is ten times as fast as to run it."""
    for saved in template:
        place = {**saved.config["configurable"], "thread_id": f"copy {number}"}
        place["checkpoint_id"] = (
            (saved.parent_config or {}).get("configurable", {}).get("checkpoint_id")
        )
        versions = saved.checkpoint["channel_versions"]
        saver.put({"configurable": place}, saved.checkpoint, saved.metadata, versions)
    if number % 2:  # it has asked, and was answered
        moment = f"2026-11-22T{number:05}"
        row = open_review(f"copy {number}", "x", str(number), moment)
        run_sync(store_of(saver).open(row))
        run_sync(store_of(saver).close(row))


def inbox(store: str, saver: Any) -> None:
    """List 5 waiting reviews among more and more finished threads, half of them answered ones."""
    graph, finished = graph_on(saver, store), 0
    for number in range(5):
        graph.invoke({"params": {"n": 0}}, thread(f"waits {number}"))
    graph.invoke({"params": {"n": 0}}, thread("answered"))
    resume(graph, thread("answered"), edit(n=1))
    template = list(saver.list(thread("answered")))
    for size in SIZES:
        for number in range(finished, size):
            copied(saver, template, number)
        finished = size
        assert len(list_reviews(graph)) == 5
        everything = spent(lambda: list_reviews(graph))
        newest = spent(lambda: list_reviews(graph, limit=1))
        say("inbox", store, size, f"{everything:.1f} ms", f"limit=1: {newest:.1f} ms")


def pages(store: str, saver: Any, waiting: int = 10_000) -> None:
    """List many waiting reviews page by page."""
    graph = graph_on(saver, store)
    for number in range(waiting):
        graph.invoke({"params": {"n": 0}}, thread(str(number)))
    times: list[float] = []
    last, seen = None, set[str]()
    while True:
        before = time.process_time()
        page = list_reviews(graph, limit=100, before=last)
        if not page:
            break
        times.append(1_000 * (time.process_time() - before))
        seen |= {review.review_id for review in page}
        last = page[-1]
    assert len(seen) == waiting
    figures = (
        f"first {times[0]:.0f} ms",
        f"last {times[-1]:.0f} ms",
        f"all {sum(times) / 1e3:.1f} s",
    )
    say("pages of 100", store, waiting, *figures)


def process(store: str, saver: Any, calls: int = 5_000) -> None:
    """Make calls in one process, every fifth asked and answered; list what waits on the way."""
    graph = graph_on(saver, store)
    for number in range(1, calls + 1):
        graph.invoke({"params": {"n": min(number % 5, 1)}}, thread(str(number)))
        if not number % 5:
            resume(graph, thread(str(number)), edit(n=1))
        if not number % 1_000:
            assert list_reviews(graph) == []
            gc.collect()
            files = len(list(Path("/proc/self/fd").iterdir()))
            memory = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
            threads = f"{threading.active_count()} threads"
            say("process", store, number, f"{memory / 1e6:.0f} MB", threads, f"{files} files")


GROWTH = {
    "attempts of 2 kB": ((50, 100, 200), 0, 2_000),
    "attempts, params of 1 MB": ((2, 4, 8), 1_000_000, 0),
    "attempts, outputs of 5 MB": ((2, 4, 8), 0, 5_000_000),
}
"""Attempts, and the characters of the params and of each output."""


def growth(store: str, saver: Any) -> None:
    """Let attempts fail and measure what each load takes in the store and in memory."""
    del saver
    for name, (sizes, params, output) in GROWTH.items():
        for attempts in sizes:
            with opened(store, DSN[0], f"months_{params}_{output}_{attempts}") as (empty, stored):
                before, graph = stored(), None
                model = Model(
                    lambda given, size=output: f"try {given['n']} {text(given['n'], size)}"
                )
                graph = one_call("node", _Sync(), model, empty, output=int, max_attempts=999)
                start = time.process_time()
                given = {"n": 0, "document": text(0, params)}
                graph.invoke({"params": given}, thread())
                for number in range(1, attempts):
                    resume(graph, thread(), edit(n=number))
                cpu = (time.process_time() - start) / attempts
                peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
                taken = (stored() - before) / 1e6
                figures = f"{taken:.1f} MB", f"{1_000 * cpu:.0f} ms each", f"{peak:.0f} MB RSS"
                say(name, store, attempts, *figures)


SCENES = {"inbox": inbox, "pages": pages, "process": process, "growth": growth}
DSN = [""]


def main() -> None:
    """Run scenes on each store and print a row for each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenes", nargs="*", default=list(SCENES))
    parser.add_argument("--stores", nargs="+", default=["sqlite", "postgres"])
    given = parser.parse_args()
    with running_server() as DSN[0]:
        for scene in given.scenes:
            for store in given.stores:
                with opened(store, DSN[0], f"months_{scene}") as (saver, _):
                    SCENES[scene](store, saver)


if __name__ == "__main__":
    main()
