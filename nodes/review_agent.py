"""Sort a support request; an agent reviews what failed, then a person. Chat: send a request.

The scripted model invents a category unless it is told which there are: the agent tells it. It
cannot find a customer number that is not in the request: the agent may not make one up, so a
person supplies it (write one like C-1234 into `params.request`, or give the output).
"""

import json
import re
from typing import Any, Literal

from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable, RunnableLambda
from pydantic import BaseModel, Field

from graph_retry import Decision, create_retry_node
from graph_retry.hooks import Review, model_reviewer
from nodes.serving import Messages, around, chat_model, is_real

CATEGORIES = "The categories are: billing, bug, other."


class TicketParams(BaseModel):
    """All params of the call that a person might want to change."""

    prompt: str = Field(
        default="Sort the request. Answer with JSON: category, customer, summary.",
        description="What the model is told to do",
    )
    request: str = Field(
        default="I was charged twice for May. Please pay one back.",
        description="What the customer wrote; a chat message takes its place",
    )
    model: str = Field(
        default="scripted", description="`scripted`, or a real one such as `openai:gpt-4.1-mini`"
    )
    reviewer: str = Field(
        default="scripted",
        description="The agent asked before a person: `scripted`, `nobody`, or a real model",
    )


class Ticket(BaseModel):
    """The output of the call."""

    category: Literal["billing", "bug", "other"]
    customer: str = Field(pattern=r"^C-\d{4}$")
    summary: str = Field(max_length=80)


class Input(Messages, total=False):
    """A message with the request, or params, or both."""

    params: TicketParams


def sort_by_script(params: TicketParams) -> str:
    """Answer like a model would. The answer depends only on the params."""
    if params.model != "scripted":
        msg = f"unknown model {params.model!r}: use 'scripted', or write provider:name"
        raise ValueError(msg)
    about_money = re.search(r"charge|pay|invoice|refund", params.request, re.IGNORECASE)
    known = CATEGORIES in params.prompt
    found = re.search(r"C-\d{4}", params.request)
    ticket = {
        "category": ("billing" if known else "money") if about_money else "other",
        "customer": found[0] if found else "unknown",
        "summary": params.request[:80],
    }
    return json.dumps(ticket if known else ticket | {"category": f"{ticket['category']}?"})


def sort(params: TicketParams) -> Any:
    """Ask the scripted model, or a real model if the name contains a provider."""
    if not is_real(params.model):
        return sort_by_script(params)
    return chat_model(params.model).invoke(f"{params.prompt}\n\n{params.request}")


def decide_by_script(said: Any) -> AIMessage:
    """Tell the model the categories if they are missing. Never invent a fact: answer "unsure"."""
    case = str(said[-1].text)
    if '"path": "/category"' in case and CATEGORIES not in case:
        prompt = f"{TicketParams().prompt} {CATEGORIES}"
        return AIMessage(json.dumps({"type": "edit", "params": {"prompt": prompt}}))
    return AIMessage('{"type": "unsure"}')


def review(shown: Review) -> Runnable[Review, Decision | None] | None:
    """Return the reviewer that the params name."""
    name = str(shown.params["reviewer"])
    if name == "nobody":
        return None
    agent = chat_model(name) if is_real(name) else RunnableLambda(decide_by_script)
    return model_reviewer(agent)


node = create_retry_node(
    sort,
    TicketParams,
    output=Ticket,
    name="sort_request",
    reviewer=RunnableLambda[Any, Any](review, name="triage"),
)
graph = around(
    "sort_request",
    node,
    Input,
    lambda params, messages: params.model_copy(update={"request": messages[-1].text}),
    json.dumps,
).compile()
