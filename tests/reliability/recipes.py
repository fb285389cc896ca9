"""Run a recipe of the docs, kill it with SIGKILL at moments of its life, run it again, and compare.

Usage: python -m tests.reliability.recipes PAGES MOST; pages are names in `docs/howto`. The moments
are the first and the last model call, and MOST others: before and after a call or a write.

The page's own code is run, statement by statement as a reader pastes it. Two things differ, as
docs/howto/index.md says for a program that may run twice: threads that the page keeps in memory are
kept in a file, and an input is given to a new thread only (`start=`). Every process is a fork.
"""

import ast
import io
import json
import os
import re
import signal
import sqlite3
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from langgraph.checkpoint import memory, sqlite
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.config import get_config

import graph_retry._core.loop.call as loop
from graph_retry import GraphRetryError, StaleDecision, aresume, resume
from graph_retry.threads import list_reviews
from tests.reliability.forking import ROOT, end, fork
from tests.reliability.journal import Journal, read
from tests.test_docs import python_blocks

_KILLED = -signal.SIGKILL
_KEY = re.compile(r"\b[0-9a-f]{24}\b")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Life:
    """One process: it notes its calls, and kills itself at a moment."""

    def __init__(self, log: Path, dies_at: int | None) -> None:
        self._journal, self._dies_at, self.moments = Journal(log), dies_at, 0

    def note(self, event: str, **told: Any) -> None:
        """Pass a moment at which the process may be killed."""
        self._journal.note(event, **told)
        if self.moments == self._dies_at:
            os.kill(os.getpid(), signal.SIGKILL)
        self.moments += 1


def telling(life: Life, plain: type[Any]) -> Any:
    """Return a saver class that notes its writes, for sync and async graphs."""

    class Telling(plain):  # type: ignore[misc]
        def put(self, *given: Any) -> Any:
            life.note("before put")
            done = super().put(*given)
            life.note("after put")
            return done

        def put_writes(self, *given: Any) -> None:
            life.note("before writes")
            super().put_writes(*given)
            life.note("after writes", saved=_KEY.findall(str(given)))

        async def aget_tuple(self, *given: Any) -> Any:
            return self.get_tuple(*given)

        async def aput(self, *given: Any) -> Any:
            return self.put(*given)

        async def aput_writes(self, *given: Any) -> None:
            self.put_writes(*given)

        async def alist(self, *given: Any, **more: Any) -> Any:
            for each in self.list(*given, **more):
                yield each

    Telling.__name__ = plain.__name__
    return Telling


class _Started(ast.NodeTransformer):
    """Replaces `graph.invoke(given, config)` by `resume(graph, config, start=given)`."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.Call(
                func=ast.Attribute(value=graph, attr="invoke" | "ainvoke" as name),
                args=[given, config],
            ) if not isinstance(given, ast.Call):
                how = ast.Name("_resume" if name == "invoke" else "_aresume", ast.Load())
                return ast.Call(how, [graph, config], [ast.keyword("start", given)])
        return node


def program(page: str) -> list[Any]:
    """Return the code of a page's programs, one for each statement."""
    tree = ast.fix_missing_locations(_Started().visit(ast.parse(code_of(page))))
    return [compile(ast.Module([each], []), page, "exec") for each in tree.body]


def code_of(page: str) -> str:
    """Return the programs of a page that run without a key, those in its files included."""
    text = (ROOT / "docs" / "howto" / f"{page}.md").read_text()
    files = re.findall(r'--8<-- "(examples/\w+\.py)"', text)
    blocks = [block.code for block in python_blocks(text) if not block.needs]
    return "\n".join([(ROOT / file).read_text() for file in files] + blocks)


def live(page: str, folder: Path, life: Life, *, is_first: bool) -> None:
    """Run a page from its first line to its last.

    In a later run, a line may find that nothing is left to answer, and others may need its result.
    """
    os.chdir(folder)
    sys.stdout = io.StringIO()
    kept, told_context = telling(life, SqliteSaver), loop._context
    numbers = iter(range(1000))

    def in_a_file() -> Any:
        return kept(sqlite3.connect(f"memory{next(numbers)}.sqlite", check_same_thread=False))

    def context(limits: Any, record: Any) -> Any:
        if "thread_id" in get_config()["configurable"]:  # nothing else continues
            life.note("call", key=record["idempotency_key"])
        return told_context(limits, record)

    async def called(*given: Any, **more: Any) -> Any:
        done = await plain_call(*given, **more)
        life.note("called")
        return done

    plain_call, loop.call, loop._context = loop.call, called, context
    memory.InMemorySaver = in_a_file  # type: ignore[misc,assignment]
    sqlite.SqliteSaver = kept  # type: ignore[misc]
    module = ModuleType("__main__")
    sys.modules["__main__"] = module
    vars(module).update(_resume=resume, _aresume=aresume)
    for statement in program(page):
        try:
            exec(statement, vars(module))
        except Exception as error:
            told = isinstance(error, GraphRetryError) and not isinstance(error, StaleDecision)
            if is_first or told:
                raise


def stands(folder: Path) -> dict[str, Any]:
    """Return what came of each thread: its values, or that it waits."""
    found: dict[str, Any] = {}
    for path in sorted(folder.glob("*.sqlite")):
        with SqliteSaver.from_conn_string(str(path)) as saver:
            waiting = {review.thread_id for review in list_reviews(saver)}
            for saved in saver.list(None):
                place = saved.config["configurable"]
                if not place["checkpoint_ns"]:
                    values = {**saved.checkpoint["channel_values"], "attempts": None}
                    told = _UUID.sub("", json.dumps(values, default=str, sort_keys=True))
                    name = f"{path.name} {place['thread_id']}"
                    found.setdefault(name, "waits" if place["thread_id"] in waiting else told)
    return found


class Run:
    """The processes of one page in one folder."""

    def __init__(self, page: str, folder: Path) -> None:
        folder.mkdir()
        self.page, self.folder, self.log = page, folder, folder / "journal"

    def process(self, dies_at: int | None = None) -> int:
        """Run a process to its end; return how it ended."""
        life, is_first = Life(self.log, dies_at), not self.log.exists()
        errors = self.folder / "errors.log"
        code = end(fork(partial(live, self.page, self.folder, life, is_first=is_first), errors))
        if code not in (0, _KILLED):
            raise RuntimeError(errors.read_text()[-3000:])
        return code

    def keys(self) -> Counter[str]:
        """Count the calls of each key."""
        return Counter(event["key"] for event in read(self.log) if event["event"] == "call")


def faults(calm: Run, dead: Run, moment: int) -> Iterator[str]:
    """Kill a run at a moment, run it again, and tell what was wrong."""
    if dead.process(moment) != _KILLED:
        yield "it was not killed"
    told = read(dead.log)
    at = f"{moment} ({told[-1]['event']})"
    saved = {key for event in told for key in event.get("saved", ())}
    dead.process()
    after = stands(dead.folder)
    again = {key: times for key, times in dead.keys().items() if times > 1}
    if any(key in saved or times > 2 for key, times in again.items()):
        yield f"{at}: paid again: {again}"
    if len(dead.keys()) > len(calm.keys()):
        yield f"{at}: {len(dead.keys())} calls instead of {len(calm.keys())}"
    for name, end_ in stands(calm.folder).items():
        if after.get(name) not in ("waits", end_):
            yield f"{at}: {name} is {after.get(name)} instead of {end_}"


def played(page: str, most: int, folder: Path) -> dict[str, Any]:
    """Run a page twice, then killed at its moments and once more; tell what was found."""
    folder.mkdir()
    for statement in ast.walk(ast.parse(code_of(page))):
        if isinstance(statement, ast.Import | ast.ImportFrom):  # once, and not in each fork
            exec(compile(ast.Module([statement], []), page, "exec"), {})
    calm = Run(page, folder / "calm")
    calm.process()
    events, calls, end_ = read(calm.log), calm.keys(), stands(calm.folder)
    calm.process()
    wrong = [f"the second run called {calm.keys() - calls}"] * (calm.keys() != calls)
    wrong += [f"the second run made {stands(calm.folder)} of {end_}"] * (
        stands(calm.folder) != end_
    )
    at_calls = [number for number, event in enumerate(events) if event["event"] == "call"]
    evenly = range(0, len(events), -(-len(events) // most))
    chosen = sorted({at_calls[0], at_calls[-1], *evenly})
    for moment in chosen:
        wrong += faults(calm, Run(page, folder / str(moment)), moment)
    return {"calls": len(calls), "killed": len(chosen), "wrong": wrong}


def main(pages: str, most: str) -> None:
    """Play pages and write what was found."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as path:
        found = {page: played(page, int(most), Path(path) / page) for page in pages.split(",")}
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
