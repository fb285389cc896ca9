"""What a chat client sees of a live run, as `@langchain/langgraph-sdk` streams it."""

import pytest
from langgraph.pregel.remote import RemoteGraph

from graph_retry import pending_reviews
from graph_retry.threads import list_reviews

MESSAGE = {"role": "user", "content": "Who is it?"}


@pytest.mark.parametrize(("graph", "calls"), [("extract", 1), ("pair", 2)])
def test_all_values_of_a_live_run_carry_the_messages(served, graph, calls):
    """Agent Chat UI takes the values of any subgraph for the whole state: without them it dies."""
    with served.sync_client() as client:
        thread_id = client.threads.create()["thread_id"]
        given = {"messages": [MESSAGE], "params": {}}
        asked: list[object] = []
        steps = set()
        for event in client.runs.stream(
            thread_id, graph, input=given, stream_mode=["values", "updates"], stream_subgraphs=True
        ):
            if event.event.startswith("values"):
                assert event.data["messages"], event
                asked = event.data.get("__interrupt__", [])
            steps |= {*event.data} if event.event.startswith("updates|") else set()
        assert len(asked) == calls
        assert {"call", "revise"} <= steps

        # Streamed so, the server itself lists one of two questions of a node.
        remote = RemoteGraph(graph, sync_client=client)
        config = {"configurable": {"thread_id": thread_id}}
        pending = {review.review_id for review in pending_reviews(remote, config)}
        listed = {each.review_id for each in list_reviews(client) if each.thread_id == thread_id}
        assert len(pending) == calls
        assert listed == pending
