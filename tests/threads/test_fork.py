"""The calls of a fork find their own past: exact calls, everywhere."""

from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from graph_retry import aretry_llm_call, create_retry_node, edit, retry_llm_call
from tests.loops import (
    Fanned,
    Model,
    State,
    answer,
    fan_out,
    gathered,
    one_call,
    reviews,
    thread,
)
from tests.threads.threads import asked, current, decide, go_back, nested


def row(mode, model, saver, length):
    """Compile a graph whose one node makes several calls, each with the result of the last."""
    options: Any = {"output": dict[str, int], "name": "count"}

    def node(state: State) -> State:
        params = state["params"]
        for item in range(length):
            params = {**retry_llm_call(model, {**params, "item": item}, **options)}
        return {"output": params}

    async def anode(state: State) -> State:
        params, llm_call = state["params"], mode.colour(model)
        for item in range(length):
            params = {**await aretry_llm_call(llm_call, {**params, "item": item}, **options)}
        return {"output": params}

    builder = StateGraph(State).add_node("ask", anode if mode.is_async else node)
    return builder.set_entry_point("ask").compile(checkpointer=saver)


def test_a_finished_call_in_a_subgraph_is_rewound(mode, checkpointer, form):
    """On every storage, in both forms: one call for each attempt made again, as often as wanted."""
    model = Model(goal=1)
    graph = nested(form, mode, model, checkpointer)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    decide(mode, graph, edit(n=1))

    assert go_back(mode, graph, attempt=2, params={"n": 2})["output"] == {"n": 2}
    assert len(model.calls) == 3
    go_back(mode, graph, attempt=1, params={"n": -1})
    assert asked(mode, graph).params == {"n": -1}
    assert decide(mode, graph, edit(n=3))["output"] == {"n": 3}
    assert len(model.calls) == 5
    (ledger,) = current(mode, graph)
    assert [each["author"] for each in ledger.attempts] == ["rewind", "human"]


def test_of_several_calls_in_a_node_the_earlier_keep_their_results(mode, checkpointer):
    """The rewound one and those after it are made again."""
    model = Model(goal=1)
    graph = row(mode, model, checkpointer, 3)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    answer(mode, graph, thread(), edit(n=1))
    assert [call["item"] for call in model.calls] == [0, 0, 1, 2]

    for n, then in ((5, [1, 2]), (6, [1, 2])):
        model.calls.clear()
        second = current(mode, graph)[1]
        assert go_back(mode, graph, ledger=second, attempt=1, params={"n": n})["output"]["n"] == n
        assert [call["item"] for call in model.calls] == then
    model.calls.clear()
    assert go_back(mode, graph, ledger=current(mode, graph)[2], attempt=1)["output"]["n"] == 6
    assert [call["item"] for call in model.calls] == [2]
    model.calls.clear()
    first = current(mode, graph)[0]
    assert go_back(mode, graph, ledger=first, attempt=2, params={"n": 2})["output"]["n"] == 2
    assert [call["item"] for call in model.calls] == [0, 1, 2]
    assert [len(ledger.attempts) for ledger in current(mode, graph)] == [2, 1, 1]


@pytest.mark.parametrize("kind", ["gather", "branches"])
def test_calls_side_by_side_keep_their_results(mode, kind):
    """In `gather_calls` and in `Send` branches a rewind costs the calls of one of them."""
    model = Model(goal=1)
    if kind == "branches":
        graph = fan_out("function", mode, model, InMemorySaver(), width=3)
    elif mode.is_async:
        graph = gathered(mode.colour(model), InMemorySaver(), 3)
    else:
        return
    mode.invoke(graph, {}, thread())
    first, second, _ = reviews(mode, graph, thread())
    answer(mode, graph, thread(), answers={first.review_id: edit(n=1), second.review_id: edit(n=2)})
    for n, waiting in ((5, 1), (6, 1)):
        calls = len(model.calls)
        (done,) = [each for each in current(mode, graph) if each.params_at(1) == first.params]
        go_back(mode, graph, ledger=done, attempt=2, params={"n": n})
        assert len(model.calls) == calls + 1
        assert len(reviews(mode, graph, thread())) == waiting
    (last,) = reviews(mode, graph, thread())
    state = answer(mode, graph, thread(), answers={last.review_id: edit(n=3)})
    assert sorted(each["n"] for each in state["results"]) == [2, 3, 6]
    calls = len(model.calls)
    for ledger in current(mode, graph):
        again = next(
            each for each in current(mode, graph) if each.params_at(1) == ledger.params_at(1)
        )
        go_back(mode, graph, ledger=again, attempt=2, params={"n": 9})
    assert len(model.calls) == calls + 3
    assert len(current(mode, graph)) == 3


def test_calls_of_a_workflow_are_rewound_one_by_one(mode):
    """In tasks of an `entrypoint` too, the other calls keep their results."""
    model = Model(goal=1)
    options: Any = {"output": dict[str, int], "name": "count"}

    @task
    def ask(params):
        return retry_llm_call(model, params, **options)

    @task
    async def aask(params):
        return await aretry_llm_call(mode.colour(model), params, **options)

    @entrypoint(checkpointer=InMemorySaver())
    def work(n):
        return [ask({"n": n, "item": 0}).result(), ask({"n": 1, "item": 1}).result()]

    @entrypoint(checkpointer=InMemorySaver())
    async def awork(n):
        return [await aask({"n": n, "item": 0}), await aask({"n": 1, "item": 1})]

    graph = awork if mode.is_async else work
    mode.invoke(graph, 0, thread())
    decide(mode, graph, edit(n=1))
    for place, result, made in ((1, [{"n": 1}, {"n": 5}], [1]), (0, [{"n": 5}, {"n": 5}], [0])):
        model.calls.clear()
        ledger = current(mode, graph)[place]
        assert go_back(mode, graph, ledger=ledger, attempt=1, params={"n": 5}) == result
        assert [call["item"] for call in model.calls] == made


def test_of_two_nodes_side_by_side_in_a_subgraph_one_is_rewound(mode):
    """Nodes that wait for several others are found again, too."""
    model = Model(goal=1)
    keys = ("params", "output", "attempts", "status")
    state: Any = TypedDict("State", {f"{key}_{side}": Any for key in keys for side in "ab"})
    inner = StateGraph(state).add_node("x", lambda state: {}).add_node("y", lambda state: {})
    for side in "ab":
        names: Any = {key: f"{key}_{side}" for key in keys}
        node = create_retry_node(mode.colour(model), dict, output=dict[str, int], keys=names)
        inner.add_node(side, node).add_edge(["x", "y"], side)
    inner.add_edge(START, "x").add_edge(START, "y")
    builder = StateGraph(state).add_node("inner", inner.compile()).set_entry_point("inner")
    graph = builder.compile(checkpointer=InMemorySaver())
    mode.invoke(graph, {"params_a": {"n": 1}, "params_b": {"n": 2}}, thread())
    (ledger,) = [each for each in current(mode, graph) if each.params_at(1) == {"n": 2}]
    after = go_back(mode, graph, ledger=ledger, attempt=1, params={"n": 3})
    assert (after["output_a"], after["output_b"], len(model.calls)) == ({"n": 1}, {"n": 3}, 3)


def test_a_plain_node_beside_the_call_runs_again(mode, form):
    """As in LangGraph's own time travel; only calls keep their results."""
    model, ran = Model(goal=0), []
    graph = one_call(form, mode, model, None).builder
    graph.add_node("beside", lambda state: ran.append(1))
    graph.add_edge(START, "beside")
    graph = graph.compile(checkpointer=InMemorySaver())
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    assert go_back(mode, graph, attempt=1, params={"n": 1})["output"] == {"n": 1}
    assert (len(model.calls), len(ran)) == (2, 2)


def test_a_refused_rewind_leaves_the_thread_as_it_was(mode):
    """A finished branch refuses params that do not fit; the other one still waits."""
    model = Model(goal=1)
    builder = StateGraph(State)
    node = create_retry_node(mode.colour(model), dict, output=dict[str, int], locked=["key"])
    for name, n in (("done", 1), ("waits", 0)):
        inner = StateGraph(State, output_schema=Fanned).add_node("ask", node)
        inner.add_node("set", lambda state, n=n: {"params": {"n": n, "key": "a"}})
        inner.add_edge(START, "set").add_edge("set", "ask")
        builder.add_node(name, inner.compile()).add_edge(START, name)
    graph = builder.compile(checkpointer=InMemorySaver())
    mode.invoke(graph, {}, thread())
    (review,) = reviews(mode, graph, thread())
    done = next(each for each in current(mode, graph) if "done" in each.namespace)

    with pytest.raises(ValueError, match="locked"):
        go_back(mode, graph, ledger=done, attempt=1, params={"key": "b"})

    mode.invoke(graph, None, thread())
    assert [each.review_id for each in reviews(mode, graph, thread())] == [review.review_id]
    assert len(model.calls) == 2
