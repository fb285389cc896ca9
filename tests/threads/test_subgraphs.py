"""A review is shown and answered in every kind of subgraph, and in every place for one."""

from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph
from langgraph.types import Send

from graph_retry import InterventionRequired, edit
from graph_retry._core.threads import history
from graph_retry.threads import attempts_of
from tests.loops import Fanned, Model, State, answer, one_call, reviews, thread
from tests.threads.test_inbox import inbox


def invoking(mode, inner, times=1):
    """Return a function that invokes a graph, once or in a loop, and hands on its last output."""

    def done(states):
        return {"output": states[-1]["output"], "results": [states[-1]["output"]]}

    async def anode(state):
        given = {"params": state["params"]}
        return done([await inner.ainvoke(given) for _ in range(times)])

    def node(state):
        return done([inner.invoke({"params": state["params"]}) for _ in range(times)])

    return anode if mode.is_async else node


def around(node, schema: Any = State):
    """Return the builder of a graph with one node."""
    return StateGraph(schema).add_node("outer", node).add_edge(START, "outer")


def as_node(_mode, inner):
    return around(inner)


def as_node_with_config(_mode, inner):
    return around(inner.with_config(tags=["mine"]))


def in_a_chain(_mode, inner):
    return around(inner | (lambda state: {"output": state["output"]}))


def invoked(mode, inner):
    return around(invoking(mode, inner))


def invoked_in_a_loop(mode, inner):
    return around(invoking(mode, inner, times=2))


def in_a_subgraph(_mode, inner):
    return around(around(inner).compile())


def invoked_in_a_subgraph(mode, inner):
    return around(around(invoking(mode, inner)).compile())


def in_a_threads_own_subgraph(_mode, inner):
    return around(around(inner).compile(checkpointer=True))


def after_a_send(mode, inner):
    builder = StateGraph(Fanned).add_node("outer", invoking(mode, inner))
    return builder.add_conditional_edges(START, lambda state: [Send("outer", state)], ["outer"])


PLACES = [
    as_node,
    as_node_with_config,
    in_a_chain,
    invoked,
    invoked_in_a_loop,
    in_a_subgraph,
    invoked_in_a_subgraph,
    in_a_threads_own_subgraph,
    after_a_send,
]


def made(mode, form, place, model, saver, own):
    """Compile a call in a subgraph with a checkpointer `own`, in a place of a graph."""
    return place(mode, one_call(form, mode, model, own)).compile(checkpointer=saver)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("own", [None, True, "own"])
def test_a_review_in_a_subgraph_is_shown_everywhere(own, place, form, mode, checkpointer):
    """By the thread, by `pending_reviews` and by the inbox; answered, it continues its call."""
    own, model = InMemorySaver() if own == "own" else own, Model(goal=2)
    graph = made(mode, form, place, model, checkpointer, own)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    shown = []
    for edited in (1, 2, 2):
        (asked,) = mode.call(graph, "get_state", thread()).interrupts or [None]
        if asked is None:
            break
        (review,), (listed,) = reviews(mode, graph, thread()), inbox(mode, graph)
        assert asked.value["review_id"] == review.review_id == listed.review_id
        shown.append(review.params["n"])
        answer(mode, graph, thread(), edit(n=edited))
    assert shown in ([0, 1], [0, 1, 0])  # In a loop, the second call asks as well.
    assert reviews(mode, graph, thread()) == inbox(mode, graph) == []
    values = mode.call(graph, "get_state", thread()).values
    assert (values.get("output") or values["results"][0]) == {"n": 2}
    ledgers = mode.call(history, "attempts_of", graph, thread())
    assert sum(len(ledger.attempts) for ledger in ledgers) == len(model.calls)


def test_another_graph_of_the_saver_does_not_list_it(form, mode):
    """The inbox of a graph has its own reviews, also of subgraphs with one history per thread."""
    saver = InMemorySaver()
    graph = made(mode, form, as_node, Model(), saver, own=True)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    assert inbox(mode, one_call(form, mode, Model(), saver)) == []
    assert len(inbox(mode, graph)) == 1


@pytest.mark.parametrize("place", [as_node, invoked, in_a_subgraph, invoked_in_a_subgraph])
def test_a_person_is_not_asked_where_no_answer_arrives(place, form, mode):
    """LangGraph starts a graph with `checkpointer=False` anew with each answer."""
    model = Model()
    graph = made(mode, form, place, model, InMemorySaver(), own=False)
    told = r"after 1 attempt .*graph in node `outer` is compiled with `checkpointer=False`"
    with pytest.raises(InterventionRequired, match=told):
        mode.invoke(graph, {"params": {"n": 0}}, thread())
    assert len(model.calls) == 1


def test_a_call_that_succeeds_needs_no_checkpointer_around(form, mode):
    """With `checkpointer=False`, all but the question works."""
    graph = made(mode, form, as_node, Model(), InMemorySaver(), own=False)
    assert mode.invoke(graph, {"params": {"n": 1}}, thread())["output"] == {"n": 1}


@pytest.mark.parametrize("mode", ["sync"], indirect=True)
def test_a_subgraph_in_a_task_of_an_entrypoint_is_shown_once(mode, form, checkpointer):
    """A `@task` shows the question before its entrypoint does; it is listed when it can be used."""
    inner = one_call(form, mode, Model(), True)

    @task
    def call(params):
        return inner.invoke({"params": params})["output"]

    @entrypoint(checkpointer=checkpointer)
    def graph(params):
        return call(params).result()

    graph.invoke({"n": 0}, thread())
    (review,), (listed,) = reviews(mode, graph, thread()), inbox(mode, graph)
    assert review.review_id == listed.review_id
    assert answer(mode, graph, thread(), edit(n=1)) == {"n": 1}
    assert len(attempts_of(graph, thread())[0].attempts) == 2


@pytest.mark.parametrize("own", [None, True])
def test_a_run_from_a_subgraphs_checkpoint_asks_again(own, form, mode, checkpointer):
    """It calls nothing, and the answer continues the thread (langgraph#7498)."""
    model = Model(goal=1)
    graph = made(mode, form, as_node, model, checkpointer, own)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    (task,) = mode.call(graph, "get_state", thread(), subgraphs=True).tasks
    for _ in range(2):
        mode.invoke(graph, None, task.state.config)
        (review,), (listed,) = reviews(mode, graph, thread()), inbox(mode, graph)
        assert review.review_id == listed.review_id
    assert answer(mode, graph, thread(), edit(n=1))["output"] == {"n": 1}
    assert [params["n"] for params in model.calls] == [0, 1]
