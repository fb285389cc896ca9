"""Where reviews wait: a LangGraph server, or a database with or without its graph."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import Generator
from contextlib import AsyncExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.pregel import Pregel
from langgraph.pregel.remote import RemoteGraph
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import APIStatusError

from graph_retry.answering import PendingReview, apending_reviews, aresume
from graph_retry.cli.exits import ExitCode, Stop, optional
from graph_retry.cli.graphs import load_graph
from graph_retry.history import aattempts_of
from graph_retry.inbox import alist_reviews
from graph_retry.ledger import Ledger


@dataclass(frozen=True)
class Place:
    """Sync methods over what is opened; one that is async inside reaches every kind of graph."""

    source: LangGraphClient | BaseCheckpointSaver[Any] | Pregel[Any, Any, Any, Any]
    runner: asyncio.Runner

    def inbox(self) -> list[PendingReview]:
        """List what waits on all threads, newest first."""
        return self.runner.run(alist_reviews(self.source))

    def reviews(self, thread_id: str) -> list[PendingReview]:
        """List what waits on one thread."""
        if isinstance(self.source, BaseCheckpointSaver):
            return [review for review in self.inbox() if review.thread_id == thread_id]
        return self.runner.run(apending_reviews(self._graph(thread_id), _config(thread_id)))

    def ledgers(self, thread_id: str) -> list[Ledger]:
        """List the calls of one thread."""
        return self.runner.run(aattempts_of(self._graph(thread_id), _config(thread_id)))

    def answer(self, thread_id: str, review_id: str, decision: Any) -> Any:
        """Answer a review, run its thread on, and return the graph's state."""
        graph, answers = self._graph(thread_id), {review_id: decision}
        return self.runner.run(aresume(graph, _config(thread_id), answers=answers))

    def _graph(self, thread_id: str) -> Any:
        """Return what reads a thread: the graph, the server's graph, or the saver."""
        if not isinstance(self.source, LangGraphClient):
            return self.source
        try:
            thread = self.runner.run(self.source.threads.get(thread_id))
        except APIStatusError as error:
            if error.status_code not in (404, 422):  # 422: a thread id that no server gives
                raise
            raise Stop(ExitCode.NOTHING, f"the server has no thread {thread_id!r}.") from None
        name = (thread["metadata"] or {}).get("graph_id")
        if name is None:
            raise Stop(ExitCode.NOTHING, f"nothing has run on thread {thread_id!r} yet.")
        return RemoteGraph(str(name), client=self.source)


@contextmanager
def opened(url: str | None, db: str | None, graph: str | None) -> Generator[Place]:
    """Open a server, or a database, on an event loop that lasts as long.

    Raises:
        Stop: If not exactly one of them is named, or there is none.
    """
    if (url is None) == (db is None):
        what = "say where to look: either `--url` (a server) or `--db` (a file or a DSN)"
        raise Stop(ExitCode.USAGE, f"{what}, or GRAPH_RETRY_URL or GRAPH_RETRY_DB.")
    stack = AsyncExitStack()
    with asyncio.Runner() as runner:
        try:
            context = get_client(url=url) if db is None else _saver(db)
            source: Any = runner.run(stack.enter_async_context(context))
            if db is not None and graph is not None:
                source = load_graph(graph, source)
            yield Place(source, runner)
        finally:
            runner.run(stack.aclose())


def _saver(db: str) -> Any:
    if re.match(r"postgres(ql)?://|\w+ *=", db):
        savers = optional("langgraph.checkpoint.postgres.aio", "postgres")
        return savers.AsyncPostgresSaver.from_conn_string(db)
    savers = optional("langgraph.checkpoint.sqlite.aio", "sqlite")
    # A saver that is opened on another file would write its tables into it.
    if not Path(db).is_file() or not _has_checkpoints(Path(db)):
        what = f"`--db` is {db!r}, which is no SQLite file with LangGraph checkpoints, nor a DSN"
        raise Stop(ExitCode.USAGE, f"{what} (postgresql://…).")
    return savers.AsyncSqliteSaver.from_conn_string(db)


def _has_checkpoints(path: Path) -> bool:
    query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'checkpoints'"
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        try:
            return connection.execute(query).fetchone() is not None
        except sqlite3.DatabaseError:
            return False


def _config(thread_id: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread_id}}
