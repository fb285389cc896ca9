"""A call whose function makes calls of its own, as an agent's tool does, or runs in a tool."""

import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from langgraph.graph import START, StateGraph

from graph_retry import aretry_llm_call, retry_llm_call
from tests.identity.cities import Guide, finish, one_node, params_of, right, right_counts
from tests.loops import State, thread


@pytest.mark.parametrize("inner_name", ["inner", "outer"])
@pytest.mark.parametrize("inner_params", ["other", "equal"])
def test_a_call_in_the_function_of_a_call(mode, checkpointer, inner_name, inner_params):
    """Protects a call from the one around it, of the same name and with equal params, too."""
    guide, entered = Guide(), []

    def outer(params):
        entered.append(params["city"])
        given = params if inner_params == "equal" else params_of("Paris")
        return "outer: " + retry_llm_call(guide, given, name=inner_name)

    async def aouter(params):
        entered.append(params["city"])
        given = params if inner_params == "equal" else params_of("Paris")
        return "outer: " + await aretry_llm_call(guide, given, name=inner_name)

    first = params_of("Paris" if inner_params == "equal" else "Rome")

    def node(state):
        return {"output": retry_llm_call(outer, first, name="outer")}

    async def anode(state):
        return {"output": await aretry_llm_call(aouter, first, name="outer")}

    graph = one_node(anode if mode.is_async else node, checkpointer)
    mode.invoke(graph, {}, thread())

    answered = finish(mode, graph, thread(), "resume")

    state = mode.call(graph, "get_state", thread()).values
    assert state["output"] == "outer: " + right()["Paris"]
    assert guide.counts() == {"Paris": 2}
    assert len(answered) == 1
    assert len(entered) == 2, "the function around an open question is entered again"


@pytest.mark.parametrize("mode", ["sync"], indirect=True)
def test_a_call_that_overran_does_not_hinder_the_next_attempt(mode, checkpointer):
    """Protects the attempt after a timeout from the thread that the first one left behind."""
    release, made = threading.Event(), []

    def slow(params):
        made.append(params["n"])
        if params["n"] == 0:
            release.wait(10)
        return "done"

    def node(state):
        def hook(error, attempt, params):
            return {"n": 1}

        told = retry_llm_call(slow, {"n": 0}, hook, name="slow", timeout=0.05, auto_retries=1)
        return {"output": told}

    graph = one_node(node, checkpointer)
    try:
        assert mode.invoke(graph, {}, thread())["output"] == "done"
    finally:
        release.set()
    assert made == [0, 1]


@pytest.mark.parametrize("mode", ["sync"], indirect=True)
def test_calls_in_a_pool_of_two_workers(mode, checkpointer):
    """Protects a node with more calls than workers: none waits for another for ever."""
    cities = [f"city {number}" for number in range(9)]
    reviewed = cities[::4]
    guide = Guide()

    def tell(city):
        return retry_llm_call(guide, params_of(city, reviewed), name="guide")

    def node(state):
        with ThreadPoolExecutor(2) as pool:
            running = [pool.submit(contextvars.copy_context().run, tell, city) for city in cities]
        return {"output": {city: each.result() for city, each in zip(cities, running, strict=True)}}

    graph = one_node(node, checkpointer)
    mode.invoke(graph, {}, thread())
    answered = finish(mode, graph, thread(), "resume")

    state = mode.call(graph, "get_state", thread()).values
    assert state["output"] == right(cities, reviewed)
    assert guide.counts() == right_counts(cities, reviewed)
    assert len(answered) == len(reviewed)


def test_calls_in_nested_subgraphs_of_one_name(mode, checkpointer):
    """Protects calls of one name and equal params at three depths from each other."""
    guide = Guide()

    def node(state):
        return {"output": retry_llm_call(guide, params_of("Paris"), name="guide")}

    async def anode(state):
        return {"output": await aretry_llm_call(guide, params_of("Paris"), name="guide")}

    def wrapped(inner, saver=None):
        builder = StateGraph(State).add_node("own", anode if mode.is_async else node)
        builder.add_edge(START, "own")
        if inner is not None:
            builder.add_node("inner", inner).add_edge("own", "inner")
        return builder.compile(checkpointer=saver)

    graph = wrapped(wrapped(wrapped(None)), checkpointer)
    mode.invoke(graph, {}, thread())
    answered = finish(mode, graph, thread(), "resume")

    assert mode.call(graph, "get_state", thread()).values["output"] == right()["Paris"]
    assert guide.counts() == {"Paris": 6}
    assert len(set(answered)) == 3
