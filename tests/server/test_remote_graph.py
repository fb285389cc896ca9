"""A real `langgraph dev` over HTTP, driven through `RemoteGraph` with the same verbs as locally."""

import asyncio
import uuid

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.pregel.remote import RemoteGraph
from langgraph_sdk import get_client, get_sync_client

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
from graph_retry.threads import list_reviews
from tests.loops import Model, State, one_call


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


def test_a_new_input_over_http_is_told_in_the_new_question_and_to_a_late_answer(server, form):
    """Whoever gave the input reads it in the question; nothing says that the thread was cut off."""
    with get_sync_client(url=server) as client:
        graph, config = RemoteGraph(form, sync_client=client), new_thread()
        graph.invoke({"params": {"n": 0}}, config)
        (ended,) = pending_reviews(graph, config)
        graph.invoke({"params": {"n": -1}}, config)
        (asked,) = pending_reviews(graph, config)
        with pytest.raises(StaleDecision, match="when a new run began, with another input") as late:
            resume(graph, config, answers={ended.review_id: edit(n=2)})
    assert f"review {ended.review_id} of `count` was ended unanswered" in asked.value["note"]
    assert "cut off" not in str(late.value)


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


def test_a_node_that_was_renamed_on_a_server_is_named(remote):
    """The error says which name to give it back; with that the same review is answered."""
    there = remote("renaming")
    node_name = there.served.folder / "node-name"
    there.invoke({"params": {"n": 0}})
    node_name.write_text("read")
    with pytest.raises(StaleDecision, match=r"waits in node `ask`, .* old graph or name"):
        there.resume(edit(n=2))
    node_name.write_text("ask")
    assert there.resume(edit(n=2))["output"] == {"n": 2}
    assert there.calls() == [0, 2]


def test_a_review_of_a_remote_node_is_shown_and_answered_here(server, form):
    """`RemoteGraph` as a node of a local graph: asked on the server, answered in this thread."""
    with get_sync_client(url=server) as client:
        there, config = RemoteGraph(form, sync_client=client), new_thread()
        builder = StateGraph(State).add_node("there", there).add_edge(START, "there")
        graph = builder.compile(InMemorySaver())
        graph.invoke({"params": {"n": 0}}, config)
        (review,) = pending_reviews(graph, config)
        (listed,) = list_reviews(graph)
        assert review.review_id == listed.review_id
        assert list_reviews(one_call(form, None, Model(), graph.checkpointer)) == []
        assert resume(graph, config, edit(n=2))["output"] == {"n": 2}
        assert pending_reviews(graph, config) == list_reviews(graph) == []
        with pytest.raises(StaleDecision):
            resume(graph, config, answers={review.review_id: edit(n=3)})
