"""Equal calls of one node that only their functions tell apart."""

import functools
import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import ClassVar

import pytest
import tenacity
import urllib3
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver

from graph_retry import AnswerRefused, ReplayMismatch, edit, retry_llm_call
from tests.identity.cities import one_node
from tests.loops import answer, reviews, thread

PARAMS = {"style": "short"}
ROOT = Path(__file__).parents[2]


class Asked:
    """Asks a model about a document, which is in no params; `b` and `c` need an edit."""

    calls: ClassVar[list[str]] = []

    def __init__(self, document):
        self.document, self.lock, self.count = document, threading.Lock(), 0

    def __call__(self, params):
        self.count += 1
        return tell(self.document, params)

    def by_method(self, params):
        return self(params)


def tell(document, params):
    """Tell of a document; count the call."""
    Asked.calls.append(document)
    if document != "a" and params["style"] == "short":
        raise ValueError(f"{document} needs more")
    return f"{document} {params['style']}"


def factory(document):
    """Return a function that holds a document."""
    return lambda params: tell(document, params)


def nested(document):
    """Return a function that holds a function that holds a document."""
    inner = factory(document)
    return lambda params: f"{inner(params)}"


def in_a_dict(document):
    """Return a function that holds a dict with a document, beside a client without content."""
    held, client = {"id": document}, object()
    return lambda params: tell(held["id"], params) if client else None


class Client:
    """A client of the user's own code: an object with a lock, and with a name to read."""

    def __init__(self, document):
        self.document, self.lock = document, threading.Lock()

    def tell(self, params):
        with self.lock:
            return tell(self.document, params)


def by_client(document):
    """Return a function that holds a client of a document."""
    client = Client(document)
    return lambda params: f"{client.tell(params)}"


def by_clients(document):
    """Return a function that holds a list with a client of a document."""
    held = [Client(document), threading.Lock()]
    return lambda params: f"{held[0].tell(params)}"


class Told:
    """Tells of a document that a subclass has."""

    document = ""

    @classmethod
    def tell(cls, params):
        return tell(cls.document, params)


def by_class(document):
    """Return a function that holds an object whose class, made here, holds a document."""

    class Local:
        held = document

        def tell(self, params):
            return tell(self.held, params)

    client = Local()
    return lambda params: f"{client.tell(params)}"


FORMS = {
    "local class": by_class,
    "class": lambda document: type("Made", (Told,), {"document": document}).tell,
    "client": by_client,
    "clients": by_clients,
    "factory": factory,
    "nested": nested,
    "dict": in_a_dict,
    "default": lambda document: lambda params, held=document: tell(held, params),
    "partial": lambda document: functools.partial(tell, document),
    "method": lambda document: Asked(document).by_method,
    "object": Asked,
}
RIGHT = {"a": "a short", "b": "b B", "c": "c C"}


def node_of(make, done, orders, failing=None):
    """Return a node that asks about documents, in another order at each run, but for those done."""

    def node(_):
        for document in next(orders):
            if document not in done:
                done[document] = retry_llm_call(make(document), PARAMS, name="ask")
                if document == failing:
                    raise OSError("killed")
        return {"output": dict(done)}

    return node


def answer_all(graph, mode):
    """Answer each open question by the document that its error names; return the number asked."""
    for count in range(9):
        open_ = reviews(mode, graph, thread())
        if not open_:
            return count
        document = open_[0].value["error"].split()[-3]
        try:
            answer(
                mode, graph, thread(), answers={open_[0].review_id: edit(style=document.upper())}
            )
        except AnswerRefused:
            continue  # In another order, another document asks before this one is reached.
    raise AssertionError(open_)


@pytest.mark.parametrize("order", ["abc", "cba", "bca"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("mode", ["sync"], indirect=True)
def test_documents_that_are_done_are_skipped(mode, form, order):
    """Protects each document's result and edit: none is given to another document, none repeats."""
    Asked.calls.clear()
    orders = iter(["abc", *[order] * 9])
    graph = one_node(node_of(FORMS[form], {}, orders), InMemorySaver())
    mode.invoke(graph, {}, thread())

    answer_all(graph, mode)

    assert mode.call(graph, "get_state", thread()).values["output"] == RIGHT
    assert sorted(Asked.calls) == ["a", "b", "b", "c", "c"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("mode", ["sync"], indirect=True)
def test_a_document_is_done_when_the_node_dies(mode, form):
    """Protects the second document from the result of the first, the only one that is saved."""
    Asked.calls.clear()
    done, orders, checkpointer = {}, iter(["abc"] * 9), InMemorySaver()
    with pytest.raises(OSError, match="killed"):
        mode.invoke(
            one_node(node_of(FORMS[form], done, orders, failing="a"), checkpointer), {}, thread()
        )
    graph = one_node(node_of(FORMS[form], done, orders), checkpointer)
    mode.invoke(graph, None, thread())

    answer_all(graph, mode)

    assert mode.call(graph, "get_state", thread()).values["output"] == RIGHT
    assert sorted(Asked.calls) == ["a", "b", "b", "c", "c"]


@pytest.mark.parametrize(
    "form",
    ["nested", *(pytest.param(form, marks=pytest.mark.long) for form in ("partial", "object"))],
)
@pytest.mark.slow
def test_another_process_continues_in_another_order(tmp_path, form):
    """Protects a document's state where nothing of the first process is left."""
    told = []
    for order in ("abc", "cba"):
        done = subprocess.run(
            [sys.executable, "-m", "tests.identity.test_functions_apart", form, order],
            cwd=ROOT,
            env={**os.environ, "DATABASE": str(tmp_path / "threads.sqlite")},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        told.append(json.loads(done.stdout))

    assert told[1]["output"] == RIGHT
    assert sorted([*told[0]["calls"], *told[1]["calls"]]) == ["a", "b", "b", "c", "c"]


def held_object():
    """Return a function that holds a client with locks, whose state nobody can compare."""
    client = urllib3.PoolManager()
    return lambda params: f"{params['style']} {len(client.pools)}"


@pytest.mark.parametrize("mode", ["sync"], indirect=True)
def test_what_cannot_be_told_apart_is_refused(mode, checkpointer):
    """Two functions whose objects have no content to save: refused before the second is called."""
    graph = one_node(
        lambda _: {"output": [retry_llm_call(held_object(), PARAMS) for _ in "ab"]}, checkpointer
    )

    with pytest.raises(ValueError, match=r"hold different objects \(`client`\).* `key=`"):
        mode.invoke(graph, {}, thread())


def retried():
    """Return a function in an object of a library, which keeps data of this thread for itself."""

    @tenacity.retry(stop=tenacity.stop_after_attempt(2))
    def ask(params):
        return tell("a", params)

    return ask


@pytest.mark.parametrize(
    "make", [held_object, retried, lambda: Asked("a"), lambda: Asked("a").by_method]
)
@pytest.mark.parametrize("mode", ["sync"], indirect=True)
def test_one_call_in_a_node_needs_no_key(mode, checkpointer, make, caplog):
    """Functions with locks and counters are made anew, and continue their finished call."""

    def node(_):
        first = retry_llm_call(make(), PARAMS, name="first")
        return {"output": [first, retry_llm_call(lambda params: tell("b", params), PARAMS)]}

    Asked.calls.clear()
    graph = one_node(node, checkpointer)
    mode.invoke(graph, {}, thread())
    finished = list(Asked.calls)
    answer(mode, graph, thread(), edit(style="B"))

    assert mode.call(graph, "get_state", thread()).values["output"][1] == "b B"
    assert Asked.calls == [*finished, "b"]
    assert not [each for each in caplog.records if each.levelname == "WARNING"]


@pytest.mark.parametrize("shared", [Asked("a"), Asked("a").by_method, factory("a"), tell])
@pytest.mark.parametrize("mode", ["sync"], indirect=True)
def test_one_function_is_called_several_times(mode, checkpointer, shared, caplog):
    """Best of three: a function that is the same in all is called as often as the node says."""
    function = functools.partial(shared, "a") if shared is tell else shared
    Asked.calls.clear()
    graph = one_node(
        lambda _: {"output": [retry_llm_call(function, PARAMS) for _ in "abc"]}, checkpointer
    )

    assert mode.invoke(graph, {}, thread())["output"] == ["a short"] * 3
    assert Asked.calls == ["a"] * 3
    assert not [each for each in caplog.records if each.levelname == "WARNING"]


@pytest.mark.parametrize("mode", ["sync"], indirect=True)
def test_a_value_that_changes_from_run_to_run_is_told(mode, checkpointer, caplog):
    """A held time makes a new call, as one in the params does; the value is named with `key=`."""
    times = iter(range(9))

    def node(_):
        at = next(times)
        return {"output": retry_llm_call(lambda params: tell(f"b {at}", params), PARAMS)}

    graph = one_node(node, checkpointer)
    mode.invoke(graph, {}, thread())

    with pytest.raises(AnswerRefused, match=r"they differ in `at`.*`key=`"):
        answer(mode, graph, thread(), edit(style="B"))
    (told,) = [each.message for each in caplog.records if each.levelname == "WARNING"]
    assert "they differ in `at`" in told


TITLE, SUMMARY = (lambda params: f"title {params}"), (lambda params: f"summary {params}")


@pytest.mark.parametrize("mode", ["sync"], indirect=True)
def test_functions_whose_code_differs_are_apart(mode, checkpointer):
    """Two lambdas of one name: the second does not get the result of the first, a skipped one."""
    left = [TITLE, SUMMARY]

    def node(_):
        while left:
            text = retry_llm_call(left.pop(0), "x")
            if text == "title x":
                raise OSError("killed")
        return {"output": text}

    graph = one_node(node, checkpointer)
    with pytest.raises(OSError, match="killed"):
        mode.invoke(graph, {}, thread())

    assert mode.invoke(graph, None, thread())["output"] == "summary x"


FILE = Path(tempfile.mkdtemp()) / "asking.py"


def compiled(text, version, file=FILE):
    """Return a function as one version of a file defines it."""
    made = {"tell": tell}
    FILE.write_text(f"{version!r}")
    code = f"def ask(params): return tell({text!r}, params) + {version!r}"
    exec(compile(code, file, "exec"), made)
    return made["ask"]


@pytest.mark.parametrize("mode", ["sync"], indirect=True)
def test_an_edited_function_continues_its_call(mode, checkpointer):
    """A new version of the only function of a name finds its waiting call."""
    versions = iter(["", " new"])
    graph = one_node(
        lambda _: {"output": retry_llm_call(compiled("b", next(versions)), PARAMS)}, checkpointer
    )
    mode.invoke(graph, {}, thread())

    assert answer(mode, graph, thread(), edit(style="B"))["output"] == "b B new"


@pytest.mark.parametrize("mode", ["sync"], indirect=True)
def test_two_edited_functions_of_one_name_are_refused(mode, checkpointer):
    """Which of two saved calls an edited function continues is not known: nothing is called."""
    Asked.calls.clear()
    versions = iter(["", " new", ""])

    def node(_):
        version = next(versions)
        return {"output": [retry_llm_call(compiled(text, version), PARAMS) for text in "ab"]}

    graph = one_node(node, checkpointer)
    mode.invoke(graph, {}, thread())

    with pytest.raises(ReplayMismatch, match=r"`ask` was called 2 times .*`key=`"):
        answer(mode, graph, thread(), edit(style="B"))
    assert Asked.calls == ["a", "b"]
    assert mode.invoke(graph, None, thread())["output"] == ["a short", "b B"]


def main(form: str, order: str) -> None:
    """Run a thread in this process, to its first question or, if it has one, to its end."""
    from tests.conftest import Mode

    mode = Mode("sync", None)
    with SqliteSaver.from_conn_string(os.environ["DATABASE"]) as saver:
        graph = one_node(node_of(FORMS[form], {}, iter([order] * 9)), saver)
        if reviews(mode, graph, thread()):
            answer_all(graph, mode)
        else:
            mode.invoke(graph, {}, thread())
        output = graph.get_state(thread()).values.get("output")
        sys.stdout.write(json.dumps({"output": output, "calls": Asked.calls}))


if __name__ == "__main__":
    main(*sys.argv[1:])
