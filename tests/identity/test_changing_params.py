"""Params that differ from run to run: the time of day in a prompt, a fresh UUID, a counter.

A call whose name is its node's only one is known all the same. Where it could be another one, it
is an error that says what to do; `key=` removes the doubt.
"""

import itertools
import random
import time
import uuid
from datetime import UTC, datetime

import pytest

from graph_retry import aretry_llm_call, retry_llm_call
from tests.identity.cities import (
    CITIES,
    REVIEWED,
    Guide,
    finish,
    mismatch,
    one_node,
    params_of,
    right,
    right_counts,
)
from tests.loops import reviews, thread

CHANGING = {
    "time_ns": time.time_ns,
    "prompt": lambda: f"It is {datetime.now(UTC).isoformat()}: tell.",
    "datetime": lambda: datetime.now(UTC),
    "uuid": uuid.uuid4,
    "nested": lambda: {"meta": [{"trace": str(uuid.uuid4())}]},
}
_numbers = itertools.count(1)
_words = itertools.cycle(["first the ferry, then the fort", "first the fort, then the ferry"])
CHANGING_OTHERWISE = {
    "counter": lambda: next(_numbers),
    "float": random.random,
    "order of examples": lambda: next(_words),
    "sometimes absent": lambda: next(_numbers) if next(_numbers) % 4 else None,
}
"""What nobody can tell by its look from the params of another call."""


def node_of(mode, guide, calls, changing=time.time_ns):
    """Return a node that makes calls `(name, city, key)`; its output lists their results."""

    def given(name, city, key):
        options = {"name": name} if key is None else {"name": name, "key": key}
        return (guide, {**params_of(city), "now": changing()}), options

    def node(state):
        told = []
        for call in calls:
            arguments, options = given(*call)
            told.append(retry_llm_call(*arguments, **options))
        return {"output": told}

    async def anode(state):
        told = []
        for call in calls:
            arguments, options = given(*call)
            told.append(await aretry_llm_call(*arguments, **options))
        return {"output": told}

    return anode if mode.is_async else node


def twins(mode, guide, changing, keys=(None, None)):
    """Return a node of two calls about one city, of which the second is refused by the model."""

    def given(key):
        params = {"city": "Rome", "closed": False, "note": "", "now": changing()}
        return params, {"name": "guide", **({} if key is None else {"key": key})}

    def model(params):
        result = guide(params)
        if len(guide.calls) == 2:
            raise ValueError("the second call of all is refused")
        return f"{result}, call {len(guide.calls)}"

    def node(state):
        told = []
        for key in keys:
            params, options = given(key)
            told.append(retry_llm_call(model, params, **options))
        return {"output": told}

    async def anode(state):
        told = []
        for key in keys:
            params, options = given(key)
            told.append(await aretry_llm_call(model, params, **options))
        return {"output": told}

    return anode if mode.is_async else node


def run(mode, saver, guide, calls, way, changing=time.time_ns):
    """Run a thread to its end; return the answers and the output."""
    graph = one_node(node_of(mode, guide, calls, changing), saver)
    mode.invoke(graph, {}, thread())
    answered = finish(mode, graph, thread(), way)
    return answered, mode.call(graph, "get_state", thread()).values.get("output")


@pytest.mark.parametrize("way", ["resume", "plain"])
@pytest.mark.parametrize("changing", CHANGING)
def test_the_only_call_of_a_node(mode, checkpointer, changing, way):
    """Protects a prompt with the time of day from being asked, and paid for, once more."""
    guide = Guide()
    answered, output = run(
        mode, checkpointer, guide, [("guide", "Paris", None)], way, CHANGING[changing]
    )

    assert output == [right()["Paris"]]
    assert len(answered) == 1
    assert guide.counts() == {"Paris": 2}


@pytest.mark.parametrize("way", ["resume", "plain"])
@pytest.mark.parametrize("changing", CHANGING_OTHERWISE)
def test_the_only_call_of_a_node_whose_params_change_in_any_way(mode, checkpointer, changing, way):
    """Protects a person's answer: it is used, or a mismatch says why not; no call is made anew."""
    guide, ended = Guide(), []
    calls = [("guide", "Paris", None)]

    def to_the_end():
        ended.append(run(mode, checkpointer, guide, calls, way, CHANGING_OTHERWISE[changing]))

    told = mismatch(to_the_end)
    if told is None:
        assert [output for _, output in ended] == [[right()["Paris"]]]
        assert [len(answered) for answered, _ in ended] == [1]
        assert guide.counts() == {"Paris": 2}
    else:
        assert "`now`" in told
        assert "key=" in told
        assert guide.counts() == {"Paris": 1}


@pytest.mark.parametrize("way", ["resume", "plain"])
@pytest.mark.parametrize(
    "cities", [("Rome", "Paris"), ("Paris", "Rome"), ("Paris", "Oslo"), ("Rome", "Paris", "Oslo")]
)
def test_calls_of_different_names(mode, checkpointer, cities, way):
    """Protects calls that their names tell apart: finished ones keep their results."""
    guide = Guide()
    calls = [(f"tell of {city}", city, None) for city in cities]
    answered, output = run(mode, checkpointer, guide, calls, way)

    assert output == [right()[city] for city in cities]
    assert len(answered) == len({*cities} & {*REVIEWED})
    assert guide.counts() == right_counts(cities)


@pytest.mark.parametrize("way", ["resume", "plain"])
@pytest.mark.parametrize("cities", [CITIES, CITIES[::-1], ["Rome", "Bern", "Oslo"]], ids=str)
def test_calls_of_one_name_in_a_loop(mode, checkpointer, cities, way):
    """Protects each city's call: right or a mismatch, never wrong, never one more call."""
    guide, ended = Guide(), []
    calls = [("guide", city, None) for city in cities]

    def to_the_end():
        ended.append(run(mode, checkpointer, guide, calls, way))

    told = mismatch(to_the_end)
    assert all(guide.counts()[city] <= right_counts(cities)[city] for city in cities)
    if told is None:
        ((answered, output),) = ended
        assert output == [right()[city] for city in cities]
        assert guide.counts() == right_counts(cities)
        assert len(answered) == len({*cities} & {*REVIEWED})
    else:
        assert "guide" in told
        assert "now" in told
        assert "key=" in told


@pytest.mark.parametrize("way", ["resume", "plain"])
def test_two_calls_that_differ_only_in_what_changes(mode, checkpointer, way):
    """Protects two calls that nothing tells apart: nothing is called, and the error says why."""
    guide = Guide()
    graph = one_node(twins(mode, guide, time.time_ns), checkpointer)
    mode.invoke(graph, {}, thread())
    assert len(reviews(mode, graph, thread())) == 1
    calls = len(guide.calls)

    told = mismatch(lambda: finish(mode, graph, thread(), way))

    assert told is not None, "the thread went on"
    assert "guide" in told
    assert "now" in told
    assert "key=" in told
    assert len(guide.calls) == calls


@pytest.mark.parametrize("way", ["resume", "plain"])
def test_two_calls_that_differ_only_in_what_changes_and_have_keys(mode, checkpointer, way):
    """Protects the way out that the error names: with a key each finds its own saved call."""
    guide = Guide()
    graph = one_node(twins(mode, guide, time.time_ns, keys=("a", "b")), checkpointer)
    mode.invoke(graph, {}, thread())

    answered = finish(mode, graph, thread(), way)

    first, second = mode.call(graph, "get_state", thread()).values["output"]
    assert first.endswith("call 1")
    assert second.endswith("call 3")
    assert len(guide.calls) == 3
    assert len(answered) == 1


@pytest.mark.parametrize("way", ["resume", "plain"])
@pytest.mark.parametrize("cities", [CITIES, CITIES[::-1]], ids=str)
def test_calls_with_keys_in_a_loop(mode, checkpointer, cities, way):
    """Protects the loop with `key=city`: right, at exactly its price."""
    guide = Guide()
    calls = [("guide", city, city) for city in cities]
    answered, output = run(mode, checkpointer, guide, calls, way)

    assert output == [right()[city] for city in cities]
    assert guide.counts() == right_counts(cities)
    assert len(answered) == len(REVIEWED)


def test_two_equal_calls_with_one_key_are_two_calls(mode, checkpointer):
    """Protects a key that is used twice in a node: a number among equal ones tells them apart."""
    guide = Guide()
    keys = ("same", "same")
    graph = one_node(twins(mode, guide, lambda: 0, keys), checkpointer)
    mode.invoke(graph, {}, thread())

    answered = finish(mode, graph, thread(), "resume")

    first, second = mode.call(graph, "get_state", thread()).values["output"]
    assert (first[-1], second[-1]) == ("1", "3")
    assert len(guide.calls) == 3
    assert len(answered) == 1


def test_one_key_for_two_different_calls_is_refused(mode, checkpointer):
    """Protects both calls from each other: params do not count, so the key would mix them up."""
    guide = Guide()
    calls = [("guide", "Rome", "same"), ("guide", "Bern", "same")]

    with pytest.raises(ValueError, match="key='same'"):
        run(mode, checkpointer, guide, calls, "resume")

    assert guide.counts() == {"Rome": 1}
