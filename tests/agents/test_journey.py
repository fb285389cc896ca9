"""An agent on SQLite whose calls go wrong in every way, answered as each client answers."""

import pytest
from langchain_core.messages import HumanMessage

from tests.agents.journey import CITIES, CLIENTS, MODEL_CALLS, TOLD, Report, traveller
from tests.agents.scripted import told
from tests.loops import answer, reviews, thread


@pytest.fixture(params=["sqlite"])
def checkpointer(request, mode, tmp_path):
    """Keep threads on SQLite."""
    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    saver = AsyncSqliteSaver if mode.is_async else SqliteSaver
    with mode.opened(saver.from_conn_string(str(tmp_path / "threads.sqlite"))) as opened:
        yield opened


@pytest.mark.parametrize("client", CLIENTS)
def test_each_client_brings_an_agent_to_its_end(mode, checkpointer, client):
    """Two answers, no call too many, and each tool result at the call it belongs to."""
    log = []
    agent = traveller(log.append, checkpointer=checkpointer)
    state = mode.invoke(agent, {"messages": [HumanMessage("Where to go?")]}, thread())
    for name, decide in zip(("weather", "model"), CLIENTS[client], strict=True):
        (review,) = reviews(mode, agent, thread())
        assert (review.function_name, review.problem) == (name, None)
        state = answer(mode, agent, thread(), decide(review.value))
    assert reviews(mode, agent, thread()) == []
    assert state["structured_response"] == Report(city="Rome", days=3)
    results = told(state)
    del results["report"]
    assert results == TOLD
    assert sorted(call["city"] for call in log if "city" in call) == CITIES
    assert sum("model" in call for call in log) == MODEL_CALLS
