"""Agents as people reported them: approvals, streams, subagents and errors without a text."""

import json

import pytest
from deepagents import create_deep_agent
from langchain.agents.middleware import (
    ModelFallbackMiddleware,
    ModelResponse,
    wrap_model_call,
)
from langchain.agents.structured_output import ToolStrategy
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

from graph_retry import approve, edit, pending_reviews, reject, resume, retry_llm_call
from graph_retry.agents import RetryMiddleware
from tests.agents.scripted import ScriptedChat, Weather, agent_of, asking, told, weather_of
from tests.loops import thread

HI = {"messages": [HumanMessage("hi")]}


def saved(model, tools, *middleware, **more):
    return agent_of(model, tools, *middleware, checkpointer=InMemorySaver(), **more)


def once(*calls):
    """Make a model that calls these tools once, and then ends."""
    return ScriptedChat(
        answer=lambda messages: "end" if isinstance(messages[-1], ToolMessage) else asking(*calls)
    )


def test_a_mended_conversation_is_not_streamed_again():
    """A chat that shows the stream of messages sees no old message of the model or the user."""
    answers = iter([asking(weather_of("Oslo")), "the answer"])
    model = ScriptedChat(answer=lambda _: next(answers))
    weather = Weather().tool(is_async=False)
    agent = saved(model, [weather], RetryMiddleware(approve={"weather": True}))
    agent.invoke(HI, thread())
    new = {"messages": [HumanMessage("never mind")]}
    streamed = [part[0] for part in agent.stream(new, thread(), stream_mode="messages")]
    assert [part.content for part in streamed if part.type in ("ai", "human")] == ["the answer"]


@pytest.mark.parametrize("decision", [approve(), reject("no")], ids=["approve", "reject"])
def test_a_structured_response_beside_an_approval_is_kept(decision):
    """A message may call a tool that waits, and give the structured response as well."""
    schema = {"title": "Trip", "type": "object", "properties": {"days": {"type": "integer"}}}
    calls = (weather_of("Oslo"), {"name": "Trip", "args": {"days": 3}, "id": "trip"})
    agent = saved(
        ScriptedChat(answer=lambda _: asking(*calls)),
        [Weather().tool(is_async=False)],
        RetryMiddleware(approve={"weather": True}),
        response_format=ToolStrategy(schema),
    )
    agent.invoke(HI, thread())
    state = resume(agent, thread(), decision)
    assert state["structured_response"] == {"days": 3}
    assert set(told(state)) == {"Oslo", "trip"}


def test_approvals_of_an_agent_and_of_its_subagent_are_asked_once_each():
    """An agent that a tool runs asks in the same inbox, after its own call was approved."""
    inner_tool = Weather()
    inner = agent_of(
        once(weather_of("Oslo")),
        [inner_tool.tool(is_async=False)],
        RetryMiddleware(approve={"weather": True}),
    )

    @tool
    def delegate(question: str) -> str:
        """Ask the other agent."""
        return inner.invoke({"messages": [("user", question)]})["messages"][-1].content

    call = {"name": "delegate", "args": {"question": "?"}, "id": "d"}
    agent = saved(once(call), [delegate], RetryMiddleware(approve={"delegate": True}))
    agent.invoke(HI, thread())
    for name in ("delegate", "weather"):
        (review,) = pending_reviews(agent, thread())
        assert review.function_name == name
        state = resume(agent, thread(), approve())
    assert state["messages"][-1].content == "end"
    assert inner_tool.calls == {"Oslo": 1}


def test_an_error_without_a_text_shows_its_artifact():
    """Servers report errors as data beside the text."""
    data = {"code": "RATE_LIMITED", "retry_after": 30}

    @tool
    def search(query: str) -> ToolMessage:
        """Search."""
        return ToolMessage("", tool_call_id="s", status="error", artifact=data)

    call = {"name": "search", "args": {"query": "x"}, "id": "s"}
    agent = saved(once(call), [search], RetryMiddleware(tools=True))
    agent.invoke(HI, thread())
    assert json.dumps(data) in pending_reviews(agent, thread())[0].error


def test_a_reviewed_reply_of_a_chat_node_is_saved_under_the_id_that_was_streamed():
    """The recipe of the docs: return the model's message, and the tokens come once."""
    model = GenericFakeChatModel(messages=iter([AIMessage("no"), AIMessage("Hello, Ada!")]))

    def reply(params):
        message = model.invoke(params["messages"])
        if message.content == "no":
            raise ValueError("not a reply")
        return message

    def chat(state: MessagesState):
        said = [{"role": "user", "content": str(each.text)} for each in state["messages"]]
        return {"messages": [retry_llm_call(reply, {"messages": said})]}

    builder = StateGraph(MessagesState).add_node(chat).add_edge(START, "chat")
    graph = builder.compile(checkpointer=InMemorySaver())
    graph.invoke(HI, thread())
    (review,) = pending_reviews(graph, thread())
    answers = {review.review_id: approve()}
    state = resume(graph, thread(), answers=answers)
    assert [each.type for each in state["messages"]] == ["human", "ai"]

    model.messages = iter([AIMessage("Hello again!")])
    parts = [part[0] for part in graph.stream(HI, thread(), stream_mode="messages")]
    last = graph.get_state(thread()).values["messages"][-1]
    assert "".join(str(part.content) for part in parts) == "Hello again!"
    assert {part.id for part in parts} == {last.id}


@pytest.mark.parametrize(("said", "calls"), [("yes", 1), ("no", 0)])
@pytest.mark.parametrize(
    "around", [(), (ModelFallbackMiddleware(ScriptedChat(answer=str)),)], ids=["", "fallback"]
)
def test_a_gate_in_front_of_the_model_asks_its_own_question(said, calls, around):
    """Middleware behind ours may interrupt: this is no failure, and no fallback runs."""

    @wrap_model_call
    def gate(request, handler):
        if interrupt("may I?") == "yes":
            return handler(request)
        return ModelResponse(result=[AIMessage("denied")])

    model = ScriptedChat(answer=lambda _: "answer")
    agent = saved(model, [], RetryMiddleware(), *around, gate)
    (question,) = agent.invoke(HI, thread())["__interrupt__"]
    assert question.value == "may I?"
    assert pending_reviews(agent, thread()) == []
    state = agent.invoke(Command(resume=said), thread())
    assert state["messages"][-1].content == ("answer" if calls else "denied")
    assert len(model.calls) == calls
    assert not state.get("ledgers")


@pytest.mark.parametrize(
    ("decision", "used"), [(edit(x=9), [9]), (reject("no"), []), (approve(), [1])]
)
def test_a_question_in_a_subagent_of_deepagents_is_answered(decision, used):
    """The state shows the agent's messages, and no model is called again."""
    seen = []

    @tool
    def look(x: int) -> str:
        """Look."""
        seen.append(x)
        return "seen"

    worker = once({"name": "look", "args": {"x": 1}, "id": "l"})
    task = {"name": "task", "args": {"description": "d", "subagent_type": "w"}, "id": "t"}
    sub = {"name": "w", "description": "w", "system_prompt": "w", "tools": [look], "model": worker}
    agent = create_deep_agent(
        model=once(task),
        middleware=[RetryMiddleware(tools=True)],
        subagents=[{**sub, "interrupt_on": {"look": True}}],
        checkpointer=InMemorySaver(),
    )
    agent.invoke(HI, thread())
    (review,) = pending_reviews(agent, thread())
    assert (review.function_name, review.params) == ("look", {"x": 1})
    kinds = [message.type for message in agent.get_state(thread()).values["messages"]]
    assert kinds == ["human", "ai"]
    assert resume(agent, thread(), decision)["messages"][-1].content == "end"
    assert seen == used
    assert len(worker.calls) == 2
