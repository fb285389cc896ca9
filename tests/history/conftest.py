"""Threads with corrections of every kind."""

import pytest
from langchain_core.messages import HumanMessage, SystemMessage
from langgraph.checkpoint.memory import InMemorySaver

from graph_retry import accept, comment, edit, respond, resume
from tests.loops import Model, one_call, thread


def reply(params):
    """Give an age that is right from `n = 1` on, or where a comment was made."""
    good = params["n"] > 0 or "somebody" in params.get("prompt", "").lower()
    return '{"n": 1}' if good else '{"n": "many"}'


ALLOWED = ["approve", "edit", "reject", "respond", "comment", "accept"]


@pytest.fixture(scope="module")
def many():
    """Threads with every kind of decision, labels and messages for params."""
    saver = InMemorySaver()
    graph = one_call(
        "node", None, Model(reply), saver, allowed_decisions=ALLOWED, labels={"tenant": "acme"}
    )
    for number in range(40):
        decision = [respond({"n": number}), accept("so"), edit(n=1), comment("a number")][
            number % 4
        ]
        told = [SystemMessage("Count."), HumanMessage(f"How many, {number}?")]
        given = {"n": 0, "prompt": f"How many, {number}?"}
        given |= {"messages": told} if number % 8 == 0 else {}
        graph.invoke({"params": given}, thread(str(number)))
        resume(graph, thread(str(number)), decision)
    return graph
