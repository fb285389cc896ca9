"""Agents of `langgraph-supervisor` and `langgraph-swarm` with `RetryMiddleware` in the workers."""

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.tools import ToolRuntime, tool
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from langgraph.warnings import LangGraphDeprecatedSinceV10
from langgraph_supervisor import create_supervisor
from langgraph_swarm import create_handoff_tool, create_swarm

from graph_retry import comment, edit
from graph_retry.agents import RetryMiddleware
from tests.agents.scripted import ScriptedChat, asking
from tests.loops import answer, reviews, thread

HI: Any = {"messages": [("user", "go")]}


def in_turn(*answers: Any) -> Any:
    """Answer in turn, whatever is asked."""
    left = iter(answers)
    return ScriptedChat(answer=lambda _: next(left))


def calling(name: str, **args: Any) -> Any:
    """Call one tool."""
    return asking({"name": name, "args": args, "id": name})


def worker_with(model: Any, tools: Any, name: str) -> Any:
    """Make an agent that asks people."""
    ours: Any = [RetryMiddleware(tools=True)]
    return create_agent(model, tools, middleware=ours, name=name)


def test_a_worker_of_a_supervisor_waits_and_nothing_is_repeated(mode):
    """The question of the worker's tool is the supervisor's thread's; each model is called once."""
    looked: list[str] = []

    def lookup(key: str) -> str:
        """Look up a key."""
        looked.append(key)
        if key != "k1":
            raise KeyError(key)
        return "value"

    worker_model = in_turn(calling("lookup", key="k2"), "found it")
    model: Any = in_turn(calling("transfer_to_worker"), "final")
    worker = worker_with(worker_model, [lookup], "worker")
    # The package still uses LangGraph's earlier agent, which warns.
    with pytest.warns(LangGraphDeprecatedSinceV10):
        graph = create_supervisor([worker], model=model).compile(checkpointer=InMemorySaver())
    mode.invoke(graph, HI, thread())
    (review,) = reviews(mode, graph, thread())
    assert (review.function_name, review.params) == ("lookup", {"key": "k2"})
    state = answer(mode, graph, thread(), edit(key="k1"))
    assert state["messages"][-1].content == "final"
    assert looked == ["k2", "k1"]
    assert (len(model.calls), len(worker_model.calls)) == (2, 2)


def handing_off(runtime: ToolRuntime) -> list[Command[Any]]:
    """Hand off in a list of commands, as a user's own tool may."""
    done = ToolMessage("done", tool_call_id=str(runtime.tool_call_id))
    update = {"messages": [*runtime.state["messages"], done], "active_agent": "bob"}
    return [Command(goto="bob", graph=Command.PARENT, update=update)]


HANDOFFS = {
    "of the package": create_handoff_tool(agent_name="bob"),
    "in a list": tool("transfer_to_bob")(handing_off),
}


@pytest.mark.parametrize("kind", HANDOFFS)
def test_a_handoff_beside_another_tool_is_refused(kind, mode, caplog):
    """It would end the other tool's question, and plain LangGraph loses that tool's result."""
    looked = []

    def lookup(key: str) -> str:
        """Look something up."""
        looked.append(key)
        if key == "k2":
            raise OSError("down")
        return "found"

    hands_off = calling("transfer_to_bob")
    both = asking(*calling("lookup", key="k2").tool_calls, *hands_off.tool_calls)
    again = asking({**hands_off.tool_calls[0], "id": "alone"})
    alice = in_turn(both, again)
    agents = [
        worker_with(alice, [lookup, HANDOFFS[kind]], "alice"),
        worker_with(in_turn("bob here"), [create_handoff_tool(agent_name="alice")], "bob"),
    ]
    swarm: Any = create_swarm(agents, default_active_agent="alice")
    graph = swarm.compile(checkpointer=InMemorySaver())
    mode.invoke(graph, HI, thread())
    (review,) = reviews(mode, graph, thread())
    assert review.function_name == "lookup"
    state = answer(mode, graph, thread(), edit(key="k1"))
    told = [str(m.content) for m in state["messages"] if isinstance(m, ToolMessage)]
    assert told[0].endswith("found")
    assert told[1].startswith("Nothing was handed over: `transfer_to_bob` leaves this agent")
    assert looked == ["k2", "k1"]
    assert state["messages"][-1].content == "bob here"
    assert "declares that it returns" not in caplog.text


def test_a_swarm_hands_off_through_the_middleware(mode):
    """The handoff is a `Command` to the parent; the next agent's failed call is asked there."""
    alice, bob = in_turn(calling("transfer_to_bob")), in_turn(calling("nope"), "bob here")
    agents = [
        worker_with(alice, [create_handoff_tool(agent_name="bob")], "alice"),
        worker_with(bob, [create_handoff_tool(agent_name="alice")], "bob"),
    ]
    swarm: Any = create_swarm(agents, default_active_agent="alice")
    graph = swarm.compile(checkpointer=InMemorySaver())
    mode.invoke(graph, HI, thread())
    (review,) = reviews(mode, graph, thread())
    assert "no tool `nope`" in review.error
    state = answer(mode, graph, thread(), comment("There is no such tool."))
    assert state["messages"][-1].content == "bob here"
    assert [m.name for m in state["messages"] if isinstance(m, ToolMessage)] == ["transfer_to_bob"]
    assert (len(alice.calls), len(bob.calls)) == (1, 2)
