"""A retry node that took the place of a subgraph, or the reverse, while a thread waits there."""

import pytest
from langgraph.graph import StateGraph
from langgraph.types import Command
from pydantic import BaseModel

from graph_retry import ReplayMismatch, StaleDecision, create_retry_node, edit
from graph_retry._core.threads import history, inbox
from tests.loops import Model, State, answer, reviews, thread


def retry(mode, model):
    """Return a retry node."""
    return create_retry_node(mode.colour(model), dict, output=dict[str, int], name="count")


def graph_of(name, node, saver=None):
    """Compile a graph with one node."""
    return StateGraph(State).add_node(name, node).set_entry_point(name).compile(saver)


def shapes(mode, model, saver, moved):
    """Return the graph before and after its retry node moved out of a subgraph, or into one."""
    nodes = [graph_of("count", retry(mode, model)), retry(mode, model)]
    before, after = nodes if moved == "out" else reversed(nodes)
    return graph_of("ask", before, saver), graph_of("ask", after, saver)


@pytest.mark.parametrize(
    "given", [None, Command(resume=edit(n=1))], ids=["no input", "plain answer"]
)
def test_a_retry_node_refuses_the_place_where_a_subgraph_waits(mode, checkpointer, given):
    """Nothing is called, and the earlier graph still takes the answer."""
    model = Model()
    before, after = shapes(mode, model, checkpointer, "out")
    mode.invoke(before, {"params": {"n": 0}}, thread())

    with pytest.raises(ReplayMismatch, match=r"node `ask` was a subgraph .* `count` now"):
        mode.invoke(after, given, thread())

    assert model.calls == [{"n": 0}]
    assert answer(mode, before, thread(), edit(n=1))["output"] == {"n": 1}


@pytest.mark.parametrize("moved", ["out", "in"])
def test_resume_refuses_a_graph_whose_node_became_another_graph(mode, checkpointer, moved):
    """The graph does not list the review, and no run ends it; the earlier graph still answers."""
    model = Model()
    before, after = shapes(mode, model, checkpointer, moved)
    mode.invoke(before, {"params": {"n": 0}}, thread())
    place = "ask > count" if moved == "out" else "ask"

    assert reviews(mode, after, thread()) == []
    with pytest.raises(StaleDecision, match=f"waits in node `{place}`, .* old graph"):
        answer(mode, after, thread(), edit(n=1))

    assert model.calls == [{"n": 0}]
    assert len(mode.call(inbox, "list_reviews", checkpointer)) == 1
    assert answer(mode, before, thread(), edit(n=1))["output"] == {"n": 1}


def test_a_chain_of_a_graph_and_a_retry_node_continues_after_an_error_between_them(
    mode, checkpointer
):
    """Both have the place of their node, and the end of the first is not that of the second."""
    model, errors = Model(), [RuntimeError("once")]

    def once(state):
        if errors:
            raise errors.pop()
        return state

    first = graph_of("count", lambda state: {"status": "seen"})
    graph = graph_of("ask", first | once | retry(mode, model), checkpointer)
    with pytest.raises(RuntimeError, match="once"):
        mode.invoke(graph, {"params": {"n": 0}}, thread())

    mode.invoke(graph, None, thread())
    assert answer(mode, graph, thread(), edit(n=1))["output"] == {"n": 1}
    assert model.calls == [{"n": 0}, {"n": 1}]


def test_a_call_whose_params_did_not_fit_keeps_its_place(mode, checkpointer):
    """The first checkpoint of a call is known as such even if it holds params of no use."""

    class Few(BaseModel):
        n: int

    class Many(BaseModel):
        n: int | str

    def graph_with(params_type):
        node = create_retry_node(mode.colour(Model(lambda params: str(params.n))), params_type)
        return graph_of("ask", node, checkpointer)

    with pytest.raises(ValueError, match=r"params\.n"):
        mode.invoke(graph_with(Few), {"params": {"n": "many"}}, thread())
    graph = graph_with(Many)
    assert mode.invoke(graph, None, thread())["output"] == "many"
    (ledger,) = mode.call(history, "attempts_of", graph, thread())
    assert "|" not in ledger.namespace
