"""What a fork or an update of the parent leaves behind is carried over: exact calls, everywhere."""

from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

import graph_retry.history
import graph_retry.rewind
import graph_retry.task_ids
from graph_retry import aretry_llm_call, create_retry_node, edit, retry_llm_call
from graph_retry.flow import adrive, drive
from graph_retry.hidden import hidden_calls, unhide
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


def go_back(mode, graph, **change):
    return mode.call(graph_retry.rewind, "rewind", graph, thread(), **change)


def current(mode, graph):
    """Read the thread's ledgers, those forks left behind left out."""
    ledgers = mode.call(graph_retry.history, "attempts_of", graph, thread())
    return [ledger for ledger in ledgers if ledger.current]


def flow(mode, steps):
    """Run a flow in the mode's way."""
    return mode.run(lambda: adrive(steps)) if mode.is_async else drive(steps)


def asked(mode, graph):
    """Return the one open review."""
    found = {review.review_id: review for review in reviews(mode, graph, thread())}
    (review,) = found.values()
    return review


def decide(mode, graph, decision):
    """Answer the one open review."""
    return answer(mode, graph, thread(), answers={asked(mode, graph).review_id: decision})


def nested(form, mode, model, saver):
    """Compile a graph whose call is two subgraphs deep."""
    inner: Any = one_call(form, mode, model, None)
    for name in ("middle", "outer"):
        builder = StateGraph(State).add_node("prepare", lambda state: {}).add_node(name, inner)
        builder.add_edge(START, "prepare").add_edge("prepare", name)
        inner = builder.compile(checkpointer=saver if name == "outer" else None)
    return inner


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
    ids = [review.review_id for review in reviews(mode, graph, thread())]
    answer(mode, graph, thread(), answers={ids[0]: edit(n=1), ids[1]: edit(n=2)})
    for n, waiting in ((5, 1), (6, 1)):
        calls = len(model.calls)
        done = [each for each in current(mode, graph) if each.at(1)["decision"]]
        go_back(mode, graph, ledger=done[0], attempt=2, params={"n": n})
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


def test_a_plain_node_beside_the_call_does_not_run_again(mode, form):
    """What finished in the same step keeps its result."""
    model, ran = Model(goal=0), []
    graph = one_call(form, mode, model, None).builder
    graph.add_node("beside", lambda state: ran.append(1))
    graph.add_edge(START, "beside")
    graph = graph.compile(checkpointer=InMemorySaver())
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    assert go_back(mode, graph, attempt=1, params={"n": 1})["output"] == {"n": 1}
    assert (len(model.calls), len(ran)) == (2, 1)


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


def test_a_langgraph_that_names_tasks_otherwise_is_noticed(mode, form, monkeypatch):
    """Nothing is written, and nothing called; where no name must be known it works all the same."""
    model = Model(goal=0)
    graph = one_call(form, mode, model, InMemorySaver())
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    monkeypatch.setattr(graph_retry.task_ids, "xxh3_128_hexdigest", lambda text: "0" * 32)
    before = mode.call(graph, "get_state", thread()).config
    if form == "function" and mode.is_async:
        with pytest.raises(ValueError, match="names tasks in another way"):
            go_back(mode, graph, attempt=1)
        assert mode.call(graph, "get_state", thread()).config == before
        assert len(model.calls) == 1
    else:
        assert go_back(mode, graph, attempt=1, params={"n": 1})["output"] == {"n": 1}


def test_a_review_hidden_by_an_update_is_found_and_brought_back(mode, checkpointer, form):
    """No call is repeated, the review keeps its id, and its answer goes on from there."""
    model = Model(goal=2)
    graph = nested(form, mode, model, checkpointer)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    decide(mode, graph, edit(n=1))
    review_id = asked(mode, graph).review_id
    for _ in range(2):
        mode.call(graph, "update_state", thread(), {"status": "noted"})
        mode.call(graph, "update_state", thread(), {"status": "noted again"})
        assert reviews(mode, graph, thread()) == []

        (hidden,) = flow(mode, hidden_calls(graph, thread()))
        assert hidden.question.value["review_id"] == review_id
        assert len(hidden.values["attempts"]) == 2
        assert flow(mode, unhide(graph, thread()))

        assert asked(mode, graph).review_id == review_id
        assert not flow(mode, unhide(graph, thread()))
        assert len(model.calls) == 2
    assert decide(mode, graph, edit(n=2))["output"] == {"n": 2}
    assert len(model.calls) == 3
    (ledger,) = current(mode, graph)
    assert len(ledger.attempts) == 3


@pytest.mark.parametrize(
    ("update", "carried"),
    [
        ({"params": {"n": 5}}, []),
        ({"params": {"n": 0, "about": "whales", "more": 1}}, []),
        ({"params": {"n": 0, "about": "whales"}}, ["node", "function"]),
        ({"output": "whales"}, ["node", "function"]),
        ({"attempts": []}, ["function"]),
    ],
)
def test_a_call_whose_input_is_updated_is_to_be_made_anew(mode, form, update, carried):
    """Other keys leave it alone, and so does writing the same again."""
    graph = one_call(form, mode, Model(goal=1), InMemorySaver())
    mode.invoke(graph, {"params": {"n": 0, "about": "whales"}}, thread())
    mode.call(graph, "update_state", thread(), update)
    assert len(flow(mode, hidden_calls(graph, thread()))) == (form in carried)


def test_a_call_that_began_again_or_was_left_on_purpose_is_not_hidden(mode, form):
    """What runs is never overwritten, and going back in time stays going back."""
    model = Model(goal=1)
    graph = one_call(form, mode, model, InMemorySaver())
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    paused = mode.call(graph, "get_state", thread()).config
    mode.call(graph, "update_state", thread(), {"status": "noted"})
    mode.invoke(graph, None, thread())
    assert flow(mode, hidden_calls(graph, thread())) == []
    answer(mode, graph, thread(), edit(n=1))
    assert flow(mode, hidden_calls(graph, thread())) == []
    mode.call(graph, "update_state", paused, {"status": "noted"})
    mode.call(graph, "update_state", paused, {"status": "noted"})
    assert flow(mode, hidden_calls(graph, thread())) == []


def test_hidden_branches_come_back_with_the_finished_ones(mode, form):
    """Each `Send` is matched by what it sends; none is called again."""
    model = Model(goal=1)
    graph = fan_out(form, mode, model, InMemorySaver(), width=3)
    mode.invoke(graph, {}, thread())
    first, *others = reviews(mode, graph, thread())
    answer(mode, graph, thread(), answers={first.review_id: edit(n=1)})
    mode.call(graph, "update_state", thread(), {"item": 7}, as_node="__start__")

    assert len(flow(mode, hidden_calls(graph, thread()))) == 2
    assert flow(mode, unhide(graph, thread()))

    assert [each.review_id for each in reviews(mode, graph, thread())] == [
        each.review_id for each in others
    ]
    answers = {each.review_id: edit(n=2) for each in others}
    state = answer(mode, graph, thread(), answers=answers)
    assert sorted(each["n"] for each in state["results"]) == [1, 2, 2]
    assert len(model.calls) == 6
