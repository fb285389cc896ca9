"""Record the waiting threads of `old_graphs` in `threads_v1/`, one SQLite file each.

It was run once, with version 0.1.0, whose calls were known by their position in a node. The files
are kept as they are: a later version must still be able to answer them. `python -m
tests.identity.record_threads FOLDER` shows how they came about, and records those of another
version.
"""

import asyncio
import multiprocessing
import os
import shutil
import signal
import sqlite3
import sys
from pathlib import Path
from typing import Any

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from graph_retry import edit
from tests.conftest import Mode
from tests.identity.old_graphs import SCENES, Scene, graph, reach_goal
from tests.loops import Model, answer, reviews, thread

FOLDER = Path(__file__).parent / "threads_v1"


def record(name: str, location: Path) -> None:
    """Bring one thread to where it waits, or die on the way."""
    scene = SCENES[name]
    last = len(scene.goals) - 1

    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def reach_goal_or_die(params: dict[str, Any]) -> Any:
        if params["item"] == last and params["n"] == scene.cut_off:
            die()
        return reach_goal(params)

    saver_class: Any = AsyncSqliteSaver if scene.is_async else SqliteSaver
    with asyncio.Runner() as runner:
        mode = Mode("async" if scene.is_async else "sync", runner)
        with mode.opened(saver_class.from_conn_string(str(location))) as saver:
            made = graph(scene, Model(reach_goal_or_die), saver)
            given = {"params": scene.start(0), "results": []}
            mode.invoke(made, given, thread(), durability="sync")
            for call in scene.settled:
                for n in range(1, scene.goals[call] + 1):
                    review = _first(mode, made, scene.start(call)["item"])
                    answer(mode, made, thread(), answers={review.review_id: edit(n=n)})
            if scene.cut_off is not None:
                if scene.cut_off == "written":
                    made.invoke = lambda *args, **kwargs: die()
                answer(mode, made, thread(), edit(n=1))


def _first(mode: Mode, made: Any, item: int) -> Any:
    """Return the first open review of an item."""
    return next(each for each in reviews(mode, made, thread()) if each.params["item"] == item)


def _make_one_file(location: Path) -> None:
    """Put what waits in the log beside the database into it, and make it small."""
    connection = sqlite3.connect(location, isolation_level=None)
    for pragma in ("wal_checkpoint(TRUNCATE)", "journal_mode=DELETE", "page_size=1024"):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute("VACUUM")
    connection.close()


def main(folder: str = str(FOLDER)) -> None:
    """Record every scene in a process of its own."""
    Path(folder).mkdir(exist_ok=True)
    spawning = multiprocessing.get_context("spawn")
    for name, scene in SCENES.items():
        location = Path(folder) / f"{name}.sqlite"
        location.unlink(missing_ok=True)
        process = spawning.Process(target=record, args=(name, location))
        process.start()
        process.join()
        expected = _exit_code(scene)
        if process.exitcode != expected:
            raise RuntimeError(f"{name}: ended with {process.exitcode}, not {expected}")
        _make_one_file(location)
        shutil.rmtree(f"{location}.locks", ignore_errors=True)


def _exit_code(scene: Scene) -> int:
    return 0 if scene.cut_off is None else -signal.SIGKILL


if __name__ == "__main__":
    main(*sys.argv[1:])
