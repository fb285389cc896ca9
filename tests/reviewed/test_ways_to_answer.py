"""A reviewed node is answered like any call: in two tabs, elsewhere, on the page, late, again."""

from collections import Counter

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, StateGraph

import graph_retry
from graph_retry import StaleDecision, edit, respond, threads
from graph_retry.desk.cli.app import app
from graph_retry.desk.web import applying
from graph_retry.nodes import review_nodes
from tests.loops import thread
from tests.reviewed.nodes import Calls, State, waiting
from tests.reviewed.programs import PROGRAMS, played
from tests.web.conftest import Desk
from tests.web.forms import Form
from tests.web.test_answers import opened, sent


def build(mode, calls, **options):
    """Return the builder of a reviewed node that needs a `!`, and of a plain node behind it."""
    fails = lambda state: "!" not in state["prompt"]  # noqa: E731
    update = lambda state: {"out": state["prompt"]}  # noqa: E731
    builder = StateGraph(State)
    builder.add_node("ask", calls.node(mode, "ask", fails, update))
    builder.add_node("end", calls.node(mode, "end", lambda _: False, {"log": ["end"]}))
    builder.add_edge(START, "ask").add_edge("ask", "end")
    return review_nodes(builder, nodes={"ask": {"params": ["prompt"], **options}})


def test_two_tabs_pay_once(mode, checkpointer):
    """The second answer is told that it is late, and nothing runs again."""
    calls = Calls()
    graph = build(mode, calls).compile(checkpointer=checkpointer)
    mode.invoke(graph, {"prompt": "x"}, thread())
    (first,), (second,) = waiting(mode, graph), waiting(mode, graph)
    assert mode.call(first, "answer", edit(prompt="a!"))["out"] == "a!"
    with pytest.raises(StaleDecision):
        mode.call(second, "answer", edit(prompt="b!"))
    assert calls == {"ask": 2, "end": 1}


def test_another_process_answers(mode, tmp_path):
    """Everything is built anew, on what is saved."""
    saver_class, place = (AsyncSqliteSaver if mode.is_async else SqliteSaver), tmp_path / "threads"
    counts = [Calls(), Calls()]
    with mode.opened(saver_class.from_conn_string(str(place))) as saver:
        graph = build(mode, counts[0]).compile(checkpointer=saver)
        mode.invoke(graph, {"prompt": "x"}, thread())
    with mode.opened(saver_class.from_conn_string(str(place))) as saver:
        graph = build(mode, counts[1]).compile(checkpointer=saver)
        state = mode.call(graph_retry, "resume", graph, thread(), edit(prompt="a!"))
    assert (state["out"], counts) == ("a!", [{"ask": 1}, {"ask": 1, "end": 1}])


def test_a_review_that_expires_gets_its_default(mode, checkpointer):
    """The default is an update of the state, and goes on along the edges."""
    calls, given = Calls(), respond({"out": "nobody"})
    late = {"expires_after": 1e-6, "default_decision": given}
    graph = build(mode, calls, **late).compile(checkpointer=checkpointer)
    mode.invoke(graph, {"prompt": "x"}, thread())
    mode.call(threads, "expire_reviews", graph)
    assert mode.call(graph, "get_state", thread()).values["out"] == "nobody"
    assert calls == {"ask": 1, "end": 1}


def test_an_ended_node_is_made_again_with_other_params(mode, checkpointer):
    """A rewind runs the node once, and what follows it."""
    calls = Calls()
    graph = build(mode, calls).compile(checkpointer=checkpointer)
    mode.invoke(graph, {"prompt": "x"}, thread())
    mode.call(graph_retry, "resume", graph, thread(), edit(prompt="a!"))
    state = mode.call(threads, "rewind", graph, thread(), attempt=1, params={"prompt": "b!"})
    assert (state["out"], calls) == ("b!", {"ask": 3, "end": 2})


def test_the_page_and_the_console_answer_it(tmp_path, capsys, monkeypatch):
    """Both show the keys of the state, and the node goes on."""
    monkeypatch.setattr(applying, "HELD_S", 0.0)

    class Sync:
        @staticmethod
        def colour(function):
            return function

    desk, calls = Desk(), Calls()
    builder = build(Sync, calls)
    desk.graph = builder.compile(checkpointer=desk.graph.checkpointer)
    desk.graph.invoke({"prompt": "x"}, thread("t1"))
    with desk.client() as client:
        form = Form(opened(client)[1])
        form.choose("edit")
        form.fill("params.text:/prompt", "a!")
        assert "Nothing else waits." in sent(client, form).text
    assert calls == {"ask": 2, "end": 1}

    place = str(tmp_path / "threads.sqlite")
    with SqliteSaver.from_conn_string(place) as saver:
        graph = builder.compile(checkpointer=saver)
        graph.invoke({"prompt": "x"}, thread())
    monkeypatch.setattr("tests.reviewed.nodes.graph", graph, raising=False)
    where = ("--db", place, "--graph", "tests.reviewed.nodes:graph")
    with pytest.raises(SystemExit):
        app(["answer", "1", *where, "edit", "prompt=a!"])
    assert calls == {"ask": 4, "end": 2}, capsys.readouterr()


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_ends_as_if_no_node_had_failed(mode, checkpointer, name):
    """What surrounds a node works as before, and no node runs too often."""
    program, calls = PROGRAMS[name], Counter()
    builder = program.build(mode.colour, lambda node: calls.update([node]))
    graph = builder.compile(checkpointer=checkpointer)

    state, asked = played(mode, graph, thread(), program)

    assert {key: state[key] for key in program.ends} == program.ends
    assert (calls, asked) == (program.calls, program.asked)
