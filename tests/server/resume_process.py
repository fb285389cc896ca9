"""A process that answers a review on a server the moment it is told to, and prints the outcome."""

import sys

from langgraph.pregel.remote import RemoteGraph
from langgraph_sdk import get_sync_client

from graph_retry import StaleDecision, edit, pending_reviews

if __name__ == "__main__":
    url, thread_id, name, n = sys.argv[1:]
    with get_sync_client(url=url) as client:
        graph = RemoteGraph("node", sync_client=client)
        (review,) = pending_reviews(graph, {"configurable": {"thread_id": thread_id}})
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.readline()
        try:
            state = review.answer({**edit(n=int(n)), "by": name})
            sys.stdout.write(f"applied {state['output']['n']}")
        except StaleDecision as error:
            sys.stdout.write(f"stale {error}")
