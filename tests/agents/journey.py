"""An agent's journey in which nearly everything goes wrong once, and what each client answers.

The model asks for three cities at once, one in broken JSON; the tool fails for Oslo; the structured
response does not validate until somebody has asked for exactness.
"""

from collections.abc import Callable
from typing import Any

from langchain.agents import create_agent
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.tools import tool
from pydantic import BaseModel

from graph_retry.agents import RetryMiddleware
from tests.agents.scripted import ScriptedChat, asking, weather_of


class Report(BaseModel):
    """The best city."""

    city: str
    days: int


def travelling(messages: list[BaseMessage]) -> Any:
    """Answer as the model of the journey."""
    if not isinstance(messages[-1], ToolMessage) and "exact" not in str(messages):
        lima = {"name": "weather", "args": '{"city": "Lima",}', "id": "Lima"}
        return asking(weather_of("Rome"), weather_of("Oslo"), broken=[lima])
    days = 3 if "exact" in str(messages) else "many"
    return asking({"name": "Report", "args": {"city": "Rome", "days": days}, "id": "report"})


def traveller(log: Callable[[dict[str, Any]], Any], **more: Any) -> Any:
    """Compile the agent; `log` is told of each call of the model and the tool."""

    def answer(messages: list[BaseMessage]) -> Any:
        log({"model": len(messages)})
        return travelling(messages)

    @tool
    def weather(city: str) -> str:
        """Tell a city's weather."""
        log({"city": city})
        if city == "Oslo":
            raise TimeoutError("no answer about Oslo")
        return f"sunny in {city}"

    return create_agent(
        ScriptedChat(answer=answer),
        [weather],
        system_prompt="Be kind.",
        middleware=[RetryMiddleware(tools=True)],
        response_format=ToolStrategy(Report),
        **more,
    )


def _form(value: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return what a form sends: every field, the changed ones as text."""
    return {**value["action_requests"][0]["args"], **changes}


def _agent_chat_ui(value: dict[str, Any], **changes: Any) -> Any:
    action = {"name": value["action_requests"][0]["name"], "args": _form(value, **changes)}
    return {"decisions": [{"type": "edit", "edited_action": action}]}


def _agent_inbox(value: dict[str, Any], **changes: Any) -> Any:
    action = {"action": value["action_request"]["action"], "args": _form(value, **changes)}
    return [{"type": "edit", "args": action}]


Answer = Callable[[dict[str, Any]], Any]
"""Makes an answer of what a review shows."""

CLIENTS: dict[str, tuple[Answer, Answer]] = {
    "ours": (
        lambda _: {"type": "edit", "params": {"city": "Bergen"}},
        lambda _: {"type": "comment", "message": "be exact"},
    ),
    "Agent Chat UI": (
        lambda value: _agent_chat_ui(value, city="Bergen"),
        lambda value: _agent_chat_ui(value, system_prompt="Be exact."),
    ),
    "Agent Inbox": (
        lambda value: _agent_inbox(value, city="Bergen"),
        lambda _: [{"type": "response", "args": "be exact"}],
    ),
    "seed": (
        lambda _: {"action": "retry", "revised_params": {"city": "Bergen"}},
        lambda _: {"action": "retry", "revisedParams": {"system_prompt": "Be exact."}},
    ),
    "AG-UI": (
        lambda _: '{"type": "edit", "params": {"city": "Bergen"}}',
        lambda _: '{"type": "comment", "message": "be exact"}',
    ),
}
"""What clients send about the failing tool, and about the structured response."""

TOLD = {"Rome": "sunny in Rome", "Oslo": "sunny in Bergen", "Lima": "sunny in Lima"}
"""The tools' results of the whole journey, by the ids of their calls."""

CITIES = ["Bergen", "Lima", "Oslo", "Rome"]
"""The tool's calls of the whole journey, sorted."""

MODEL_CALLS = 3
