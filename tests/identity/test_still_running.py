"""Calls that still run when their node has ended: none is made twice, and none loses an answer.

A node ends at its first pause or error. Its other calls may go on, in asyncio tasks or threads.
"""

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import RetryPolicy

from graph_retry import (
    ReplayMismatch,
    apending_reviews,
    aresume,
    aretry_llm_call,
    create_retry_node,
    edit,
    retry_llm_call,
)
from graph_retry._core.state import execution
from tests.loops import State, thread

PATIENCE_S = 20
"""Seconds after which a test that waits in vain fails."""


class Waits:
    """The runs of calls that wait for others now: by them, requests know that they are awaited."""

    def __init__(self) -> None:
        self._lock, self._waiting = threading.Lock(), 0
        self.first: Future[None] = Future()
        self.three: Future[None] = Future()
        self.now: Future[None] = Future()

    @contextmanager
    def one_more(self) -> Iterator[None]:
        """Count a run while it waits."""
        with self._lock:
            self._waiting += 1
            reached = [self.first, self.now, *([self.three] if self._waiting >= 3 else [])]
            for future in reached:
                if not future.done():
                    future.set_result(None)
        yield
        with self._lock:
            self._waiting -= 1
            self.now = self.now if self._waiting else Future()


class Gate:
    """What requests wait for. It is none of their attributes, which would tell calls apart."""

    waits: Waits
    """The runs that wait: a slow request ends when one does."""
    begun: Future[None]
    """Done when a slow request is in flight: number 0 then fails."""


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> Waits:
    """Watch the waits of runs."""
    made, plain = Waits(), execution.Running.wait
    Gate.waits, Gate.begun = made, Future()

    async def wait(running: execution.Running) -> None:
        with made.one_more():
            await plain(running)

    monkeypatch.setattr(execution.Running, "wait", wait)
    return made


async def told(future: Future[None]) -> None:
    """Await a future of any thread."""
    await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(future)), PATIENCE_S)


class Requests:
    """Requests by their number `n`: number 0 fails at first, and `slow` ones last until awaited."""

    def __init__(self, *slow: int) -> None:
        self.made: Counter[tuple[int, bool]] = Counter()
        self._slow = slow

    def _needed(self, params: dict[str, Any]) -> list[Future[None]]:
        self.made[params["n"], "ok" in params] += 1
        if params["n"] in self._slow:
            if not Gate.begun.done():
                Gate.begun.set_result(None)
            return [Gate.waits.now]
        return [Gate.begun] if params["n"] == 0 and self._slow else []

    def _end(self, params: dict[str, Any]) -> int:
        if params["n"] == 0 and "ok" not in params:
            raise ValueError("bad")
        return params["n"]

    def ask(self, params: dict[str, Any]) -> int:
        for future in self._needed(params):
            future.result(PATIENCE_S)
        return self._end(params)

    async def aask(self, params: dict[str, Any]) -> int:
        for future in self._needed(params):
            await told(future)
        return self._end(params)

    def once(self, *numbers: int) -> bool:
        """Whether each request was made once, and number 0 again after its answer."""
        return self.made == Counter([(0, False), (0, True), *((n, False) for n in numbers)])


def calling(make: Any, saver: Any = None, **options: Any) -> Any:
    """Compile a graph with one node, which runs `make`."""

    async def node(state: State) -> State:
        return {"output": await make()}

    builder = StateGraph(State).add_node("node", node, **options).add_edge(START, "node")
    return builder.compile(checkpointer=saver or InMemorySaver())


async def answered(graph: Any, given: Any = None) -> Any:
    """Run a graph, and answer its reviews until it ends; return its state."""
    state = await graph.ainvoke({} if given is None else given, thread())
    while reviews := await apending_reviews(graph, thread()):
        state = await aresume(graph, thread(), answers={reviews[0].review_id: edit(ok=True)})
    return state


class SlowSaver(InMemorySaver):
    """A saver whose reads take a while, as those of a database over a network."""

    async def aget_tuple(self, config: Any) -> Any:
        for _ in range(20):
            await asyncio.sleep(0)
        return await super().aget_tuple(config)


@pytest.mark.parametrize("saver", [InMemorySaver, SlowSaver])
@pytest.mark.parametrize("how", ["semaphore", "staggered", "threads"])
async def test_each_request_of_a_plain_gather_is_made_once(
    how: str, saver: Any, waits: Waits
) -> None:
    """Whether they wait for one another, begin late, or run in threads."""
    requests, turn = Requests(1, 2), asyncio.Semaphore(2)
    if how == "staggered":
        Gate.begun.set_result(None)

    async def one(number: int) -> Any:
        if how == "threads":
            return await asyncio.to_thread(retry_llm_call, requests.ask, {"n": number})
        if how == "staggered":
            if number:  # The node has ended by then.
                await told(waits.first)
            return await aretry_llm_call(requests.aask, {"n": number})
        async with turn:
            return await aretry_llm_call(requests.aask, {"n": number})

    graph = calling(lambda: asyncio.gather(*map(one, range(4))), saver())
    assert (await answered(graph))["output"] == [0, 1, 2, 3]
    assert requests.once(1, 2, 3)


async def test_the_requests_of_sync_tools_are_made_once(waits: Waits) -> None:
    """LangGraph runs the tools of one message in threads."""
    requests = Requests(1)

    @tool
    def ask(n: int) -> str:
        """Ask."""
        return str(retry_llm_call(requests.ask, {"n": n}))

    builder = StateGraph(MessagesState).add_node("tools", ToolNode([ask]))
    graph = builder.add_edge(START, "tools").compile(checkpointer=InMemorySaver())
    calls: Any = [{"name": "ask", "args": {"n": n}, "id": str(n)} for n in (0, 1)]
    state = await answered(graph, {"messages": [AIMessage("", tool_calls=calls)]})
    assert [message.content for message in state["messages"][1:]] == ["0", "1"]
    assert requests.once(1)


async def test_a_node_that_is_tried_again_waits_for_the_calls_that_it_left(waits: Waits) -> None:
    """Under LangGraph's `RetryPolicy`, after an error of the node itself."""
    later = Waits()  # The first attempt of the node ends while its slow requests are in flight.
    requests, tries = Requests(1, 2), Counter[str]()
    Gate.waits = later

    async def flaky() -> None:
        await told(waits.first)  # Number 0 has failed, and its call waits for the others.
        tries["made"] += 1
        if tries["made"] == 1:
            raise ConnectionError
        if tries["made"] == 2:
            await told(waits.three)  # Its calls wait for the slow ones, as number 0 does.
            with later.one_more():
                pass

    def make() -> Any:
        calls = (aretry_llm_call(requests.aask, {"n": n}) for n in range(3))
        return asyncio.gather(*calls, flaky())

    policy = RetryPolicy(initial_interval=0.01, jitter=False)
    graph = calling(make, retry_policy=policy)
    assert (await answered(graph))["output"] == [0, 1, 2, None]
    assert requests.once(1, 2)


async def test_a_time_limit_that_cuts_off_a_pause_is_told(
    caplog: pytest.LogCaptureFixture, waits: Waits
) -> None:
    """The pausing call waits for the one beside it, which takes longer than the limit."""
    requests, asked, cut_off = Requests(), asyncio.Event(), asyncio.Event()
    beside_it = list[asyncio.Future[Any]]()

    async def beside(params: dict[str, Any]) -> int:
        await cut_off.wait()
        return await requests.aask(params)

    async def limited() -> Any:
        call = aretry_llm_call(requests.aask, {"n": 0}, notify=lambda _: asked.set())
        pausing = asyncio.ensure_future(call)
        await asked.wait()
        await told(waits.first)
        return await asyncio.wait_for(pausing, PATIENCE_S if cut_off.is_set() else 0.01)

    def make() -> Any:
        beside_it[:] = [asyncio.ensure_future(aretry_llm_call(beside, {"n": 1}))]
        return asyncio.gather(limited(), *beside_it)

    graph = calling(make)
    with pytest.raises(TimeoutError):
        await graph.ainvoke({}, thread())
    cut_off.set()
    (logged,) = caplog.messages
    assert "the pause of a call (node:" in logged
    assert "|Requests.aask:" in logged
    assert "use `timeout=`" in logged
    await asyncio.wait(beside_it, timeout=PATIENCE_S)
    asked.set()
    await graph.ainvoke(None, thread())
    assert (await aresume(graph, thread(), edit(ok=True)))["output"] == [0, 1]
    assert requests.once(1)


async def test_a_stream_that_is_left_unread_delays_no_pause(waits: Waits) -> None:
    """Its run does not count as one that still makes requests."""
    requests, streams = Requests(), list[Any]()

    async def make() -> Any:
        node = create_retry_node(requests.aask, dict, name="other")
        streams.append(node.astream({"params": {"n": 1}}))
        await anext(streams[-1])
        return await aretry_llm_call(requests.aask, {"n": 0})

    graph = calling(make)
    await asyncio.wait_for(graph.ainvoke({}, thread()), execution._PATIENCE / 4)
    assert [review.params for review in await apending_reviews(graph, thread())] == [{"n": 0}]
    for stream in streams:
        await stream.aclose()


async def test_a_call_that_outlasts_the_wait_saves_nothing(
    monkeypatch: pytest.MonkeyPatch, waits: Waits
) -> None:
    """The newer run makes its request again, and no answer to that one is lost."""
    monkeypatch.setattr(execution, "_PATIENCE", 0.02)
    requests, errors, goes_on = Requests(), list[BaseException](), asyncio.Event()
    refused = asyncio.Event()

    async def ask(params: dict[str, Any]) -> int:
        if requests.made[1, False] == 1 and params == {"n": 1}:
            await goes_on.wait()
        return await requests.aask(params)

    async def kept(number: int) -> Any:
        requests.made[number, False] += number
        try:
            return await aretry_llm_call(ask, {"n": number})
        except ReplayMismatch as error:
            errors.append(error)
            refused.set()
            raise

    @entrypoint(checkpointer=InMemorySaver())
    async def graph(_: Any) -> Any:
        return await asyncio.gather(*map(kept, range(2)))

    await graph.ainvoke(0, thread())
    state = await aresume(graph, thread(), edit(ok=True))
    goes_on.set()
    await asyncio.wait_for(refused.wait(), PATIENCE_S)
    assert state == [0, 1]
    assert ["run again" in str(error) for error in errors] == [True]
    assert await graph.aget_state(thread())
