"""End the reviews whose time is over, in all threads of this server. No input: run it from a cron.

It only starts the runs that apply the default decisions, so that it never waits for a worker it
holds itself.
"""

from typing import Any

from langgraph.graph import START, StateGraph
from langgraph_sdk import get_client
from typing_extensions import TypedDict

from graph_retry.threads import aexpire_reviews


class Nothing(TypedDict):
    """The input of the graph: nothing."""


class Sweep(TypedDict, total=False):
    """The ended reviews, each with its thread id, function name and attempt."""

    ended: list[dict[str, Any]]


async def sweep(state: Sweep) -> Sweep:
    """End the expired reviews. A client without a URL calls the server in which it runs."""
    del state
    ended = await aexpire_reviews(get_client())
    return {
        "ended": [
            {
                "thread_id": review.thread_id,
                "function_name": review.function_name,
                "attempt": review.attempt,
            }
            for review in ended
        ]
    }


builder: StateGraph[Any, Any, Any, Any] = StateGraph(Sweep, input_schema=Nothing)
builder.add_node("sweep", sweep)
builder.add_edge(START, "sweep")
graph = builder.compile()
