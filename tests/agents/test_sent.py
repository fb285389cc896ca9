"""What a person is shown is what is sent, whatever other middleware does with the request."""

from copy import copy
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    ModelFallbackMiddleware,
)
from langchain_core.messages import HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from graph_retry import approve, edit
from graph_retry.agents import RetryMiddleware
from tests.agents.scripted import ScriptedChat, asking
from tests.loops import answer, reviews, thread

HI: Any = {"messages": [("user", "go")]}


class Changing(AgentMiddleware[Any, Any, Any]):
    """Middleware that changes parts of each request of the model, or the arguments of a tool.

    how: `request` for a changed copy, `in place` for the same object, `tool` for another tool, too.
    """

    def __init__(self, args: Any = None, how: str = "request", **parts: Any) -> None:
        super().__init__()
        self._args, self._how, self._parts = args, how, parts

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        """Change the request."""
        return handler(request.override(**self._parts))

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        """Do the same."""
        return await handler(request.override(**self._parts))

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        """Change the arguments."""
        return handler(self._changed(request))

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        """Do the same."""
        return await handler(self._changed(request))

    def _changed(self, request: Any) -> Any:
        if self._args is None:
            return request
        if self._how == "in place":
            request.tool_call["args"].update(self._args)
            return request
        tool = {"tool": copy(request.tool)} if self._how == "tool" else {}
        return request.override(tool_call={**request.tool_call, "args": self._args}, **tool)


def failing(messages: Any) -> Any:
    """Call a tool that there is not."""
    return asking({"name": "nope", "args": {}, "id": "n"})


def agent_of(model: Any, *middleware: Any, tools: Any = ()) -> Any:
    """Make an agent."""
    saver = InMemorySaver()
    return create_agent(model, [*tools], middleware=[*middleware], checkpointer=saver)


SMALL = ScriptedChat(answer=failing, model_name="tiny")
FIXED = SystemMessage("Be kind.")
CHANGES = [
    ({"system_message": FIXED}, {"system_prompt": "Be kind."}),
    ({"messages": []}, {"messages": [], "messages_left_out": 1}),
    ({"model": SMALL}, {"model": "tiny"}),
    ({"model_settings": {"temperature": 0.7}}, {"settings": {"temperature": 0.7}}),
    ({"tool_choice": "any"}, {"tool_choice": "any"}),
]


@pytest.mark.parametrize(("parts", "sent"), CHANGES)
def test_what_inner_middleware_sends_instead_is_shown(parts, sent, mode):
    """The review and the ledger have it beside the params."""
    agent = agent_of(ScriptedChat(answer=failing), RetryMiddleware(), Changing(**parts))
    mode.invoke(agent, HI, thread())
    (review,) = reviews(mode, agent, thread())
    assert review.sent == sent
    assert review.history[-1]["sent"] == sent
    assert any("instead of the params" in heading for heading, _ in review.quoted)


class Classifying(Changing):
    """Middleware that asks a model of its own first."""

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        """Ask about the last message."""
        about = f"Is this hard? {request.messages[-1].content}"
        ScriptedChat(answer=lambda _: "no").invoke([HumanMessage(about)])
        return super().wrap_model_call(request, handler)

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        """Do the same."""
        await ScriptedChat(answer=lambda _: "no").ainvoke([HumanMessage("Is this hard?")])
        return await super().awrap_model_call(request, handler)


@pytest.mark.parametrize("kind", [Changing, Classifying])
@pytest.mark.parametrize(
    ("parts", "change"),
    [
        ({"model": SMALL}, {"model": "large"}),
        ({"model_settings": {"temperature": 0.7}}, {"settings": {"temperature": 0.1}}),
        ({"model_settings": {}}, {"settings": {"seed": 1}}),
        ({"system_message": FIXED}, {"system_prompt": "Be exact."}),
        ({"messages": [HumanMessage("hi")]}, {"messages": [{"role": "user", "content": "bye"}]}),
    ],
)
def test_an_edit_that_would_not_be_sent_is_refused_before_the_call(kind, parts, change, mode):
    """The error names the order; nothing is called."""
    large = ScriptedChat(answer=lambda _: "fine", model_name="large")
    small = ScriptedChat(answer=failing)
    middleware = RetryMiddleware(models={"large": large})
    agent = agent_of(small, middleware, kind(**parts))
    mode.invoke(agent, HI, thread())
    before = len(small.calls), len(SMALL.calls)
    with pytest.raises(ValueError, match=f"changes `{next(iter(change))}` of the request"):
        answer(mode, agent, thread(), edit(**change))
    assert (len(small.calls), len(SMALL.calls), len(large.calls)) == (*before, 0)


class InPlace(Changing):
    """Middleware that changes its request in place."""

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        """Add a message and a setting."""
        request.messages.append(HumanMessage("Be brief.", id="b"))
        request.model_settings["temperature"] = 0.7
        return handler(request)

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        """Do the same."""
        return await self.wrap_model_call(request, handler)


def test_a_request_that_is_changed_in_place_is_shown_and_loses_no_edit(mode):
    """The person's copy of the request stays as it was."""
    agent = agent_of(ScriptedChat(answer=failing), RetryMiddleware(), InPlace())
    mode.invoke(agent, HI, thread())
    (review,) = reviews(mode, agent, thread())
    brief = {"role": "user", "content": "Be brief.", "id": "b"}
    assert review.sent == {
        "settings": {"temperature": 0.7},
        "messages": [brief],
        "messages_left_out": 0,
    }
    with pytest.raises(ValueError, match="changes `settings` of the request"):
        answer(mode, agent, thread(), edit(settings={"temperature": 0.1}))


def test_an_edit_that_inner_middleware_keeps_is_sent(mode):
    """Middleware that adds a setting of its own changes nothing that a person chose."""

    class Adding(Changing):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            return handler(request.override(model_settings={**request.model_settings, "top_p": 1}))

        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            settings = {**request.model_settings, "top_p": 1}
            return await handler(request.override(model_settings=settings))

    model = ScriptedChat(answer=lambda _: "fine" if len(model.calls) > 1 else failing(None))
    agent = agent_of(model, RetryMiddleware(), Adding())
    mode.invoke(agent, HI, thread())
    answer(mode, agent, thread(), edit(settings={"temperature": 0.1}))
    assert model.bound[-1] == {"temperature": 0.1, "top_p": 1}


def test_a_fallback_is_named_by_the_review_and_follows_a_chosen_model(mode):
    """The model that failed last is shown; the person's choice is tried before the fallback."""

    def down(_: Any) -> Any:
        return ConnectionError("down")

    first = ScriptedChat(answer=down, model_name="first")
    second = ScriptedChat(answer=down, model_name="second")
    large = ScriptedChat(answer=down, model_name="large")
    ours = RetryMiddleware(models={"large": large})
    agent = agent_of(first, ours, ModelFallbackMiddleware(second))
    mode.invoke(agent, HI, thread())
    (review,) = reviews(mode, agent, thread())
    assert (review.params["model"], review.sent) == ("first", {"model": "second"})
    answer(mode, agent, thread(), edit(model="large"))
    assert (len(large.calls), len(second.calls)) == (1, 2)


def test_tools_of_inner_middleware_are_valid(mode):
    """A tool that is added behind the review may be called, also by a message that waits."""

    class Bash(Changing):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            return handler(request.override(tools=[*request.tools, {"name": "bash"}]))

        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            return await handler(request.override(tools=[*request.tools, {"name": "bash"}]))

        def wrap_tool_call(self, request: Any, handler: Any) -> Any:
            return ToolMessage("ran", tool_call_id=request.tool_call["id"])

        async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
            return ToolMessage("ran", tool_call_id=request.tool_call["id"])

    def call(messages: Any) -> Any:
        is_done = isinstance(messages[-1], ToolMessage)
        return "end" if is_done else asking({"name": "bash", "args": {}, "id": "b"})

    @tool
    def other() -> str:
        """Do something else."""
        return "done"

    agent = agent_of(ScriptedChat(answer=call), RetryMiddleware(), Bash(), tools=[other])
    assert mode.invoke(agent, HI, thread())["messages"][-1].content == "end"
    waiting = agent_of(
        ScriptedChat(answer=call), RetryMiddleware(review="always"), Bash(), tools=[other]
    )
    mode.invoke(waiting, HI, thread())
    state = answer(mode, waiting, thread(), approve())
    assert state["messages"][-1].content == "ran"


@pytest.mark.parametrize(
    ("fails", "how"), [(False, "request"), (True, "request"), (True, "in place"), (True, "tool")]
)
def test_changed_arguments_behind_the_review_are_refused(fails, how, mode):
    """A person would see others than those that are used; before the middleware they are shown."""
    used: list[int] = []

    @tool
    def transfer(amount: int) -> str:
        """Transfer."""
        used.append(amount)
        if fails and len(used) == 1:
            raise ValueError("bank closed")
        return "done"

    def call(messages: Any) -> Any:
        is_done = isinstance(messages[-1], ToolMessage)
        return (
            "end" if is_done else asking({"name": "transfer", "args": {"amount": 100}, "id": "t"})
        )

    after = agent_of(
        ScriptedChat(answer=call),
        RetryMiddleware(tools=True),
        Changing({"amount": 50}, how),
        tools=[transfer],
    )
    with pytest.raises(ValueError, match="changes `args` of the request"):
        mode.invoke(after, HI, thread())
    assert used == []
    before = agent_of(
        ScriptedChat(answer=call),
        Changing({"amount": 50}, how),
        RetryMiddleware(tools=True),
        tools=[transfer],
    )
    mode.invoke(before, HI, thread())
    if fails:
        (review,) = reviews(mode, before, thread())
        assert review.params == {"amount": 50}
        answer(mode, before, thread(), edit(amount=80))
    assert used == ([50, 80] if fails else [50])


class Asking(AgentMiddleware[Any, Any, Any]):
    """Middleware that makes several calls for one answer, and takes the longest."""

    def __init__(self, *settings: dict[str, Any]) -> None:
        super().__init__()
        self._settings = settings

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        """Call with each of the settings."""
        made = [handler(request.override(model_settings=each)) for each in self._settings]
        return max(made, key=_length)

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        """Do the same."""
        made = [await handler(request.override(model_settings=each)) for each in self._settings]
        return max(made, key=_length)


def _length(response: Any) -> int:
    response = getattr(response, "model_response", response)
    return len(response.result[0].content)


@pytest.mark.parametrize(
    "settings", [({"temperature": 0}, {"temperature": 1}, {"temperature": 2}), ({}, {}, {})]
)
def test_several_calls_for_one_answer_are_several_calls(settings, mode):
    """Requests that differ are told apart by what is sent, equal ones by their number."""
    answers = iter(["a", failing(None), "ccc", "dddd"])
    model = ScriptedChat(answer=lambda _: next(answers))
    agent = agent_of(model, Asking(*settings), RetryMiddleware())
    mode.invoke(agent, HI, thread())
    assert len(reviews(mode, agent, thread())) == 1
    state = answer(mode, agent, thread(), approve())
    assert state["messages"][-1].content == "dddd"
    assert len(model.calls) == 4
