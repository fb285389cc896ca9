"""The page and the console list the question of `HumanInTheLoopMiddleware`, and answer it there."""

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver

from graph_retry.desk.cli.app import app
from graph_retry.desk.web import applying
from tests.agents.scripted import MODES, Weather
from tests.agents.test_other_questions import HI, agent, said
from tests.loops import thread
from tests.web.conftest import Desk
from tests.web.forms import Form
from tests.web.test_answers import opened, sent


@pytest.mark.parametrize("asks", MODES)
def test_the_page_edits_a_call_before_it_is_made(asks, monkeypatch):
    """Its words say that nothing was called, and the answer goes back to the other library."""
    monkeypatch.setattr(applying, "HELD_S", 0.0)
    desk, tool = Desk(), Weather()
    desk.graph = agent(tool.tool(is_async=False), "Oslo", mode=asks)
    desk.graph.invoke(HI, thread())
    with desk.client() as client:
        page = opened(client)[1]
        form = Form(page)
        form.choose("edit")
        form.fill("city", "Rome")
        done = sent(client, form).text
    assert "Nothing has been called yet." in page
    assert "Make the call again" not in page
    assert "Your answer is applied." in done
    assert tool.calls == {"Rome": 1}


def console(capsys, *words):
    """Run the command, and return what it prints."""
    with pytest.raises(SystemExit):
        app([str(word) for word in words])
    out, err = capsys.readouterr()
    return out + err


def test_the_console_lists_and_answers_it(tmp_path, capsys, monkeypatch):
    """From a database and the name of the graph, as any review."""
    tool, place = Weather(), str(tmp_path / "threads.sqlite")
    with SqliteSaver.from_conn_string(place) as saver:
        graph = agent(tool.tool(is_async=False), "Oslo", "Lima", saver=saver)
        graph.invoke(HI, thread())
    monkeypatch.setattr("tests.agents.test_other_questions.served", graph, raising=False)
    where = ("--db", place, "--graph", "tests.agents.test_other_questions:served")
    assert "weather, weather (2)" in console(capsys, "inbox", *where)
    assert "Tool execution requires approval" in console(capsys, "show", "1", *where)
    console(capsys, "answer", "1", *where, "edit", 'weather={"city": "Rome"}')
    assert tool.calls == {"Rome": 1, "Lima": 1}
    with SqliteSaver.from_conn_string(place) as saver:
        assert "sunny in Rome" in said(
            graph.copy({"checkpointer": saver}).get_state(thread()).values
        )
