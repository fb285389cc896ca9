"""Budgets and labels are those of one run of an agent."""

import pytest
from langchain.agents.middleware import ModelCallLimitMiddleware
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from graph_retry import Completion, approve, resume, retry_llm_call
from graph_retry.agents import RetryMiddleware
from graph_retry.hooks import SharedBudget
from tests.agents.scripted import ScriptedChat, Weather, agent_of, asking, weather_of
from tests.loops import answer, reviews, thread

COST = {"input_tokens": 50, "output_tokens": 50, "total_tokens": 100}


def costly(messages):
    """Call a tool seven times and then end; each answer costs 100 tokens."""
    ended = len(messages) > 14
    said = AIMessage("end") if ended else asking({**weather_of("Oslo"), "id": f"b{len(messages)}"})
    return said.model_copy(update={"usage_metadata": COST})


def test_each_conversation_has_its_own_budget(mode):
    """After 300 tokens of one user the person is asked; the next user is not."""
    model, budget = ScriptedChat(answer=costly), SharedBudget(tokens=300, per="thread_id")
    tool = Weather().tool(is_async=mode.is_async)
    agent = agent_of(model, [tool], RetryMiddleware(budget=budget), checkpointer=InMemorySaver())
    for number, user in enumerate(("ada", "bob"), 1):
        mode.invoke(agent, {"messages": [HumanMessage("x")]}, thread(user))
        (review,) = reviews(mode, agent, thread(user))
        assert "300 tokens is spent" in review.error
        assert len(model.calls) == 3 * number
    answer(mode, agent, thread("ada"), approve())
    assert len(model.calls) == 7


def test_a_key_that_the_run_does_not_have_is_an_error():
    """What the budget counts by is known, or nothing is called."""
    calls = []

    def model(params):
        calls.append(params)
        return Completion("fine")

    with pytest.raises(ValueError, match=r"`{'configurable': {'user_id': …}}`.* `per='thread_id'`"):
        retry_llm_call(model, "x", output=str, budget=SharedBudget(tokens=1, per="user_id"))
    assert calls == []


def test_retries_are_no_further_calls_for_a_limit_of_langchain():
    """`ModelCallLimitMiddleware` counts the model node, which a retry does not leave."""
    answers = iter([ConnectionError("down"), ConnectionError("down"), "fine"])
    model = ScriptedChat(answer=lambda _: next(answers))
    limit = ModelCallLimitMiddleware(run_limit=1, exit_behavior="error")
    agent = agent_of(model, [], limit, RetryMiddleware(), checkpointer=InMemorySaver())
    agent.invoke({"messages": [HumanMessage("x")]}, thread())
    resume(agent, thread(), approve())
    state = resume(agent, thread(), approve())
    assert state["messages"][-1].content == "fine"
    assert len(model.calls) == 3


def test_each_run_has_its_own_labels(mode):
    """The tenant of the run is on the reviews of its model calls and of its tool calls."""
    model = ScriptedChat(
        answer=lambda m: asking(
            {"name": "nope", "args": {}, "id": "n"} if "bad" in str(m) else weather_of("Oslo")
        )
    )
    middleware = RetryMiddleware(
        tools=True,
        labels={"team": "travel"},
        labels_of=lambda request: {"tenant": request.runtime.context["tenant"]},
    )
    tool = Weather(failing=["Oslo"]).tool(is_async=mode.is_async)
    agent = agent_of(model, [tool], middleware, checkpointer=InMemorySaver(), context_schema=dict)
    for tenant, text in (("acme", "bad"), ("initech", "good")):
        given = {"messages": [HumanMessage(text)]}
        mode.invoke(agent, given, thread(tenant), context={"tenant": tenant})
        (review,) = reviews(mode, agent, thread(tenant))
        assert review.labels == {"team": "travel", "tenant": tenant}


def test_labels_that_are_no_dict_are_an_error():
    """Nothing is called, because reviewers could not find the review."""
    model = ScriptedChat(answer=lambda _: "fine")
    agent = agent_of(model, [], RetryMiddleware(labels_of=lambda _: None))
    with pytest.raises(TypeError, match="`labels_of` returned NoneType"):
        agent.invoke({"messages": [HumanMessage("x")]})
    assert model.calls == []
