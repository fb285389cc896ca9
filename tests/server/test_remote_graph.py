"""A real `langgraph dev` over HTTP, driven through `RemoteGraph` with the same verbs as locally."""

import asyncio
import uuid
from contextlib import ExitStack

import pytest
from langgraph.pregel.remote import RemoteGraph
from langgraph_sdk import get_client, get_sync_client

import graph_retry
from graph_retry import (
    AnswerRefused,
    StaleDecision,
    apending_reviews,
    aresume,
    edit,
    pending_reviews,
    respond,
    resume,
)


@pytest.fixture
def server(served):
    """The address of the shared server."""
    return served.url


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
    assert (review.attempt, review.params) == (1, {"n": 0, "scale": 1.0, "note": "keep"})

    with pytest.raises(AnswerRefused, match='`n` expects a number, not "many"') as told:
        resume(graph, config, edit(n="many"))
    (again,) = pending_reviews(graph, config)
    assert again.attempt == 1
    assert told.value.review_ids == [again.review_id]

    resume(graph, config, edit(n="1"))
    (second,) = pending_reviews(graph, config)
    assert (second.attempt, second.params["n"]) == (2, 1)

    state = resume(graph, config, edit(n=2))
    assert state["output"] == {"n": 2}
    with pytest.raises(StaleDecision):
        resume(graph, config, edit(n=3))


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


def test_a_node_that_was_renamed_on_a_server_is_named(served, mode):
    """The error says which name to give it back; with that the same review is answered."""
    config = new_thread()
    with ExitStack() as closing:
        if mode.is_async:
            client = get_client(url=served.url)
            closing.callback(lambda: mode.run(client.aclose))
        else:
            client = closing.enter_context(get_sync_client(url=served.url))
        graph = RemoteGraph("renaming", **{"client" if mode.is_async else "sync_client": client})
        mode.invoke(graph, {"params": {"n": 0}}, config)
        (served.folder / "node-name").write_text("read")
        with pytest.raises(StaleDecision, match=r"waits in node `ask`, .* its old name back"):
            mode.call(graph_retry, "resume", graph, config, edit(n=2))
        (served.folder / "node-name").write_text("ask")
        state = mode.call(graph_retry, "resume", graph, config, edit(n=2))
    assert state["output"] == {"n": 2}
    assert len(served.calls(config["configurable"]["thread_id"])) == 2
