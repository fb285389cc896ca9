"""What a thread takes grows with its attempts, not with their square."""

import random
import sqlite3
from contextlib import closing

import psycopg
import pytest
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver

from graph_retry import edit, resume
from tests.loops import Model, one_call, thread


def fail(saver, attempts, size, params=0, after=lambda number: None):
    """Make attempts with outputs of this size, none of which is like another or right."""
    model = Model(lambda params: random.Random(params["n"]).randbytes(size // 2).hex())
    graph = one_call("node", None, model, saver, max_attempts=99)
    graph.invoke({"params": {"n": 0, "document": "x" * params}}, thread())
    for n in range(1, attempts):
        resume(graph, thread(), edit(n=n))
        after(n + 1)


def sqlite_bytes(attempts, size, params=0):
    """Return the bytes of all that a thread leaves in SQLite."""
    with closing(sqlite3.connect(":memory:", check_same_thread=False)) as connection:
        fail(SqliteSaver(connection), attempts, size, params)
        return bytes_in(connection)


def bytes_in(connection):
    """Return the bytes of all checkpoints and writes in a SQLite database."""
    parts = ("checkpoint", "checkpoints"), ("metadata", "checkpoints"), ("value", "writes")
    asked = [f"SELECT sum(length({column})) FROM {table}" for column, table in parts]
    return sum(connection.execute(each).fetchone()[0] for each in asked)


def postgres_bytes(dsn, attempts, size):
    """Return the bytes of all that a thread leaves in PostgreSQL, tables and indexes together."""
    name = f"storage_{attempts}_{size}"
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE template")
    url = dsn.replace("/postgres?", f"/{name}?")
    tables = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")
    asked = "SELECT " + " + ".join(f"pg_total_relation_size('{each}')" for each in tables)
    with PostgresSaver.from_conn_string(url) as saver:
        with psycopg.connect(url) as connection:
            empty = connection.execute(asked).fetchone()[0]
        fail(saver, attempts, size)
    with psycopg.connect(url) as connection:
        return connection.execute(asked).fetchone()[0] - empty


MORE_SIZES = [pytest.param(size, marks=pytest.mark.long) for size in (1_000, 2_000, 20_000)]


@pytest.mark.parametrize("size", [10, *MORE_SIZES, 100_000])
@pytest.mark.slow
def test_four_times_as_many_attempts_take_four_times_as_much_in_sqlite(size):
    """SQLite stores all of state with each checkpoint: an output is in a few of them."""
    assert sqlite_bytes(40, size) / sqlite_bytes(10, size) <= 5


@pytest.mark.parametrize("size", [2_000, 20_000])
@pytest.mark.slow
def test_four_times_as_many_attempts_take_four_times_as_much_in_postgres(postgres_dsn, size):
    """PostgreSQL stores again what changed, and the ledger changes with each step."""
    few, many = (postgres_bytes(postgres_dsn, attempts, size) for attempts in (10, 40))
    assert many / few <= 5


@pytest.mark.slow
def test_large_params_take_four_times_as_much_for_four_times_as_many_attempts():
    """They are in each checkpoint as they are, and as the call was made with."""
    few, many = (sqlite_bytes(attempts, 10, 100_000) for attempts in (10, 40))
    assert many / few <= 5


@pytest.mark.slow
def test_the_sixtieth_attempt_takes_as_much_as_the_twentieth():
    """State names only the last of the earlier attempts, so they cost no more the more they are."""
    sizes = {}
    with closing(sqlite3.connect(":memory:", check_same_thread=False)) as connection:

        def measure(number):
            if number in (20, 40, 60):
                sizes[number] = bytes_in(connection)

        fail(SqliteSaver(connection), 60, 2_000, after=measure)
    assert sizes[60] - sizes[40] <= 1.06 * (sizes[40] - sizes[20])
