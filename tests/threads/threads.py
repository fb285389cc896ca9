"""What tests about threads that are taken up again share."""

from contextlib import contextmanager
from typing import Any

import pytest
from langgraph.graph import START, StateGraph

import graph_retry.threads
from tests.loops import State, answer, one_call, reviews, thread


def go_back(mode, graph, **change):
    return mode.call(graph_retry.threads, "rewind", graph, thread(), **change)


def current(mode, graph):
    """Read the thread's ledgers, those forks left behind left out."""
    ledgers = mode.call(graph_retry.threads, "attempts_of", graph, thread())
    return [ledger for ledger in ledgers if ledger.current]


def asked(mode, graph):
    """Return the one open review."""
    found = {review.review_id: review for review in reviews(mode, graph, thread())}
    (review,) = found.values()
    return review


def decide(mode, graph, decision):
    """Answer the one open review."""
    return answer(mode, graph, thread(), answers={asked(mode, graph).review_id: decision})


def nested(form, mode, model, saver):
    """Compile a graph whose call is two subgraphs deep."""
    inner: Any = one_call(form, mode, model, None)
    for name in ("middle", "outer"):
        builder = StateGraph(State).add_node("prepare", lambda state: {}).add_node(name, inner)
        builder.add_edge(START, "prepare").add_edge("prepare", name)
        inner = builder.compile(checkpointer=saver if name == "outer" else None)
    return inner


class Crash(BaseException):
    """What ends a process from inside."""


@contextmanager
def ends_before_its_run(mode, graph):
    """End the process between an answer that is written and the run that applies it."""
    invoke = "ainvoke" if mode.is_async else "invoke"
    run = getattr(graph, invoke)

    def crash(*_args, **_options):
        raise Crash

    setattr(graph, invoke, crash)
    with pytest.raises(Crash):
        yield
    setattr(graph, invoke, run)
