"""Four ways to hand over a model call, and what a person can change in each of them.

Only params can be inspected and edited. What a function captures stays invisible.
"""

from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import StateGraph
from pydantic import BaseModel
from typing_extensions import TypedDict

from graph_retry import PendingReview, create_retry_node, pending_reviews


class Client:
    """Stand in for a provider's SDK; whatever it is asked, it is busy."""

    def generate(self, params: Any) -> str:
        """Fail, so that there is something to review."""
        raise ConnectionError(f"no capacity for {params!r}")


class Letter(BaseModel):
    """Everything about the call a person may want to tweak."""

    prompt: str
    model: str = "small"


class State(TypedDict, total=False):
    """The graph's state."""

    params: Any
    output: Any
    status: str


def ask_for(node: Any, params: Any) -> PendingReview:
    """Run one node until it asks, and return the question."""
    builder = StateGraph(State).add_node("write", node).set_entry_point("write")
    graph = builder.compile(checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "1"}}
    graph.invoke({"params": params}, config)
    return pending_reviews(graph, config)[0]


def show(pattern: str, review: PendingReview) -> None:
    """Tell what a person sees."""
    allowed = review.value["review_configs"][0]["allowed_decisions"]
    print(f"{pattern}: {review.function_name} {review.params} {', '.join(allowed)}")


client = Client()

# 1. A closure: nothing to tweak, so a person can only try again, answer or stop.
show("closure", ask_for(create_retry_node(lambda: client.generate("hi"), None, name="greet"), None))
# expect: closure: greet {} approve, reject, respond

# 2. A bound method: works, but the name and the params say little. Better avoided.
# A method with keyword arguments only, as of many SDKs, gets the params by name.
show("method", ask_for(create_retry_node(client.generate, dict), {"prompt": "hi"}))
# expect: method: Client.generate {'prompt': 'hi'} approve, edit, reject, respond, comment

# 3. A thin lambda: one value can be changed, everything captured cannot.
call = create_retry_node(lambda prompt: client.generate((prompt, "small")), str, name="greet")
show("lambda", ask_for(call, "hi"))
# expect: lambda: greet {'value': 'hi'} approve, edit, reject, respond, comment


# 4. Recommended: a named function of one params object. The type names and checks every field.
def write_letter(params: Letter) -> str:
    """Write a letter."""
    return client.generate(params)


show("params", ask_for(create_retry_node(write_letter, Letter), {"prompt": "hi"}))
# expect: params: write_letter {'prompt': 'hi', 'model': 'small'} approve, edit, reject, respond
