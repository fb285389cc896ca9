"""A model (a scripted one) proposes, a person approves, the node after it acts."""

from typing import Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import StateGraph
from pydantic import BaseModel

from graph_retry import (
    Attempt,
    approve,
    comment,
    create_retry_node,
    pending_reviews,
    reject,
    resume,
)


class Payment(BaseModel):
    """What is to be paid."""

    to: str
    euros: float


class State(TypedDict, total=False):
    """The graph's state, with the keys that the retry node reads and writes."""

    params: dict[str, Any]
    output: Any
    status: str
    receipt: str


def propose(params: dict[str, Any]) -> str:
    """Stand for a real model, which reads an invoice with a discount."""
    euros = 95 if "discount" in params["prompt"] else 100
    return f'{{"to": "{params["payee"]}", "euros": {euros}}}'


def is_large(attempt: Attempt) -> bool:
    """Small payments need no approval."""
    return attempt["parsed"] is not None and attempt["parsed"]["value"]["euros"] > 50


def act(state: State) -> State:
    """Pay what was approved."""
    if state.get("status") != "succeeded":
        return {"receipt": "nothing was paid"}
    payment = Payment.model_validate(state.get("output"))
    return {"receipt": f"paid {payment.euros:g} to {payment.to}"}


proposing = create_retry_node(propose, dict, output=Payment, review=is_large, name="propose")
builder = StateGraph(State).add_node("propose", proposing).add_node("act", act)
builder.set_entry_point("propose").add_edge("propose", "act")
graph = builder.compile(InMemorySaver())

given: State = {"params": {"prompt": "Read the invoice.", "payee": "Ada"}}
config: Any = {"configurable": {"thread_id": "1"}}
graph.invoke(given, config)
(review,) = pending_reviews(graph, config)
print(review.headline, review.output)
# expect: propose awaits approval (attempt 1) {'to': 'Ada', 'euros': 100.0}

resume(graph, config, comment("Mind the discount."))
print("then:", pending_reviews(graph, config)[0].output)
# expect: then: {'to': 'Ada', 'euros': 95.0}

print(resume(graph, config, approve())["receipt"])
# expect: paid 95 to Ada

config = {"configurable": {"thread_id": "2"}}
graph.invoke(given, config)
print(resume(graph, config, reject("paid last week"))["receipt"])
# expect: nothing was paid
