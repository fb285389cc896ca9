"""With `output=AIMessage`, a node that streams its reply returns the message that it streamed."""

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

import graph_retry
from graph_retry import AnswerRefused, approve, aretry_llm_call, edit, respond, retry_llm_call
from graph_retry.output import build_validator
from tests.loops import reviews, thread

CALL = {"name": "look", "args": {"n": 1}, "id": "c", "type": "tool_call"}
CUT_OFF = AIMessage("Hello, A", response_metadata={"finish_reason": "length"})


def chat_of(mode, replies, *, adds_chunks=False, **options):
    """Make a chat graph; without options, its node makes no reviewed call."""
    model = GenericFakeChatModel(messages=iter(replies))

    def reply(params):
        return model.invoke(params["messages"])

    async def areply(params):
        return await model.ainvoke(params["messages"])

    def added(params):
        first, *others = model.stream(params["messages"])
        return sum(others, first)

    said = added if adds_chunks else areply if mode.is_async else reply

    def asked(state):
        return {"messages": [{"role": "user", "content": one.text} for one in state["messages"]]}

    def chat(state):
        given = asked(state)
        message = retry_llm_call(said, given, **options) if options else said(given)
        return {"messages": [message]}

    async def achat(state):
        given = asked(state)
        return {"messages": [await aretry_llm_call(said, given, **options)]}

    node = achat if mode.is_async and options else chat
    builder = StateGraph(MessagesState).add_node("chat", node).add_edge(START, "chat")
    return builder.compile(checkpointer=InMemorySaver())


@pytest.mark.parametrize("adds_chunks", [False, True])
def test_the_reply_has_the_id_of_its_tokens_which_come_once(mode, adds_chunks):
    """The stream is that of a plain node, and the saved message is the one that was streamed."""
    graph = chat_of(mode, [AIMessage("Hello, Ada!")], adds_chunks=adds_chunks, output=AIMessage)
    given = {"messages": [HumanMessage("I am Ada.")]}
    parts = mode.call(graph, "stream", given, thread(), stream_mode="messages")
    saved = mode.call(graph, "get_state", thread()).values["messages"][-1]
    assert "".join(str(part.content) for part, _ in parts) == "Hello, Ada!"
    assert {part.id for part, _ in parts} == {saved.id}
    assert {where["langgraph_node"] for _, where in parts} == {"chat"}
    assert (type(saved), saved.content) == (AIMessage, "Hello, Ada!")


def test_a_person_gives_the_reply_or_lets_the_model_try_again(mode):
    """A reply that was cut off, and one without words, are failures; a text is a reply."""
    graph = chat_of(mode, [CUT_OFF, AIMessage(" ")], output=AIMessage)
    mode.invoke(graph, {"messages": [HumanMessage("Hi")]}, thread())
    (review,) = reviews(mode, graph, thread())
    assert (review.failure["kind"], "Hello, A" in review.raw_output) == ("truncated", True)
    mode.call(graph_retry, "resume", graph, thread(), approve())
    (review,) = reviews(mode, graph, thread())
    assert [one["code"] for one in review.issues] == ["empty_message"]
    with pytest.raises(AnswerRefused, match="has no text and calls no tool"):
        mode.call(graph_retry, "resume", graph, thread(), respond({"content": ""}))
    state = mode.call(graph_retry, "resume", graph, thread(), respond("Hello!"))
    assert [(type(one), one.content) for one in state["messages"][1:]] == [(AIMessage, "Hello!")]


def test_tool_calls_usage_and_metadata_stay(mode):
    """The message in state is the one that the model gave, with all its fields."""
    usage = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    given = AIMessage("", tool_calls=[CALL], usage_metadata=usage, response_metadata={"model": "m"})
    graph = chat_of(mode, [given], output=AIMessage)
    reply = mode.invoke(graph, {"messages": [HumanMessage("Hi")]}, thread())["messages"][-1]
    kept = ("content", "tool_calls", "usage_metadata", "response_metadata")
    assert [getattr(reply, name) for name in kept] == [getattr(given, name) for name in kept]


def test_an_edit_of_the_text_of_messages_is_plain(mode):
    """`message.text` is a kind of `str`, and a param like any other text."""
    graph = chat_of(mode, [AIMessage(""), AIMessage("Hello")], output=AIMessage)
    mode.invoke(graph, {"messages": [HumanMessage("Hi")]}, thread())
    (review,) = reviews(mode, graph, thread())
    assert review.params == {"messages": [{"role": "user", "content": "Hi"}]}
    state = mode.call(graph_retry, "resume", graph, thread(), edit(messages=[]))
    assert state["messages"][-1].content == "Hello"


@pytest.mark.parametrize("value", [3, ["a"], {"content": 3}, {"tool_calls": [{}]}])
def test_what_is_no_message_is_told(value):
    """A value of another kind has issues, and raises nothing."""
    assert not build_validator(AIMessage).check(value).ok
