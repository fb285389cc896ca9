"""Answering from Python: bound to one question, never lost, never applied to another (I4)."""

import re
import threading

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import StateGraph
from langgraph.types import Command, interrupt

import graph_retry
from graph_retry import StaleDecision, approve, edit, pending_reviews, reject, respond, resume
from graph_retry._core.state.position import ANSWER
from tests.loops import Model, State, answer, fan_out, one_call, refused, reviews, thread


class Crash(BaseException):
    """What ends a process from inside, as Ctrl-C does."""


def test_a_review_tells_what_a_person_needs(form, mode, checkpointer):
    """Error, attempt, params and the raw output are at hand, and the payload is kept whole."""
    graph = one_call(form, mode, Model(lambda params: "sorry, no"), checkpointer)
    mode.invoke(graph, {"params": {"n": 0}}, thread())

    (review,) = reviews(mode, graph, thread())

    assert (review.function_name, review.attempt) == ("count", 1)
    assert review.params == {"n": 0}
    assert review.failure["kind"] == "invalid_syntax"
    assert review.value["raw_output"] == "sorry, no"
    assert [attempt["number"] for attempt in review.history] == [1]


def test_an_edit_is_partial_and_recorded_with_its_author(form, mode, checkpointer):
    """Fields not named stay; the ledger says who changed what and why."""
    model = Model(lambda params: '{"n": 1}' if params["n"] else "no")
    graph = one_call(form, mode, model, checkpointer)
    mode.invoke(graph, {"params": {"n": 0, "keep": "me"}}, thread())

    state = answer(mode, graph, thread(), {**edit(n=1), "by": "ada"})

    assert model.calls[-1] == {"n": 1, "keep": "me"}
    assert state["output"] == {"n": 1}
    if form == "node":
        first, second = state["attempts"]
        assert (first["decision"]["type"], first["decision"]["by"]) == ("edit", "ada")
        assert second["author"] == "human:ada"
        assert second["params_patch"] == [{"op": "replace", "path": "/n", "value": 1}]


def test_a_bad_answer_is_asked_again_and_a_good_one_still_works(form, mode, checkpointer):
    """Whoever answers is told why, as the question is; the new one has an id of its own."""
    model = Model(goal=1)
    graph = one_call(form, mode, model, checkpointer)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    ids = [reviews(mode, graph, thread())[0].review_id]

    for bad in (
        "what?",
        {"type": "edit"},
        {"type": "explode"},
        17,
        [],
        {"type": "edit", "params": 3},
    ):
        told = refused(mode, graph, thread(), bad)
        (review,) = reviews(mode, graph, thread())
        assert told.message == review.problem
        assert told.review_ids == [review.review_id]
        ids.append(review.review_id)

    assert answer(mode, graph, thread(), edit(n=1))["output"] == {"n": 1}
    assert len(set(ids)) == len(ids)
    assert len(model.calls) == 2


def test_a_supplied_output_is_validated_like_the_models(form, mode):
    """A wrong output is asked again with the issue; a right one ends the call without a call."""
    model = Model(goal=9)
    graph = one_call(form, mode, model, InMemorySaver())
    mode.invoke(graph, {"params": {"n": 0}}, thread())

    assert "/n" in refused(mode, graph, thread(), respond({"n": "many"})).message

    assert answer(mode, graph, thread(), respond({"n": 9}))["output"] == {"n": 9}
    assert len(model.calls) == 1


def test_no_open_review_is_stale(form, mode):
    """An answer nobody waits for is refused, before and after the call."""
    graph = one_call(form, mode, Model(goal=1), InMemorySaver())
    with pytest.raises(StaleDecision, match="no open review"):
        answer(mode, graph, thread(), approve())
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    (review,) = reviews(mode, graph, thread())
    answer(mode, graph, thread(), edit(n=1))

    with pytest.raises(StaleDecision):
        answer(mode, graph, thread(), approve())
    with pytest.raises(StaleDecision, match=review.review_id):
        answer(mode, graph, thread(), answers={review.review_id: approve()})


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({"action_requests": [{"name": "send_mail", "args": {}}]}, '("send_mail")'),
        ("Go on?", '("Go on?")'),
        ({"question": "Go on?"}, '({"question": "Go on?"})'),
    ],
)
def test_an_interrupt_of_another_kind_is_named(mode, checkpointer, asked, named):
    """LangChain's own approval is no review: the error says what waits and how it is answered."""
    builder = StateGraph(State).add_node("ask", lambda state: {"output": interrupt(asked)})
    graph = builder.set_entry_point("ask").compile(checkpointer=checkpointer)
    mode.invoke(graph, {"params": {}}, thread())
    for how in ({"decision": approve()}, {"answers": {"r1": approve()}}):
        with pytest.raises(StaleDecision, match="another interrupt") as caught:
            answer(mode, graph, thread(), **how)
        assert named in str(caught.value)
    assert mode.invoke(graph, Command(resume=5), thread())["output"] == 5


def test_an_answer_to_an_earlier_attempt_is_not_taken_for_the_next(form, mode, checkpointer):
    """A late click on attempt 1 cannot decide about attempt 2."""
    model = Model(goal=5)
    graph = one_call(form, mode, model, checkpointer)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    (first,) = reviews(mode, graph, thread())
    answer(mode, graph, thread(), edit(n=1))

    with pytest.raises(StaleDecision):
        answer(mode, graph, thread(), {**edit(n=9), "review_id": first.review_id})
    late = {"type": "edit", "params": {"n": 9}, "attempt": 1}
    mode.invoke(graph, Command(resume=late), thread())

    (review,) = reviews(mode, graph, thread())
    assert "attempt 1" in review.problem
    assert len(model.calls) == 2


def test_a_repeated_decision_id_is_applied_once(form, mode):
    """A double delivery of one decision is asked again instead of deciding twice."""
    model = Model(goal=5)
    graph = one_call(form, mode, model, InMemorySaver())
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    twice = {"type": "edit", "params": {"n": 1}, "decision_id": "click-1"}

    mode.invoke(graph, Command(resume=twice), thread())
    mode.invoke(graph, Command(resume=twice), thread())

    (review,) = reviews(mode, graph, thread())
    assert (review.attempt, len(model.calls)) == (2, 2)
    assert "click-1" in review.problem


def test_some_of_several_reviews_can_be_answered(form, mode, checkpointer):
    """Two of five branches go on, three keep waiting; one decision for five is refused."""
    model = Model(goal=1)
    graph = fan_out(form, mode, model, checkpointer, width=5)
    mode.invoke(graph, {"results": []}, thread())
    open_ = reviews(mode, graph, thread())

    with pytest.raises(ValueError, match="5 open reviews"):
        answer(mode, graph, thread(), edit(n=1))
    answer(mode, graph, thread(), answers={review.review_id: edit(n=1) for review in open_[:2]})

    left = reviews(mode, graph, thread())
    assert {review.review_id for review in left} == {review.review_id for review in open_[2:]}
    state = answer(mode, graph, thread(), answers={r.review_id: edit(n=1) for r in left})
    assert len(state["results"]) == 5
    assert len(model.calls) == 10


def test_a_decision_that_names_its_review_is_enough(mode):
    """With several open reviews the `review_id` inside the decision picks one."""
    graph = fan_out("node", mode, Model(goal=1), InMemorySaver(), width=3)
    mode.invoke(graph, {"results": []}, thread())
    _, middle, _ = reviews(mode, graph, thread())

    answer(mode, graph, thread(), {**edit(n=1), "review_id": middle.review_id})

    assert middle.review_id not in {r.review_id for r in reviews(mode, graph, thread())}


def test_an_answer_written_but_not_yet_applied_is_carried_on(mode, checkpointer):
    """If the process dies after writing, `resume` without a decision goes on with that answer."""
    model = Model(goal=1)
    graph = one_call("node", mode, model, checkpointer)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    written = {ANSWER: {"value": edit(n=1)}}
    (task,) = mode.call(graph, "get_state", thread(), subgraphs=True).tasks
    mode.call(graph, "update_state", task.state.config, written, as_node="review")

    assert reviews(mode, graph, thread()) == []
    with pytest.raises(StaleDecision):
        answer(mode, graph, thread(), reject())
    assert answer(mode, graph, thread())["output"] == {"n": 1}
    assert len(model.calls) == 2


def test_two_answers_at_once_apply_one():
    """Of two threads answering one review, one wins and the other is told."""
    model = Model(goal=1)
    graph = one_call("node", None, model, InMemorySaver())
    graph.invoke({"params": {"n": 0}}, thread())
    (review,) = pending_reviews(graph, thread())
    results = []
    start = threading.Barrier(2)

    def click():
        start.wait()
        try:
            results.append(review.answer(edit(n=1))["output"])
        except StaleDecision as stale:
            results.append(type(stale).__name__)

    clicks = [threading.Thread(target=click) for _ in range(2)]
    for one in clicks:
        one.start()
    for one in clicks:
        one.join()

    assert sorted(map(str, results)) == ["StaleDecision", "{'n': 1}"]
    assert len(model.calls) == 2


def test_other_interrupts_of_the_graph_are_left_alone():
    """A question somebody else's node asks is not listed as a review."""
    from langgraph.graph import START, StateGraph
    from langgraph.types import interrupt

    builder = StateGraph(dict)
    builder.add_node("ask", lambda state: interrupt({"type": "other"}))
    builder.add_edge(START, "ask")
    graph = builder.compile(checkpointer=InMemorySaver())
    graph.invoke({"x": 1}, thread())
    assert graph_retry.pending_reviews(graph, thread()) == []
    with pytest.raises(TypeError, match="give either `decision` for one review, or `answers`"):
        resume(graph, thread(), approve(), answers={})


def test_an_answered_review_is_closed_while_its_answer_is_applied(form, mode, checkpointer):
    """During the call it led to, and after a crash there, nobody can answer it a second time."""
    seen, dying = [], [True]

    def call(params):
        if params["n"] == 1 and dying:
            if not mode.is_async:
                seen.append(reviews(mode, graph, thread()))
            raise Crash
        return str(params["n"]) if params["n"] else "no"

    graph = one_call(form, mode, Model(call), checkpointer, output=int)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    (review,) = reviews(mode, graph, thread())
    with pytest.raises(Crash):
        answer(mode, graph, thread(), edit(n=1))
    dying.clear()

    assert seen == ([] if mode.is_async else [[]])
    assert reviews(mode, graph, thread()) == []
    with pytest.raises(StaleDecision):
        answer(mode, graph, thread(), answers={review.review_id: reject("too late")})
    assert answer(mode, graph, thread())["output"] == 1


def test_params_that_were_changed_in_a_review_are_no_edit():
    """An approval would call the model with the params as shown. The error is told before that."""
    model = Model()
    graph = one_call("node", None, model, InMemorySaver())
    graph.invoke({"params": {"n": 0}}, thread())
    (review,) = pending_reviews(graph, thread())
    review.params["n"] = 1

    with pytest.raises(ValueError, match=r"`params` of this review .* `edit\(…\)`"):
        review.answer(approve())

    assert len(model.calls) == 1
    (review,) = pending_reviews(graph, thread())
    assert review.answer(edit(n=1))["output"] == {"n": 1}


@pytest.mark.parametrize(
    ("decision", "told"),
    [
        (respond(Model), "`output` of the decision is the class `Model`: give an object"),
        (edit({"gro\u0308ße": 2}), r"the same letters, in another Unicode form ('gr\xf6\xdfe')"),
    ],
)
def test_an_answer_that_hides_its_mistake_is_told_plainly(decision, told):
    """A class prints as its metaclass, and two forms of a letter print alike."""
    graph = one_call("node", None, Model(), InMemorySaver())
    graph.invoke({"params": {"n": 0, "größe": 1}}, thread())

    with pytest.raises((TypeError, graph_retry.AnswerRefused), match=re.escape(told)):
        resume(graph, thread(), decision)
