"""A LangChain agent: a failing tool and a wrong structured response are reviewed by a person.

Run it: `python -m examples.agent`. It needs the extra `agents` and no key: the model is scripted.
"""

from collections.abc import Sequence
from typing import Any

from langchain import agents
from langchain.agents.structured_output import ToolStrategy
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel

from graph_retry import comment, edit, pending_reviews, resume
from graph_retry.agents import RetryMiddleware


class Trip(BaseModel):
    """Where to go."""

    city: str
    days: int


class Planner(BaseChatModel):
    """Stands for a real model: it asks about two cities, and counts days only if it is told to."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:  # noqa: D102, ARG002
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        seen = [message for message in messages if isinstance(message, ToolMessage)]
        days: Any = 3 if "in days" in str(messages[-1].content) else "a few"
        calls = [
            {"name": "weather", "args": {"city": city}, "id": city} for city in ("Rome", "Olso")
        ]
        trip = [{"name": "Trip", "args": {"city": "Rome", "days": days}, "id": "trip"}]
        message = AIMessage("", tool_calls=trip if seen else calls)
        return ChatResult(generations=[ChatGeneration(message=message)])


@tool
def weather(city: str) -> str:
    """Tell a city's weather."""
    if city not in ("Rome", "Oslo"):
        raise LookupError(f"no such city: {city}")
    return f"sunny in {city}"


agent = agents.create_agent(
    Planner(),
    [weather],
    middleware=[RetryMiddleware(tools=True)],
    response_format=ToolStrategy(Trip),
    checkpointer=InMemorySaver(),
)
config: Any = {"configurable": {"thread_id": "1"}}

agent.invoke({"messages": [HumanMessage("Where shall I go?")]}, config)
(review,) = pending_reviews(agent, config)
print(f"{review.function_name}: {review.error} {review.params}")
# expect: weather: LookupError: no such city: Olso {'city': 'Olso'}

resume(agent, config, edit(city="Oslo"))
(review,) = pending_reviews(agent, config)
print(f"{review.function_name}: {review.issues[0]['path']} {review.issues[0]['received']}")
# expect: model: /tool_calls/0/args/days "a few" (str)

state = resume(agent, config, comment("Say how long, in days."))
print(repr(state["structured_response"]), len(state["messages"]))
# expect: Trip(city='Rome', days=3) 6
