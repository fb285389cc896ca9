"""Open and read a source of reviews: a LangGraph server, or a database (perhaps with its graph)."""

from __future__ import annotations

import asyncio
import importlib
import re
import shlex
import sqlite3
import stat
import sys
from collections.abc import Callable, Coroutine, Generator, Mapping
from contextlib import AsyncExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import StateGraph
from langgraph.pregel import Pregel
from langgraph.pregel.remote import RemoteGraph
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import APIStatusError

from graph_retry import PendingReview, apending_reviews, aresume
from graph_retry.desk.cli.exits import ExitCode, Stop
from graph_retry.desk.following import Running
from graph_retry.ledger import Ledger
from graph_retry.plugins import as_repr, error_text
from graph_retry.reviews import Decision, aclosed_by
from graph_retry.threads import (
    Inbox,
    Standing,
    aattempts_of,
    alist_reviews,
    astanding,
    is_rejection,
)

Tell = Callable[[str], object]
"""A function that shows a line about a run, instead of the line before."""

_QUIET_S, _TOLD_S = 1.0, 0.5
"""The seconds before the first line about a run, and between two lines."""


@dataclass(frozen=True)
class Source:
    """An opened server or database, with sync methods.

    Each method runs an async function, because async functions work for every graph.
    """

    opened: LangGraphClient | BaseCheckpointSaver[Any] | Pregel[Any, Any, Any, Any]
    runner: asyncio.Runner

    @property
    def can_answer(self) -> bool:
        """Whether this source can resume threads. For a database, this needs the graph."""
        return not isinstance(self.opened, BaseCheckpointSaver)

    def require_graph(self) -> None:
        """Refuse a database without its graph, because it cannot resume threads."""
        if not self.can_answer:
            what = (
                "the graph is needed to continue a thread: name it with `--graph module:variable`."
            )
            raise Stop(ExitCode.USAGE, what)

    def inbox(self, labels: Mapping[str, str] | None = None) -> list[PendingReview]:
        """List the open reviews of all threads with these labels, newest first."""
        return self.runner.run(alist_reviews(self.opened, labels=labels))

    def reviews(self, thread_id: str) -> list[PendingReview]:
        """List the open reviews of one thread, including deferred ones."""
        if not self.can_answer:
            return [review for review in self._open() if review.thread_id == thread_id]
        return self.runner.run(apending_reviews(self._graph(thread_id), _config(thread_id)))

    def _open(self) -> list[PendingReview]:
        """List the open reviews of all threads, including deferred ones."""
        return self.runner.run(Inbox(self.opened).areviews())

    def ledgers(self, thread_id: str) -> list[Ledger]:
        """List the ledgers of one thread."""
        return self.runner.run(aattempts_of(self._graph(thread_id), _config(thread_id)))

    def answer(
        self,
        thread_id: str,
        answers: Mapping[str, Decision],
        by: str | None,
        tell: Tell | None = None,
    ) -> Any:
        """Resume a thread with answers by review id, and return the graph's state."""
        signed, here = {"by": by} if by else {}, {"channel": "terminal"}
        sent: Any = {name: {**signed, **each, **here} for name, each in answers.items()}
        try:
            return self._run(thread_id, sent, tell)
        except Exception as error:
            if not is_rejection(error, answers.values()):
                raise
            return None

    def thread(self, given: str, *, exactly: bool = False) -> str:
        """Return the whole id of a thread, from its id or the beginning of its id.

        Args:
            given: The typed text.
            exactly: Whether the text must be a whole id, as in scripts that nobody watches.

        Raises:
            Stop: If the ids of several waiting threads begin with this text. With `exactly`, if the
                text is only the beginning of an id. If the database has no such thread.
        """
        if self._exists(given):
            return given
        waiting = {review.thread_id or "" for review in self._open()}
        found = sorted(name for name in waiting if name.startswith(given))
        if len(found) == 1 and not exactly:
            return found[0]
        if found:
            names = ", ".join(found[:10]) + (", …" if len(found) > 10 else "")
            raise Stop(
                ExitCode.NOTHING, f"no thread {as_repr(given)}: give a whole id, such as {names}."
            )
        if not isinstance(self.opened, LangGraphClient):
            raise Stop(ExitCode.NOTHING, f"the database has no thread {as_repr(given)}.")
        return given  # The server is asked again, and its error is told.

    def _exists(self, thread_id: str) -> bool:
        if isinstance(self.opened, LangGraphClient):
            with suppress(Stop):
                return bool(self._graph(thread_id))
            return False
        saver = Inbox(self.opened).saver
        return bool(saver and self.runner.run(saver.aget_tuple(_config(thread_id))))

    def go_on(self, thread_id: str, tell: Tell | None = None) -> Any:
        """Continue a thread from its last checkpoint, without an answer. Return its state."""
        return self._run(thread_id, None, tell)

    def _run(self, thread_id: str, answers: Any, tell: Tell | None) -> Any:
        """Run a thread. After Ctrl-C, say what is saved and how to continue the thread."""
        graph, config, running = self._graph(thread_id), _config(thread_id), Running()
        run = (
            running.run(graph, config, answers)
            if isinstance(graph, Pregel)
            else aresume(graph, config, answers=answers)
        )
        try:
            return self.runner.run(_told(run, running, tell))
        except KeyboardInterrupt:
            saved = filter(None, (self.closed_by(thread_id, name) for name in answers or ()))
            who = "; ".join(dict.fromkeys(saved))
            if not who and (answers or self.reviews(thread_id)):
                raise
            answer = who and f"Thread {as_repr(thread_id)} has its answer ({who}). "
            raise KeyboardInterrupt(
                f"interrupted. {answer}{self.standing(thread_id).told}"
            ) from None

    def closed_by(self, thread_id: str, review_id: str | None = None) -> str:
        """Say who or what closed a review (default: the last review); "" if unknown."""
        return self.runner.run(aclosed_by(self._graph(thread_id), _config(thread_id), review_id))

    def standing(self, thread_id: str) -> Standing:
        """Describe the state of a thread. This needs the graph."""
        if not self.can_answer:
            return Standing("", "", is_unfinished=False)
        command = f"`graph-retry continue {shlex.quote(thread_id)}`"
        return self.runner.run(astanding(self._graph(thread_id), _config(thread_id), command))

    def _graph(self, thread_id: str) -> Any:
        """Return the reader of a thread: a graph, a server's graph or a checkpointer."""
        if not isinstance(self.opened, LangGraphClient):
            return self.opened
        try:
            thread = self.runner.run(self.opened.threads.get(thread_id))
        except APIStatusError as error:
            if error.status_code not in (404, 422):  # 422 means that the thread id is not a UUID.
                raise
            raise Stop(
                ExitCode.NOTHING, f"the server has no thread {as_repr(thread_id)}."
            ) from None
        name = (thread["metadata"] or {}).get("graph_id")
        if name is None:
            raise Stop(ExitCode.NOTHING, f"nothing has run on thread {as_repr(thread_id)} yet.")
        return RemoteGraph(str(name), client=self.opened)


async def _told(run: Coroutine[Any, Any, Any], running: Running, tell: Tell | None) -> Any:
    """Await a run. If it takes long, report its progress regularly."""

    async def telling(tell: Tell) -> None:
        await asyncio.sleep(_QUIET_S)
        while True:
            tell(str(running))
            await asyncio.sleep(_TOLD_S)

    teller = asyncio.ensure_future(telling(tell)) if tell else None
    try:
        return await run
    finally:
        if teller:
            teller.cancel()


@contextmanager
def open_source(url: str | None, db: str | None, graph: str | None) -> Generator[Source]:
    """Open a server or a database, together with an event loop for it.

    Raises:
        Stop: If `url` and `db` are both given or both missing, or if the database does not exist.
    """
    if (url is None) == (db is None):
        what = "give the source: either `--url` (a server) or `--db` (a file or a DSN)"
        raise Stop(ExitCode.USAGE, f"{what}, or GRAPH_RETRY_URL or GRAPH_RETRY_DB.")
    stack = AsyncExitStack()
    with asyncio.Runner() as runner:
        try:
            context = get_client(url=_address(url)) if db is None else _saver(db)
            source: Any = runner.run(stack.enter_async_context(context))
            if db is not None and graph is not None:
                source = load_graph(graph, source)
            yield Source(source, runner)
        finally:
            runner.run(stack.aclose())


def _address(url: str | None) -> str | None:
    if url is None or re.match("https?://", url):
        return url
    raise Stop(
        ExitCode.USAGE, f"`--url` is {as_repr(url)}: write it with http:// or https:// before it."
    )


def _saver(db: str) -> Any:
    if re.match(r"postgres(ql)?://|\w+ *=", db):
        return _savers("postgres").AsyncPostgresSaver.from_conn_string(db)
    savers = _savers("sqlite")
    if why := _why_unusable(Path(db)):
        how = "Give a SQLite file with LangGraph checkpoints, or a DSN (postgresql://…)."
        raise Stop(ExitCode.USAGE, f"`--db` is {as_repr(db)}, {why}. {how}")
    return savers.AsyncSqliteSaver.from_conn_string(db)


def _savers(extra: str) -> Any:
    try:
        return importlib.import_module(f"langgraph.checkpoint.{extra}.aio")
    except ModuleNotFoundError:
        what = f"`--db` needs the extra `{extra}` for this: graph-retry[{extra}]."
        raise Stop(ExitCode.USAGE, what) from None


def _why_unusable(path: Path) -> str:
    """Say why a file is not a database with checkpoints; "" if it is one.

    A file without checkpoints is refused, because a saver would write its tables into the file.
    """
    query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'checkpoints'"
    try:
        if stat.S_ISDIR(path.stat().st_mode):
            return "which is a folder"
        place = f"{path.resolve().as_uri()}?mode=ro"
        with closing(sqlite3.connect(place, uri=True)) as connection:
            found = connection.execute(query).fetchone()
    except OSError as error:
        return f"which cannot be opened ({error.strerror})"
    except sqlite3.OperationalError as error:
        needs = "SQLite needs to write to the file and its folder, even to read"
        return f"which SQLite cannot open ({error_text(error)}; {needs})"
    except sqlite3.DatabaseError as error:
        return f"which is not a SQLite database ({error_text(error)})"
    return "" if found else "which has no table of LangGraph checkpoints"


def _config(thread_id: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread_id}}


def load_graph(name: str, saver: BaseCheckpointSaver[Any]) -> Pregel[Any, Any, Any, Any]:
    """Import a graph from `module:variable` or `file.py:variable`, and set its checkpointer.

    Raises:
        Stop: If the variable does not exist, or is not a graph.
    """
    graph = load_object(name, "--graph")
    if isinstance(graph, StateGraph):
        return cast("StateGraph[Any]", graph).compile(checkpointer=saver)
    if isinstance(graph, Pregel):
        own: Pregel[Any, Any, Any, Any] = cast("Any", graph).copy({"checkpointer": saver})
        return own
    came = f"{as_repr(name.rpartition(':')[2])} has the type {type(graph).__name__}"
    what = f"{came}, not a graph, a StateGraph or an @entrypoint"
    raise _refused("--graph", name, what)


def load_object(name: str, option: str) -> Any:
    """Import an object from `module:variable` or `path/to/file.py:variable`, for an option.

    Raises:
        Stop: If the variable does not exist.
    """
    module_or_file, _, variable = name.rpartition(":")
    path = Path(module_or_file)
    is_file = path.suffix == ".py"
    module, folder = (path.stem, path.resolve().parent) if is_file else (module_or_file, Path.cwd())
    sys.path.insert(0, str(folder))  # `python file.py` and `python -m module` add their folder.
    if not (module_or_file and variable):
        raise _refused(option, name, "it names no variable")
    try:
        return getattr(importlib.import_module(module), variable)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise _refused(
            option, name, f"there is no module {as_repr(error.name)} in {folder}"
        ) from None
    except AttributeError:
        raise _refused(option, name, f"the module has no {as_repr(variable)}") from None


def _refused(option: str, name: str, why: str) -> Stop:
    what = (
        f"`{option}` is {as_repr(name)}, but {why}: give module:variable or "
        "path/to/file.py:variable."
    )
    return Stop(ExitCode.USAGE, what)
