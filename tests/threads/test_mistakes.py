"""What people get wrong about threads: the argument is named before anything is called."""

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from graph_retry import StaleDecision, approve, edit, pending_reviews, respond, resume
from graph_retry.threads import attempts_of, expire_reviews, list_reviews, rewind
from tests.loops import Model, one_call, thread


def twice(graph):
    """Return two answers to the one open review: by its id, and by the id of its interrupt."""
    (review,) = pending_reviews(graph, thread())
    return {review.review_id: edit(n=1), review.interrupt_id: edit(n=2)}


MISTAKES = [
    (lambda graph: pending_reviews(graph, {}), ValueError, "`config` names no thread: give"),
    (lambda graph: pending_reviews(graph, None), TypeError, "`config`: give a config"),
    (lambda graph: pending_reviews(graph, {"configurable": None}), TypeError, "`configurable` is"),
    (lambda graph: pending_reviews(None, thread()), TypeError, "`graph` is a `NoneType`"),
    (lambda graph: resume(graph, {}, approve()), ValueError, "`config` names no thread: give"),
    (
        lambda graph: resume(graph, edit(n=1), thread()),
        TypeError,
        r"`config`: give a config.* The order is `resume\(graph, config, decision\)`",
    ),
    (
        lambda graph: pending_reviews(graph, {"thread_id": "1"}),
        TypeError,
        "`config`: give a config",
    ),
    (
        lambda graph: resume(graph, thread(), answers=[approve()]),
        TypeError,
        "`answers`: give a dict",
    ),
    (lambda graph: resume(graph, thread(), answers="approve"), TypeError, "`answers`: give a dict"),
    (
        lambda graph: resume(graph, thread(), answers={}),
        TypeError,
        "leave `answers` out",
    ),
    (lambda graph: resume(graph, thread(), answers={"x": approve()}), StaleDecision, "not open"),
    (
        lambda graph: resume(
            graph, thread(), answers={pending_reviews(graph, thread())[0]: approve()}
        ),
        TypeError,
        r"`answers, key PendingReview\(.*: give the `review_id` of a review; not",
    ),
    (
        lambda graph: resume(graph, thread(), Command(resume=1)),
        TypeError,
        "the value for `Command",
    ),
    (
        lambda graph: resume(graph, thread(), approve(), wait="1"),
        TypeError,
        "`wait`: give a number; not '1'",
    ),
    (lambda graph: attempts_of(graph, {}), ValueError, "`config` names no thread: give"),
    (lambda graph: attempts_of(thread(), graph), TypeError, "`config`: give a config"),
    (lambda graph: attempts_of(graph.builder, thread()), TypeError, "`graph` is a `StateGraph`"),
    (lambda graph: resume(graph.builder, thread(), approve()), TypeError, "a `StateGraph`: give"),
    (lambda graph: rewind(graph, {}, attempt=1), ValueError, "`config` names no thread: give"),
    (lambda graph: rewind(graph, thread()), TypeError, "missing argument `attempt`"),
    (
        lambda graph: rewind(graph, thread(), 1),
        TypeError,
        "`ledger`: give a ledger of `attempts_of",
    ),
    (
        lambda graph: rewind(graph, thread(), attempt=1, params={"n": 2**70}),
        TypeError,
        "`params` cannot be saved as JSON .*/n: graph state holds integers of 64 bits",
    ),
    (
        lambda graph: rewind(graph, thread(), attempt=1, prams={}),
        TypeError,
        "Did you mean `params`",
    ),
    (
        lambda graph: rewind(graph, thread(), attempt=1, params={"n": object()}),
        TypeError,
        "`params` cannot be saved as JSON",
    ),
    (
        lambda graph: rewind(graph, thread(), attempt=1, decision=edit(n=object())),
        TypeError,
        "`decision` cannot be saved as JSON",
    ),
    (
        lambda graph: resume(graph, thread(), edit(n=object())),
        TypeError,
        "`params` of the decision cannot be saved as JSON",
    ),
    (
        lambda graph: resume(graph, thread(), respond(b"\xff")),
        TypeError,
        "`output` of the decision cannot be saved as JSON: give plain JSON values, and bytes as",
    ),
    (
        lambda graph: resume(graph, thread(), answers=twice(graph)),
        ValueError,
        "two decisions about the same review \\('.+' and '.+'\\): give only one",
    ),
    (lambda graph: list_reviews(graph, limit="2"), ValueError, "`limit`: give a whole .*not '2'"),
    (lambda graph: list_reviews(graph, limit=-1), ValueError, "`limit`: give a whole .*not -1"),
    (lambda graph: list_reviews(graph, limit=0), ValueError, "`limit`: give a whole number from 1"),
    (
        lambda graph: expire_reviews(graph.checkpointer),
        TypeError,
        "`source` is an `InMemorySaver`, which cannot continue a thread: give the graph",
    ),
    (lambda graph: list_reviews(graph, labels=["a"]), TypeError, "`labels`: give a dict"),
    (lambda graph: list_reviews(graph, before="1"), TypeError, "`before`: give the last review"),
    (lambda graph: resume(graph, thread(), approve), TypeError, "Call it: `approve"),
]


@pytest.mark.parametrize(("ask", "kind", "told"), MISTAKES)
def test_mistakes_of_a_caller_are_told_in_a_sentence(ask, kind, told):
    """Each names the argument; the review waits on, and nothing is called."""
    model = Model()
    graph = one_call("node", None, model, InMemorySaver())
    graph.invoke({"params": {"n": 0}}, thread())
    with pytest.raises(kind, match=told) as caught:
        ask(graph)
    assert "\n" not in str(caught.value)
    assert len(pending_reviews(graph, thread())) == 1
    assert len(model.calls) == 1
