"""Count what a process holds after many calls, and after many answers that were cancelled.

Run: `python -m bench.flat [NUMBER]`
"""

import asyncio
import gc
import logging
import os
import sys
import tempfile
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from graph_retry import aresume, edit
from tests.loops import Model, one_call, thread


class Held(NamedTuple):
    """What a process holds: Python objects, threads, asyncio tasks and open files."""

    objects: int
    threads: int
    tasks: int
    files: int


def held() -> Held:
    """Count what this process holds now."""
    gc.collect()
    files = len(list(Path("/dev/fd").iterdir()))
    tasks = len(asyncio.all_tasks())
    return Held(len(gc.get_objects()), threading.active_count(), tasks, files)


class _Async:
    """The mode of `one_call` that makes async functions."""

    is_async = True

    @staticmethod
    def colour(function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a coroutine function."""

        async def coloured(given: Any) -> Any:
            return function(given)

        return coloured


async def measured(number: int, storage: str) -> dict[str, tuple[Held, Held]]:
    """Return what is held before and after some calls, and some cancelled answers."""
    async with AsyncSqliteSaver.from_conn_string(storage) as saver:
        model = Model(goal=1)
        graph = one_call("function", _Async, model, saver)

        async def call(name: str) -> None:
            await graph.ainvoke({"params": {"n": 0}}, thread(name))
            await aresume(graph, thread(name), edit(n=1))
            model.calls.clear()

        async def cancelled(name: str) -> None:
            await graph.ainvoke({"params": {"n": 0}}, thread("cancelled"))
            answer = asyncio.create_task(aresume(graph, thread("cancelled"), edit(n=1)))
            for _ in range(int(name) % 40):
                await asyncio.sleep(0)
            answer.cancel()
            await asyncio.wait([answer])
            model.calls.clear()

        found: dict[str, tuple[Held, Held]] = {}
        verbs: dict[str, Callable[[str], Awaitable[None]]] = {"calls": call, "cancelled": cancelled}
        for name, verb in verbs.items():
            for warm in range(40):
                await verb(str(warm))
            before = held()
            for count in range(number):
                await verb(str(count))
            found[name] = before, held()
    return found


def main() -> None:
    """Print the counts."""
    logging.disable(logging.WARNING)  # Each cancelled review is ended by the next input.
    number = int(next(iter(sys.argv[1:]), "2000"))
    with tempfile.TemporaryDirectory() as folder:
        place = os.path.join(folder, "flat.sqlite")  # noqa: PTH118
        for name, counts in asyncio.run(measured(number, place)).items():
            for label, count in zip(("before", f"after {number}"), counts, strict=True):
                print(f"{name:10} {label:12} {count}")


if __name__ == "__main__":
    main()
