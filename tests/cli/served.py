"""Graphs that the console command's tests answer; every model call leaves a line in `CALLS`."""

import asyncio
import json
import os
from pathlib import Path
from typing import Annotated, Any

from langgraph.func import entrypoint
from langgraph.graph import StateGraph
from langgraph.types import Send, interrupt
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from graph_retry import Completion, aretry_llm_call, create_retry_node, retry_llm_call
from tests.loops import State

HOSTILE = "[bold]no[/bold] \x1b[2J\x9b31m\u202e\r"


class Params(BaseModel):
    """What a person may change."""

    n: int = 0
    note: str | None = "keep"
    options: dict[str, Any] = Field(default={"top": 1, "deep": {"a": 1}})


class Bare(TypedDict, total=False):
    """A state in which a server shows no attempts."""

    params: dict[str, Any]
    output: Any


def model(params):
    """Succeed from `n = 2` on; before that, fail with text that would take over a terminal."""
    with Path(os.environ["CALLS"]).open("a") as file:
        file.write(f"{params.n}\n")
    if params.n < 0:
        raise ValueError(HOSTILE)
    if params.n < 2:
        return json.dumps({"n": f"few {HOSTILE}"}, ensure_ascii=False)
    return Completion(f'{{"n": {params.n},}}', usage={"total_tokens": 1_200})


async def slow_model(params):
    """Do the same where nothing but `await` works."""
    return model(params)


def ask(state):
    """Make the call in the function form."""
    params = Params.model_validate(state["params"])
    return {"output": retry_llm_call(model, params, output=dict[str, int], name="count")}


def graph_of(step, state=State):
    """Build a graph of one step."""
    return StateGraph(state).add_node("ask", step).set_entry_point("ask")


node = graph_of(create_retry_node(model, Params, output=dict[str, int], name="count"))
asynchronous = graph_of(create_retry_node(slow_model, Params, output=dict[str, int], name="count"))
function = graph_of(ask).compile()
hiding = graph_of(ask, Bare).compile()
pair = graph_of(ask).add_node("beside", lambda state: ask(state) and {}).set_entry_point("beside")


Number = dict[str, int]


def five(params):
    """Answer without a line in `CALLS`."""
    assert params["n"] == 0
    return '{"n": 5}'


def typed_five(params):
    """Answer by the fields of the params."""
    return f'{{"n": {params.n + 5}}}'


def forging_model(params):
    """Fail with the text of the note."""
    raise ValueError(params.note)


forger = graph_of(create_retry_node(forging_model, Params, output=Number, name="count"))


def fan_out(state):
    """Read three notes at once."""
    each = [{**state["params"], "note": note} for note in ("a", "b", "c")]
    return [Send("ask", {"params": params}) for params in each]


fan = StateGraph(State).add_node("ask", lambda state: ask(state) and {})
fan = fan.add_conditional_edges("__start__", fan_out, ["ask"])


class Newest(TypedDict, total=False):
    """A state whose keys keep the newest result of all `Send`s."""

    params: Any
    output: Annotated[Any, lambda _, new: new]
    status: Annotated[Any, lambda _, new: new]
    attempts: Annotated[Any, lambda _, new: new]


shared = StateGraph(Newest).add_conditional_edges("__start__", fan_out, ["ask"])
shared = shared.add_node(
    "ask",
    create_retry_node(
        model,
        Params,
        output=Number,
        name="count",
        allowed_decisions=("assign", "defer", "approve"),
    ),
)


class Person(BaseModel):
    """An output with two fields."""

    name: str
    age: int


class Line(BaseModel):
    """A part of an output."""

    n: int


class Lines(BaseModel):
    """An output with a list of objects."""

    total: int
    lines: list[Line]


def lines_model(params):
    """Write two lines, of which the second is wrong."""
    return '{"total": "many", "lines": [{"n": 1}, {"n": "few"}]}'


lines = graph_of(create_retry_node(lines_model, Params, output=Lines, name="count"))


def redact(text):
    """Hide what nobody at a terminal should see."""
    return text.replace("secret", "***").replace("few", "***")


def private_model(params):
    """Succeed from `n = 2` on, with what the params keep private."""
    return json.dumps({"n": f"{params.note}"} if params.n >= 2 else [params.note])


person = graph_of(create_retry_node(model, Params, output=Person, name="count"))
private = graph_of(
    create_retry_node(private_model, Params, output=dict[str, str], redact=redact, name="count")
)


def held_model(params):
    """Succeed from `n = 2` on, when somebody has opened the pipe `HOLD` and closed it again."""
    text = model(params)
    if params.n >= 2:
        Path(os.environ["HOLD"]).read_text()
    return text


held = graph_of(create_retry_node(held_model, Params, output=Number, name="count"))
held_private = graph_of(
    create_retry_node(held_model, Params, output=Number, redact=redact, name="count")
)


@entrypoint()
async def entry(state):
    """Make the call in an entrypoint, async only."""
    params = Params.model_validate(state["params"])
    return await aretry_llm_call(slow_model, params, output=dict[str, int], name="count")


@entrypoint()
async def gathered(state):
    """Make two calls at once, and show their questions one after the other."""
    given = [Params.model_validate({**state["params"], "note": note}) for note in ("a", "b")]
    calls = [aretry_llm_call(slow_model, one, output=dict[str, int], name="count") for one in given]
    return await asyncio.gather(*calls)


def send(state):
    """Wait for what is no review."""
    interrupt({"action_requests": [{"name": "send_mail", "args": {}}]})
    return {}


mail = graph_of(ask).add_node("send", send).add_edge("ask", "send").compile()
not_a_graph = "text"
