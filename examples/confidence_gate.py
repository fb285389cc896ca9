"""Valid outputs pass if the model is sure of them; a person sees the others, and a sample."""

from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint

from graph_retry import approve, respond, retry_llm_call
from graph_retry.data import summarize
from graph_retry.hooks import Gate
from graph_retry.threads import every_ledger, list_reviews


def classify(params: dict[str, Any]) -> dict[str, Any]:
    """Stand in for a model that says how sure it is: of every tenth message it is not."""
    unsure = params["number"] % 10 == 0
    return {"topic": "other" if unsure else "delivery", "confidence": 0.4 if unsure else 0.97}


@entrypoint(checkpointer=InMemorySaver())
def sort(number: int) -> str:
    """Sort one message."""
    gate = Gate(confidence=0.9, sample=0.05)
    output = retry_llm_call(
        classify, {"number": number}, output=dict[str, Any], name="sort", review=gate
    )
    return str(output["topic"])


for number in range(100):
    sort.invoke(number, {"configurable": {"thread_id": str(number)}})
waiting = list_reviews(sort)
unsure = [review for review in waiting if review.output["confidence"] < 0.9]
print(f"100 messages: {len(unsure)} wait because the model is not sure")
print(f"{len(waiting) - len(unsure)} more wait as a sample of what would have passed")
# expect: 100 messages: 10 wait because the model is not sure
# expect: more wait as a sample

for review in waiting:
    review.answer(respond({"topic": "damage"}) if review in unsure else approve())
gate = summarize(every_ledger(sort))["gate"]
print("share of wrong outputs among those that passed, by the sample:", gate["wrong_passed"])
# expect: by the sample: 0
