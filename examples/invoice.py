"""Invoices are read by a model; where the output is not valid, a person corrects the call."""

from datetime import date
from typing import Any, Literal

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint
from pydantic import BaseModel

from graph_retry import edit, pending_reviews, resume, retry_llm_call


class Invoice(BaseModel):
    """What the model must give."""

    vendor: str
    total: float
    due: date


class Reading(BaseModel):
    """What a person may change."""

    document: str
    model: Literal["small", "large"] = "small"
    prompt: str = "Read vendor, total and due date. Answer in JSON."


def read(params: Reading) -> str:
    """Stand in for two models; the small one copies the total and the date as they are printed."""
    if params.model == "large":
        return '{"vendor": "Nordlicht", "total": 1240.5, "due": "2027-03-03"}'
    return '{"vendor": "Nordlicht", "total": "EUR 1,240.50", "due": "3 March"}'


@entrypoint(checkpointer=InMemorySaver())
def extract(document: str) -> dict[str, Any]:
    """Read one invoice; the graph pauses here until the output is valid."""
    invoice = retry_llm_call(read, Reading(document=document), output=Invoice)
    return invoice.model_dump(mode="json")


config: Any = {"configurable": {"thread_id": "invoice-7"}}
extract.invoke("Nordlicht Druck, 400 posters, EUR 1,240.50, due 3 March 2027", config)

(review,) = pending_reviews(extract, config)
print(review.headline)
for issue in review.issues:
    print(f"  {issue['path']}: {issue['received']} - {issue['message']}")
# expect: read failed (attempt 1): ValidationError
# expect: /total: "EUR 1,240.50"
# expect: /due: "3 March"

print("A person chooses the large model:")
print(resume(extract, config, {**edit(model="large"), "by": "ada"}))
# expect: {'vendor': 'Nordlicht', 'total': 1240.5, 'due': '2027-03-03'}
