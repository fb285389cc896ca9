"""Read an invoice from a chat message; when the model gets it wrong, a person is asked.

The model is a script that needs no key. It copies totals and dates as they stand unless the prompt
asks for a format. `small` has quota for one request only, `large` is chatty.
"""

import json
import re
from collections.abc import Callable
from datetime import date, datetime
from typing import Any

from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
from pydantic import BaseModel, Field

from graph_retry import Attempt, AttemptContext, AttemptFailed, create_retry_node

INVOICE = """Nordlicht Druck, Hamburg
400 posters, two colours
Total: EUR 1,240.50
Due: 3 March 2027"""
FORMATS = "Write total as a plain number and due_date as YYYY-MM-DD."


class Extraction(BaseModel):
    """Everything about the call that somebody might want to change."""

    prompt: str = "Read the invoice. Answer with a JSON object: vendor, total, due_date."
    document: str = INVOICE
    model: str = Field(default="small", description="`small` or `large`")
    temperature: float = Field(default=1.0, ge=0, le=2)


class Invoice(BaseModel):
    """What the call must give."""

    vendor: str
    total: float
    due_date: date


class QuotaExceededError(RuntimeError):
    """What a provider raises when an account has no requests left."""

    status_code = 429


def ask_script(params: Extraction, context: AttemptContext) -> str:
    """Answer like a model would, depending on nothing but the params and the attempt."""
    if params.model not in ("small", "large"):
        msg = f"unknown model {params.model!r}: there are 'small' and 'large'"
        raise ValueError(msg)
    if params.model == "small" and context.attempt > 1:
        msg = "quota of model 'small' is used up (1 request per call): use 'large'"
        raise QuotaExceededError(msg)
    parts = r"\A(?P<vendor>[^,\n]+).*^Total: EUR (?P<total>[\d,.]+)$.*^Due: (?P<due>[^\n]+)$"
    found = re.search(parts, params.document, re.MULTILINE | re.DOTALL)
    if found is None:
        return "I see no invoice in this text."
    read: dict[str, Any] = {"vendor": found["vendor"]}
    if "YYYY-MM-DD" in params.prompt:
        due = datetime.strptime(found["due"], "%d %B %Y").date()  # noqa: DTZ007 (only a day)
        read |= {"total": float(found["total"].replace(",", "")), "due_date": due.isoformat()}
    else:
        read |= {"total": f"EUR {found['total']}", "due_date": found["due"]}
    text = json.dumps(read)
    return text if params.model == "small" else f"Here it is:\n```json\n{text}\n```"


def revise(error: AttemptFailed, attempt: int, params: Extraction) -> Extraction | None:
    """Propose params for the next attempt; a person approves them or has a better idea."""
    del attempt
    if error.kind == "invalid_schema" and FORMATS not in params.prompt:
        return params.model_copy(update={"prompt": f"{params.prompt} {FORMATS}"})
    if error.type == "QuotaExceededError":
        return params.model_copy(update={"model": "large"})
    return None


class State(MessagesState):
    """The graph's state: a chat, and the state keys of the retry node."""

    params: dict[str, Any]
    output: dict[str, Any]
    status: str
    attempts: list[Attempt]


def prepare(state: State) -> dict[str, Any]:
    """Take the document from the last chat message, unless params were given."""
    if state.get("params") or not state["messages"]:
        return {"params": Extraction.model_validate(state.get("params") or {}).model_dump()}
    return {"params": Extraction(document=str(state["messages"][-1].text)).model_dump()}


def report(state: State) -> dict[str, Any]:
    """Tell the result in the chat."""
    done = state["status"] == "succeeded"
    text = json.dumps(state["output"]) if done else "The extraction was cancelled."
    return {"messages": [AIMessage(text)]}


def build(
    ask: Callable[[Extraction, AttemptContext], Any] = ask_script,
) -> StateGraph[Any, Any, Any, Any]:
    """Put the graph together around a model call."""
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    builder.add_node("prepare", prepare)
    builder.add_node(
        "extract", create_retry_node(ask, Extraction, revise, output=Invoice, name="extract")
    )
    builder.add_node("report", report)
    builder.add_edge(START, "prepare")
    builder.add_edge("prepare", "extract")
    builder.add_edge("extract", "report")
    return builder


graph = build().compile()
