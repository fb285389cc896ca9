"""What many open reviews cost: threads that wait, and one `Send` of failing items.

Each size runs in a process of its own, so that its peak memory is its own. Beside the time by the
clock stands the processor time of that process, which another busy program does not change. Every
call is counted: nothing that was finished is called again.
Run: `python -m bench.load [--sizes 250 500 1000]`
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver

from bench.storage import postgres, sqlite
from graph_retry import edit, pending_reviews, resume
from graph_retry.threads import list_reviews
from tests.loops import Model, fan_out, one_call, thread
from tests.postgres_server import running_server

ROOT = Path(__file__).parent.parent


class _Sync:
    """The part of the tests' `mode` that a sync caller needs."""

    is_async = False

    @staticmethod
    def colour(function: Any) -> Any:
        """Return the function as it is."""
        return function


def threads(form: str, size: int, saver: Any, took: Callable[[str], None]) -> int:
    """Start threads until all of them wait, list their reviews, answer each; return the calls."""
    model = Model(goal=1)
    graph = one_call(form, _Sync(), model, saver)
    took("")
    for number in range(size):
        graph.invoke({"params": {"n": 0}}, thread(str(number)))
    took("ask")
    open_ = list_reviews(graph)
    took("list")
    assert len(open_) == size
    for review in open_:
        assert review.answer(edit(n=1))["output"]
    took("answer")
    return len(model.calls)


def send(form: str, size: int, saver: Any, took: Callable[[str], None]) -> int:
    """Let every item of one `Send` fail, list the reviews, answer all at once; return the calls."""
    model = Model(goal=1)
    graph = fan_out(form, _Sync(), model, saver, width=size)
    took("")
    graph.invoke({"results": []}, thread())
    took("ask")
    open_ = pending_reviews(graph, thread())
    took("list")
    assert len(open_) == size
    state = resume(graph, thread(), answers={each.review_id: edit(n=1) for each in open_})
    took("answer")
    assert state["results"] == [{"n": 1}] * size
    return len(model.calls)


@contextmanager
def opened(store: str, dsn: str, name: str) -> Iterator[tuple[Any, Any]]:
    """Yield a saver of an empty store, and a function that tells its size in bytes."""
    if store == "memory":
        yield InMemorySaver(), lambda: 0
    elif store == "sqlite":
        with tempfile.TemporaryDirectory() as folder, sqlite(Path(folder)) as (saver, stored):
            saver.setup()

            def size() -> int:
                saver.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                return int(stored())

            yield saver, size
    else:
        with postgres(dsn, name) as found:
            yield found


def measure(scene: str, form: str, store: str, size: str, dsn: str) -> None:
    """Run one scene and write its figures as JSON."""
    figures: dict[str, Any] = {}
    with opened(store, dsn, f"load_{scene}_{form}_{size}") as (saver, stored):
        empty, clocks = stored(), (0.0, 0.0)

        def took(what: str) -> None:
            nonlocal clocks
            now = (time.perf_counter(), time.process_time())
            figures[what] = [now[0] - clocks[0], now[1] - clocks[1]]
            clocks = now
            if what == "ask":
                figures["bytes"] = stored() - empty

        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        play = threads if scene == "threads" else send
        figures["calls"] = play(form, int(size), saver, took)
        figures["rss"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    sys.stdout.write(json.dumps(figures))


def main() -> None:
    """Print a line for each scene, form, store and size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sizes", type=int, nargs="+", default=[250, 500, 1000])
    parser.add_argument("--scenes", nargs="+", default=["threads", "send"])
    parser.add_argument("--stores", nargs="+", default=["sqlite", "postgres"])
    parser.add_argument("--forms", nargs="+", default=["node", "function"])
    parser.add_argument("--measure", nargs=5, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        measure(*given.measure)
        return
    print(
        "seconds (of processor time) to fail and ask, to list, to answer all; MB saved; MB of RSS"
    )
    heads = " ".join(f"{head:>15}" for head in ("ask", "list", "answer"))
    print(f"{'':28} {'size':>5} {heads} {'saved':>7} {'RSS':>6} calls  ms each")
    with running_server() as dsn:
        for scene in given.scenes:
            for form in given.forms:
                for store in given.stores:
                    for size in given.sizes:
                        line(scene, form, store, size, dsn)


def line(scene: str, form: str, store: str, size: int, dsn: str) -> None:
    """Measure in a fresh process and print."""
    words = (scene, form, store, str(size), dsn)
    done = subprocess.run(
        [sys.executable, "-m", "bench.load", "--measure", *words],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=True,
    )
    found = json.loads(done.stdout)
    assert found["calls"] == 2 * size, f"{found['calls']} calls instead of {2 * size}"
    steps = [found[step] for step in ("ask", "list", "answer")]
    times = " ".join(f"{clock:7.2f} ({cpu:5.2f})" for clock, cpu in steps)
    name = f"{scene:8} {form:9} {store:9} {size:>5}"
    megabytes = f"{found['bytes'] / 1e6:7.1f} {found['rss'] / 1e3:6.0f}"
    each = " ".join(f"{1000 * cpu / int(size):.1f}" for _, cpu in steps)
    print(name, times, megabytes, found["calls"], "", each, flush=True)


if __name__ == "__main__":
    main()
