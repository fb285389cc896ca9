"""Workers killed at random, with seeds of their own; `make crash` kills hundreds more of each."""

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from graph_retry import pending_reviews
from tests.loops import Model, one_call, thread
from tests.parts import draws
from tests.reliability.crash_verdict import broken, expected, verdict
from tests.reliability.crash_worker import STYLES, Setting
from tests.reliability.forking import counted


def killed(store, mode, durability, shapes, answers, dsn=""):
    """Kill workers of each shape, fewer in the short part of the tests, and return the counts."""
    kills = draws(1, 3)
    found = counted("crash_matrix", store, mode, durability, shapes, answers, dsn, str(kills), "7")
    assert len(found) == len(shapes.split(",")) * len(answers.split(","))
    assert all(each["timed"] == kills for each in found)
    return found


@pytest.mark.drawn
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
@pytest.mark.parametrize("mode_name", ["sync", "async"])
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_killed_worker_breaks_no_promise(request, store, mode_name, durability):
    """Each form under each durability: right results, every answer where it goes."""
    dsn = request.getfixturevalue("postgres_database") if store == "postgres" else ""
    found = killed(store, mode_name, durability, "node,function,send", "library", dsn)

    assert {each["setting"]: broken(each) for each in found if broken(each)} == {}


@pytest.mark.drawn
@pytest.mark.parametrize("mode_name", ["sync", "async"])
def test_a_killed_worker_breaks_no_promise_where_a_policy_runs_the_node_again(mode_name):
    """The node's own code fails around each call: what is finished is neither called nor asked."""
    found = killed("sqlite", mode_name, "async", "retried-node,retried-function", "library")

    assert {each["setting"]: broken(each) for each in found if broken(each)} == {}


@pytest.mark.long
@pytest.mark.parametrize("mode_name", ["sync", "async"])
def test_a_worker_killed_while_an_answer_streams_breaks_no_promise(mode_name):
    """A stream is a call in flight until its end is saved, wherever between two pieces it broke."""
    found = killed("sqlite", mode_name, "async", "streamed-node,streamed-function", "library")

    assert {each["setting"]: broken(each) for each in found if broken(each)} == {}


@pytest.mark.drawn
def test_a_marked_answer_that_langgraph_delivers_again_after_a_kill_is_refused():
    """Clients that send `Command(resume=...)` are safe if an answer tells what it is for."""
    found = killed("sqlite", "sync", "async", "node,function", "attempt,title")

    assert {each["setting"]: broken(each) for each in found if broken(each)} == {}


class Crash(BaseException):
    """What ends a process from inside, as Ctrl-C does."""


@pytest.mark.parametrize("style", STYLES)
def test_an_answer_that_is_delivered_again_is_refused(form, style):
    """Marked or not, it decides no question that came after it, and pays for no call."""

    def answer_or_die(params):
        if params["n"] == 1 and len(model.calls) == 2:
            raise Crash
        raise ValueError(params["n"])

    model = Model(answer_or_die)
    graph = one_call(form, None, model, InMemorySaver())
    graph.invoke({"params": {"n": 0}}, thread())
    (review,) = pending_reviews(graph, thread())
    answer = {"type": "edit", "params": {"n": 1}, **STYLES[style](review)}
    with pytest.raises(Crash):
        graph.invoke(Command(resume=answer), thread())

    graph.invoke(None, thread())

    (review,) = pending_reviews(graph, thread())
    assert [params["n"] for params in model.calls] == [0, 1, 1]
    assert (review.attempt, bool(review.problem)) == (2, True)

    graph.invoke(None, thread())

    (review,) = pending_reviews(graph, thread())
    assert ([params["n"] for params in model.calls], review.attempt) == ([0, 1, 1], 2)


TOLD = {
    "misapplied": [("call", 3, {"n": 1, "answer": "hook"})],
    "no_kill": [("call", 1, {}), ("call", 1, {})],
    "in_flight": [("call", 1, {}), ("life",), ("call", 1, {})],
    "other_key": [("call", 1, {}), ("life",), ("call", 1, {}, "other")],
    "after_save": [("call", 1, {}), ("write saved", "call-0-1"), ("life",), ("call", 1, {})],
    "unsaved_run": [("call", 1, {}), ("call", 2, {}), ("life",), ("call", 1, {})],
    "new_run": [("call", 1, {}), ("life",), ("start",), ("call", 1, {}, "other")],
    "again": [("sent", 2), ("life",), ("sent", 2)],
    "lost": [("sent", 2), ("acknowledged", 2), ("life",), ("sent", 2)],
    "wrong": [("end",)],
}


@pytest.mark.parametrize("count", TOLD)
def test_the_judge_of_the_matrix_can_condemn(count):
    """Each count rises when a journal tells of it."""

    def event(kind, *told):
        if kind == "call":
            number, changed, *key = told
            params = {**expected(0, number), **changed}
            return {"event": kind, "attempt": number, "key": key or "same", "params": params}
        if kind in ("sent", "acknowledged"):
            return {"event": kind, "item": 0, "attempt": told[0], "refused": False}
        if kind == "end":
            return {"event": kind, "results": [], "ledgers": []}
        return {"event": kind, "mark": told[0] if told else ""}

    setting = Setting("sqlite", "sync", "sync", "node")
    found, _ = verdict(setting, [event("life"), event("start"), *(event(*e) for e in TOLD[count])])
    assert found[count] == 1
