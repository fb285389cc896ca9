"""The smallest use: one call inside a node, one failure, one edit by a person."""

from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import StateGraph
from typing_extensions import TypedDict

from graph_retry import edit, pending_reviews, resume, retry_llm_call


class State(TypedDict, total=False):
    """The graph's state."""

    person: dict[str, Any]


def ask(params: dict[str, Any]) -> str:
    """Stand in for a model: it writes JSON only when it is told to."""
    return '{"name": "Ada", "age": 36}' if "JSON" in params["prompt"] else "Ada, 36 years old"


def extract(state: State) -> State:
    """Call the model; the node pauses here until the output is what we asked for."""
    del state
    return {"person": retry_llm_call(ask, {"prompt": "Who is it?"}, output=dict[str, Any])}


builder = StateGraph(State).add_node("extract", extract).set_entry_point("extract")
graph = builder.compile(checkpointer=InMemorySaver())
config: Any = {"configurable": {"thread_id": "1"}}

graph.invoke({}, config)
for review in pending_reviews(graph, config):
    print(f"attempt {review.attempt} failed: {review.error}")
    print(f"the model wrote: {review.raw_output}")
# expect: attempt 1 failed: InvalidJSON
# expect: the model wrote: Ada, 36 years old

print("found:", resume(graph, config, edit(prompt="Who is it? Answer in JSON."))["person"])
# expect: found: {'name': 'Ada', 'age': 36}
