"""A conversation that a provider refuses is mended once, in the agent's state."""

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from graph_retry import approve, comment, edit, pending_reviews, resume
from graph_retry.agents import RetryMiddleware, repair_history
from tests.agents.scripted import ScriptedChat, Weather, agent_of, asking, weather_of
from tests.loops import thread

LIMIT = 500


class RefusedError(Exception):
    """A request that a provider refuses."""

    status_code = 400


def strict(answer_of):
    """Make a model that refuses calls without results, results without calls, and long texts."""

    def respond(messages):
        waiting = []
        for message in messages:
            if isinstance(message, ToolMessage):
                if message.tool_call_id not in waiting:
                    return RefusedError("a tool message has no preceding tool call")
                waiting.remove(message.tool_call_id)
            elif waiting:
                return RefusedError("tool calls must be followed by tool messages")
            if isinstance(message, AIMessage):
                waiting += [call["id"] for call in message.tool_calls]
        if sum(len(str(message.content)) for message in messages) > LIMIT:
            return RefusedError("This model's maximum context length is exceeded")
        return answer_of(messages)

    return ScriptedChat(answer=respond)


def echo(messages):
    return f"answer to {messages[-1].content}"


def saved(model, tools, *middleware):
    """Compile an agent with a checkpointer."""
    return agent_of(model, tools, *middleware, checkpointer=InMemorySaver())


def types_in(state):
    return [message.type for message in state.values["messages"]]


async def run(agent, mode, *messages):
    given = {"messages": list(messages)}
    return (
        await agent.ainvoke(given, thread()) if mode == "async" else agent.invoke(given, thread())
    )


def test_a_new_message_over_an_open_tool_question_answers_its_calls_as_cancelled(mode):
    """A new message ends the question; the conversation is valid again, and says what happened."""
    tool = Weather(failing=["Oslo"])
    model = strict(
        lambda messages: (
            asking(weather_of("Oslo"), weather_of("Rome")) if len(messages) == 1 else echo(messages)
        )
    )
    agent = saved(model, [tool.tool(is_async=False)], RetryMiddleware(tools=True))
    mode.invoke(agent, {"messages": [HumanMessage("Where is it sunny?")]}, thread())
    assert len(pending_reviews(agent, thread())) == 1
    for text in ("never mind", "and again?"):
        state = mode.invoke(agent, {"messages": [HumanMessage(text)]}, thread())
        assert pending_reviews(agent, thread()) == []
        assert state["messages"][-1].content == f"answer to {text}"
    messages = agent.get_state(thread()).values["messages"]
    kinds = [message.type for message in messages]
    assert kinds == ["human", "ai", "tool", "tool", "human", "ai", "human", "ai"]
    assert [message.tool_call_id for message in messages[2:4]] == ["Oslo", "Rome"]
    assert "cancelled" in messages[2].content
    assert tool.calls == {"Oslo": 1, "Rome": 1}


@pytest.mark.parametrize("window", [1, 6])
def test_an_orphan_is_shown_and_removed_once(window):
    """A result without a call is shown even if it is old; the person removes it for good."""
    orphan = ToolMessage("old", tool_call_id="gone")
    model = strict(echo)
    agent = saved(model, [], RetryMiddleware(messages=window))
    said = [HumanMessage("a"), orphan, HumanMessage("b"), AIMessage("c"), HumanMessage("d")]
    agent.invoke({"messages": said}, thread())
    (review,) = pending_reviews(agent, thread())
    kept = [each for each in review.params["messages"] if each["role"] != "tool"]
    assert len(kept) < len(review.params["messages"])
    resume(agent, thread(), edit(messages=kept))
    agent.invoke({"messages": [HumanMessage("e")]}, thread())
    assert pending_reviews(agent, thread()) == []
    assert types_in(agent.get_state(thread())) == [
        "human",
        "human",
        "ai",
        "human",
        "ai",
        "human",
        "ai",
    ]
    assert len(model.calls) == 3


@pytest.mark.parametrize("automatic", [False, True])
def test_the_hook_shortens_a_long_message_that_has_left_the_window(automatic):
    """`repair_history` reads the whole conversation, and its change stays in the state."""
    model = strict(echo)
    options = {"auto_retries": 1} if automatic else {}
    mending = RetryMiddleware(repair_history(longest=20), messages=2, **options)
    agent = saved(model, [], mending)
    long = [
        HumanMessage("a" * 9 * LIMIT, id="long"),
        AIMessage("b"),
        HumanMessage("c"),
        AIMessage("d"),
    ]
    agent.invoke({"messages": [*long, HumanMessage("e")]}, thread())
    if not automatic:
        (review,) = pending_reviews(agent, thread())
        assert review.params["earlier_messages"] == 3
        assert review.suggested_params["messages"][0]["id"] == "long"
        resume(agent, thread(), approve())
    first = agent.get_state(thread()).values["messages"][0]
    assert first.id == "long"
    assert len(first.content) < 100
    agent.invoke({"messages": [HumanMessage("f")]}, thread())
    assert pending_reviews(agent, thread()) == []
    assert len(model.calls) == 3


def test_a_person_leaves_out_the_earlier_messages_once():
    """`earlier_messages=0` removes what the window does not show, from the state as well."""
    model = strict(echo)
    agent = saved(model, [], RetryMiddleware(messages=1))
    agent.invoke(
        {"messages": [HumanMessage("a" * 9 * LIMIT), AIMessage("b"), HumanMessage("c")]}, thread()
    )
    resume(agent, thread(), edit(earlier_messages=0))
    assert types_in(agent.get_state(thread())) == ["human", "ai"]


@pytest.mark.parametrize("how", ["comment", "hook", "edit of an answer"])
def test_a_change_that_mends_no_refused_history_is_one_of_the_attempt_only(how):
    """Comments, hooks of users, and edits after an answer do not change the conversation."""
    bad = asking({"name": "nope", "args": {}, "id": "n"})
    broken = [bad if how == "edit of an answer" else RefusedError("no")]
    model = ScriptedChat(answer=lambda _: broken.pop() if broken else "fine")

    def hint(error, attempt, params):
        extra = [*params.messages, {"role": "user", "content": "once more"}]
        return params.model_copy(update={"messages": extra})

    middleware = RetryMiddleware(hint, auto_retries=1) if how == "hook" else RetryMiddleware()
    agent = saved(model, [], middleware)
    agent.invoke({"messages": [HumanMessage("hi", id="1")]}, thread())
    if how == "comment":
        resume(agent, thread(), comment("be brief"))
    if how == "edit of an answer":
        resume(agent, thread(), edit(messages=[{"role": "user", "content": "hello", "id": "1"}]))
    messages = agent.get_state(thread()).values["messages"]
    assert [message.content for message in messages] == ["hi", "fine"]
    assert str(model.calls[0]) != str(model.calls[1])


def test_a_call_id_that_a_provider_uses_again_is_answered_where_it_is_open():
    """An answered call of a later turn does not answer the open one of an earlier turn."""
    model = strict(echo)
    agent = saved(model, [], RetryMiddleware())
    call = asking({"name": "f", "args": {}, "id": "call_0"})
    result = ToolMessage("done", tool_call_id="call_0")
    said = [
        HumanMessage("a"),
        call,
        HumanMessage("b"),
        call.model_copy(),
        result,
        HumanMessage("c"),
    ]
    agent.invoke({"messages": said}, thread())
    kinds = types_in(agent.get_state(thread()))
    assert kinds == ["human", "ai", "tool", "human", "ai", "tool", "human", "ai"]
    assert len(model.calls) == 1


def test_the_hook_changes_nothing_where_nothing_is_wrong():
    """Another failure, or a history without mistakes, is left to the other hooks."""
    seen = []

    def last(error, attempt, params):
        seen.append(error.kind)

    for error in (RefusedError("other"), TimeoutError("slow")):
        model = ScriptedChat(answer=lambda _, error=error: error)
        agent = saved(model, [], RetryMiddleware([repair_history(), last]))
        agent.invoke({"messages": [SystemMessage("s"), HumanMessage("hi")]}, thread())
        (review,) = pending_reviews(agent, thread())
        assert review.suggested_params is None
        resume(agent, thread(), "cancel")
    assert seen == ["rejected_input", "transient"]


@pytest.mark.parametrize(
    ("error", "other", "stays"),
    [
        (RefusedError("messages.0: the text is empty"), {}, True),
        (RefusedError("temperature: out of range"), {"settings": {"temperature": 0}}, False),
        (RefusedError("maximum context length is exceeded"), {"settings": {"n": 1}}, True),
        (ValueError("it went wrong"), {}, False),
        (KeyError("choices"), {}, False),
    ],
    ids=["messages", "settings too", "overflow", "unknown", "unknown key"],
)
def test_an_edit_stays_in_the_state_only_if_the_conversation_was_refused(error, other, stays):
    """An unknown exception, or a refusal of something else, changes one attempt."""
    answers = iter([error, "fine"])
    agent = saved(ScriptedChat(answer=lambda _: next(answers)), [], RetryMiddleware())
    agent.invoke({"messages": [HumanMessage("long", id="1")]}, thread())
    (review,) = pending_reviews(agent, thread())
    shorter = [{**review.params["messages"][0], "content": "short"}]
    state = resume(agent, thread(), edit(messages=shorter, **other))
    kept = "short" if stays else "long"
    assert [message.content for message in state["messages"]] == [kept, "fine"]
