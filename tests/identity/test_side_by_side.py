"""Several calls of one node that start in another order at every entry keep what is theirs."""

import asyncio
import contextvars
from concurrent.futures import ThreadPoolExecutor

import pytest

from graph_retry import gather_calls
from tests.identity.cities import (
    CITIES,
    REVIEWED,
    Guide,
    Preparation,
    finish,
    one_node,
    right,
    right_counts,
    seeds,
)
from tests.loops import thread

MODES = {"gather_calls": "async", "gather": "async", "threads": "sync"}


def side_by_side(how, preparation):
    """Return a node that makes the calls of all cities at once."""

    async def gather_all(state):
        results = await gather_calls(*(preparation.acall(city) for city in CITIES))
        return {"output": dict(zip(CITIES, results, strict=True))}

    async def gather(state):
        results = await asyncio.gather(*(preparation.acall(city) for city in CITIES))
        return {"output": dict(zip(CITIES, results, strict=True))}

    def threads(state):
        with ThreadPoolExecutor(len(CITIES)) as pool:
            running = [
                pool.submit(contextvars.copy_context().run, preparation.call, city)
                for city in CITIES
            ]
        return {"output": {c: each.result() for c, each in zip(CITIES, running, strict=True)}}

    return {"gather_calls": gather_all, "gather": gather, "threads": threads}[how]


def wrong_threads(mode, saver, how, way):
    """Run a thread for each seed; return what was wrong, by seed."""
    wrong = {}
    for seed in seeds():
        guide, config = Guide(), thread(str(seed))
        graph = one_node(side_by_side(how, Preparation(seed, guide)), saver)
        mode.invoke(graph, {}, config)
        answered = finish(mode, graph, config, way)

        got = mode.call(graph, "get_state", config).values.get("output")
        counted = guide.counts() == right_counts()
        asked_once = len(set(answered)) == len(answered) == len(REVIEWED)
        if got != right() or guide.repeated or not counted or not asked_once:
            wrong[seed] = (got, guide.counts(), guide.repeated, answered)
    return wrong


RUNS = [(MODES[how], how, way) for how in MODES for way in ("resume", "by id")]


@pytest.mark.parametrize(("mode", "how", "way"), RUNS, indirect=["mode"])
def test_calls_made_at_once_keep_their_own_results(mode, checkpointer, how, way):
    """Protects a call from a sibling that starts before it this time; questions are asked once."""
    assert wrong_threads(mode, checkpointer, how, way) == {}


@pytest.mark.parametrize(
    ("mode", "how"), [("async", "gather"), ("sync", "threads")], indirect=["mode"]
)
def test_a_plain_answer_decides_the_question_that_was_shown(mode, checkpointer, how):
    """Protects the question that is not shown yet from the answer to the one that is."""
    assert wrong_threads(mode, checkpointer, how, "plain") == {}
