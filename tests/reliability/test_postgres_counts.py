"""What a call and a list cost on PostgreSQL, where each write holds the params once at most."""

from collections import Counter
from contextlib import contextmanager

import psycopg
import pytest
from langgraph.checkpoint.postgres import PostgresSaver

from graph_retry import edit, resume
from graph_retry.threads import Inbox, list_reviews
from tests.loops import Model, one_call, thread


@pytest.fixture
def saver(postgres_database):
    with PostgresSaver.from_conn_string(postgres_database) as saver:
        saver.setup()
        yield saver


@contextmanager
def counted(saver):
    """Count the statements, and list how often each value that is written has the params."""
    counts, written, kind = Counter(), [], type(saver.serde)
    execute, executemany, dumps = (
        psycopg.Cursor.execute,
        psycopg.Cursor.executemany,
        kind.dumps_typed,
    )

    def noting(run):
        return lambda *args, **options: counts.update(statements=1) or run(*args, **options)

    def dumped(self, value):
        typed = dumps(self, value)
        written.append(typed[1].count(b"the document"))
        return typed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(psycopg.Cursor, "execute", noting(execute))
        patch.setattr(psycopg.Cursor, "executemany", noting(executemany))
        patch.setattr(kind, "dumps_typed", dumped)
        yield counts, written


COSTS = {
    # statements, values with the params; of these the graph around a function makes 9 and 3
    "success": {"function": (23, 9), "node": (23, 11)},
    "answer": {"function": (23, 5), "node": (22, 7)},
    # the two values of the question have the params four times: each client has its own key
    "question": {"function": (28, 10), "node": (28, 10)},
}


def test_no_value_that_is_written_has_the_params_twice_but_the_question(form, saver):
    """The params are written by LangGraph's graph, as the loop's input, and in the first record."""
    graph = one_call(form, None, Model(), saver)
    graph.invoke({"params": {"n": 5}}, thread("first"))  # It makes the table of open reviews.
    given = {"text": "the document"}

    def started(n):
        return graph.invoke({"params": {"n": n, **given}}, thread(str(n)), durability="sync")

    runs = {
        "success": lambda: started(5),
        "question": lambda: started(0),
        "answer": lambda: resume(graph, thread("0"), edit(n=1)),
    }
    for what, run in runs.items():
        with counted(saver) as (counts, written):
            run()
        times = [each for each in written if each]
        assert (counts["statements"], len(times)) == COSTS[what][form], what
        assert sorted(times)[-2:] == ([4, 4] if what == "question" else [1, 1])


def test_a_list_reads_two_checkpoints_of_each_thread_and_a_page_reads_none(form, saver):
    """What is not read yet is listed from the table alone, however much it is."""
    graph = one_call(form, None, Model(goal=1), saver)
    listed, paged = {}, set()
    for number in (5, 10):
        for each in range(number - 5, number):
            graph.invoke({"params": {"n": 0}}, thread(str(each)))
        list_reviews(graph)
        with counted(saver) as (counts, _):
            assert len(list_reviews(graph)) == number
        listed[number] = counts["statements"]
        with counted(saver) as (counts, _):
            (rows, _) = Inbox(graph).page()
        assert len(rows) == number
        paged.add(counts["statements"])
    assert listed == {5: 2 * 5 + 3, 10: 2 * 10 + 3}
    assert paged == {3}
