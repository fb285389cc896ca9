"""An agent to test with: a chat model that answers by a script and counts, and tools that count."""

from collections import Counter
from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import Field

CITIES = ("Rome", "Oslo", "Lima")
_SETTINGS = signature(HumanInTheLoopMiddleware).parameters
MODES = ("batched", "per_call") if "interrupt_mode" in _SETTINGS else ("batched",)
"""How LangChain's approvals ask: about all calls of a message or, since 1.4.6, about each call."""
NOTES_EDITS = "edit_notice" in _SETTINGS
"""Whether LangChain tells the model that a person edited a call, as it does since 1.4.3."""


class ScriptedChat(BaseChatModel):
    """A chat model that answers what `answer` makes of the messages it is sent."""

    answer: Callable[[list[BaseMessage]], Any]
    model_name: str = "small"
    calls: list[list[BaseMessage]] = Field(default_factory=list)
    bound: list[dict[str, Any]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        return self.bind(**kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        self.calls.append(messages)
        self.bound.append(kwargs)
        answer = self.answer(messages)
        if isinstance(answer, Exception):
            raise answer
        message = AIMessage(answer) if isinstance(answer, str) else answer
        return ChatResult(generations=[ChatGeneration(message=message)])


def asking(*calls: dict[str, Any], broken: Sequence[dict[str, Any]] = ()) -> AIMessage:
    """Make a message that calls tools, some of them with arguments that are broken JSON."""
    invalid = [{"error": None, "type": "invalid_tool_call", **call} for call in broken]
    return AIMessage("", tool_calls=list(calls), invalid_tool_calls=invalid)


def weather_of(city: str) -> dict[str, Any]:
    """Return the tool call that asks for a city's weather; its id is the city."""
    return {"name": "weather", "args": {"city": city}, "id": city}


class Weather:
    """A tool that fails for some cities until it is asked about another, and counts its calls."""

    def __init__(
        self, failing: Sequence[str] = (), pause: Callable[[], None] | None = None
    ) -> None:
        self.calls: Counter[str] = Counter()
        self._failing, self._pause = failing, pause

    def tool(self, *, is_async: bool) -> BaseTool:
        """Return it as a tool of one kind."""

        def weather(city: str) -> str:
            """Tell a city's weather."""
            if self._pause is not None:
                self._pause()
            self.calls[city] += 1
            if city in self._failing:
                raise TimeoutError(f"no answer about {city}")
            return f"sunny in {city}"

        async def aweather(city: str) -> str:
            """Tell a city's weather."""
            return weather(city)

        if is_async:
            return StructuredTool.from_function(coroutine=aweather, name="weather")
        return StructuredTool.from_function(weather)


def agent_of(model: BaseChatModel, tools: Sequence[BaseTool], *middleware: Any, **more: Any) -> Any:
    """Compile an agent."""
    return create_agent(model, list(tools), middleware=list(middleware), **more)


def approvals(asks: dict[str, Any], mode: str = "batched") -> Any:
    """Make LangChain's own middleware for approvals, in a mode that the installed version has."""
    options: Any = {"interrupt_mode": mode} if mode != "batched" else {}
    return HumanInTheLoopMiddleware(asks, **options)


def told(state: Any) -> dict[str, str]:
    """Return the result of each tool call by its id, without a note about who changed the call."""
    messages = [said for said in state["messages"] if isinstance(said, ToolMessage)]
    results = {message.tool_call_id: str(message.content) for message in messages}
    return {known_as: text.split("Tool response:\n")[-1] for known_as, text in results.items()}
