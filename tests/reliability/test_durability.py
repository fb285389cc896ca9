"""What LangGraph's `durability` changes, and what it must not."""

import threading
from collections import defaultdict
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

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


class Slow(InMemorySaver):
    """A saver whose writes of the outermost graph wait until somebody looks for them."""

    def __init__(self) -> None:
        super().__init__()
        self.done: list[str] = []
        self.wanted: defaultdict[str, threading.Event] = defaultdict(threading.Event)

    def put(self, config, checkpoint, *args):
        if not config["configurable"]["checkpoint_ns"]:
            self.wanted[checkpoint["id"]].wait(0.3)
            self.done.append(checkpoint["id"])
        return super().put(config, checkpoint, *args)

    def get_tuple(self, config):
        self.wanted[config["configurable"].get("checkpoint_id", "")].set()
        return super().get_tuple(config)


@pytest.mark.parametrize("depth", [1, 2])
def test_a_call_waits_until_the_checkpoint_is_saved_that_it_begins_from(form, depth):
    """Under LangGraph's default; else a crash would leave a paid call that nobody finds again."""
    saver, saved = Slow(), []

    def model(_: Any) -> str:
        saved.append(len(saver.done))
        return '{"n": 1}'

    graph: Any = one_call(form, None, model, saver if depth == 1 else None)
    if depth == 2:
        graph = StateGraph(State).add_node("inner", graph).set_entry_point("inner")
        graph = graph.compile(checkpointer=saver)
    graph.invoke({"params": {"n": 0}}, thread())

    assert saved == [2]
