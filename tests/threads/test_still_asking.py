"""An answer waits until the run that asks has ended: what still runs beside it is not run twice."""

import asyncio
import threading

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, StateGraph

import graph_retry
from graph_retry import edit
from graph_retry._core.ground.functions.awaiting import run_sync
from graph_retry._core.langgraph.storage.lock import ThreadLock
from tests.loops import Model, State, one_call, thread

_PATIENCE = 30


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def savers(request, mode):
    """Return two savers of one storage, as two processes have them; in memory, it is one."""
    if request.param == "memory":
        yield [InMemorySaver()] * 2
        return
    kinds = {
        "sqlite": (SqliteSaver, AsyncSqliteSaver),
        "postgres": (PostgresSaver, AsyncPostgresSaver),
    }
    kind = kinds[request.param][mode.is_async]
    place = request.getfixturevalue(f"{request.param}_database")
    opened = [mode.opened(kind.from_conn_string(place)) for _ in range(2)]
    with opened[0] as one, opened[1] as other:
        yield [one, other]


class Slow:
    """A plain node that works beside the call that asks, until it may end."""

    def __init__(self, mode):
        self.runs, self.may_end = 0, asyncio.Event() if mode.is_async else threading.Event()
        self.node = self.anode if mode.is_async else self.plain

    def plain(self, _state):
        self.runs += 1
        self.may_end.wait(_PATIENCE)
        return {"slow": "has ended"}

    async def anode(self, _state):
        self.runs += 1
        await self.may_end.wait()
        return {"slow": "has ended"}


class Beside(State, total=False):
    """The state of a graph with two nodes side by side."""

    slow: str


def beside(form, mode, model, node, saver):
    """Compile a graph in which a call asks while another node works."""
    builder = StateGraph(Beside).add_node("other", node)
    builder.add_node("asks", one_call(form, mode, model, None))
    return builder.add_edge(START, "other").add_edge(START, "asks").compile(saver)


def answered_meanwhile(mode, asking, other, slow):
    """Start a thread, answer it from the other side while it runs, and again when it has ended."""
    given, config = {"params": {"n": 0}}, thread()

    async def talk():
        running = asyncio.create_task(asking.ainvoke(given, config))
        async with asyncio.timeout(_PATIENCE):
            while not (await other.aget_state(config)).interrupts:  # noqa: ASYNC110
                await asyncio.sleep(0)
        with pytest.raises(TimeoutError, match="another process still runs"):
            await graph_retry.aresume(other, config, edit(n=1), wait=0.0)
        slow.may_end.set()
        await running
        return await graph_retry.aresume(other, config, edit(n=1), wait=_PATIENCE)

    if mode.is_async:
        return mode.run(talk)
    running = threading.Thread(target=asking.invoke, args=(given, config))
    running.start()
    while not other.get_state(config).interrupts:
        assert running.is_alive()
    with pytest.raises(TimeoutError, match="another process still runs"):
        graph_retry.resume(other, config, edit(n=1), wait=0.0)
    slow.may_end.set()
    running.join(_PATIENCE)
    return graph_retry.resume(other, config, edit(n=1), wait=_PATIENCE)


def test_an_answer_waits_for_the_run_that_asks(form, mode, savers):
    """The plain node and the call are each run once, and the answer is applied after them."""
    model, slow = Model(goal=1), Slow(mode)
    asking, other = (beside(form, mode, model, slow.node, saver) for saver in savers)
    done = answered_meanwhile(mode, asking, other, slow)
    assert (done["output"], done["slow"]) == ({"n": 1}, "has ended")
    assert (slow.runs, len(model.calls)) == (1, 2)


@pytest.mark.parametrize("mode", ["sync"], indirect=True)
@pytest.mark.parametrize("leaves", ["break", "inside", "error"])
def test_a_stream_that_its_reader_leaves_holds_nobody_up(leaves, form, mode, savers):
    """The reader answers as soon as the stream shows the question, also before the stream ends."""
    model = Model(goal=1)
    asking, other = (one_call(form, mode, model, saver) for saver in savers)
    parts = asking.stream({"params": {"n": 0}}, thread(), stream_mode="updates")
    next(part for part in parts if "__interrupt__" in part)
    if leaves == "break":
        del parts
    elif leaves == "error":
        parts.close()
    side = asking if leaves == "inside" else other
    while not side.get_state(thread()).interrupts:
        pass  # LangGraph saves the question in a thread of its own.
    assert graph_retry.resume(side, thread(), edit(n=1), wait=5)["output"] == {"n": 1}


def test_a_run_that_fails_frees_the_thread(form, mode, savers):
    """An error beside the question ends the run."""

    def fails(_state):
        raise LookupError("mine")

    graph = beside(form, mode, Model(goal=1), mode.colour(fails), savers[0])
    with pytest.raises(LookupError, match="mine"):
        mode.invoke(graph, {"params": {"n": 0}}, thread())
    with ThreadLock(savers[1], "1") as lock:
        assert mode.run(lock.try_acquire) if mode.is_async else run_sync(lock.try_acquire())
