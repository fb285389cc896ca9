"""What is read and written grows with what is done, and not with its square or with what waits."""

import asyncio
import sqlite3
import sys
from collections import Counter
from contextlib import closing, contextmanager

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver

from graph_retry import edit, pending_reviews, resume
from graph_retry.threads import Inbox, list_reviews
from tests.conftest import Mode
from tests.loops import Model, fan_out, one_call, thread

OURS = "/graph_retry/"
SYNC = Mode("sync", asyncio.Runner())


@pytest.fixture
def saver():
    with closing(sqlite3.connect(":memory:", check_same_thread=False)) as connection:
        yield SqliteSaver(connection)


@contextmanager
def counted(saver):
    """Count the SQL statements, calls of our functions, bytes read back, and writes of params."""
    counts, kind = Counter(), type(saver.serde)  # LangGraph makes a copy of the saver's own.
    loads, dumps = kind.loads_typed, kind.dumps_typed

    def profile(frame, event, _):
        counts["calls"] += event == "call" and OURS in frame.f_code.co_filename

    def loaded(self, given):
        counts["bytes"] += len(given[1])
        return loads(self, given)

    def dumped(self, value):
        typed = dumps(self, value)
        if b"the document" in typed[1]:
            counts["params"] += 1
        return typed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kind, "loads_typed", loaded)
        patch.setattr(kind, "dumps_typed", dumped)
        saver.conn.set_trace_callback(lambda _: counts.update(statements=1))
        sys.setprofile(profile)
        try:
            yield counts
        finally:
            sys.setprofile(None)
            saver.conn.set_trace_callback(None)


COSTS = {"function": (49, 10), "node": (51, 11)}
"""Statements of a call that succeeds, and writes that hold its params. Of these the graph around it
makes 17 and 4, and a node writes the ledger into that graph."""


def test_a_success_is_saved_with_few_statements_and_its_params_with_each_write_once(form, saver):
    """What was saved before is listed and read once."""
    graph = one_call(form, None, Model(), saver)
    graph.invoke({"params": {"n": 5}}, thread("0"))  # It makes the tables.
    given = {"params": {"n": 5, "text": "the document"}}
    with counted(saver) as counts:
        graph.invoke(given, thread(), durability="sync")
    assert (counts["statements"], counts["params"]) == COSTS[form]


def wrong(form, saver, times):
    """Make a call that waits after so many attempts."""
    graph = one_call(form, None, Model(lambda params: "no"), saver, max_attempts=99)
    graph.invoke({"params": {"n": 1}}, thread())
    for n in range(2, times + 1):
        resume(graph, thread(), edit(n=n))
    return graph


def test_the_history_of_a_review_is_read_in_time_that_its_attempts_take(form, saver):
    """Four times as many attempts: at most 4 ** 1.1 times as many calls."""
    calls = {}
    for times in (10, 40):
        saver.delete_thread("1")
        graph = wrong(form, saver, times)
        with counted(saver) as counts:
            (review,) = pending_reviews(graph, thread())
        assert [record["number"] for record in review.history] == [*range(1, times + 1)]
        calls[times] = counts["calls"]
    assert calls[40] / calls[10] <= 4**1.1


def branches(form, saver, width):
    """Make a graph of `Send` branches that all wait, and count what that took."""
    graph = fan_out(form, SYNC, Model(goal=1), saver, width=width)
    with counted(saver) as counts:
        graph.invoke({}, {**thread(str(width)), "max_concurrency": 1})
    return graph, counts


def test_many_branches_ask_in_time_that_they_take(form, saver):
    """Whether a new input has ended reviews is looked up once for all branches of a `Send`."""
    counts = {}
    for width in (10, 40):
        _, counts[width] = branches(form, saver, width)
    for each in counts[10]:
        assert counts[40][each] / counts[10][each] <= 4**1.1, each


PER_BRANCH = {"function": 11, "node": 15}
"""Statements for each branch that waits, when one of them is answered: LangGraph itself runs each
again, and reads and writes in it, 8 and 13 of these. We read the call's own state once or twice."""


def test_one_answer_reads_nothing_of_other_branches_but_what_langgraph_runs_again(form, saver):
    """The reviews of the others are not read, and their rows in the table not written again."""
    counts = {}
    for width in (10, 20):
        graph, _ = branches(form, saver, width)
        review = pending_reviews(graph, thread(str(width)))[0]
        with counted(saver) as counts[width]:
            # One branch after the other, because branches that meet share some reads by chance.
            one_by_one = {**thread(str(width)), "max_concurrency": 1}
            resume(graph, one_by_one, answers={review.review_id: edit(n=1)})
        listed = [each for each in list_reviews(graph) if each.thread_id == str(width)]
        assert len(pending_reviews(graph, thread(str(width)))) == len(listed) == width - 1
    grown = counts[20]["statements"] - counts[10]["statements"]
    assert grown / 10 <= PER_BRANCH[form]
    assert counts[20]["calls"] / counts[10]["calls"] <= 2**1.1


def test_a_list_reads_two_checkpoints_of_each_thread(form, saver):
    """A row of the table only names a call: that it waits, and for what, is known from its thread.

    What a page does not show yet is listed from the table alone.
    """
    graph, counts = one_call(form, None, Model(goal=1), saver), {}
    for more, number in ((5, 5), (5, 10), (10, 20)):
        for new in range(number - more, number):
            graph.invoke({"params": {"n": 0}}, thread(str(new)))
        list_reviews(graph)
        with counted(saver) as counts[number]:
            assert len(list_reviews(graph)) == number
    assert [counts[number]["statements"] for number in counts] == [4 * n + 3 for n in counts]
    assert counts[20]["calls"] / counts[5]["calls"] <= 4**1.1
    with counted(saver) as listed:
        (rows, _) = Inbox(graph).page()
    assert (len(rows), listed["statements"]) == (20, 3)


def test_a_short_list_of_many_threads_reads_few(saver):
    """A list with a limit reads as many threads as it needs."""
    graph = one_call("node", None, Model(goal=1), saver)
    for number in range(30):
        graph.invoke({"params": {"n": 0}}, thread(str(number)))
    list_reviews(graph)  # The first list reads all threads, which may be older than the table.
    with counted(saver) as counts:
        (review,) = list_reviews(graph, limit=1)
    assert review.thread_id == "29"
    assert counts["statements"] <= 8
