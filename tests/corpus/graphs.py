"""The programs whose threads are in the corpus. They stay as they are."""

import asyncio
import operator
from typing import Annotated, Any

from langgraph.func import entrypoint
from langgraph.graph import START, StateGraph
from langgraph.types import Send
from typing_extensions import TypedDict

from graph_retry import aretry_llm_call, create_retry_node, gather_calls, retry_llm_call

CALLS: list[Any] = []
"""The params of each model call of this process."""

OPTIONS: dict[str, Any] = {"output": dict[str, int], "name": "count"}


class State(TypedDict, total=False):
    """The state of all graphs."""

    params: Any
    output: Any
    outputs: Annotated[list[Any], operator.add]


def model(params):
    """Answer with `n`; fail while it is below 1."""
    CALLS.append(params)
    if params["n"] < 1:
        raise ValueError(f"{params['n']} is too small")
    return f'{{"n": {params["n"]}}}'


def vague(params):
    """Answer with `n`, or with words while it is below 1."""
    CALLS.append(params)
    return f'{{"n": {params["n"]}}}' if params["n"] > 0 else "none"


async def amodel(params):
    """Do what `model` does, from async code."""
    await asyncio.sleep(0)
    return model(params)


def about(document):
    """Return a function that holds a document; only the second one fails."""
    return lambda params: model({**params, "n": 1} if document == "a" else params)


def function(_):
    """Make two calls, of which the second fails."""
    first = retry_llm_call(model, {"n": 5}, **OPTIONS)
    return {"output": [first, retry_llm_call(model, {"n": 0}, **OPTIONS)]}


def keyed(_):
    """Make a call with a key."""
    return {"output": retry_llm_call(model, {"n": 0}, key="order 7", **OPTIONS)}


def documents(_):
    """Make equal calls, which their functions tell apart."""
    return {"output": [retry_llm_call(about(each), {"n": 0}, **OPTIONS) for each in "ab"]}


def feedback(_):
    """Make a call to whose prompt feedback and comments are added."""
    params = {"prompt": "Count.", "n": 0}
    more: Any = {"auto_retries": 1, "feedback": "full"}
    return {"output": retry_llm_call(vague, params, **OPTIONS, **more)}


NODE = create_retry_node(model, dict, **OPTIONS)


def by_hand(_):
    """Invoke a retry node from a function."""
    return {"output": NODE.invoke({"params": {"n": 0}})["output"]}


async def gathered(_):
    """Make two calls at once, of which the second fails."""
    calls = (aretry_llm_call(amodel, {"n": n, "at": n}, **OPTIONS) for n in (5, 0))
    return {"output": await gather_calls(*calls)}


def one_node(node, saver):
    """Compile a graph of one node."""
    return (
        StateGraph(State).add_node("ask", node).add_edge(START, "ask").compile(checkpointer=saver)
    )


def in_a_subgraph(saver):
    """Compile a graph with a retry node in a subgraph."""
    return one_node(one_node(NODE, None), saver)


def fanned_out(saver):
    """Compile a graph of two branches, of which the second fails."""

    def branch(state):
        return {"outputs": [retry_llm_call(model, state["params"], **OPTIONS)]}

    builder = StateGraph(State).add_node("ask", branch)
    send = [Send("ask", {"params": {"n": n}}) for n in (5, 0)]
    return builder.add_conditional_edges(START, lambda _: send, ["ask"]).compile(checkpointer=saver)


def in_an_entrypoint(saver):
    """Return an entrypoint that makes a call."""

    @entrypoint(checkpointer=saver)
    def count(given):
        return {"output": retry_llm_call(model, given["params"], **OPTIONS)}

    return count


FORMS = {
    "function": lambda saver: one_node(function, saver),
    "keyed": lambda saver: one_node(keyed, saver),
    "documents": lambda saver: one_node(documents, saver),
    "feedback": lambda saver: one_node(feedback, saver),
    "node": lambda saver: one_node(NODE, saver),
    "node by hand": lambda saver: one_node(by_hand, saver),
    "node in a subgraph": in_a_subgraph,
    "branches": fanned_out,
    "entrypoint": in_an_entrypoint,
    "async": lambda saver: one_node(gathered, saver),
}
"""The graph of each form. The form `async` needs an async saver."""
