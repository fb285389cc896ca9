"""What people corrected becomes a data set, and tells whether another model would need them."""

import json
from pathlib import Path
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint

from graph_retry import pending_reviews, respond, resume, retry_llm_call
from graph_retry.data import evaluate, export

TOPICS = {"My parcel is broken": "damage", "Where is it?": "delivery", "Two bills?": "invoice"}


def small(params: dict[str, Any]) -> str:
    """Stand in for a small model, which does not know the topics."""
    return f'{{"topic": null, "text": "{params["prompt"]}"}}'


def large(params: dict[str, Any]) -> str:
    """Stand in for a large model, which is right in two of three cases."""
    topic = TOPICS[params["prompt"]]
    return json.dumps({"topic": "other" if topic == "invoice" else topic})


@entrypoint(checkpointer=InMemorySaver())
def sort(text: str) -> dict[str, str]:
    """Sort a message of a customer."""
    return retry_llm_call(small, {"prompt": text}, output=dict[str, str], name="sort")


for number, (text, topic) in enumerate(TOPICS.items()):
    config: Any = {"configurable": {"thread_id": str(number)}}
    sort.invoke(text, config)
    (review,) = pending_reviews(sort, config)
    resume(sort, config, {**respond({"topic": topic}), "by": "ada"})

told = export(sort, "tuning.jsonl", "openai")
print(f"{told.written['tuning.jsonl']} chats for fine-tuning, the first one:")
for message in json.loads(Path("tuning.jsonl").read_text().splitlines()[0])["messages"]:
    print(f"  {message['role']}: {message['content']}")
# expect: 3 chats for fine-tuning
# expect: user:
# expect: assistant:

figures = evaluate(sort, large, output=dict[str, str], name="large").figures()
for name in ("calls", "valid at once", "agree", "differ"):
    print(f"the large model, {name}: {figures[name]}")
# expect: the large model, calls: 3
# expect: the large model, agree: 2
# expect: the large model, differ: 1
