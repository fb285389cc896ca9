"""What LangGraph's `durability` changes, and what it must not."""

from typing import Any

import pytest

import graph_retry
from graph_retry import aretry_llm_call, edit, retry_llm_call
from graph_retry.history import aattempts_of, attempts_of
from tests.loops import Model, State, StateGraph, answer, fan_out, one_call, thread


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_finished_call_of_a_node_is_not_repeated_by_answers_to_the_next(
    mode, checkpointer, durability
):
    """Two calls in one node; with `exit` LangGraph itself would save nothing of the first."""
    model = Model(goal=2)

    def node(state: State) -> State:
        return {"output": [retry_llm_call(model, {"n": n}, output=dict[str, int]) for n in (9, 0)]}

    async def anode(state: State) -> State:
        calls = [await aretry_llm_call(model, {"n": n}, output=dict[str, int]) for n in (9, 0)]
        return {"output": calls}

    builder = StateGraph(State).add_node("ask", anode if mode.is_async else node)
    graph = builder.set_entry_point("ask").compile(checkpointer=checkpointer)
    mode.invoke(graph, {"params": 0}, thread(), durability=durability)
    for n in (1, 2):
        state = answer(mode, graph, thread(), edit(n=n), durability=durability)

    assert state["output"] == [{"n": 9}, {"n": 2}]
    assert [params["n"] for params in model.calls] == [9, 0, 1, 2]


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_branches_that_wait_are_not_called_again(form, mode, checkpointer, durability):
    """Each of five branches is answered alone, twice, under each durability."""
    model = Model(goal=2)
    graph = fan_out(form, mode, model, checkpointer, width=5)
    mode.invoke(graph, {"results": []}, thread(), durability=durability)
    for _ in range(10):
        review = mode.call(graph_retry, "pending_reviews", graph, thread())[-1]
        decision = {**edit(n=review.attempt), "review_id": review.review_id}
        state = answer(mode, graph, thread(), decision, durability=durability)

    assert state["results"] == [{"n": 2}] * 5
    assert len(model.calls) == 15


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_each_attempt_is_saved_before_the_next_call(form, mode, checkpointer, durability):
    """Whatever the run's durability: three calls in one run, each looks at what storage holds."""
    saved: list[list[str]] = []
    answers = Model(goal=2)

    def told(ledgers: list[Any]) -> None:
        saved.append([each["status"] for ledger in ledgers for each in ledger.attempts])

    def model(params: dict[str, int]) -> str:
        told(attempts_of(checkpointer, thread()))
        return answers(params)

    async def amodel(params: dict[str, int]) -> str:
        told(await aattempts_of(checkpointer, thread()))
        return answers(params)

    def more(error: Exception, attempt: int, params: dict[str, int]) -> dict[str, int]:
        return {"n": params["n"] + 1}

    llm_call = amodel if mode.is_async else model
    graph = one_call(form, mode, llm_call, checkpointer, more, auto_retries=2)
    state = mode.invoke(graph, {"params": {"n": 0}}, thread(), durability=durability)

    assert state["output"] == {"n": 2}
    assert saved == [[], ["failed"], ["failed", "failed"]]
