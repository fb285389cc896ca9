"""`resume(…, start=…)`: jobs that run twice, or two at once, start a thread once."""

import operator
from contextlib import suppress
from threading import Barrier, Thread
from typing import Annotated

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict

from graph_retry import AnswerRefused, edit, pending_reviews, resume, retry_llm_call
from graph_retry.threads import resumption
from tests.loops import Model, answer, one_call, reviews, thread

GIVEN = {"params": {"n": 0}}


def test_a_thread_is_started_once(form, mode, checkpointer):
    """Waiting or ended it is left alone, and what `invoke` returned is returned again."""
    model = Model()
    graph = one_call(form, mode, model, checkpointer)
    first = answer(mode, graph, thread(), start=GIVEN)
    assert first["__interrupt__"]
    (review,) = reviews(mode, graph, thread())

    assert answer(mode, graph, thread(), start=GIVEN) == first
    assert [each.review_id for each in reviews(mode, graph, thread())] == [review.review_id]

    done = answer(mode, graph, thread(), edit(n=1))
    assert answer(mode, graph, thread(), start=GIVEN) == done
    assert len(model.calls) == 2


class State(TypedDict, total=False):
    """The state of two branches."""

    outputs: Annotated[list[str], operator.add]


def two_branches(ran, fails):
    """Compile a graph of a branch that asks and a branch that may be cut off."""

    def asks(_):
        ran.append("asks")
        return {"outputs": [retry_llm_call(lambda n: n, {"n": "many"}, output=int)]}

    def works(_):
        ran.append("works")
        if fails.pop():
            raise ConnectionError
        return {"outputs": ["worked"]}

    graph = StateGraph(State).add_node("asks", asks).add_node("works", works)
    return graph.add_edge(START, "asks").add_edge(START, "works").compile(InMemorySaver())


def test_a_branch_that_was_cut_off_beside_a_question_goes_on():
    """What waits does not hide what is left to run; afterwards all of it waits."""
    ran, fails = [], [False, True]
    graph = two_branches(ran, fails)
    with suppress(ConnectionError):
        resume(graph, thread(), start={})
    resume(graph, thread(), start={})
    told = len(ran)

    resume(graph, thread(), start={})

    assert (ran.count("works"), fails, len(ran)) == (2, [], told)
    assert len(pending_reviews(graph, thread())) == 1


def test_a_saved_answer_that_nothing_has_applied_is_applied(form):
    """The process that answered may be gone; no list shows its review any more."""
    model = Model()
    graph = one_call(form, None, model, InMemorySaver())
    resume(graph, thread(), start=GIVEN)
    with suppress(AnswerRefused), resumption(graph, thread(), edit(n=1)):
        pass

    assert resume(graph, thread(), start=GIVEN)["output"] == {"n": 1}
    assert len(model.calls) == 2


def test_a_question_of_the_users_own_is_left_alone():
    """LangGraph would run its node from its first line."""
    ran = []

    def node(_):
        ran.append(1)
        return {"outputs": [interrupt("Which?")]}

    graph = StateGraph(State).add_node("ask", node).add_edge(START, "ask").compile(InMemorySaver())
    first, again = (resume(graph, thread(), start={}) for _ in range(2))

    assert (first, ran) == (again, [1])


def test_two_jobs_at_once_start_a_thread_once(form):
    """The second waits for the lock, and then finds the thread begun."""
    model, meet = Model(), Barrier(2)
    graph = one_call(form, None, model, InMemorySaver())

    def job():
        meet.wait()
        resume(graph, thread(), start=GIVEN)

    jobs = [Thread(target=job) for _ in range(2)]
    for each in jobs:
        each.start()
    for each in jobs:
        each.join()

    assert len(model.calls) == len(pending_reviews(graph, thread())) == 1


@pytest.mark.parametrize("more", [{"decision": edit(n=1)}, {"answers": {"a": edit(n=1)}}])
def test_an_answer_beside_an_input_is_refused(form, more):
    """One of the two would be dropped."""
    graph = one_call(form, None, Model(), InMemorySaver())

    with pytest.raises(TypeError, match="`start` cannot be combined"):
        resume(graph, thread(), start=GIVEN, **more)


def test_a_decision_in_place_of_an_input_is_told(form, caplog):
    """The thread has begun, so the decision would be dropped, and the question would stay."""
    graph = one_call(form, None, Model(), InMemorySaver())
    resume(graph, thread(), start=GIVEN)
    with pytest.raises(TypeError, match=r"`start` is the decision `edit`.*call `resume\("):
        resume(graph, thread(), start=edit(n=1))
    assert len(pending_reviews(graph, thread())) == 1

    @entrypoint(checkpointer=InMemorySaver())
    def job(given):
        return retry_llm_call(Model(), given["params"], output=dict[str, int])

    resume(job, thread(), start=edit(n=0))  # The input of an entrypoint may be such a dict.
    assert not caplog.text
    resume(job, thread(), start=edit(n=1))
    assert "`start` is the decision `edit`" in caplog.text


def test_a_stream_starts_and_continues_in_the_same_way():
    """The value of the block is the input of a new thread, and None afterwards."""
    model = Model()
    graph = one_call("function", None, model, InMemorySaver())
    for given in (GIVEN, None):
        with resumption(graph, thread(), start=GIVEN) as value:
            assert value == given
            list(graph.stream(value, thread()))
    assert len(model.calls) == 1
