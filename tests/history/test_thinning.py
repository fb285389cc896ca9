"""What is left of a finished thread when its ledgers are exported and its steps deleted."""

import asyncio

import pytest
from langgraph.checkpoint.postgres import PostgresSaver

from graph_retry import edit, respond
from graph_retry.data import corrections_of
from graph_retry.threads import attempts_of, export_ledgers, import_ledgers
from tests.conftest import Mode
from tests.loops import Model, answer, one_call, reviews, thread

SYNC = Mode("sync", asyncio.Runner())
TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")
ROWS = {"node": (82, 4), "function": (79, 3)}
"""Rows of a thread with one call of three attempts, before and after."""


def rows(saver):
    """Count the thread's rows."""
    counts = (f"SELECT count(*) AS rows FROM {table} WHERE thread_id = '1'" for table in TABLES)
    with saver.conn.cursor() as cursor:
        return sum(cursor.execute(count).fetchone()["rows"] for count in counts)


@pytest.mark.parametrize("form", ["node", "function"])
def test_a_pruned_thread_has_few_rows_and_goes_on(form, postgres_database, tmp_path):
    """The file has the ledger and the decisions; the thread has its state, and takes an input."""
    with PostgresSaver.from_conn_string(postgres_database) as saver:
        graph = one_call(form, SYNC, Model(goal=2), saver)
        graph.invoke({"params": {"n": 0}}, thread())
        for n in (1, 2):
            answer(SYNC, graph, thread(), edit(n=n))
        ledgers = attempts_of(graph, thread())
        state = graph.get_state(thread()).values
        before = rows(saver)
        export_ledgers(ledgers, tmp_path / "1.jsonl")

        saver.prune(["1"], strategy="keep_latest")

        assert (before, rows(saver)) == ROWS[form]
        assert graph.get_state(thread()).values == state
        assert [each.attempts for each in import_ledgers(tmp_path / "1.jsonl")] == [
            each.attempts for each in ledgers
        ]
        assert [row["how"] for row in corrections_of(tmp_path / "1.jsonl")] == ["edited"] * 2

        graph.invoke({"params": {"n": 0}}, thread())
        assert len(reviews(SYNC, graph, thread())) == 1
        answer(SYNC, graph, thread(), respond({"n": 7}))
        assert graph.get_state(thread()).values["output"] == {"n": 7}
