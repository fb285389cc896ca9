"""Four steps up: feedback to the model, a larger model, a reviewer agent, and at last a person."""

from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint
from pydantic import BaseModel

from graph_retry import Decision, edit, pending_reviews, resume, retry_llm_call
from graph_retry.hooks import Review, escalate


class Order(BaseModel):
    """What the model must give."""

    item: str
    pieces: int


calls: list[str] = []


def ask(params: dict[str, Any]) -> str:
    """Stand in for models that count badly, the larger ones a little less."""
    calls.append(params["model"])
    if "12 pieces" in params["prompt"]:
        return '{"item": "chair", "pieces": 12}'
    said = "a dozen" if params["model"] == "small" else "about 12"
    return f'{{"item": "chair", "pieces": "{said}"}}'


def agent(review: Review) -> Decision | None:
    """Decide what is safe to decide: to try the strict model once. Leave the rest to a person."""
    if review.params["model"] != "strict":
        return edit(model="strict")
    return None


@entrypoint(checkpointer=InMemorySaver())
def order(text: str) -> dict[str, Any]:
    """Read an order."""
    return retry_llm_call(
        ask,
        {"prompt": text, "model": "small"},
        escalate({2: {"model": "large"}}),  # after the second failure
        output=Order,
        feedback="errors_only",
        auto_retries=2,
        reviewer=agent,
    ).model_dump()


config: Any = {"configurable": {"thread_id": "1"}}
order.invoke("A dozen chairs, please.", config)
(review,) = pending_reviews(order, config)
for attempt in review.history:
    print(
        attempt["number"],
        attempt["author"],
        attempt["failure"]["kind"] if attempt["failure"] else "",
    )
print(calls)
# expect: 3 hook:escalate and feedback invalid_schema
# expect: 4 agent:agent invalid_schema
# expect: ['small', 'small', 'large', 'strict']

print(resume(order, config, {**edit(prompt="12 pieces of the chair."), "by": "ada"}))
# expect: {'item': 'chair', 'pieces': 12}
