"""Reviews that an update of the graph around them hid are found and brought back."""

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from graph_retry import edit, inbox
from tests.loops import Model, answer, fan_out, one_call, reviews, thread
from tests.threads.threads import asked, current, decide, nested


def hidden_reviews(mode, graph):
    """List the open reviews that LangGraph does not show."""
    return [review for review in reviews(mode, graph, thread()) if review.hidden]


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

        (hidden,) = hidden_reviews(mode, graph)
        assert hidden.review_id == review_id
        assert len(hidden.history) == 2
        answer(mode, graph, thread())

        assert asked(mode, graph).review_id == review_id
        assert not asked(mode, graph).hidden
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
    ("update", "shown"),
    [
        ({"params": {"n": 5}}, ["function"]),
        ({"params": {"n": 0, "about": "whales", "more": 1}}, ["function"]),
        ({"params": {"n": 0, "about": "whales"}}, ["node", "function"]),
        ({"output": "whales"}, ["node", "function"]),
    ],
)
def test_a_node_whose_params_are_updated_is_to_be_called_anew(mode, form, update, shown):
    """Other keys leave it alone; what a function will call with is known when it runs."""
    model = Model(goal=1)
    graph = one_call(form, mode, model, InMemorySaver())
    mode.invoke(graph, {"params": {"n": 0, "about": "whales"}}, thread())
    mode.call(graph, "update_state", thread(), update)
    assert len(hidden_reviews(mode, graph)) == (form in shown)

    answer(mode, graph, thread())
    changed = update.get("params", model.calls[0]) != model.calls[0]
    assert len(model.calls) == 1 + changed


def test_a_call_that_began_again_or_was_left_on_purpose_is_not_hidden(mode, form):
    """What runs is never overwritten, and going back in time stays going back."""
    model = Model(goal=1)
    graph = one_call(form, mode, model, InMemorySaver())
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    paused = mode.call(graph, "get_state", thread()).config
    mode.call(graph, "update_state", thread(), {"status": "noted"})
    mode.invoke(graph, None, thread())
    assert hidden_reviews(mode, graph) == []
    answer(mode, graph, thread(), edit(n=1))
    assert hidden_reviews(mode, graph) == []
    mode.call(graph, "update_state", paused, {"status": "noted"})
    mode.call(graph, "update_state", paused, {"status": "noted"})
    assert hidden_reviews(mode, graph) == []


def test_hidden_branches_come_back_with_the_finished_ones(mode, form):
    """Each `Send` is matched by what it sends; none is called again."""
    model = Model(goal=1)
    graph = fan_out(form, mode, model, InMemorySaver(), width=3)
    mode.invoke(graph, {}, thread())
    first, *others = reviews(mode, graph, thread())
    answer(mode, graph, thread(), answers={first.review_id: edit(n=1)})
    mode.call(graph, "update_state", thread(), {"item": 7}, as_node="__start__")

    assert len(hidden_reviews(mode, graph)) == 2
    answer(mode, graph, thread())

    assert [each.review_id for each in reviews(mode, graph, thread())] == [
        each.review_id for each in others
    ]
    answers = {each.review_id: edit(n=2) for each in others}
    state = answer(mode, graph, thread(), answers=answers)
    assert sorted(each["n"] for each in state["results"]) == [1, 2, 2]
    assert len(model.calls) == 6
