"""A model drafts an e-mail; a person comments on it and approves it before it is sent."""

from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint
from pydantic import BaseModel

from graph_retry import CallCancelled, approve, comment, pending_reviews, resume, retry_llm_call


class Mail(BaseModel):
    """What is sent."""

    to: str
    subject: str
    body: str


outbox: list[Mail] = []


def draft(params: dict[str, Any]) -> Mail:
    """Stand in for a model, which is polite when it is told to be."""
    polite = "sorry" in params["prompt"]
    body = "We are sorry. It arrives on Tuesday." if polite else "It arrives on Tuesday."
    return Mail(to=params["to"], subject="Your delivery", body=body)


@entrypoint(checkpointer=InMemorySaver())
def reply(to: str) -> str:
    """Draft a mail, show every draft to a person, and send what was approved."""
    params = {"to": to, "prompt": "Tell the customer when it arrives."}
    try:
        mail = retry_llm_call(draft, params, output=Mail, review="always")
    except CallCancelled as cancelled:
        return f"not sent: {cancelled.reason}"
    outbox.append(mail)
    return f"sent to {mail.to}: {mail.body}"


config: Any = {"configurable": {"thread_id": "mail-1"}}
reply.invoke("meyer@example.org", config)
print("draft 1:", pending_reviews(reply, config)[0].output["body"])
# expect: draft 1: It arrives on Tuesday.

resume(reply, config, comment("Say that we are sorry."))
print("draft 2:", pending_reviews(reply, config)[0].output["body"], f"({len(outbox)} sent)")
# expect: draft 2: We are sorry. It arrives on Tuesday. (0 sent)

print(resume(reply, config, {**approve(), "by": "ada"}))
# expect: sent to meyer@example.org: We are sorry. It arrives on Tuesday.
