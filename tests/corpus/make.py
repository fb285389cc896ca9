"""Save the threads of a corpus with this version: `python -m tests.corpus.make FILE.sqlite.xz`.

A corpus is made once for each form in which a version saves threads, and is never made again: later
versions have to continue it.
"""

import asyncio
import lzma
import sqlite3
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from graph_retry import AnswerRefused, aresume, edit, resume
from graph_retry.threads import aresumption, resumption
from tests.corpus.graphs import FORMS

STATES = ("waiting at 1", "waiting at 2", "finished", "answer saved")
GIVEN = {"params": {"n": 0}}


def thread(form: str, state: str) -> dict:
    """Return the config of a thread of the corpus."""
    return {"configurable": {"thread_id": f"{form}, {state}"}}


def make(path: Path) -> None:
    """Save all threads of the corpus, compressed."""
    with TemporaryDirectory() as folder:
        database = Path(folder) / "threads.sqlite"
        save(database)
        path.write_bytes(lzma.compress(database.read_bytes(), preset=9))


def save(path: Path) -> None:
    """Save all threads in a database."""
    with SqliteSaver.from_conn_string(str(path)) as saver:
        for form in FORMS:
            for state in STATES if form != "async" else ():
                graph, config = FORMS[form](saver), thread(form, state)
                graph.invoke(GIVEN, config, durability="sync")
                if state == "waiting at 2":
                    resume(graph, config, edit(n=-1))
                elif state == "finished":
                    resume(graph, config, edit(n=1))
                elif state == "answer saved":
                    with suppress(AnswerRefused), resumption(graph, config, edit(n=1)):
                        pass
    asyncio.run(amake(path))
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA journal_mode=DELETE")
        database.execute("VACUUM")


async def amake(path: Path) -> None:
    """Save the threads of the async form."""
    async with AsyncSqliteSaver.from_conn_string(str(path)) as saver:
        for state in STATES:
            graph, config = FORMS["async"](saver), thread("async", state)
            await graph.ainvoke(GIVEN, config, durability="sync")
            if state == "waiting at 2":
                await aresume(graph, config, edit(n=-1))
            elif state == "finished":
                await aresume(graph, config, edit(n=1))
            elif state == "answer saved":
                with suppress(AnswerRefused):
                    async with aresumption(graph, config, edit(n=1)):
                        pass


if __name__ == "__main__":
    make(Path(sys.argv[1]))
