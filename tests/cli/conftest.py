"""The console command in this process, and threads that wait for it."""

import asyncio
import io

import pytest
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from graph_retry import apending_reviews
from graph_retry.desk.cli.app import app
from graph_retry.desk.cli.source import load_graph

WHERE = ("GRAPH_RETRY_URL", "GRAPH_RETRY_DB", "GRAPH_RETRY_GRAPH", "GRAPH_RETRY_BY")

GRAPH = "tests.cli.served:"


def answer(database, *options, graph="node", thread="1"):
    """Write the words of an answer."""
    return ("answer", thread, "--db", database.place, "--graph", GRAPH + graph, *options)


@pytest.fixture(autouse=True)
def calls(tmp_path, monkeypatch):
    """Count model calls in a file, whatever process makes them; nothing is set outside."""
    for name in WHERE:
        monkeypatch.delenv(name, raising=False)
    file = tmp_path / "calls"
    file.touch()
    monkeypatch.setenv("CALLS", str(file))
    return lambda: len(file.read_text().split())


class Database:
    """A database with LangGraph's tables, and threads in it."""

    def __init__(self, place):
        self.place = place

    def begin(self, graph="node", *threads, n=0, **params):
        """Run a graph of `served` on some threads until it waits; returns the reviews' ids."""
        return asyncio.run(self._begin(graph, threads or ("1",), {"n": n, **params}))

    async def _begin(self, name, threads, params):
        savers = AsyncPostgresSaver if "://" in self.place else AsyncSqliteSaver
        async with savers.from_conn_string(self.place) as saver:
            graph = load_graph(f"tests.cli.served:{name}", saver)
            found = []
            for thread in threads:
                config = {"configurable": {"thread_id": thread}}
                await graph.ainvoke({"params": params}, config)
                found += [each.review_id for each in await apending_reviews(graph, config)]
            return found


@pytest.fixture
def sqlite(tmp_path):
    """Keep threads in a SQLite file."""
    return Database(str(tmp_path / "threads.sqlite"))


@pytest.fixture(params=["sqlite", "postgres"])
def database(request):
    """Keep threads in a SQLite file, and in PostgreSQL."""
    if request.param == "sqlite":
        return request.getfixturevalue("sqlite")
    return Database(request.getfixturevalue("postgres_database"))


@pytest.fixture
def run(capsys, monkeypatch):
    """Run the command without a terminal; returns its exit code, output and errors."""

    def run(*arguments, stdin=None):
        if stdin is not None:
            monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            app([str(each) for each in arguments])
        told = capsys.readouterr()
        return ended.value.code, told.out, told.err

    return run
