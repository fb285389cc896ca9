"""A job reads 100 documents at night; what it could not read is answered in the morning.

Run it: `python -m examples.night_batch`. No key is needed: the model is scripted.
"""

import json
from typing import Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import StateGraph

from graph_retry import AttemptsExhausted, create_retry_node, respond, retry_llm_call, review_later
from graph_retry.hooks import SharedBudget
from graph_retry.threads import list_reviews

calls: list[str] = []


class State(TypedDict, total=False):
    """The morning's graph: the keys of one retry node."""

    params: dict[str, Any]
    output: Any
    status: str
    attempts: list[Any]


def read(params: dict[str, Any]) -> str:
    """Stand for a real model, which cannot read the total of every tenth document."""
    calls.append(params["document"])
    number = int(params["document"].partition(" ")[2])
    return '{"total": "smudged"}' if number % 10 == 0 else f'{{"total": {number}}}'


# At night nobody is there: a call that fails ends with an error, which holds all there is to know.
night = SharedBudget(tokens=1_000_000)  # one for all 100 calls
totals: dict[str, float] = {}
for_the_morning: list[str] = []
for number in range(100):
    document = f"document {number}"
    try:
        output: Any = dict[str, float]
        params = {"document": document}
        totals[document] = retry_llm_call(
            read, params, output=output, name="read", review=False, budget=night
        )["total"]
    except AttemptsExhausted as error:
        for_the_morning.append(json.dumps(review_later(error)))
print(f"at night: {len(totals)} totals, {len(for_the_morning)} left, {len(calls)} calls")
# expect: at night: 90 totals, 10 left, 100 calls

# In the morning each becomes a review in a thread of its own. No model is called for that.
node = create_retry_node(read, dict, output=dict[str, float], name="read", labels={"job": "night"})
builder = StateGraph(State).add_node("read", node).set_entry_point("read")
graph = builder.compile(checkpointer=InMemorySaver())
for place, given in enumerate(for_the_morning):
    graph.invoke(json.loads(given), {"configurable": {"thread_id": f"morning {place}"}})
waiting = list_reviews(graph, labels={"job": "night"})
print(f"in the morning: {len(waiting)} reviews, {len(calls)} calls")
# expect: in the morning: 10 reviews, 100 calls

for review in waiting:
    state = review.answer(respond({"total": 0.0}))
    totals[review.params["document"]] = state["output"]["total"]
print(f"at noon: {len(totals)} totals, {len(calls)} calls")
# expect: at noon: 100 totals, 100 calls
