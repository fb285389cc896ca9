"""What is logged: each review's moments and where automation stopped, by names alone."""

import logging

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from graph_retry import AttemptsExhausted, edit, retry_llm_call
from graph_retry._core.threads import expiry
from tests.loops import Model, answer, one_call, refused, reviews, thread

TEXT = "what-the-model-wrote"


def lines(caplog):
    """Return the lines logged so far, with what is different in each run left out."""
    said = [(record.levelname, record.getMessage()) for record in caplog.records]
    caplog.clear()
    return said


def test_each_moment_of_a_review_is_one_line(form, mode, caplog):
    """Asked, refused, asked again, answered; with thread, review, call and attempt."""
    caplog.set_level(logging.INFO, "graph_retry")
    model = Model(lambda params: TEXT if params["n"] == 0 else '{"n": 1}')
    graph = one_call(form, mode, model, InMemorySaver())
    mode.invoke(graph, {"params": {"n": 0}}, thread("t"))
    (first,) = reviews(mode, graph, thread("t"))
    refused(mode, graph, thread("t"), f"do {TEXT}")
    (second,) = reviews(mode, graph, thread("t"))
    answer(mode, graph, thread("t"), {**edit(n=1), "by": "ada", "message": TEXT})
    where = "of `count` (attempt 1, thread 't') was"
    assert lines(caplog) == [
        ("INFO", f"review {first.review_id} {where} asked"),
        ("INFO", f"review {first.review_id} {where} refused an answer by human"),
        ("INFO", f"review {second.review_id} {where} asked"),
        ("INFO", f"review {second.review_id} {where} answered with edit by human"),
    ]
    assert TEXT not in caplog.text


def test_an_expired_review_is_told_as_one(mode, caplog):
    """The sweep ends it."""
    caplog.set_level(logging.INFO, "graph_retry")
    graph = one_call("node", mode, Model(), InMemorySaver(), expires_after=0.001)
    mode.invoke(graph, {"params": {"n": 0}}, thread("t"))
    (review,) = reviews(mode, graph, thread("t"))
    lines(caplog)
    mode.call(expiry, "expire_reviews", graph)
    said = f"review {review.review_id} of `count` (attempt 1, thread 't') was expired by system"
    assert lines(caplog) == [("INFO", said)]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"auto_retries": 1}, "1 automatic retry did not help"),
        ({"auto_retries": 5, "max_attempts": 2}, "the last attempt is kept for a person"),
        ({"review": False}, "no hook or feedback changed the params"),
    ],
)
def test_a_warning_tells_where_automation_stopped(caplog, options, why):
    """At the usual level of a server's log; where it was never meant to run there is none."""
    hook = None if "review" in options else lambda error, attempt, params: {"n": params["n"] - 1}
    graph = one_call("node", None, Model(), InMemorySaver(), hook, on_cancel="end", **options)
    graph.invoke({"params": {"n": 0}}, thread("t"))
    ((level, said),) = lines(caplog)
    assert (level, said.partition(": ")[2]) == ("WARNING", why)
    assert said.startswith("automation of `count` stopped after attempt")


def test_a_thread_id_begins_no_line_of_its_own(caplog):
    """Whoever may name a thread cannot write into the log what looks like another's line."""
    caplog.set_level(logging.INFO, "graph_retry")
    hook = lambda error, attempt, params: {"n": params["n"] - 1}  # noqa: E731
    graph = one_call("node", None, Model(), InMemorySaver(), hook, auto_retries=1)
    graph.invoke({"params": {"n": 0}}, thread("t\nINFO all is well \x1b[2K"))
    said = [line for _, line in lines(caplog)]
    assert len(said) == 2
    assert all(line.isprintable() and r"thread 't\nINFO all is well" in line for line in said)


def test_a_call_outside_of_any_thread_says_so(caplog):
    """There is no thread to name, and none called `None`."""
    call = lambda params: "no"  # noqa: E731
    with pytest.raises(AttemptsExhausted):
        retry_llm_call(call, {"n": 0}, output=dict[str, int], review=False, name="count")
    why = "no hook or feedback changed the params"
    said = f"automation of `count` stopped after attempt 1 (outside of any thread): {why}"
    assert lines(caplog) == [("WARNING", said)]
