"""A review that ends unanswered, by a new input or an update of its thread, is told of."""

from types import SimpleNamespace

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from graph_retry import StaleDecision, edit
from graph_retry._core.ground.functions.awaiting import run_sync
from graph_retry._core.threads import history, inbox
from graph_retry._core.threads.saved import why_closed
from tests.loops import Model, answer, one_call, reviews, thread
from tests.threads.threads import nested


def test_a_new_input_that_ends_a_review_is_told(form, mode, checkpointer, caplog):
    """With the thread and the review at WARNING, and to whoever answers the ended one."""
    graph = one_call(form, mode, Model(), checkpointer)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    (ended,) = reviews(mode, graph, thread())
    mode.invoke(graph, {"params": {"n": -1}}, thread())
    (asked,) = reviews(mode, graph, thread())

    assert f"review {ended.review_id} of `count` was ended unanswered" in str(asked.value["note"])
    (told,) = [log.message for log in caplog.records if "ended unanswered" in log.message]
    assert ended.review_id in told
    assert "thread '1'" in told
    with pytest.raises(
        StaleDecision,
        match="nobody had answered it when a new run began, with another input, at 20",
    ):
        answer(mode, graph, thread(), answers={ended.review_id: edit(n=1)})


def test_a_new_input_that_succeeds_at_once_is_told(form, mode, checkpointer, caplog):
    """Nobody is asked then, and the review that it ended is still named."""
    model = Model(goal=1)
    graph = one_call(form, mode, model, checkpointer)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    (ended,) = reviews(mode, graph, thread())
    mode.invoke(graph, {"params": {"n": 1}}, thread())

    (told,) = [log.message for log in caplog.records if "ended unanswered" in log.message]
    assert ended.review_id in told
    assert "thread '1'" in told
    with pytest.raises(StaleDecision, match="when a new run began, with another input, at 20"):
        answer(mode, graph, thread(), answers={ended.review_id: edit(n=1)})
    mode.invoke(graph, {"params": {"n": 1}}, thread())
    assert caplog.text.count("ended unanswered") == 1
    assert len(model.calls) == 3


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("input", "nobody had answered its last one when a new run began, with another input, at"),
        ("update", "nobody had answered its last one when `update_state` changed the state"),
        ("answer", "human answered it at 20"),
        ("nothing", "no open review: its checkpointer has no run of this thread .*`start=`"),
    ],
)
def test_an_answer_to_the_thread_is_told_what_ended_its_last_review(how, says, form, mode):
    """Also without a review id; an answer to an earlier review of the thread is not the cause."""
    graph = one_call(form, mode, Model(goal=1), InMemorySaver())
    if how != "nothing":
        mode.invoke(graph, {"params": {"n": 0}}, thread())
        answer(mode, graph, thread(), edit(n=0))
    if how == "input":
        mode.invoke(graph, {"params": {"n": 1}}, thread())
    elif how == "update":
        mode.call(graph, "update_state", thread(), {"status": "noted"})
    elif how == "answer":
        answer(mode, graph, thread(), edit(n=1))
    with pytest.raises(StaleDecision, match=says):
        answer(mode, graph, thread(), edit(n=1))


@pytest.mark.parametrize("is_nested", [False, True])
def test_an_update_of_the_state_around_a_call_ends_its_review(form, mode, checkpointer, is_nested):
    """Thread and inbox ask nothing until the call is made anew; who answers is told why.

    LangGraph shows the interrupt of a subgraph until the graph around it goes on.
    """
    model = Model()
    graph = (nested if is_nested else one_call)(form, mode, model, checkpointer)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    (ended,) = reviews(mode, graph, thread())
    place = thread()
    if is_nested:
        (task,) = mode.call(graph, "get_state", thread(), subgraphs=True).tasks
        place = task.state.config
    mode.call(graph, "update_state", place, {"status": "noted"})

    assert reviews(mode, graph, thread()) == mode.call(inbox, "list_reviews", graph) == []
    with pytest.raises(StaleDecision, match="when `update_state` changed the state around"):
        answer(mode, graph, thread(), answers={ended.review_id: edit(n=1)})
    answer(mode, graph, thread())
    (again,) = reviews(mode, graph, thread())
    assert [each.review_id for each in mode.call(inbox, "list_reviews", graph)] == [again.review_id]
    assert again.review_id != ended.review_id
    assert len(model.calls) == 2


@pytest.mark.parametrize("how", ["input", "update"])
def test_the_ledger_tells_what_ended_an_open_review(how, form, mode, checkpointer, tmp_path):
    """*Mark as Resolved* of Agent Inbox ends the thread; a new input begins another call."""
    graph = one_call(form, mode, Model(), checkpointer)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    (asked,) = mode.call(history, "attempts_of", graph, thread())
    if how == "input":
        mode.invoke(graph, {"params": {"n": -1}}, thread())
    else:
        mode.call(graph, "update_state", thread(), None, as_node="__end__")
    ended, *others = mode.call(history, "attempts_of", graph, thread())
    history.export_ledgers([ended], tmp_path / "ledgers.jsonl")
    (again,) = history.import_ledgers(tmp_path / "ledgers.jsonl")

    assert (asked.ended_by, asked.outcome) == ("", "waiting")
    assert [(each.ended_by, each.outcome) for each in (ended, again)] == [(how, "open")] * 2
    assert [(each.ended_by, each.outcome) for each in others] == [("", "waiting")] * len(others)


def test_an_answered_review_is_not_told_of(form, mode, checkpointer, caplog):
    """A thread that has ended may be given another input."""
    graph = one_call(form, mode, Model(), checkpointer)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    answer(mode, graph, thread(), edit(n=1))
    mode.invoke(graph, {"params": {"n": -1}}, thread())

    assert reviews(mode, graph, thread())
    assert "ended unanswered" not in caplog.text


def test_of_two_events_of_one_moment_the_later_one_is_told(monkeypatch):
    """Only their times are compared, because an answer may have no review id."""
    at = "2026-01-01T00:00:00+00:00"

    async def answers(*_):
        ada, bob = (at, "human:ada", "b5e1"), (at, "human:bob", None, " (edit)")
        return [why_closed._Answered(*each) for each in (ada, bob)]

    monkeypatch.setattr(why_closed, "_answers", answers)
    event = why_closed._event(None, {}, None, SimpleNamespace(ended_unanswered={}))
    assert run_sync(event) == f"human:bob answered it at {at} (edit)"
