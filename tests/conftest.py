"""Fixtures for every test: sync and async from one test body, three checkpointers, no network."""

import os

# The stricter of LangGraph's two ways to read checkpoints, read when it is imported; `make test`
# runs some tests in the other way, too.
os.environ["LANGGRAPH_STRICT_MSGPACK"] = os.environ.get("LANGGRAPH_STRICT_MSGPACK", "true")

import asyncio
import functools
import inspect
import itertools
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import settings
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from tests.parts import MARKS, PARTS, Run, in_part
from tests.postgres_server import running_server

# A busy machine is not a bug; the parent profile is Hypothesis' own one for CI where CI is set.
settings.register_profile("graph-retry", settings(), deadline=None)
settings.load_profile("graph-retry")

# A shell has its background jobs ignore Ctrl-C, and so would the programs that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)

for _name in [name for name in os.environ if name.endswith("_API_KEY")]:
    del os.environ[_name]
os.environ["LANGSMITH_TRACING"] = "false"

# A provider's client reads all certificates of the world, which takes 40 ms each time. The tests
# speak to this machine only and need none.
os.environ.pop("SSL_CERT_FILE", None)
os.environ["SSL_CERT_DIR"] = str(Path(__file__).parent)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a run be one of the parts; without the option it has every case."""
    parser.addoption("--part", choices=PARTS, help="see tests/parts.py")


def pytest_configure(config: pytest.Config) -> None:
    """Learn which part this run is, and register the marks that tell which part a test is in."""
    Run.part = config.getoption("part")
    for name, meaning in MARKS.items():
        config.addinivalue_line("markers", f"{name}: {meaning}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the cases of the other part out."""
    if Run.part is None:
        return
    chosen = in_part(Run.part, items)
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = [item for item in items if item in chosen]


class Mode:
    """Drives graphs the way a sync or an async caller does, from one plain `def` test.

    A sync mode has no event loop at all. An async mode runs everything on one loop that lives
    as long as the test.

    Example:
        def test_it(mode, checkpointer):
            graph = builder.compile(checkpointer=checkpointer)
            result = mode.invoke(graph, {"x": 1}, config)
            snapshot = mode.call(graph, "get_state", config)
    """

    def __init__(self, name: str, runner: asyncio.Runner) -> None:
        self.name = name
        self.is_async = name == "async"
        self._runner = runner

    def call(self, owner: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        """Call `owner.name(...)`, or `owner.aname(...)` in async mode, and wait for the result.

        `owner` is a graph, a saver or a module. What is streamed comes back as a list.
        """
        if not self.is_async:
            result = getattr(owner, name)(*args, **kwargs)
            return list(result) if inspect.isgenerator(result) else result
        return self.run(lambda: getattr(owner, f"a{name}")(*args, **kwargs))

    def invoke(self, graph: Any, *args: Any, **kwargs: Any) -> Any:
        """Return `graph.invoke(...)` or `await graph.ainvoke(...)`."""
        return self.call(graph, "invoke", *args, **kwargs)

    def run(self, start: Callable[[], Awaitable[Any] | AsyncIterator[Any]]) -> Any:
        """Call `start` on the test's loop and wait for the awaitable or stream it returns."""

        async def wait() -> Any:
            started = start()
            if isinstance(started, AsyncIterator):
                return [item async for item in started]
            return await started

        return self._runner.run(wait())

    def colour(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a plain function as this mode's kind: itself, or a coroutine function."""
        if not self.is_async:
            return function

        @functools.wraps(function)
        async def coloured(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return coloured

    @contextmanager
    def opened(
        self, resource: AbstractContextManager[Any] | AbstractAsyncContextManager[Any]
    ) -> Iterator[Any]:
        """Enter a context manager of either kind, an async one on the test's loop."""
        if isinstance(resource, AbstractContextManager):
            with resource as value:
                yield value
            return
        value = self.run(resource.__aenter__)
        try:
            yield value
        finally:
            self.run(lambda: resource.__aexit__(None, None, None))


@pytest.fixture(params=["sync", "async"])
def mode(request: pytest.FixtureRequest) -> Iterator[Mode]:
    """Run the test twice: as a sync caller and as an async one."""
    with asyncio.Runner() as runner:
        yield Mode(request.param, runner)


@pytest.fixture(params=["node", "function"])
def form(request: pytest.FixtureRequest) -> str:
    """Run the test with the node form and with the function form."""
    return request.param


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def checkpointer(
    request: pytest.FixtureRequest, mode: Mode, tmp_path: Path
) -> Iterator[BaseCheckpointSaver[Any]]:
    """Run the test on each kind of storage; the saver is empty and fits the mode."""
    if request.param == "memory":
        yield InMemorySaver()
        return
    if request.param == "sqlite":
        saver_class = AsyncSqliteSaver if mode.is_async else SqliteSaver
        location = str(tmp_path / "checkpoints.sqlite")
    else:
        saver_class = AsyncPostgresSaver if mode.is_async else PostgresSaver
        location = request.getfixturevalue("postgres_database")
    with mode.opened(saver_class.from_conn_string(location)) as saver:
        yield saver


@pytest.fixture(scope="session")
def postgres_dsn() -> Iterator[str]:
    """Start one PostgreSQL server for all tests; LangGraph's tables are in database `template`."""
    with running_server() as dsn:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("CREATE DATABASE template")
        with PostgresSaver.from_conn_string(_database(dsn, "template")) as saver:
            saver.setup()
        yield dsn


_numbers = itertools.count(1)


@pytest.fixture
def postgres_database(postgres_dsn: str) -> Iterator[str]:
    """Give the test a database of its own, LangGraph's tables included; yields its DSN."""
    name = f"test_{next(_numbers)}"
    with psycopg.connect(postgres_dsn, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE template")
        yield _database(postgres_dsn, name)
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def sqlite_database(tmp_path: Path) -> str:
    """Make a file with LangGraph's tables; returns its path.

    Savers that open a new file at the same time fail in their `setup` ("database is locked").
    """
    path = str(tmp_path / "shared.sqlite")
    with SqliteSaver.from_conn_string(path) as saver:
        saver.setup()
    return path


def _database(dsn: str, name: str) -> str:
    return dsn.replace("/postgres?", f"/{name}?")


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Callable[[], tuple[Any, ...]]:
    """Set tracing up as an application does, for one test; spans are listed as they end."""
    # Here, because a call is traced in any process that has imported OpenTelemetry.
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    return exporter.get_finished_spans


@pytest.fixture(scope="session", autouse=True)
def loopback_only() -> Iterator[None]:
    """Refuse every connection that would leave this machine."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        remote = self.family in (socket.AF_INET, socket.AF_INET6)
        if remote and not str(address[0]).startswith(("127.", "::1", "localhost")):
            raise AssertionError(f"A test tried to reach {address!r}: only loopback is allowed.")
        connect(self, address)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", guarded)
        yield
