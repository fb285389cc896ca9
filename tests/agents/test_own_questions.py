"""Questions and agents inside a call belong to one attempt, and an answer to one question."""

import pytest
from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

from graph_retry import edit
from graph_retry.agents import RetryMiddleware
from tests.agents.scripted import (
    NOTES_EDITS,
    ScriptedChat,
    Weather,
    agent_of,
    asking,
    told,
    weather_of,
)
from tests.loops import Model, answer, one_call, reviews, thread

HI = {"messages": [HumanMessage("Where is it sunny?")]}


def scripted(*answers):
    """Make a model that gives these answers one after the other."""
    left = iter(answers)
    return ScriptedChat(answer=lambda _: next(left))


def asked(state):
    """Return what a run's state asks."""
    return [question.value for question in state.get("__interrupt__", ())]


def tool_of(mode, name, work):
    """Make a tool of the mode's kind from a coroutine function `work(mode, city)`."""

    async def awork(city: str) -> str:
        return await work(city)

    def sync(city: str) -> str:
        try:
            work(city).send(None)
        except StopIteration as stop:
            return stop.value
        raise AssertionError("it waited")

    if mode.is_async:
        return StructuredTool.from_function(coroutine=awork, name=name, description="Ask.")
    return StructuredTool.from_function(sync, name=name, description="Ask.")


class Providing(AgentMiddleware):
    """Middleware behind ours that runs its own copy of the tool."""

    def wrap_tool_call(self, request, handler):
        assert isinstance(request.tool, StructuredTool)
        return handler(request.override(tool=self.tool_of))

    async def awrap_tool_call(self, request, handler):
        assert isinstance(request.tool, StructuredTool)
        return await handler(request.override(tool=self.tool_of))


@pytest.mark.parametrize(("questions", "provided"), [(1, False), (2, False), (1, True)])
def test_each_attempt_of_a_tool_asks_its_own_questions(mode, questions, provided):
    """What a person allowed for one city is not taken for another."""

    async def weather(city):
        said = [interrupt({"sure": city, "number": number}) for number in range(questions)]
        if city == "Rome":
            raise TimeoutError("no answer")
        return f"{', '.join(said)} in {city}"

    model, retry = scripted(asking(weather_of("Rome")), "Done."), RetryMiddleware(tools=True)
    tools, inner = [tool_of(mode, "weather", weather)], Providing()
    inner.tool_of = tools[0].model_copy()
    behind = [inner] if provided else []
    agent = agent_of(model, tools, retry, *behind, checkpointer=InMemorySaver())
    state = mode.invoke(agent, HI, thread())
    for number in range(questions):
        assert asked(state) == [{"sure": "Rome", "number": number}]
        state = mode.invoke(agent, Command(resume="yes"), thread())
    state = answer(mode, agent, thread(), edit(city="Oslo"))
    for number in range(questions):
        assert asked(state) == [{"sure": "Oslo", "number": number}]
        state = mode.invoke(agent, Command(resume="sunny"), thread())
    assert told(state) == {"Rome": ", ".join(["sunny"] * questions) + " in Oslo"}


@pytest.mark.parametrize("route", ["resume", "command"])
def test_each_attempt_of_a_call_asks_its_own_questions(form, mode, route):
    """A call's own `interrupt` is asked again where the params are others."""

    def model(params):
        said = interrupt({"sure": params["n"]})
        if params["n"] == 0:
            raise TimeoutError("no answer")
        return f'{{"n": {said}}}'

    graph = one_call(form, mode, Model(model), InMemorySaver())
    assert {"sure": 0} in asked(mode.invoke(graph, {"params": {"n": 0}}, thread()))
    mode.invoke(graph, Command(resume="5"), thread())
    (review,) = reviews(mode, graph, thread())
    by_id = Command(resume={review.interrupt_id: edit(n=1)})
    is_command = route == "command"
    state = (
        mode.invoke(graph, by_id, thread())
        if is_command
        else answer(mode, graph, thread(), edit(n=1))
    )
    assert {"sure": 1} in asked(state)
    assert mode.invoke(graph, Command(resume="7"), thread())["output"] == {"n": 7}


def test_an_approval_of_langchains_own_is_for_one_question(mode):
    """In an agent within a node, what was approved before a review allows no later tool call."""
    weather = Weather(failing=["Rome"])
    model = scripted(asking(weather_of("Rome")), asking(weather_of("Oslo")), "Done.")
    beside = (HumanInTheLoopMiddleware({"weather": True}), RetryMiddleware(tools=True))
    builder = StateGraph(MessagesState)
    builder.add_node("agent", agent_of(model, [weather.tool(is_async=mode.is_async)], *beside))
    builder.add_edge(START, "agent")
    builder.add_edge("agent", END)
    graph = builder.compile(checkpointer=InMemorySaver())
    mode.invoke(graph, HI, thread())
    approval = Command(resume={"decisions": [{"type": "approve"}]})
    mode.invoke(graph, approval, thread())
    state = answer(mode, graph, thread(), edit(city="Lima"))
    (question,) = asked(state)
    assert question["action_requests"][0]["args"] == {"city": "Oslo"}
    assert weather.calls == {"Rome": 1, "Lima": 1}
    assert set(told(mode.invoke(graph, approval, thread()))) == {"Rome", "Oslo"}


@pytest.mark.parametrize("fails", ["the tool", "the agent in it"])
def test_each_attempt_of_a_tool_that_is_an_agent_begins_anew(mode, fails):
    """An agent inside a tool is given the edited arguments, and not what it was asked before."""

    def inner(messages):
        if fails == "the agent in it" and messages[-1].content == "Rome":
            return TimeoutError("no answer")
        return f"{messages[-1].content} is sunny"

    expert, within = ScriptedChat(answer=inner), "the agent in it"
    agent_within = agent_of(expert, [])

    async def weather(city):
        given = {"messages": [HumanMessage(city)]}
        state = await agent_within.ainvoke(given) if mode.is_async else agent_within.invoke(given)
        if city == "Rome" and fails != within:
            raise TimeoutError("no answer")
        return state["messages"][-1].content

    model, retry = scripted(asking(weather_of("Rome")), "Done."), RetryMiddleware(tools=True)
    tools = [tool_of(mode, "weather", weather)]
    agent = agent_of(model, tools, retry, checkpointer=InMemorySaver())
    mode.invoke(agent, HI, thread())
    assert [review.params for review in reviews(mode, agent, thread())] == [{"city": "Rome"}]
    state = answer(mode, agent, thread(), edit(city="Oslo"))
    assert told(state) == {"Rome": "Oslo is sunny"}
    assert [call[-1].content for call in expert.calls] == ["Rome", "Oslo"]
    assert not any(isinstance(said, ToolMessage) for call in expert.calls for said in call)


def test_a_call_that_people_edit_twice_is_told_so(mode):
    """The note of the other middleware names the call that failed, and ours the one that ran."""

    class Reading(AgentMiddleware):
        """Middleware that reads updates as dicts, as that of deepagents does."""

        def wrap_tool_call(self, request, handler):
            return self.read(handler(request))

        async def awrap_tool_call(self, request, handler):
            return self.read(await handler(request))

        def read(self, result):
            updates.append(sorted(result.update))
            return result

    updates, weather = [], Weather(failing=["Oslo", "Rome"])
    beside = (Reading(), HumanInTheLoopMiddleware({"weather": True}), RetryMiddleware(tools=True))
    model, tools = scripted(asking(weather_of("Oslo")), "Done."), [weather.tool(is_async=False)]
    agent = agent_of(model, tools, *beside, checkpointer=InMemorySaver())
    mode.invoke(agent, HI, thread())
    edited = {"type": "edit", "edited_action": {"name": "weather", "args": {"city": "Rome"}}}
    mode.invoke(agent, Command(resume={"decisions": [edited]}), thread())
    state = answer(mode, agent, thread(), edit(city="Lima"))
    assert updates == [["ledgers", "messages"]]
    *theirs, ours, result = str(state["messages"][-2].content).split("Tool response:\n")
    assert len(theirs) == NOTES_EDITS
    for note in theirs:
        assert note.endswith('Executed instead: weather with arguments {"city": "Rome"}.\n\n')
    assert ours.startswith("Note: a person replaced this tool call after it had failed.")
    assert ours.endswith('Executed instead: weather with arguments {"city": "Lima"}.\n\n')
    assert result == "sunny in Lima"
