"""What LangGraph's `durability` changes, and what it must not."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.func import entrypoint, task

import graph_retry
from graph_retry import aretry_llm_call, edit, resume, retry_llm_call
from graph_retry._core.langgraph import calls
from graph_retry.threads import aattempts_of, attempts_of
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


class Slow(SqliteSaver):
    """A saver whose writes of the outermost graph take a while."""

    def put(self, config, checkpoint, *args):
        if not config["configurable"]["checkpoint_ns"]:
            threading.Event().wait(0.1)
        return super().put(config, checkpoint, *args)

    def roots(self) -> int:
        """Count the checkpoints of the outermost graph."""
        with self.cursor() as cursor:
            found = cursor.execute("SELECT count(*) FROM checkpoints WHERE checkpoint_ns = ''")
            return found.fetchone()[0]


@pytest.mark.parametrize("depth", [1, 2])
def test_a_call_waits_until_the_checkpoint_is_saved_that_it_begins_from(form, depth, tmp_path):
    """Under LangGraph's default; else a crash would leave a paid call that nobody finds again."""
    saved: list[int] = []

    def model(_: Any) -> str:
        saved.append(saver.roots())
        return '{"n": 1}'

    with Slow.from_conn_string(str(tmp_path / "checkpoints.sqlite")) as saver:
        graph: Any = one_call(form, None, model, saver if depth == 1 else None)
        if depth == 2:
            graph = StateGraph(State).add_node("inner", graph).set_entry_point("inner")
            graph = graph.compile(checkpointer=saver)
        graph.invoke({"params": {"n": 0}}, thread())

    assert saved == [2]


def ask_in(surrounding: str, model: Model) -> Any:
    """Return the builder of a graph that makes one call in a task, or in graphs within graphs."""

    def ask(state: State) -> State:
        return {"output": retry_llm_call(model, state["params"], output=dict[str, int])}

    step = task(ask)

    def graph_of(node: Any) -> Any:
        return StateGraph(State).add_node("ask", node).set_entry_point("ask")

    nodes: dict[str, Callable[[], Any]] = {
        "node": lambda: ask,
        "task": lambda: lambda state: step(state).result(),
        "task in a task": lambda: lambda state: task(lambda: step(state).result())().result(),
        "graph": lambda: graph_of(ask).compile(),
        "graph invoked in a task": lambda: (
            lambda state: task(lambda: graph_of(ask).compile().invoke(state))().result()
        ),
        "task in a graph": lambda: graph_of(lambda state: step(state).result()).compile(),
        "entrypoint in a node": lambda: entrypoint()(lambda state: step(state).result()),
    }
    return graph_of(nodes[surrounding]())


@pytest.mark.parametrize(
    "surrounding",
    [
        "node",
        "task",
        "task in a task",
        "graph",
        "graph invoked in a task",
        "task in a graph",
        "entrypoint in a node",
    ],
)
def test_a_call_waits_for_no_checkpoint_that_is_never_saved(surrounding, monkeypatch, tmp_path):
    """Wherever it is made, it begins as soon as the checkpoints around it are saved."""
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)
        await really_sleep(seconds)

    really_sleep = calls.sleep
    monkeypatch.setattr(calls, "sleep", sleep)
    model = Model()
    with SqliteSaver.from_conn_string(str(tmp_path / "checkpoints.sqlite")) as saver:
        graph = ask_in(surrounding, model).compile(checkpointer=saver)
        graph.invoke({"params": {"n": 0}}, thread())
        assert resume(graph, thread(), edit(n=5))["output"] == {"n": 5}
    assert sum(waited) < calls._ANCHORED / 2
