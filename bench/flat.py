"""Count what a process holds after many calls, after cancelled answers, and while calls wait.

Calls that wait for their model are measured beside those of a plain node, and of a hand-written
subgraph of two nodes; afterwards they ask a person.
Run: `python -m bench.flat [NUMBER]`
"""

import asyncio
import gc
import logging
import os
import sys
import tempfile
import threading
import tracemalloc
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, StateGraph

from graph_retry import aresume, aretry_llm_call, create_retry_node, edit
from tests.loops import Model, State, one_call, thread


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


async def settled(before: Held) -> Held:
    """Count what is held when threads that still worked for a cancelled answer have ended."""
    for _ in range(200):
        now = held()
        if now[1:] == before[1:]:
            break
        await asyncio.sleep(0.01)
    return now


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
            found[name] = before, await settled(before)
    return found


class Gate:
    """A model that lets its calls wait until it is opened, and then gives no valid answer."""

    def __init__(self) -> None:
        self.opened, self.inside = asyncio.Event(), 0

    async def __call__(self, _params: Any) -> str:
        """Wait, and answer badly."""
        self.inside += 1
        await self.opened.wait()
        return "no"

    async def plain(self, state: State) -> State:
        """Make a call in a plain node."""
        return {"output": await self(state["params"])}

    async def function(self, state: State) -> State:
        """Make a call in the function form."""
        return {"output": await aretry_llm_call(self, state["params"], output=dict[str, int])}

    def node(self, form: str) -> Any:
        """Make the node of a form."""
        if form == "node":
            return create_retry_node(self, dict, output=dict[str, int])
        if form != "by hand":
            return getattr(self, form)
        builder = StateGraph(State).add_node("call", self.plain).add_node("check", lambda _: {})
        return builder.add_edge(START, "call").add_edge("call", "check").compile()


async def waiting(form: str, number: int, storage: str) -> tuple[float, float]:
    """Return the kB that each call holds while it waits for its model, and afterwards."""
    async with AsyncSqliteSaver.from_conn_string(storage) as saver:
        gate = Gate()
        builder = StateGraph(State).add_node("ask", gate.node(form)).add_edge(START, "ask")
        graph = builder.compile(checkpointer=saver)

        def begun(name: str, count: int) -> list[Any]:
            gate.opened, gate.inside = asyncio.Event(), 0
            given = {"params": {"n": 1}}
            threads = [thread(f"{name} {each}") for each in range(count)]
            return [asyncio.create_task(graph.ainvoke(given, each)) for each in threads]

        async def traced() -> int:
            await asyncio.sleep(0.05)
            gc.collect()
            return tracemalloc.get_traced_memory()[0]

        tracemalloc.start()
        for name, count in (("warm", 20), ("measured", number)):
            before = await traced()
            tasks = begun(name, count)
            while gate.inside < count:  # noqa: ASYNC110 - the calls begin in threads of their own
                await asyncio.sleep(0.01)
            during = await traced()
            gate.opened.set()
            await asyncio.gather(*tasks)
            del tasks
            after = await traced()
        tracemalloc.stop()
    return (during - before) / number / 1e3, (after - before) / number / 1e3


FORMS = ("plain", "by hand", "function", "node")


def main() -> None:
    """Print the counts."""
    logging.disable(logging.WARNING)  # Each cancelled review is ended by the next input.
    number = int(next(iter(sys.argv[1:]), "2000"))
    with tempfile.TemporaryDirectory() as folder:
        place = os.path.join(folder, "flat.sqlite")  # noqa: PTH118
        for name, counts in asyncio.run(measured(number, place)).items():
            for label, count in zip(("before", f"after {number}"), counts, strict=True):
                print(f"{name:10} {label:12} {count}")
        for form in FORMS:
            found = asyncio.run(waiting(form, 100, os.path.join(folder, form)))  # noqa: PTH118
            told = "kB for each call that waits for its model, {:.1f} when it is over"
            print(f"{form:10} {found[0]:.0f} {told.format(found[1])}")


if __name__ == "__main__":
    main()
