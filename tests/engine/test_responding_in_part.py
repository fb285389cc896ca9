"""One field of an output is changed by a person, in a graph."""

from langgraph.checkpoint.memory import InMemorySaver

from graph_retry import respond
from tests.loops import Model, answer, one_call, reviews, thread


def test_a_changed_field_ends_the_call_and_the_ledger_says_what_was_changed(mode):
    """No call is made; the ledger has the whole output and the change."""
    model = Model(lambda _: '{"n": "many", "m": 2}')
    graph = one_call("node", mode, model, InMemorySaver())
    mode.invoke(graph, {"params": {"prompt": "count"}}, thread())
    (review,) = reviews(mode, graph, thread())
    assert '"changes": {"FIELD": …}' in review.value["description"]
    state = answer(mode, graph, thread(), respond(changes={"n": 7}))
    assert state["output"] == {"n": 7, "m": 2}
    assert len(model.calls) == 1
    decision = state["attempts"][-1]["decision"]
    assert (decision["output"], decision["changes"]) == ({"n": 7, "m": 2}, {"n": 7})
