"""Telling somebody: `notify` is called once for each question, and its trouble stays its own."""

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from graph_retry import edit, reject
from graph_retry.threads import assign, defer
from tests.loops import Model, answer, fan_out, one_call, refused, reviews, thread


def test_each_question_is_told_once_with_its_thread(form, mode, checkpointer):
    """Asked, asked again after a bad answer, asked about the next attempt: three messages."""
    told = []
    graph = one_call(form, mode, Model(goal=2), checkpointer, notify=mode.colour(told.append))
    mode.invoke(graph, {"params": {"n": 0}}, thread("a"))
    refused(mode, graph, thread("a"), "perhaps")
    answer(mode, graph, thread("a"), edit(n=1))
    (last,) = reviews(mode, graph, thread("a"))
    answer(mode, graph, thread("a"), edit(n=2))

    assert [(review.thread_id, review.attempt) for review in told] == [("a", 1), ("a", 1), ("a", 2)]
    assert told[0].problem is None
    assert "perhaps" in told[1].problem
    assert told[2].review_id == last.review_id
    assert told[2].value["review_id"] == last.review_id


def test_answering_a_neighbour_does_not_tell_again(mode, checkpointer):
    """The unanswered branches enter their step again; their messages were sent."""
    told, model = [], Model()

    graph = fan_out("node", mode, model, checkpointer, width=3, notify=mode.colour(told.append))
    mode.invoke(graph, {}, thread())
    assert len(told) == 3
    first, *_ = reviews(mode, graph, thread())
    answer(mode, graph, thread(), answers={first.review_id: edit(n=1)})
    assert len(told) == 3


def test_a_question_that_was_put_off_or_assigned_is_not_told_again(form, mode, checkpointer):
    """A person has seen it. It is told again if an answer to it is refused."""
    told = []
    allowed = ("approve", "edit", "reject", "defer", "assign")
    options = {"allowed_decisions": allowed, "notify": mode.colour(told.append)}
    graph = one_call(form, mode, Model(), checkpointer, **options)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    answer(mode, graph, thread(), defer("2999-01-01T00:00:00+00:00"))
    answer(mode, graph, thread(), assign("ada"))
    assert len(told) == 1
    refused(mode, graph, thread(), "perhaps")
    assert len(told) == 2


def test_a_failing_notify_is_logged_and_the_question_is_asked(form, mode, caplog):
    """A message that cannot be sent must not hide the review."""

    def hook(review):
        raise ConnectionError("no route to the chat")

    graph = one_call(form, mode, Model(), InMemorySaver(), notify=hook)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    (review,) = reviews(mode, graph, thread())
    (record,) = caplog.records
    assert "`notify` (`hook`) for review" in record.message
    assert review.review_id in record.message
    assert "no route to the chat" in caplog.text


@pytest.mark.parametrize(
    ("given", "channel"),
    [
        (reject("no"), "python"),
        ({**reject("no"), "channel": "chat-bot"}, "chat-bot"),
        ("reject", "text"),
        ({"decisions": [{"type": "reject", "message": "no"}]}, "agent-chat-ui"),
        ([{"type": "response", "args": "no"}], "agent-inbox"),
        ({"resume": [{"type": "ignore", "args": None}]}, "agent-inbox"),
        ({"__agui_cancelled__": True}, "ag-ui"),
        ({"action": "cancel"}, "api"),
    ],
)
def test_every_decision_tells_who_what_and_through_which_channel(mode, given, channel):
    """The ledger is the audit trail: author, time, channel, and the review it answered."""
    graph = one_call("node", mode, Model(), InMemorySaver())
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    (review,) = reviews(mode, graph, thread())
    state = answer(mode, graph, thread(), given)
    note = state["attempts"][0]["decision"]
    assert (note["type"], note["channel"], note["author"]) == ("reject", channel, "human")
    assert note["review_id"] == review.review_id
    assert note["at"] >= review.asked_at


def test_an_agents_decision_is_told_apart(mode):
    """Who decided is the agent, through no client."""
    graph = one_call("node", mode, Model(), InMemorySaver(), reviewer=lambda review: edit(n=1))
    state = mode.invoke(graph, {"params": {"n": 0}}, thread())
    note = state["attempts"][0]["decision"]
    assert note["channel"] == "agent"
    assert note["author"].startswith("agent:")
