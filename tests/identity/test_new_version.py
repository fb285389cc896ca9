"""A new version of a node that makes other calls than the one whose thread waits."""

from collections import Counter

import pytest

from graph_retry import aretry_llm_call, retry_llm_call
from tests.identity.cities import (
    Guide,
    finish,
    mismatch,
    one_node,
    params_of,
    right_counts,
    tell,
)
from tests.loops import thread

WAITING = ("price", "Paris")
"""The name and the city of the call that waits; Paris is closed, the other cities are not."""
OLD = [("net", "Rome"), WAITING]
REVIEWED = ["Paris"]


def node_of(mode, guide, calls, *, keyed=False):
    """Return a node that makes calls `(name, city)` in this order; its output is by city."""

    def options(name, city):
        return {"name": name, **({"key": city} if keyed else {})}

    def node(state):
        told = {
            city: retry_llm_call(guide, params_of(city, REVIEWED), **options(name, city))
            for name, city in calls
        }
        return {"output": told}

    async def anode(state):
        told = {
            city: await aretry_llm_call(guide, params_of(city, REVIEWED), **options(name, city))
            for name, city in calls
        }
        return {"output": told}

    return anode if mode.is_async else node


def output_of(calls):
    """Return the right output of a version of the node."""
    return {
        city: tell({"city": city, "note": city if city == "Paris" else ""}) for _, city in calls
    }


OTHER = ("tax", "Oslo")
SAME_NAME = ("price", "Oslo")
NEW = {
    "another name before": [OTHER, *OLD],
    "another name between": [OLD[0], OTHER, WAITING],
    "another name after": [*OLD, OTHER],
    "other params after": [*OLD, SAME_NAME],
    "the finished one removed": [WAITING],
    "the finished one removed, another before": [OTHER, WAITING],
    "the waiting one removed": [OLD[0]],
    "reordered": [WAITING, OLD[0]],
}
IN_DOUBT = {
    "other params before": [SAME_NAME, *OLD],
    "other params between": [OLD[0], SAME_NAME, WAITING],
}


def run_on(mode, saver, guide, calls, way, **how):
    """Answer a waiting thread with a version of the node; return the answers and the output."""
    graph = one_node(node_of(mode, guide, calls, **how), saver)
    answered = finish(mode, graph, thread(), way)
    if not answered:
        mode.invoke(graph, None, thread())
    return answered, mode.call(graph, "get_state", thread()).values["output"]


@pytest.mark.parametrize("way", ["resume", "plain"])
@pytest.mark.parametrize("change", [name for name in NEW if name != "the waiting one removed"])
def test_a_deployment_changes_the_calls_around_a_waiting_one(mode, checkpointer, change, way):
    """Protects the waiting call's state from other calls: its answer reaches it, none repeats."""
    guide = Guide()
    graph = one_node(node_of(mode, guide, OLD), checkpointer)
    mode.invoke(graph, {}, thread())

    answered, output = run_on(mode, checkpointer, guide, NEW[change], way)

    assert output == output_of(NEW[change])
    assert len(answered) == 1
    assert guide.counts() == right_counts({city for _, city in [*OLD, *NEW[change]]}, REVIEWED)


@pytest.mark.parametrize("way", ["resume", "plain"])
def test_the_answer_to_a_call_that_was_removed_decides_nothing(mode, checkpointer, way):
    """Protects the calls that are left: no further model call, and the thread ends."""
    guide = Guide()
    graph = one_node(node_of(mode, guide, OLD), checkpointer)
    mode.invoke(graph, {}, thread())

    _, output = run_on(mode, checkpointer, guide, NEW["the waiting one removed"], way)

    assert output == {"Rome": tell({"city": "Rome", "note": ""})}
    assert guide.counts() == {"Rome": 1, "Paris": 1}


@pytest.mark.parametrize("change", IN_DOUBT)
@pytest.mark.parametrize("way", ["resume", "plain"])
def test_a_call_of_the_same_name_before_a_waiting_one(mode, checkpointer, change, way):
    """Protects the waiting call: either all is right, or a mismatch that the old version survives.

    The new call may be the waiting one with other params, as far as anybody can know until the
    waiting one comes along.
    """
    guide = Guide()
    graph = one_node(node_of(mode, guide, OLD), checkpointer)
    mode.invoke(graph, {}, thread())

    told = mismatch(lambda: run_on(mode, checkpointer, guide, IN_DOUBT[change], way))
    new, cities = IN_DOUBT[change], ["Rome", "Paris", "Oslo"]
    if told is not None:
        assert "price" in told
        assert "key=" in told
        new, cities = OLD, ["Rome", "Paris"]
        assert guide.counts() <= right_counts(cities, REVIEWED)
        run_on(mode, checkpointer, guide, OLD, way)

    graph = one_node(node_of(mode, guide, new), checkpointer)
    assert mode.call(graph, "get_state", thread()).values["output"] == output_of(new)
    assert guide.counts() == right_counts(cities, REVIEWED)


@pytest.mark.parametrize("change", [*NEW, *IN_DOUBT])
def test_calls_with_a_key_are_right_whatever_a_deployment_changes(mode, checkpointer, change):
    """Protects the promise of `key=`: there is no doubt left."""
    new, guide = (NEW | IN_DOUBT)[change], Guide()
    graph = one_node(node_of(mode, guide, OLD, keyed=True), checkpointer)
    mode.invoke(graph, {}, thread())

    _, output = run_on(mode, checkpointer, guide, new, "resume", keyed=True)

    assert output == output_of(new)
    further = 0 if change == "the waiting one removed" else 1
    cities = Counter({city for _, city in [*OLD, *new]})
    assert guide.counts() == cities + Counter({"Paris": further})
