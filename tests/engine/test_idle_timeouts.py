"""`timeout=` takes LangGraph's `TimeoutPolicy`: a limit in all, and one without progress."""

import asyncio
import threading
import time

import pytest
from langchain_core.language_models import FakeListChatModel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer
from langgraph.graph import START, StateGraph
from langgraph.runtime import get_runtime
from langgraph.types import TimeoutPolicy

from graph_retry import AttemptsExhausted, aretry_llm_call, retry_llm_call
from graph_retry._core.ground.functions import limits
from tests.loops import State, thread

IDLE, ROUNDS = 0.4, 12


def call(mode, function, policy):
    """Make a call outside any graph."""
    options = {"output": dict[str, list[int]], "timeout": policy, "review": False}
    if mode.is_async:
        return mode.run(lambda: aretry_llm_call(function, "p", **options))
    return retry_llm_call(function, "p", **options)


@pytest.mark.parametrize("stalls", [False, True])
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_stream_that_stalls_is_ended_and_a_slow_one_is_not(mode, stalls, kind):
    """Each piece of a stream is progress, so only silence ends the attempt."""
    never = threading.Event()

    def stream(_):
        yield '{"n": ['
        for n in range(ROUNDS):
            never.wait(IDLE / 20)
            yield f"{n}, "
        never.wait(20 if stalls else 0)
        yield "9]}"

    async def astream(_):
        yield '{"n": ['
        for n in range(ROUNDS):
            await asyncio.sleep(IDLE / 20)
            yield f"{n}, "
        await (asyncio.Event().wait() if stalls else asyncio.sleep(0))
        yield "9]}"

    function = astream if mode.is_async and kind == "async" else stream
    policy = TimeoutPolicy(idle_timeout=IDLE)
    if not stalls:
        assert call(mode, function, policy) == {"n": [*range(ROUNDS), 9]}
        return
    with pytest.raises(AttemptsExhausted) as ended:
        call(mode, function, policy)
    never.set()
    [attempt] = ended.value.attempts
    assert attempt["failure"]["message"] == f"no progress within {IDLE:g} s"


def test_the_limit_in_all_ends_a_stream_that_goes_on(mode):
    """Progress does not extend `run_timeout`."""
    never = threading.Event()

    def stream(_):
        while not never.is_set():
            never.wait(0.02)
            yield "["

    with pytest.raises(AttemptsExhausted) as ended:
        call(mode, stream, TimeoutPolicy(run_timeout=0.2, idle_timeout=5))
    never.set()
    assert ended.value.attempts[0]["failure"]["message"] == "no result within 0.2 s"


@pytest.mark.parametrize("sign", ["heartbeat", "event", "model"])
@pytest.mark.parametrize("refresh_on", ["auto", "heartbeat"])
def test_signs_of_life(mode, sign, refresh_on, monkeypatch):
    """Heartbeats, custom events and LangChain's models are progress; or heartbeats alone."""
    signs = {
        "heartbeat": lambda: get_runtime().heartbeat(),
        "event": lambda: get_stream_writer()("alive"),
        "model": lambda: FakeListChatModel(responses=["x"]).invoke("p"),
    }
    made, begin = [], limits.Limits.__init__

    def watched(self, policy):
        begin(self, policy)
        made.append(self)

    monkeypatch.setattr(limits.Limits, "__init__", watched)

    def slow(_):
        # Long ago, but within the limit: a busy machine may look at the limit before the sign.
        began = made[-1]._last = time.monotonic() - 30
        signs[sign]()
        return made[-1]._last != began

    policy = TimeoutPolicy(idle_timeout=60, refresh_on=refresh_on)
    options = {"timeout": policy, "name": "slow"}

    def node(_):
        return {"output": retry_llm_call(slow, "p", **options)}

    async def anode(_):
        return {"output": await aretry_llm_call(slow, "p", **options)}

    builder = StateGraph(State).add_node("ask", anode if mode.is_async else node)
    graph = builder.add_edge(START, "ask").compile(checkpointer=InMemorySaver())

    seen = mode.invoke(graph, {}, thread())["output"]

    assert seen is (refresh_on == "auto" or sign == "heartbeat")


@pytest.mark.parametrize("wrong", [0, -1, "5", TimeoutPolicy(run_timeout=-1)])
def test_a_wrong_limit_is_refused(wrong):
    """A limit is a number of seconds above 0, or a policy of such numbers."""
    with pytest.raises(ValueError, match="timeout"):
        retry_llm_call(str, "p", timeout=wrong)
