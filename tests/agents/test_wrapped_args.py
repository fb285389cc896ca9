"""Arguments and structured responses inside a wrapper are read, or a person is asked."""

import pytest
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel

from graph_retry.agents import RetryMiddleware
from tests.agents.scripted import ScriptedChat, agent_of, asking
from tests.loops import reviews, thread


class Trip(BaseModel):
    """A response whose fields have defaults only."""

    city: str = "anywhere"
    days: int = 1


def run(mode, given, *, is_response):
    """Let a model call a tool with these arguments; return the calls, the response, the agent."""
    calls = []

    @tool
    def book(city: str = "anywhere", days: int = 1) -> str:
        """Book a trip."""
        calls.append((city, days))
        return "booked"

    asked = asking({"name": "Trip" if is_response else "book", "args": given, "id": "1"})
    model = ScriptedChat(answer=lambda sent: asked if len(sent) == 1 else "done")
    more = {"response_format": ToolStrategy(Trip)} if is_response else {}
    tools = [] if is_response else [book]
    agent = agent_of(model, tools, RetryMiddleware(), checkpointer=InMemorySaver(), **more)
    state = mode.invoke(agent, {"messages": [HumanMessage("go")]}, thread())
    response = state.get("structured_response")
    return ([(response.city, response.days)] if response else calls), agent


@pytest.mark.parametrize("is_response", [False, True], ids=["tool", "response"])
@pytest.mark.parametrize(
    "given",
    [
        {"arguments": {"city": "Oslo", "days": 2}},
        {"name": "x", "parameters": {"city": "Oslo", "days": 2}},
        {"answer": {"city": "Oslo", "days": 2}},
        {"input": '{"city": "Oslo", "days": 2}'},
        {"properties": {"city": "Oslo", "days": 2}, "type": "object"},
    ],
    ids=lambda given: next(iter(given)),
)
def test_a_wrapper_with_nothing_beside_the_value_is_taken_off(mode, given, is_response):
    """The tool would otherwise run by its defaults, and nobody would know."""
    made, agent = run(mode, given, is_response=is_response)
    assert made == [("Oslo", 2)]
    kinds = [
        repair["kind"]
        for attempts in agent.get_state(thread()).values["ledgers"].values()
        for repair in attempts[0]["repairs"]
    ]
    assert kinds == ["unwrapped"]


@pytest.mark.parametrize("is_response", [False, True], ids=["tool", "response"])
@pytest.mark.parametrize(
    "given",
    [{"town": "Oslo"}, {"a": {"city": "Oslo"}, "b": {"city": "Rome"}}, {"input": {}}],
    ids=["other key", "two values", "empty"],
)
def test_arguments_of_which_no_key_is_known_are_asked_about(mode, given, is_response):
    """Only defaults would be left of such a call."""
    made, agent = run(mode, given, is_response=is_response)
    (review,) = reviews(mode, agent, thread())
    assert made == []
    assert [each["code"] for each in review.issues] == ["unknown_keys"]


@pytest.mark.parametrize("given", [{}, {"city": "Oslo"}, {"city": "Oslo", "note": {"days": 3}}])
def test_arguments_that_fit_are_left_alone(mode, given):
    """No arguments at all, some of them, or one too many: the call is the model's own."""
    made, _ = run(mode, given, is_response=False)
    assert made == [(given.get("city", "anywhere"), 1)]
