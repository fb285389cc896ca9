"""A real `langgraph dev` over HTTP, driven through `RemoteGraph` with the same verbs as locally."""

import asyncio
import uuid

import pytest
from langgraph.pregel.remote import RemoteGraph
from langgraph_sdk import get_client, get_sync_client

from graph_retry import (
    StaleDecision,
    apending_reviews,
    aresume,
    edit,
    pending_reviews,
    reject,
    respond,
    resume,
)
from graph_retry.history import attempts_of
from graph_retry.rewind import rewind
from tests.dev_server import dev_server

SERVED = '''
"""Graphs for the tests."""
from langgraph.graph import START, StateGraph
from typing import Any
from typing_extensions import TypedDict
from pydantic import BaseModel
from graph_retry import create_retry_node, retry_llm_call


class P(BaseModel):
    """What a person may change."""

    n: int
    note: str = "keep"


class State(TypedDict, total=False):
    params: P
    output: Any
    status: str
    attempts: list[Any]


def model(params):
    n = params.n
    if n < 2:
        raise ValueError(f"{n} is too small")
    return f'{{"n": {n}}}'


def function_form(state):
    params = P.model_validate(state["params"])
    return {"output": retry_llm_call(model, params, output=dict[str, int], name="count")}


def build(node):
    builder = StateGraph(State)
    builder.add_node("ask", node)
    builder.add_edge(START, "ask")
    return builder.compile()


node = build(create_retry_node(model, P, output=dict[str, int], name="count"))
function = build(function_form)
'''


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Serve one graph of each form."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "served.py").write_text(SERVED)
    graphs = {form: f"./served.py:{form}" for form in ("node", "function")}
    with dev_server(folder, graphs) as url:
        yield url


def new_thread():
    """Return the config of a thread of its own."""
    return {"configurable": {"thread_id": str(uuid.uuid4())}}


def test_a_remote_review_is_answered_by_id(server, form):
    """Ask, answer badly, edit twice, finish: the same verbs over HTTP."""
    with get_sync_client(url=server) as client:
        converse(RemoteGraph(form, sync_client=client), new_thread())


def converse(graph, config):
    graph.invoke({"params": {"n": 0}}, config)
    (review,) = pending_reviews(graph, config)
    assert (review.attempt, review.params) == (1, {"n": 0, "note": "keep"})

    resume(graph, config, edit(n="many"))
    (again,) = pending_reviews(graph, config)
    assert again.attempt == 1
    assert "n" in again.problem

    resume(graph, config, edit(n="1"))
    (second,) = pending_reviews(graph, config)
    assert (second.attempt, second.params["n"]) == (2, 1)

    state = resume(graph, config, edit(n=2))
    assert state["output"] == {"n": 2}
    with pytest.raises(StaleDecision):
        resume(graph, config, edit(n=3))


def test_a_remote_call_is_rewound(server, form):
    """While it waits going back is an answer; when it is over, its ledger in state is used."""
    with get_sync_client(url=server) as client:
        graph, config = RemoteGraph(form, sync_client=client), new_thread()
        graph.invoke({"params": {"n": 0}}, config)
        resume(graph, config, edit(n=1))
        if form == "node":
            (ledger,) = attempts_of(graph, config)
            assert [ledger.params_at(number)["n"] for number in (1, 2)] == [0, 1]
        state = rewind(graph, config, attempt=2, params={"n": 2})
        assert state["output"] == {"n": 2}
        if form == "function":
            with pytest.raises(ValueError, match="made 0 calls"):
                rewind(graph, config, attempt=1, params={"n": 3})
            return
        for change, made in (
            ({"attempt": 2, "params": {"n": 3}, "reason": "three"}, [0, 3]),
            ({"attempt": 1, "params": {"n": 4}}, [4]),
            ({"attempt": 1, "params": {"n": 1}}, [1]),
        ):
            state = rewind(graph, config, **change)
            (ledger,) = attempts_of(graph, config)
            assert [ledger.params_at(each["number"])["n"] for each in ledger.attempts] == made
            assert ledger.attempts[-1]["author"] == "rewind"
        assert [each["failure"] is None for each in ledger.attempts] == [False]
        assert resume(graph, config, edit(n=5))["output"] == {"n": 5}
        with pytest.raises(ValueError, match="not ended at an earlier review"):
            rewind(graph, config, attempt=1, decision=reject())
        state = rewind(graph, config, attempt=1, decision=edit(n=6))
        assert [each["author"] for each in state["attempts"]] == ["rewind", "rewind"]
        assert state["output"] == {"n": 6}


def test_a_remote_review_is_answered_from_async_code(server, form):
    """The async twins speak to a server, too."""

    async def talk():
        config = new_thread()
        async with get_client(url=server) as client:
            graph = RemoteGraph(form, client=client)
            await graph.ainvoke({"params": {"n": 0}}, config)
            (review,) = await apending_reviews(graph, config)
            assert review.function_name == "count"
            return await aresume(graph, config, respond({"n": 7}))

    assert asyncio.run(talk())["output"] == {"n": 7}
