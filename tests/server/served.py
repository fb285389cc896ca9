"""Graphs for a real server; each model call appends a line to `calls.jsonl` beside this file."""

import asyncio
import json
import time
from dataclasses import dataclass
from functools import partial
from operator import add
from pathlib import Path
from typing import Annotated, Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langgraph.config import get_config
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.runtime import get_runtime
from langgraph.types import Send
from pydantic import BaseModel
from typing_extensions import TypedDict

from graph_retry import (
    AttemptContext,
    aretry_llm_call,
    create_retry_node,
    edit,
    gather_calls,
    respond,
    retry_llm_call,
)
from graph_retry.nodes import review_nodes
from tests.agents.journey import traveller
from tests.agents.scripted import MODES, ScriptedChat, approvals, asking, weather_of
from tests.review.questions import Params, Person
from tests.reviewed.programs import PROGRAMS

HERE = Path(__file__).parent


class P(BaseModel):
    """What a person may change about `count`."""

    n: int
    scale: float = 1.0
    note: str = "keep"


class Result(BaseModel):
    """What `count` must give."""

    n: int


class RateLimitError(RuntimeError):
    """What a provider raises."""


def log_call(what: dict[str, Any]) -> int:
    """Write a model call down; return how often this thread has broken."""
    thread_id = get_config()["configurable"]["thread_id"]
    path = HERE / "calls.jsonl"
    with path.open("a") as calls:
        calls.write(json.dumps({"thread_id": thread_id, **what}) + "\n")
    lines = path.read_text().splitlines()
    return sum(thread_id in line for line in lines if "broken" in line)


def count_model(params: P) -> str:
    """Fail below 2, scaled; the note `talk` means at length, `gate-…` names a file to wait for."""
    log_call(params.model_dump())
    if params.note.startswith("gate-"):
        deadline = time.monotonic() + 120
        while not (HERE / params.note).exists() and time.monotonic() < deadline:
            time.sleep(0.005)
    if params.n * params.scale < 2:
        if params.note == "talk":
            return json.dumps({"n": f"{params.n} is too small, " + "very " * 500})
        raise ValueError(f"{params.n} is too small")
    return f'{{"n": {params.n}}}'


async def patient_model(params: P) -> str:
    """Do what `count_model` does, on the event loop: `gate-…` waits there."""
    log_call(params.model_dump())
    while params.note.startswith("gate-") and not (HERE / params.note).exists():  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    if params.n < 2:
        raise ValueError(f"{params.n} is too small")
    return f'{{"n": {params.n}}}'


async def patient_call(state: Any) -> dict[str, Any]:
    """Call that model in the function form."""
    params = P.model_validate(state["params"])
    return {"output": (await aretry_llm_call(patient_model, params, output=Result)).model_dump()}


@dataclass
class Tenancy:
    """What a run of `tenants` is for."""

    tenant: str


def tenant_model(params: P) -> str:
    """Note for which tenant and desk it is called, and fail below 2."""
    desk = get_config()["configurable"].get("desk")
    log_call({"n": params.n, "tenant": get_runtime(Tenancy).context.tenant, "desk": desk})
    if params.n < 2:
        raise ValueError(f"{params.n} is too small")
    return f'{{"n": {params.n}}}'


def extract_model(params: Params, context: AttemptContext) -> str:
    """Have no quota for the first two attempts."""
    log_call({"attempt": context.attempt, **params.model_dump(mode="json")})
    if context.attempt <= 2:
        raise RateLimitError("429 quota")
    return '{"name": "Ada", "age": 36}'


class State(TypedDict, total=False):
    """What `count` keeps."""

    params: P
    output: Any
    status: str
    attempts: list[Any]


class ChatState(MessagesState):
    """What `extract` keeps: chat clients open it because of its messages."""

    params: Params
    output: Any
    status: str
    attempts: list[Any]


class FanState(TypedDict, total=False):
    """What `fan` keeps; no node writes `attempts`, which lets a server show those of functions."""

    items: list[int]
    outputs: Annotated[list[int], add]
    attempts: list[Any]


class BareState(TypedDict, total=False):
    """What hides attempts."""

    params: P
    output: Any


def build(state: Any, node: Any) -> Any:
    """Make a graph of one node."""
    return StateGraph(state).add_node("ask", node).add_edge(START, "ask").compile()


def renaming() -> Any:
    """Make a graph whose node is called as `node-name` beside this file says."""
    name = (HERE / "node-name").read_text()
    retry = create_retry_node(count_model, P, output=Result, name="count")
    return StateGraph(State).add_node(name, retry).add_edge(START, name).compile()


def function_form(state: Any, **options: Any) -> dict[str, Any]:
    """Call the model in the function form."""
    params = P.model_validate(state["params"])
    result = retry_llm_call(count_model, params, output=Result, name="count", **options)
    return {"output": result.model_dump()}


def expiring_form(state: Any) -> dict[str, Any]:
    """Call the model in the function form, with a review that is over at once."""
    return function_form(state, expires_after=0.001)


def several_calls(state: Any) -> dict[str, Any]:
    """Call the model three times, each time with what the one before gave."""
    params = P.model_validate(state["params"])
    first = retry_llm_call(count_model, params, output=Result, name="count").n
    second = retry_llm_call(count_model, P(n=first + 10), output=Result, name="count").n
    third = retry_llm_call(count_model, P(n=second + 10), output=Result, name="count").n
    return {"output": [first, second, third]}


async def several_async_calls(state: Any) -> dict[str, Any]:
    """Do what `several_calls` does, in tasks."""
    params = P.model_validate(state["params"])
    first = await aretry_llm_call(count_model, params, output=Result, name="count")
    second = await aretry_llm_call(count_model, P(n=first.n + 10), output=Result, name="again")
    third = await aretry_llm_call(count_model, P(n=second.n + 10), output=Result, name="count")
    return {"output": [first.n, second.n, third.n]}


@task
async def look_up(n: int) -> int:
    """Do something of its own between calls."""
    return n


async def call_behind_tasks(state: Any) -> dict[str, Any]:
    """Call the model in the step that `params` tell, after tasks."""
    n = state.get("output", 0) + 1
    if n == P.model_validate(state["params"]).n:
        params = P(n=sum([await look_up(1) for _ in range(4)]))
        await aretry_llm_call(count_model, params, output=Result)
    return {"output": n}


@entrypoint()
def bare(given: Any) -> Any:
    """Call the model where there is no state that a server could show attempts of."""
    params = P.model_validate(given["params"])
    return {"output": retry_llm_call(count_model, params, output=Result, name="count").model_dump()}


def extract_in_function(state: Any) -> dict[str, Any]:
    """Do what `extract` does, in the function form."""
    params = Params.model_validate(state["params"])
    output = retry_llm_call(extract_model, params, output=Person, name="extract")
    return {"output": output.model_dump(), "status": "succeeded"}


def report(state: Any) -> dict[str, Any]:
    """Tell the result in the chat."""
    return {"messages": [AIMessage(json.dumps([state["status"], state.get("output")]))]}


async def pair_of_calls(state: Any) -> dict[str, Any]:
    """Call the model twice at the same time, in a chat."""
    names = ("first", "second")
    calls = (aretry_llm_call(patient_model, P(n=0), output=Result, name=name) for name in names)
    return {"messages": [AIMessage(str(await gather_calls(*calls)))]}


def branch(state: Any) -> dict[str, Any]:
    """Call the model for one item; a branch whose output is 113 breaks, the first time."""
    params = P(n=state["item"])
    output = retry_llm_call(count_model, params, output=Result, name="count").n
    if output == 113 and log_call({"broken": True}) == 1:
        raise RuntimeError("this branch is broken")
    return {"outputs": [output]}


def fan_out(state: Any) -> list[Send]:
    """Send each item to a branch of its own."""
    return [Send("branch", {"item": item}) for item in state["items"]]


node = build(State, create_retry_node(count_model, P, output=Result, name="count"))
function = build(State, function_form)
patient_node = build(State, create_retry_node(patient_model, P, output=Result))
patient_function = build(State, patient_call)
expiring = build(
    State,
    create_retry_node(
        count_model,
        P,
        output=Result,
        name="count",
        expires_after=0.001,
        default_decision=respond({"n": 7}),
    ),
)
expiring_function = build(State, expiring_form)
tenants, expiring_tenants = (
    StateGraph(State, context_schema=Tenancy)
    .add_node("ask", create_retry_node(tenant_model, P, output=Result, name="count", **deadline))
    .add_edge(START, "ask")
    .compile()
    for deadline in ({}, {"expires_after": 0.001, "default_decision": edit(n=3)})
)
extract, extract_function = (
    StateGraph(ChatState)
    .add_node("extract", node)
    .add_node("report", report)
    .add_edge(START, "extract")
    .add_edge("extract", "report")
    .compile()
    for node in (
        create_retry_node(extract_model, Params, output=Person, name="extract"),
        extract_in_function,
    )
)
pair = build(ChatState, pair_of_calls)
several = build(State, several_calls)
several_async = build(State, several_async_calls)
hiding = build(BareState, several_calls)
hiding_async = build(BareState, several_async_calls)
behind_tasks = (
    StateGraph(State)
    .add_node("count_up", call_behind_tasks)
    .add_edge(START, "count_up")
    .add_conditional_edges("count_up", lambda state: "count_up" if state["output"] < 80 else END)
    .compile()
)
nested = build(State, node)
fan = (
    StateGraph(FanState)
    .add_node("branch", branch)
    .add_conditional_edges(START, fan_out, ["branch"])
    .compile()
)


def slowly(_state: State) -> dict[str, Any]:
    """Call the model until the thread's gate opens."""
    thread_id = get_config()["configurable"]["thread_id"]
    count_model(P(n=7, note=f"gate-{thread_id}"))
    return {}


beside = (
    StateGraph(State)
    .add_node("ask", function_form)
    .add_node("slow", slowly)
    .add_edge(START, "ask")
    .add_edge(START, "slow")
    .compile()
)

agent = traveller(log_call)


def approving(mode: Any) -> Any:
    """Make an agent whose one tool call waits for LangChain's own middleware."""

    def weather(city: str) -> str:
        """Tell a city's weather."""
        log_call({"n": city})
        return f"sunny in {city}"

    def answer(messages: Any) -> Any:
        return asking(weather_of("Oslo")) if messages[-1].type == "human" else "Done."

    human = approvals({"weather": True}, mode)
    return create_agent(ScriptedChat(answer=answer), [weather], middleware=[human])


approving_all, approving_each = approving(MODES[0]), approving(MODES[-1])


def count_in_node(state: State) -> dict[str, Any]:
    """Count in a plain node, whose failures LangGraph would end the run with."""
    return {"output": json.loads(count_model(P.model_validate(state["params"])))}


reviewed = review_nodes(
    StateGraph(State).add_node("count", count_in_node).add_edge(START, "count"), ["params"]
).compile()


def colour(number: int, node: Any) -> Any:
    """Make the nodes of every second graph async."""

    async def run(state: Any) -> Any:
        return node(state)

    return run if number % 2 else node


for _number, _program in enumerate(PROGRAMS.values()):
    _built = _program.build(partial(colour, _number), lambda name: log_call({"n": name}))
    globals()[f"program_{_number}"] = _built.compile()
