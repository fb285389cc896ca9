"""The option `observers`: one record of each event, told to anybody, who changes nothing by it."""

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from graph_retry import edit
from graph_retry.observers import Event
from graph_retry.threads import defer
from tests.loops import Model, answer, one_call, refused, thread

STORY = [
    ("attempt_started", 1, {}),
    ("attempt_finished", 1, {"status": "failed"}),
    ("review_asked", 1, {"again": False}),
    ("answer_refused", 1, {"author": "human"}),
    ("review_asked", 1, {"again": True}),
    ("review_left_open", 1, {"decision": "defer"}),
    ("review_asked", 1, {"again": True}),
    ("review_answered", 1, {"decision": "edit", "author": "human:ada"}),
    ("attempt_started", 2, {}),
    ("attempt_finished", 2, {"status": "succeeded"}),
    ("call_ended", 2, {"status": "succeeded"}),
]


def played(form, mode, observers):
    """Play a call with a refused answer, a deferral and an edit; return its last state."""
    graph = one_call(
        form, mode, Model(goal=1), InMemorySaver(), observers=observers, labels={"team": "a"},
        allowed_decisions=("edit", "defer"), name="count",
    )  # fmt: skip
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    refused(mode, graph, thread(), "nonsense")
    answer(mode, graph, thread(), defer("2030-01-01T00:00:00+00:00"))
    return answer(mode, graph, thread(), {**edit(n=1), "by": "ada"})


def test_an_observer_is_told_the_whole_story(form, mode):
    """Each event comes once, in order, with its facts, in both forms."""
    told: list[Event] = []
    played(form, mode, [told.append])
    assert [(event.kind, event.attempt) for event in told] == [row[:2] for row in STORY]
    for event, (*_, facts) in zip(told, STORY, strict=True):
        assert facts.items() <= event.details.items()
        assert (event.name, event.thread_id, event.labels) == ("count", "1", {"team": "a"})
    recorded = {event.kind: event.record["status"] for event in told if event.record}
    assert recorded == {"attempt_finished": "succeeded", "review_answered": "failed"}


def test_an_observer_that_fails_changes_nothing(form, mode, caplog):
    """Its error is logged by its name, and the next observer is told all the same."""
    told = []

    def broken(event):
        raise KeyError(event.kind)

    state = played(form, mode, [broken, told.append])
    assert state["output"] == {"n": 1}
    assert len(told) == len(STORY)
    logged = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert sum("`observers` (`broken`) of the event" in each for each in logged) == len(STORY)


def test_observers_see_what_redact_leaves():
    """A private text is in no event."""
    told = []
    graph = one_call(
        "function", None, lambda params: "ada@example.org", InMemorySaver(), output=int,
        redact=lambda text: text.replace("ada@example.org", "[mail]"), observers=[told.append],
    )  # fmt: skip
    graph.invoke({"params": {"n": 0}}, thread())
    assert "attempt_finished" in [event.kind for event in told]
    assert "ada@" not in repr(told)
    assert "[mail]" in repr(told)


async def awaited(event):
    """Watch, later."""


@pytest.mark.parametrize("given", [print, "print", [1], [awaited]])
def test_what_cannot_be_told_is_refused(given):
    """What is no list of functions, or has one to await, is refused before any call."""
    with pytest.raises((TypeError, ValueError), match="`observers"):
        one_call("node", None, Model(), InMemorySaver(), observers=given)
