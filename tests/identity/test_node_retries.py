"""A `RetryPolicy` on the node around a call runs the node again: what is finished stays so."""

from collections import Counter

import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import RetryPolicy, Send

from graph_retry import aretry_llm_call, create_retry_node, retry_llm_call
from tests.identity.cities import (
    Guide,
    finish,
    one_node,
    open_up,
    params_of,
    right,
    right_counts,
)
from tests.loops import Fanned, Model, State, answer, reviews, thread

CITIES = ["Paris", "Rome", "Oslo"]
POLICY = RetryPolicy(initial_interval=0.001, jitter=False, retry_on=ConnectionError)


class FailingCode:
    """The node's own code, which fails once after a certain call has returned."""

    def __init__(self, after):
        self._after, self.failures = after, 0

    def run(self, city):
        """Raise, the first time that this city's call has returned."""
        if city == self._after and not self.failures:
            self.failures += 1
            raise ConnectionError(f"the node's own code, after {city}")


def node_of(mode, guide, code, reviewed):
    """Return a node that makes three calls, with code of its own after each."""

    def node(state):
        told = {}
        for city in CITIES:
            told[city] = retry_llm_call(guide, params_of(city, reviewed), name="guide")
            code.run(city)
        return {"output": told}

    async def anode(state):
        told = {}
        for city in CITIES:
            told[city] = await aretry_llm_call(guide, params_of(city, reviewed), name="guide")
            code.run(city)
        return {"output": told}

    return anode if mode.is_async else node


@pytest.mark.parametrize("way", ["resume", "plain"])
@pytest.mark.parametrize(
    ("reviewed", "after"),
    [
        pytest.param([], "Oslo", id="after the last call"),
        pytest.param([], "Rome", id="between two calls"),
        pytest.param(["Rome"], "Paris", id="before a reviewed call"),
        pytest.param(["Rome"], "Rome", id="after an answered review"),
        pytest.param(["Rome", "Oslo"], "Rome", id="between two reviews"),
        pytest.param(["Paris", "Rome", "Oslo"], "Oslo", id="after three reviews"),
    ],
)
def test_the_code_of_a_node_fails_once(mode, checkpointer, reviewed, after, way):
    """Protects finished calls and answered reviews: nothing is called or asked a second time."""
    guide, code = Guide(), FailingCode(after)
    node = node_of(mode, guide, code, reviewed)
    graph = one_node(node, checkpointer, retry_policy=POLICY)
    mode.invoke(graph, {}, thread())

    answered = finish(mode, graph, thread(), way)

    assert mode.call(graph, "get_state", thread()).values["output"] == right(CITIES, reviewed)
    assert guide.counts() == right_counts(CITIES, reviewed)
    assert len(answered) == len(reviewed)
    assert code.failures == 1


@pytest.mark.parametrize("after", ["Paris", "Rome", "Oslo"])
def test_the_code_of_a_node_fails_without_a_policy_and_is_run_on(mode, checkpointer, after):
    """Protects the same where a person runs the failed thread on with `invoke(None)`."""
    guide, code = Guide(), FailingCode(after)
    graph = one_node(node_of(mode, guide, code, ["Rome"]), checkpointer)
    failed = 0
    for _ in range(3):
        try:
            if failed or code.failures:
                mode.invoke(graph, None, thread())
            else:
                mode.invoke(graph, {}, thread())
            finish(mode, graph, thread(), "resume")
            break
        except ConnectionError:
            failed += 1

    assert mode.call(graph, "get_state", thread()).values["output"] == right(CITIES, ["Rome"])
    assert guide.counts() == right_counts(CITIES, ["Rome"])
    assert failed == 1


@pytest.mark.parametrize("fails_at", [0, 1], ids=["first review", "second review"])
def test_a_hook_of_the_node_form_fails_once(mode, checkpointer, fails_at):
    """Protects a review behind a failed try: it is listed and answered, and nothing repeats."""
    model, hooked = Model(goal=2), []

    def hook(error, attempt, params):
        hooked.append(params["n"])
        if hooked == [*range(fails_at), fails_at]:
            raise ConnectionError("the hook's own code")

    llm_call = mode.colour(model)
    node = create_retry_node(llm_call, dict, hook, output=dict[str, int], name="count")
    builder = StateGraph(State).add_node("ask", node, retry_policy=POLICY).add_edge(START, "ask")
    graph = builder.compile(checkpointer=checkpointer)

    mode.invoke(graph, {"params": {"n": 0}}, thread())
    for n in (1, 2):
        assert [params["n"] for params in model.calls] == list(range(n))
        (review,) = reviews(mode, graph, thread())
        assert (review.attempt, review.params) == (n, {"n": n - 1})
        state = answer(mode, graph, thread(), {"type": "edit", "params": {"n": n}})

    assert state["output"] == {"n": 2}
    assert [params["n"] for params in model.calls] == [0, 1, 2]
    assert Counter(hooked) == Counter([0, 1, fails_at])
    assert [each["number"] for each in state["attempts"]] == [1, 2, 3]


def test_two_branches_whose_code_fails_once_each(mode, checkpointer):
    """Protects `Send` branches from each other's tries."""
    guide, codes = Guide(), {city: FailingCode(city) for city in CITIES}

    def node(state):
        city = state["params"]["city"]
        told = retry_llm_call(guide, state["params"], name="guide")
        codes[city].run(city)
        return {"results": [told]}

    async def anode(state):
        city = state["params"]["city"]
        told = await aretry_llm_call(guide, state["params"], name="guide")
        codes[city].run(city)
        return {"results": [told]}

    def spread(state):
        return [Send("ask", {"params": params_of(city)}) for city in CITIES]

    builder = StateGraph(Fanned)
    builder.add_node("ask", anode if mode.is_async else node, retry_policy=POLICY)
    builder.add_conditional_edges(START, spread, ["ask"])
    graph = builder.compile(checkpointer=checkpointer)

    mode.invoke(graph, {"results": []}, thread())
    open_ = reviews(mode, graph, thread())
    answers = {review.review_id: open_up(review.params) for review in open_}
    state = answer(mode, graph, thread(), answers=answers)

    assert state["results"] == list(right(CITIES).values())
    assert guide.counts() == right_counts(CITIES)
    assert {city: code.failures for city, code in codes.items()} == dict.fromkeys(CITIES, 1)
