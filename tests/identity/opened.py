"""What is opened for a document: a database, a file, a query, a future."""

import asyncio
import mmap
import sqlite3
import tempfile
from pathlib import Path

FILES = Path(tempfile.mkdtemp())
OPENED = []


def database_of(document):
    """Return a database in memory that has the document."""
    held = sqlite3.connect(":memory:", check_same_thread=False)
    OPENED.append(held)
    held.execute("CREATE TABLE t AS SELECT ?", (document,))
    return held


def row_of(held):
    """Return the document of such a database."""
    return held.execute("SELECT * FROM t").fetchone()[0]


def file_of(document):
    """Return a file of a document, opened."""
    path = FILES / document
    path.write_text(document)
    OPENED.append(path.open())
    return OPENED[-1]


def mapped(document):
    """Return a file of a document in memory."""
    with file_of(document) as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def cursor_of(document):
    """Return the rows of a query for a document."""
    OPENED.append(sqlite3.connect(":memory:"))
    return OPENED[-1].execute("select ?", (document,))


def done_in_the_future(document):
    """Return the future of a document."""
    loop = asyncio.new_event_loop()
    made = loop.create_future()
    made.set_result(document)
    loop.close()
    return made
