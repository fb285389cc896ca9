"""LangChain's own middleware beside ours: in every order it works, or is refused at once."""

import json
import warnings
from itertools import count
from types import SimpleNamespace

import pytest
from langchain.agents import middleware as shipped
from langchain.agents.middleware import (
    AgentMiddleware,
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    HumanInTheLoopMiddleware,
    LLMToolEmulator,
    LLMToolSelectorMiddleware,
    ModelCallLimitMiddleware,
    ModelFallbackMiddleware,
    ModelRetryMiddleware,
    PIIMiddleware,
    SummarizationMiddleware,
    TodoListMiddleware,
    ToolCallLimitMiddleware,
    ToolRetryMiddleware,
    dynamic_prompt,
)
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from graph_retry import edit
from graph_retry.agents import RetryMiddleware
from tests.agents.scripted import ScriptedChat, Weather, agent_of, asking, told, weather_of
from tests.loops import answer, reviews, thread


def changing_prompt():
    """Make a prompt that is another one whenever it is asked for."""
    number = count()

    @dynamic_prompt
    def prompt(_request):
        return f"Be kind, for the {next(number)}th time."

    return prompt


class Selecting(ScriptedChat):
    """A model that selects every tool, and counts."""

    def with_structured_output(self, schema, **_):
        assert '"weather"' in json.dumps(schema)

        def select(messages):
            self.calls.append(messages)
            return {"tools": ["weather"]}

        return RunnableLambda(select)


FAILING = {"max_retries": 1, "initial_delay": 0, "jitter": False, "on_failure": "error"}
SMALL = ClearToolUsesEdit(trigger=1, keep=0)

EITHER, BEFORE, AFTER, NEVER = "either", "before", "after", "never"

MIDDLEWARE = {
    "dynamic prompt": (changing_prompt, BEFORE),
    "todo": (TodoListMiddleware, BEFORE),
    "context editing": (lambda: ContextEditingMiddleware(edits=[SMALL]), BEFORE),
    "human in the loop": (lambda: HumanInTheLoopMiddleware({"weather": True}), BEFORE),
    "tool selector": (lambda: LLMToolSelectorMiddleware(model=Selecting(answer=str)), AFTER),
    "model retry": (lambda: ModelRetryMiddleware(**FAILING), AFTER),
    "tool retry": (lambda: ToolRetryMiddleware(**FAILING), AFTER),
    "fallback": (lambda: ModelFallbackMiddleware(ScriptedChat(answer=scripted)), AFTER),
    "model retry that goes on": (ModelRetryMiddleware, NEVER),
    "tool retry that goes on": (ToolRetryMiddleware, NEVER),
    "model call limit": (lambda: ModelCallLimitMiddleware(run_limit=9), EITHER),
    "tool call limit": (lambda: ToolCallLimitMiddleware(run_limit=9), EITHER),
    "summary": (
        lambda: SummarizationMiddleware(
            model=ScriptedChat(answer=lambda _: "Short."), trigger=("messages", 3)
        ),
        EITHER,
    ),
    "PII": (lambda: PIIMiddleware("email", apply_to_output=True), EITHER),
    "emulator": (
        lambda: LLMToolEmulator(tools=["other"], model=ScriptedChat(answer=str)),
        EITHER,
    ),
}


ROUTE = {"type": "choice", "choice": "small", "probabilities": {"small": 1}, "confidence": 1}


class Deciding:
    """A decision model that chooses the only route, and finds no risk."""

    def invoke(self, given):
        return SimpleNamespace(
            choices={"model_route": decisions.ChoiceAnswer(**ROUTE)},
            nouls={"is_risky": SimpleNamespace(noul=0)},
        )

    async def ainvoke(self, given):
        return self.invoke(given)


def routing():
    """Make a router that always chooses one model."""
    small = shipped.ModelChoice(ScriptedChat(answer=scripted), "all")
    given = {"choices": {"small": small}, "instructions": "?", "classifier": Deciding()}
    with warnings.catch_warnings(action="ignore"):  # It is a beta.
        return shipped.ModelRouterMiddleware(**given)


if hasattr(shipped, "ModelRouterMiddleware"):
    from langchain_core import decisions

    MIDDLEWARE["router"] = (routing, BEFORE)
    MIDDLEWARE["refusal"] = (shipped.ModelRefusalMiddleware, EITHER)
    MIDDLEWARE["auto mode"] = (
        lambda: shipped.AutoModeMiddleware(tools=["weather"], classifier=Deciding()),
        EITHER,
    )
if hasattr(shipped, "ToolErrorMiddleware"):  # older versions do not have it
    MIDDLEWARE["tool error"] = (lambda: shipped.ToolErrorMiddleware(on_error=str), BEFORE)
if hasattr(shipped, "ProviderToolSearchMiddleware"):
    MIDDLEWARE["tool search"] = (shipped.ProviderToolSearchMiddleware, EITHER)


def scripted(messages):
    """Fail until the prompt is exact; then ask for the weather once, and tell it."""
    if "exact" not in str(messages[0].content):
        return TimeoutError("no answer")
    if any(isinstance(said, ToolMessage) for said in messages):
        return "Done."
    return asking(weather_of("Oslo"))


def test_each_middleware_of_langchain_has_a_place():
    """A new one must be tried on both sides; these two only have tools of their own."""
    with_tools = {shipped.ShellToolMiddleware, shipped.FilesystemFileSearchMiddleware}
    known = {type(make()) for make, _ in MIDDLEWARE.values()} | with_tools
    listed = [getattr(shipped, name) for name in shipped.__all__]
    kinds = {
        each for each in listed if isinstance(each, type) and issubclass(each, AgentMiddleware)
    }
    assert kinds - known == {AgentMiddleware}


@pytest.mark.parametrize("place", [BEFORE, AFTER])
@pytest.mark.parametrize("name", MIDDLEWARE)
def test_each_order_is_right_or_refused_when_the_agent_is_made(mode, name, place):
    """The prompt that a person gives is sent, no call is repeated, and the tool's edit holds."""
    made, right = MIDDLEWARE[name]
    other, retry = made(), RetryMiddleware(tools=True)
    model = other.models["small"] if name == "router" else ScriptedChat(answer=scripted)
    weather = Weather(failing=["Oslo"])
    beside = (other, retry) if place == BEFORE else (retry, other)
    tools, saver = [weather.tool(is_async=mode.is_async)], InMemorySaver()
    if right not in (EITHER, place):
        order = [retry, other] if right == AFTER else [other, retry]
        names = ", ".join(f"`{each.name}`" for each in order)
        expected = "on_failure='error'" if right == NEVER else rf"Use this order: {names}\."
        with pytest.raises(ValueError, match=expected):
            agent_of(model, tools, *beside, checkpointer=saver)
        return
    agent = agent_of(model, tools, *beside, checkpointer=saver)
    state = mode.invoke(agent, {"messages": [HumanMessage("Where is it sunny?")]}, thread())
    prompts = []
    while open_reviews := reviews(mode, agent, thread()):
        (review,) = open_reviews
        if review.function_name == "model":
            prompts.append(review.params["system_prompt"])
            assert prompts[-1] == (model.calls[-1][0].text if prompts[-1] else None)
            decision = edit(system_prompt="Be exact.")
        else:
            decision = edit(city="Bergen")
        state = answer(mode, agent, thread(), decision)
        asked = state.get("__interrupt__", ())
        if asked and "review_id" not in asked[0].value:  # the other's own question
            approval = Command(resume={"decisions": [{"type": "approve"}]})
            state = mode.invoke(agent, approval, thread())
    assert told(state) == {"Oslo": "sunny in Bergen"}
    tries = 2 if name == "tool retry" else 1
    assert weather.calls == {"Oslo": tries, "Bergen": 1}
    sent = [calls[0].content for calls in model.calls]
    assert sum("exact" in str(prompt) for prompt in sent) == len(prompts)
    tries = 2 if name == "model retry" else 1
    assert len(model.calls) == len(prompts) * (tries + 1)


def test_the_whole_order_is_told(mode):
    """One message says where each of them belongs."""
    retry = RetryMiddleware(tools=True)
    wrong = [
        ModelRetryMiddleware(on_failure="error"),
        retry,
        TodoListMiddleware(),
        changing_prompt(),
    ]
    order = "`TodoListMiddleware`, `prompt`, `RetryMiddleware`, `ModelRetryMiddleware`"
    with pytest.raises(ValueError, match=f"Use this order: {order}"):
        agent_of(ScriptedChat(answer=str), [], *wrong)


def test_approvals_of_other_tools_stand_on_either_side(mode):
    """`HumanInTheLoopMiddleware` behind ours is refused only where both meet at one tool."""
    weather, others = Weather(failing=["Oslo"]), HumanInTheLoopMiddleware({"other": True})
    retry, tools = RetryMiddleware(tools=["weather"]), [weather.tool(is_async=mode.is_async)]
    model = ScriptedChat(answer=lambda m: "Done." if m[1:] else asking(weather_of("Oslo")))
    agent = agent_of(model, tools, retry, others, checkpointer=InMemorySaver())
    mode.invoke(agent, {"messages": [HumanMessage("Where is it sunny?")]}, thread())
    assert told(answer(mode, agent, thread(), edit(city="Bergen"))) == {"Oslo": "sunny in Bergen"}
    meeting = HumanInTheLoopMiddleware({"weather": True})
    with pytest.raises(ValueError, match=r"`interrupt_on` of `create_deep_agent` made it"):
        agent_of(model, tools, RetryMiddleware(tools=["weather"]), meeting)
