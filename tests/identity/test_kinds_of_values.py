"""What kinds of values a function may hold, and what is known about the next call from them."""

import array
import collections
import csv
import enum
import functools
import io
import itertools
import operator
import queue
import re
import threading
import types
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from unittest.mock import Mock
from xml.etree import ElementTree as ET

import httpx
import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver

from graph_retry import ReplayMismatch, retry_llm_call
from graph_retry._core.ground.held import function_parts
from tests.identity.cities import one_node
from tests.identity.opened import (
    OPENED,
    cursor_of,
    database_of,
    done_in_the_future,
    file_of,
    mapped,
    row_of,
)
from tests.loops import thread

PARAMS = {"style": "short"}
CALLS = []


def tell(document, _params):
    """Tell of a document; count the call."""
    CALLS.append(document)
    return f"about {document}"


@dataclass
class Counting:
    """Tells of a document, and counts."""

    document: str
    count: int = 0
    log: list = field(default_factory=list)

    def tell(self, params):
        self.count += 1
        self.log.append(params)
        return tell(self.document, params)


def by(make, read):
    """Return what makes a function that holds a value made of a document, and reads it."""

    def function_of(document):
        held = make(document)
        return lambda params: tell(read(held), params)

    return function_of


class OfThread(threading.local):
    """Holds what only one thread sees."""


class Lent:
    """Is acquired and released as a lock, but tells of a document."""

    def __init__(self, document):
        self.document = document

    def acquire(self):
        return self.document

    def release(self):
        """Do nothing."""


def of_this_thread(document):
    """Return an object that shows the document to this thread alone."""
    held = OfThread()
    held.document = document
    return held


def in_a_thread(document):
    """Return the future of a job that has ended."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(lambda: document)


class WithDatabase:
    """Tells of the document of its database."""

    def __init__(self, document):
        self.rows = database_of(document)

    def tell(self, params):
        return tell(row_of(self.rows), params)


def by_counting(document):
    """Return a function that holds an object whose method changes it."""
    held = Counting(document)
    return lambda params: f"{held.tell(params)}"


def by_counted(document):
    """Return a function that holds a dict that it changes."""
    held = {"id": document, "count": 0}

    def ask(params):
        held["count"] += 1
        return tell(held["id"], params)

    return ask


def by_conversation(document):
    """Return a function that holds a list of messages, which grows."""
    held = [document]

    def ask(params):
        held.append("answer")
        return tell(held[0], params)

    return ask


def by_local_class(document):
    """Return a function that holds an object whose class holds a client and a document."""
    client = threading.Lock()

    class Local:
        def tell(self, params):
            return tell(document, params) if client else None

    held = Local()
    return lambda params: f"{held.tell(params)}"


class Asking:
    """An object that has a method of another object."""

    def __init__(self, document):
        self.told_by = Counting(document).tell

    def ask(self, params):
        return self.told_by(params)


def by_base_class(document):
    """Return a method of an object whose class inherits from one that holds a document."""

    class Base:
        def document(self):
            return document

    class Made(Base):
        def ask(self, params):
            return tell(self.document(), params)

    return Made().ask


def by_exec(document):
    """Return a function of code that is in no file."""
    made = {"tell": tell}
    exec(f"def ask(params): return tell({document!r}, params)", made)
    return made["ask"]


def by_exec_of_globals(document):
    """Return a function of code that is in no file, and that was given a document."""
    made = {"tell": tell, "document": document}
    exec("def ask(params): return tell(document, params)", made)
    return made["ask"]


def by_dispatch(document):
    """Return a function that holds functions which share what they hold."""

    @functools.singledispatch
    def held(params):
        return tell(document, params)

    return lambda params: f"{held(params)}"


class Fetching:
    """An object that fetches what it does not have, which nobody may do for an identity."""

    __slots__ = ("text",)

    def __init__(self, text):
        self.text = text

    def __getattr__(self, name):
        raise RuntimeError("fetched")


def by_chain(document):
    """Return a chain whose prompt has a document."""
    prompt = ChatPromptTemplate.from_messages([("user", document + " {style}")])
    return prompt | RunnableLambda(lambda value: tell(value.to_string()[7], PARAMS))


def deepest(held):
    """Return what lists hold that hold one another."""
    return deepest(held[0]) if isinstance(held, list) else held


first, item = next, operator.itemgetter(0)
TOLD = {
    "counting object": by_counting,
    "counted dict": by_counted,
    "class of a function": by_local_class,
    "chain": by_chain,
    "shared functions": by_dispatch,
    "method of an attribute": lambda each: Asking(each).ask,
    "class of a class": by_base_class,
    "code without a file": by_exec_of_globals,
    "fetching": by(Fetching, lambda held: held.text),
    "namespace": by(lambda each: types.SimpleNamespace(text=each), lambda held: held.text),
    "mapping": by(lambda each: types.MappingProxyType({0: each}), item),
    "array": by(lambda each: array.array("b", each.encode()), lambda held: chr(held[0])),
    "numpy": by(lambda each: np.array([each] * 9), lambda held: str(held[0])),
    "numpy objects": by(lambda each: np.array([each], dtype=object), item),
    "XML": by(lambda each: ET.fromstring(f"<a>{each}</a>"), lambda held: held.text),
    "memory": by(lambda each: memoryview(each.encode()), lambda held: chr(held[0])),
    "match": by(lambda each: re.match(".", each), item),
    "item getter": by(operator.itemgetter, lambda held: held({"a": "a", "b": "b"})),
    "exception": by(ValueError, str),
    "enum": by(lambda each: enum.Enum("Made", {"X": each}).X, lambda held: held.value),
    "document": by(lambda each: Document(page_content=each), lambda held: held.page_content),
    "response": by(lambda each: httpx.Response(200, text=each), lambda held: held.text),
    "mock": by(lambda each: Mock(document=each), lambda held: held.document),
    "bytes": by(lambda each: io.BytesIO(each.encode()), lambda held: held.read().decode()),
    "text": by(io.StringIO, lambda held: held.read()),
    "iterator": by(lambda each: iter([each]), first),
    "file": by(file_of, lambda held: held.read()),
    "mapped file": by(mapped, lambda held: chr(held[0])),
    "long list": by(lambda each: ["x"] * 30_000 + [each], lambda held: held[-1]),
    "long dict": by(lambda each: dict.fromkeys(range(9_000), each), item),
    "deque": by(lambda each: collections.deque([each]), item),
    "default dict": by(lambda each: collections.defaultdict(list, {0: each}), item),
    "future of a thread": by(in_a_thread, lambda held: held.result()),
    "database in memory": by(
        database_of, lambda held: held.execute("SELECT * FROM t").fetchone()[0]
    ),
    "method of an object with a database": lambda each: WithDatabase(each).tell,
    "object with locks": by(
        lambda each: [threading.Condition(), Lent(each)], lambda held: held[1].acquire()
    ),
    "cache": by(lambda each: functools.cache(lambda _: each), lambda held: held(0)),
}
"""Functions that hold data which can be read: the documents are told apart."""
CHAINED = by(lambda each: itertools.chain([each], "z"), first)
if IS_COPIED := hasattr(itertools.chain(), "__setstate__"):  # Until Python 3.13.
    TOLD["chained iterators"] = CHAINED

ASKED = {
    "conversation": (by_conversation, "held[0]"),
    "method of a list": (by(lambda each: [each].pop, lambda held: held()), "held.self[0]"),
    "method of a set": (by(lambda each: {each}.pop, lambda held: held()), "held.self"),
    "queue": (by(lambda each: filled(queue.Queue(), each), lambda held: held.get()), "held.queue"),
    "edited code": (by_exec, "the code differs"),
    "of the thread": (by(of_this_thread, lambda held: held.document), "held"),
    "dict keys": (by(lambda each: {each: 1}.keys(), lambda held: next(iter(held))), "held"),
    "queue of C": (
        by(lambda each: filled(queue.SimpleQueue(), each), queue.SimpleQueue.get),
        "held",
    ),
    "sorted queue": (by(lambda each: filled(queue.PriorityQueue(), each), queue.Queue.get), "held"),
    "generator": (by(lambda each: (text for text in [each]), first), "held"),
    "rows of a file": (by(lambda each: csv.reader([each]), lambda held: next(held)[0]), "held"),
    "rows of a query": (by(cursor_of, lambda held: next(held)[0]), "held"),
    "future": (by(done_in_the_future, lambda held: held.result()), "held"),
    "deep": (by(lambda each: functools.reduce(lambda a, _: [a], range(99), each), deepest), "held"),
} | ({} if IS_COPIED else {"chained iterators": (CHAINED, "held")})
"""Functions that hold data which their calls use up, or which cannot be read, and its name."""

YIELDING = {
    "of the thread",
    "dict keys",
    "queue of C",
    "generator",
    "rows of a file",
    "rows of a query",
    "future",
    "deep",
    "chained iterators",
}


def filled(made, document):
    """Return a queue with a document in it."""
    made.put(document)
    return made


def run_twice(make, documents, restarted):
    """Make a call about the first document and die; then run again, about the second one."""
    CALLS.clear()
    left = iter(documents)

    def node(_):
        document = next(left)
        text = retry_llm_call(make(document), PARAMS, name="ask")
        if not runs:
            runs.append(document)
            raise OSError("killed")
        return {"output": text}

    runs = []
    graph = one_node(node, InMemorySaver())
    with pytest.raises(OSError, match="killed"):
        graph.invoke({}, thread())
    restarted()
    return graph.invoke(None, thread())["output"]


@pytest.fixture(params=["one process", "restarted"])
def restarted(request, monkeypatch):
    """Forget the objects of this process between two runs, or do not; close what was opened."""

    def forget():
        if request.param == "restarted":
            monkeypatch.setattr(function_parts, "_PROCESS", "another")
            function_parts._tokens.clear()

    yield forget
    while OPENED:
        OPENED.pop().close()


@pytest.mark.filterwarnings("ignore:Pickle, copy, and deepcopy support")  # Python 3.12 and 3.13
@pytest.mark.parametrize("kind", TOLD)
def test_data_that_can_be_read_tells_calls_apart(kind, restarted):
    """Protects document b from the result of a, and a from a second call, which would be paid."""
    assert run_twice(TOLD[kind], "ab", restarted) == "about b"
    assert CALLS == ["a", "b"]
    assert run_twice(TOLD[kind], "aa", restarted) == "about a"
    assert CALLS == ["a"]


@pytest.mark.parametrize("kind", ASKED)
def test_data_that_is_used_up_or_unread_is_refused(kind, restarted):
    """Protects document b where nothing tells whether it is a: the value is named, and `key=`."""
    make, named = ASKED[kind]
    pattern = rf"`ask`.*{re.escape(named)}.*`key=`"
    with pytest.raises(ReplayMismatch, match=pattern):
        run_twice(make, "ab", restarted)
    assert CALLS == ["a"]
    if kind in YIELDING:
        with pytest.raises(ReplayMismatch, match=pattern):
            run_twice(make, "aa", restarted)
    else:
        assert run_twice(make, "aa", restarted) == "about a"
    assert CALLS == ["a"]
