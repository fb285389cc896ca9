"""One inbox over every thread, on every kind of storage."""

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

from graph_retry import StaleDecision, edit, respond, resume
from graph_retry._core.threads import history
from graph_retry._core.threads import inbox as inbox_module
from graph_retry._core.threads.saved import saved_reviews
from tests.loops import Model, State, answer, fan_out, one_call, reviews, thread


def inbox(mode, source, **options):
    """List all reviews in the mode's way."""
    return mode.call(inbox_module, "list_reviews", source, **options)


def names(found):
    """Tell which threads wait, in the order of the list."""
    return [review.thread_id for review in found]


def test_all_waiting_threads_are_listed_newest_first(form, mode, checkpointer, monkeypatch):
    """Finished, answered and rejected threads are left out; so are other graphs' reviews."""
    monkeypatch.setattr(saved_reviews, "_PAGE", 3)
    model = Model()
    graph = one_call(
        form, mode, model, checkpointer, on_cancel="end" if form == "node" else "raise"
    )
    for number in range(6):
        mode.invoke(graph, {"params": {"n": 1 if number == 3 else 0}}, thread(str(number)))
    answer(mode, graph, thread("1"), respond({"n": 5}))
    answer(mode, graph, thread("4"), edit(n=-1))
    other = StateGraph(State).add_node("elsewhere", lambda state: {"output": 1})
    other = other.add_edge(START, "elsewhere").compile(checkpointer=checkpointer)
    calls = len(model.calls)

    found = inbox(mode, graph)
    assert names(found) == ["4", "5", "2", "0"]
    first = found[0]
    assert (first.attempt, first.function_name, first.params) == (2, "count", {"n": -1})
    assert (first.error, first.expires_at) == ("ValueError: -1 is too small", None)
    assert [attempt["number"] for attempt in first.history] == [1, 2]
    assert first.asked_at > found[1].asked_at > found[2].asked_at

    assert names(inbox(mode, graph, limit=2)) == ["4", "5"]
    assert names(inbox(mode, checkpointer)) == ["4", "5", "2", "0"]
    assert inbox(mode, other) == []
    assert len(model.calls) == calls, "looking calls nobody"
    for review in found:
        (same,) = reviews(mode, graph, review.config)
        assert same.review_id == review.review_id
        assert (same.asked_at, same.thread_id) == (review.asked_at, review.thread_id)


def test_a_listed_review_is_answered_where_it_waits(form, mode, checkpointer):
    """What the inbox returns can be answered, one by one."""
    model = Model()
    graph = one_call(form, mode, model, checkpointer)
    for number in range(3):
        mode.invoke(graph, {"params": {"n": 0}}, thread(str(number)))
    for review in inbox(mode, graph):
        decision = edit(n=int(review.thread_id) + 1)
        done = mode.call(review, "answer", decision)
        assert done["output"] == {"n": int(review.thread_id) + 1}
    assert inbox(mode, graph) == []
    assert len(model.calls) == 6


ODD_IDS = ["", "a/b", "../../db", "x" * 10_000, "🙈", "a|b:c", "100%s'", "[red]\n", 7]
"""Thread ids that are no file names, or no text: LangGraph takes them."""


def test_a_thread_may_have_any_id(mode, checkpointer):
    """Whatever names it, it is listed, answered once, and tells its ledger and who answered."""
    graph = one_call("node", mode, Model(), checkpointer)
    for number, name in enumerate(ODD_IDS):
        mode.invoke(graph, {"params": {"n": 0, "from": number}}, thread(name))
    found = inbox(mode, graph)
    assert names(reversed(found)) == list(map(str, ODD_IDS))
    assert [review.params["from"] for review in reversed(found)] == list(range(len(ODD_IDS)))
    for review, name in zip(reversed(found), ODD_IDS, strict=True):
        assert mode.call(review, "answer", edit(n=1))["output"] == {"n": 1}
        with pytest.raises(StaleDecision, match="human answered it at 20"):
            answer(mode, graph, thread(name), answers={review.review_id: edit(n=2)})
        (ledger,) = mode.call(history, "attempts_of", graph, thread(name))
        assert [attempt["number"] for attempt in ledger.attempts] == [1, 2]
    assert inbox(mode, graph) == []


def test_every_branch_of_a_thread_is_listed(form, mode, checkpointer):
    """A fan-out has as many entries as questions; answered ones go."""
    model = Model()
    graph = fan_out(form, mode, model, checkpointer, width=4)
    mode.invoke(graph, {}, thread())
    found = inbox(mode, graph)
    assert sorted(review.params["item"] for review in found) == [0, 1, 2, 3]
    answer(mode, graph, thread(), answers={found[0].review_id: edit(n=1)})
    left = inbox(mode, graph)
    assert {review.review_id for review in left} == {review.review_id for review in found[1:]}


def test_a_review_answered_but_cut_off_is_not_listed(mode, checkpointer):
    """After a crash between the answer and its call there is nothing to decide."""

    class Crash(BaseException):
        """What ends a process from inside."""

    def call(params):
        if params["n"]:
            raise Crash
        return "no"

    graph = one_call("node", None, call, checkpointer)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    (review,) = inbox(mode, graph)
    with pytest.raises(Crash):
        answer(mode, graph, thread(), edit(n=1))
    assert inbox(mode, graph) == []
    assert inbox(mode, checkpointer) == []
    assert review.attempt == 1


def test_a_review_from_a_bare_checkpointer_is_answered_with_the_graph():
    """Without a graph there is nothing to run: said in words, and easily given."""
    saver = InMemorySaver()
    graph = one_call("node", None, Model(), saver)
    graph.invoke({"params": {"n": 0}}, thread())
    (review,) = inbox_module.list_reviews(saver)
    with pytest.raises(ValueError, match="give the graph that asked"):
        review.answer(edit(n=1))
    done = resume(graph, review.config, answers={review.review_id: edit(n=1)})
    assert done["output"] == {"n": 1}


def test_ledgers_are_read_from_a_bare_checkpointer(form, mode, checkpointer):
    """What happened can be told without the graph's code."""
    graph = one_call(form, mode, Model(goal=2), checkpointer)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    answer(mode, graph, thread(), edit(n=1))
    (ledger,) = mode.call(history, "attempts_of", checkpointer, thread())
    assert [ledger.params_at(number) for number in (1, 2)] == [{"n": 0}, {"n": 1}]


@pytest.mark.parametrize("source", [None, "graph", one_call("node", None, Model(), None)])
def test_what_keeps_no_threads_is_refused(source):
    """Neither a graph with a checkpointer, nor a checkpointer, nor a client."""
    with pytest.raises(TypeError, match="`source` is"):
        inbox_module.list_reviews(source)


def test_an_unknown_saver_is_read_without_relying_on_its_order():
    """A saver of a third party lists in whatever order it likes."""

    class Reversed(InMemorySaver):
        def list(self, config, **options):
            return iter([*super().list(config, **options)][::-1])

    graph = one_call("node", None, Model(goal=3), Reversed())
    for number in range(3):
        graph.invoke({"params": {"n": 0}}, thread(str(number)))
    resume(graph, thread("1"), edit(n=1))
    assert names(inbox_module.list_reviews(graph)) == ["1", "2", "0"]
