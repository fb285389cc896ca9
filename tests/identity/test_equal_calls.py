"""Equal calls in one node: as many model calls as there are calls, and a result each."""

import asyncio
import contextvars
import itertools
import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from graph_retry import aretry_llm_call, edit, gather_calls, retry_llm_call
from tests.identity.cities import let_others_end, one_node
from tests.loops import Model, answer, reviews, thread

PARAMS = {"city": "Rome"}
OPTIONS = {"name": "guide"}
MODES = {"sequence": ["sync", "async"], "gather_calls": ["async"], "threads": ["sync"]}


def numbered(failing):
    """Return a model that answers with the number of its call; one of the first calls fails."""
    number = itertools.count(1)

    def tell(params):
        this = next(number)
        if this == failing:
            raise ValueError("closed")
        return this

    return Model(tell)


def node_of(mode, how, model, times):
    """Return a node that makes the same call several times; its output lists the results."""

    def sequence(state):
        return {"output": [retry_llm_call(model, PARAMS, **OPTIONS) for _ in range(times)]}

    async def asequence(state):
        return {"output": [await aretry_llm_call(model, PARAMS, **OPTIONS) for _ in range(times)]}

    async def prepared():
        await asyncio.sleep(random.uniform(0, 0.005))
        return await aretry_llm_call(model, PARAMS, **OPTIONS)

    async def gathered(state):
        return {"output": await gather_calls(*(prepared() for _ in range(times)))}

    def call():
        return retry_llm_call(model, PARAMS, **OPTIONS)

    def threads(state):
        with ThreadPoolExecutor(times) as pool:
            running = [
                pool.submit(contextvars.copy_context().run, call) for _ in range(times)
            ]  # fmt: skip
        return {"output": [each.result() for each in running]}

    if how == "sequence":
        return asequence if mode.is_async else sequence
    return {"gather_calls": gathered, "threads": threads}[how]


RUNS = [(mode, how) for how, modes in MODES.items() for mode in modes]


@pytest.mark.parametrize(("mode", "how"), RUNS, indirect=["mode"])
@pytest.mark.parametrize(("times", "failing"), [(2, None), (2, 1), (2, 2), (3, 1), (3, 2), (3, 3)])
def test_each_of_several_equal_calls_is_made(mode, checkpointer, how, times, failing):
    """Protects deliberate repetition (best of three) from being taken for one call."""
    model = numbered(failing)
    graph = one_node(node_of(mode, how, model, times), checkpointer)
    state = mode.invoke(graph, {}, thread())
    let_others_end(mode)

    if failing:
        (review,) = reviews(mode, graph, thread())
        assert review.attempt == 1
        state = answer(mode, graph, thread(), edit(city="Oslo"))

    calls = set(range(1, times + 1 + bool(failing)))
    assert set(state["output"]) == calls - {failing}
    assert len(state["output"]) == times
    assert len(model.calls) == len(calls)
    assert sum(params["city"] == "Oslo" for params in model.calls) == bool(failing)
