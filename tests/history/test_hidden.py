"""Reviews that an update of the graph around them hid are found and brought back."""

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from graph_retry import edit, inbox
from graph_retry.hidden import hidden_calls, unhide
from tests.history.threads import asked, current, decide, flow, nested
from tests.loops import Model, answer, fan_out, one_call, reviews, thread


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
        snapshot = mode.call(graph, "get_state", thread())
        assert snapshot.interrupts == (), "LangGraph shows it no longer"
        (listed,) = mode.call(inbox, "list_reviews", graph)
        assert listed.review_id == review_id
        assert asked(mode, graph).hidden

        (hidden,) = flow(mode, hidden_calls(graph, thread()))
        assert hidden.question.value["review_id"] == review_id
        assert len(hidden.values["attempts"]) == 2
        assert flow(mode, unhide(graph, thread()))

        assert asked(mode, graph).review_id == review_id
        assert not asked(mode, graph).hidden
        assert not flow(mode, unhide(graph, thread()))
        assert len(model.calls) == 2
    assert decide(mode, graph, edit(n=2))["output"] == {"n": 2}
    assert len(model.calls) == 3
    (ledger,) = current(mode, graph)
    assert len(ledger.attempts) == 3


def test_a_hidden_review_is_answered_as_if_nothing_had_happened(mode, checkpointer, form):
    """Whoever resumes brings it back first; running the thread on asks again and calls nobody."""
    model = Model(goal=2)
    graph = one_call(form, mode, model, checkpointer)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    mode.call(graph, "update_state", thread(), {"status": "noted"})
    answer(mode, graph, thread(), edit(n=1))
    mode.call(graph, "update_state", thread(), {"status": "noted"})
    answer(mode, graph, thread())
    (listed,) = reviews(mode, graph, thread())
    assert (listed.attempt, len(model.calls)) == (2, 2)
    mode.call(graph, "update_state", thread(), {"status": "noted"})
    assert mode.call(listed, "answer", edit(n=2))["output"] == {"n": 2}
    assert len(model.calls) == 3


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
