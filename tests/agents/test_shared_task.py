"""One task that runs several tools begins anew after a pause: no finished tool runs again."""

from collections import Counter
from typing import Annotated

import pytest
from langchain.agents.middleware import AgentMiddleware, hook_config
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, Send, interrupt

import graph_retry
from graph_retry import edit, pending_reviews, resume
from graph_retry.agents import RetryMiddleware
from tests.agents.scripted import ScriptedChat, Weather, agent_of, asking, told, weather_of
from tests.loops import thread

LOG = {"name": "log", "args": {"what": "x"}, "id": "log"}


class Jump(AgentMiddleware):
    """Middleware that calls tools without the model, in one task."""

    @hook_config(can_jump_to=["tools"])
    def before_model(self, state, runtime):
        """Jump to two tools at the beginning."""
        if len(state["messages"]) > 1:
            return None
        return {"messages": [asking(LOG, weather_of("Oslo"))], "jump_to": "tools"}


class Logged:
    """A tool that counts its calls, and gives one of several kinds of results."""

    def __init__(self, result):
        self.calls, self._result = Counter(), result

    def tool(self):
        """Return it as a tool."""

        def log(what: str, known_as: Annotated[str, InjectedToolCallId]) -> object:
            """Log something."""
            self.calls[what] += 1
            return self._result(known_as)

        return StructuredTool.from_function(log)


def jumping(log, weather):
    """Make an agent whose tools run in one task, because middleware jumps to them."""
    retry = RetryMiddleware(tools=["weather"])
    model = ScriptedChat(answer=lambda _: "done")
    return agent_of(model, [log, weather], Jump(), retry, checkpointer=InMemorySaver())


def own_node(log, weather, send=None):
    """Make a graph with a `ToolNode` of its own, which `send` may give what it works on."""
    retry = RetryMiddleware(tools=["weather"])
    node = ToolNode(
        [log, weather], wrap_tool_call=retry.wrap_tool_call, awrap_tool_call=retry.awrap_tool_call
    )
    builder = StateGraph(MessagesState)
    builder.add_node("ask", lambda _: {"messages": [asking(LOG, weather_of("Oslo"))]})
    builder.add_node("tools", node)
    builder.add_edge(START, "ask")
    if send is None:
        builder.add_edge("ask", "tools")
    else:
        builder.add_conditional_edges("ask", lambda state: [Send("tools", send(state))], ["tools"])
    return builder.compile(checkpointer=InMemorySaver())


def sent_state(log, weather):
    """Send the whole state to the tools."""
    return own_node(log, weather, lambda state: state)


def sent_calls(log, weather):
    """Send several tool calls to one task."""
    return own_node(log, weather, lambda state: state["messages"][-1].tool_calls)


RESULTS = {
    "text": lambda _: "logged",
    "message": lambda known_as: ToolMessage("logged", tool_call_id=known_as, artifact=[1]),
    "error": lambda known_as: ToolMessage("logged", tool_call_id=known_as, status="error"),
    "command": lambda known_as: Command(
        update={"messages": [ToolMessage("logged", tool_call_id=known_as)]}
    ),
}


@pytest.mark.parametrize("make", [jumping, own_node, sent_state, sent_calls])
@pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS)
def test_a_tool_that_is_not_wrapped_runs_once(mode, make, result):
    """The result of a finished tool is kept, in every form, while the other tool waits."""
    log, weather = Logged(result), Weather(failing=["Oslo"])
    graph = make(log.tool(), weather.tool(is_async=False))
    mode.invoke(graph, {"messages": [HumanMessage("go")]}, thread())
    assert len(pending_reviews(graph, thread())) == 1
    state = mode.call(graph_retry, "resume", graph, thread(), edit(city="Rome"))
    assert told(state) == {"log": "logged", "Oslo": "sunny in Rome"}
    assert log.calls == {"x": 1}
    assert weather.calls == {"Oslo": 1, "Rome": 1}


@pytest.mark.parametrize("handles", [True, "told", str])
def test_a_tool_node_that_handles_errors_swallows_no_question(mode, handles):
    """With `handle_tool_errors` a person is asked as well, in place of the model."""
    weather, retry = Weather(failing=["Oslo"]), RetryMiddleware(tools=True)
    wraps = {"wrap_tool_call": retry.wrap_tool_call, "awrap_tool_call": retry.awrap_tool_call}
    node = ToolNode([weather.tool(is_async=mode.is_async)], handle_tool_errors=handles, **wraps)
    builder = StateGraph(MessagesState)
    builder.add_node("ask", lambda _: {"messages": [asking(weather_of("Oslo"))]})
    builder.add_node("tools", node).add_edge(START, "ask").add_edge("ask", "tools")
    graph = builder.compile(checkpointer=InMemorySaver())
    mode.invoke(graph, {"messages": [HumanMessage("go")]}, thread())
    state = mode.call(graph_retry, "resume", graph, thread(), edit(city="Rome"))
    assert told(state) == {"Oslo": "sunny in Rome"}
    assert weather.calls == {"Oslo": 1, "Rome": 1}


def test_an_exception_of_a_tool_that_is_not_wrapped_stays_its_own(mode):
    """It ends the run as without the middleware, and the next run calls the tool again."""

    def fail(known_as):
        if log.calls["x"] == 1:
            raise ArithmeticError("no ink")
        return "logged"

    log, weather = Logged(fail), Weather()
    graph = own_node(log.tool(), weather.tool(is_async=False))
    with pytest.raises(ArithmeticError, match="no ink"):
        mode.invoke(graph, {"messages": [HumanMessage("go")]}, thread())
    state = mode.invoke(graph, None, thread())
    assert told(state) == {"log": "logged", "Oslo": "sunny in Oslo"}
    assert log.calls == {"x": 2}
    assert weather.calls == {"Oslo": 1}


def test_a_question_of_such_a_tool_is_answered_by_its_id():
    """A tool that is not wrapped may ask by itself, beside a tool that waits for a review."""
    log, weather = Logged(lambda _: interrupt("which?")), Weather(failing=["Oslo"])
    graph = jumping(log.tool(), weather.tool(is_async=False))
    graph.invoke({"messages": [HumanMessage("go")]}, thread())
    (question,) = [each for each in graph.get_state(thread()).interrupts if each.value == "which?"]
    graph.invoke(Command(resume={question.id: "this"}), thread())
    state = resume(graph, thread(), edit(city="Rome"))
    assert told(state) == {"log": "this", "Oslo": "sunny in Rome"}
    assert weather.calls == {"Oslo": 1, "Rome": 1}
