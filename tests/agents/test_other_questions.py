"""Questions of LangChain's `HumanInTheLoopMiddleware` are reviews beside those of this library."""

import operator
import re
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt
from pydantic import BaseModel

import graph_retry
from graph_retry import (
    AnswerRefused,
    StaleDecision,
    approve,
    edit,
    pending_reviews,
    reject,
    respond,
    resume,
    retry_llm_call,
    threads,
)
from tests.agents.scripted import (
    MODES,
    NOTES_EDITS,
    ScriptedChat,
    Weather,
    agent_of,
    approvals,
    asking,
    weather_of,
)
from tests.loops import answer, reviews, thread

HI = {"messages": [("user", "Where is it sunny?")]}
INSTEAD = "a human reviewer replaced this tool call"


def agent(tool, *cities, saver=None, configs=True, mode="batched", middleware=()):
    """Make an agent that calls the tool for each city at once, after an approval."""
    human = approvals({"weather": configs}, mode)

    def answer_of(messages):
        done = [str(each.content) for each in messages if isinstance(each, ToolMessage)]
        return " | ".join(done) if done else asking(*map(weather_of, cities))

    model = ScriptedChat(answer=answer_of)
    return agent_of(model, [tool], human, *middleware, checkpointer=saver or InMemorySaver())


def said(state):
    """Return the agent's last message, which repeats the results of its tools."""
    return str(state["messages"][-1].content)


@pytest.mark.parametrize("asks", MODES)
@pytest.mark.parametrize(
    ("decision", "calls", "result"),
    [
        (approve(), {"Oslo": 1}, "sunny in Oslo"),
        (edit(city="Rome"), {"Rome": 1}, "sunny in Rome"),
        (reject("too cold"), {}, "too cold"),
        (respond("rain"), {}, "rain"),
        ({"decisions": [{"type": "approve"}]}, {"Oslo": 1}, "sunny in Oslo"),
        ("no", {}, "User rejected the tool call"),
    ],
    ids=["approve", "edit", "reject", "respond", "own form", "word"],
)
def test_each_decision_reaches_the_other_middleware(mode, asks, decision, calls, result):
    """The question is a review like ours, and its answer goes back in LangChain's form."""
    tool = Weather()
    graph = agent(tool.tool(is_async=mode.is_async), "Oslo", mode=asks)
    mode.invoke(graph, HI, thread())
    (review,) = reviews(mode, graph, thread())
    assert (review.function_name, review.params) == ("weather", {"city": "Oslo"})
    assert review.title.startswith("weather awaits approval (attempt 1)")
    assert review.allowed_decisions == ["approve", "edit", "reject", "respond"]
    state = answer(mode, graph, thread(), decision)
    assert result in said(state)
    assert (INSTEAD in said(state)) == (NOTES_EDITS and calls == {"Rome": 1})
    assert tool.calls == calls
    assert reviews(mode, graph, thread()) == []


def test_it_is_listed_and_answered_from_each_storage(mode, checkpointer):
    """A thread in which only the other library asks is in the inbox, until it is answered."""
    tool = Weather()
    graph = agent(tool.tool(is_async=mode.is_async), "Oslo", saver=checkpointer)

    def listed(source=graph):
        return mode.call(threads, "list_reviews", source)

    assert listed() == []  # The table is filled from now on.
    for name in ("ada", "bob"):
        mode.invoke(graph, HI, thread(name))
    inbox = listed()
    assert [each.thread_id for each in inbox] == ["bob", "ada"]
    assert inbox[0].asked_at == reviews(mode, graph, thread("bob"))[0].asked_at
    assert [each.thread_id for each in listed(checkpointer)] == ["bob", "ada"]
    again = mode.call(threads, "list_reviews", graph, limit=1, before=inbox[0])
    assert [each.thread_id for each in again] == ["ada"]
    mode.call(inbox[0], "answer", approve())
    assert [each.thread_id for each in listed()] == ["ada"]
    # An agent that never asked does not list it, nor takes it from the list of the one that did.
    other = create_agent(ScriptedChat(answer=lambda _: "Hi"), checkpointer=checkpointer)
    assert listed(other) == []
    assert [each.thread_id for each in listed()] == ["ada"]


EACH = {"weather": {"type": "edit", "args": {"city": "Rome"}}}


@pytest.mark.parametrize(
    ("decision", "calls"),
    [
        (approve(), {"Oslo": 1, "Lima": 1}),
        (reject("no"), {}),
        (edit(weather={"city": "Rome"}), {"Rome": 1, "Lima": 1}),
        (respond({**EACH, "weather (2)": {"type": "reject", "message": "no"}}), {"Rome": 1}),
        (respond({**EACH, "weather (2)": {"type": "approve"}}), {"Rome": 1, "Lima": 1}),
        ({"decisions": [{"type": "approve"}, {"type": "respond", "message": "rain"}]}, {"Oslo": 1}),
        (
            {
                "decisions": [
                    {"type": "reject"},
                    {"type": "edit", "edited_action": {"name": "weather", "args": {"city": "R"}}},
                ]
            },
            {"R": 1},
        ),
    ],
)
def test_a_question_about_several_calls_takes_one_decision_or_one_for_each(mode, decision, calls):
    """LangChain asks about all calls of a message at once, so that one review has them all."""
    tool = Weather()
    graph = agent(tool.tool(is_async=mode.is_async), "Oslo", "Lima")
    mode.invoke(graph, HI, thread())
    (review,) = reviews(mode, graph, thread())
    assert review.params == {"weather": {"city": "Oslo"}, "weather (2)": {"city": "Lima"}}
    answer(mode, graph, thread(), decision)
    assert tool.calls == calls


@pytest.mark.parametrize(
    ("decision", "reason"),
    [
        (edit(wether={"city": "Rome"}), "wether"),
        (edit(weather="Rome"), "weather"),
        (respond({"weather": {"type": "approve"}}), "weather (2)"),
        (respond({**EACH, "weather (2)": {"type": "respond"}}), "weather (2)"),
        ({"decisions": [{"type": "approve"}] * 3}, "3 decisions"),
        (graph_retry.comment("be kind"), "Comment is not allowed"),
        ("perhaps", "perhaps"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused_and_the_thread_stays_as_it_was(decision, reason):
    """LangChain would end the run, and every later answer would meet the same error."""
    tool = Weather()
    graph = agent(tool.tool(is_async=False), "Oslo", "Lima")
    graph.invoke(HI, thread())
    before = graph.get_state(thread())
    with pytest.raises(AnswerRefused, match=re.escape(reason)):
        resume(graph, thread(), decision)
    assert graph.get_state(thread()) == before
    resume(graph, thread(), approve())
    assert tool.calls == {"Oslo": 1, "Lima": 1}


def test_what_the_other_middleware_does_not_allow_is_not_offered():
    """The decisions of its config are those of the review; a call may be locked."""
    tool = Weather()
    configs = {"allowed_decisions": ["approve", "reject"]}
    graph = agent(tool.tool(is_async=False), "Oslo", configs=configs)
    graph.invoke(HI, thread())
    (review,) = pending_reviews(graph, thread())
    assert review.allowed_decisions == ["approve", "reject"]
    with pytest.raises(AnswerRefused, match="Edit is not allowed"):
        review.answer(edit(city="Rome"))
    review.answer(approve())
    with pytest.raises(StaleDecision):
        review.answer(approve())
    assert tool.calls == {"Oslo": 1}


class Both(MessagesState):
    """The state of an agent and of a call beside it."""

    outputs: Annotated[list[Any], operator.add]


@pytest.mark.parametrize("first", ["ours", "theirs", "together"])
def test_both_kinds_of_questions_of_one_step_are_answered_alone_or_together(mode, first):
    """An agent waits for an approval while a call beside it waits for other params."""
    tool, calls = Weather(), []

    def count(params):
        calls.append(params["n"])
        return "many" if params["n"] == 0 else f"{params['n']}"

    def beside(state):
        return {"outputs": [retry_llm_call(count, {"n": 0}, output=int)]}

    builder = StateGraph(Both)
    builder.add_node("agent", agent(tool.tool(is_async=mode.is_async), "Oslo", saver=False))
    builder.add_node("beside", beside)
    builder.add_edge(START, "agent")
    builder.add_edge(START, "beside")
    graph = builder.compile(checkpointer=InMemorySaver())
    mode.invoke(graph, HI, thread())
    by_name = {review.function_name: review for review in reviews(mode, graph, thread())}
    assert set(by_name) == {"count", "weather"}
    listed = mode.call(threads, "list_reviews", graph)
    assert {each.function_name for each in listed} == set(by_name)
    answers = {"count": edit(n=3), "weather": edit(city="Rome")}
    ours, theirs = ["count"], ["weather"]
    rounds = {"ours": [ours, theirs], "theirs": [theirs, ours], "together": [ours + theirs]}
    for names in rounds[first]:
        given = {by_name[name].review_id: answers[name] for name in names}
        state = answer(mode, graph, thread(), answers=given)
    assert state["outputs"] == [3]
    assert (calls, tool.calls) == ([0, 3], {"Rome": 1})


def test_an_answer_is_not_given_twice_after_a_crash(mode, checkpointer):
    """The first answer is saved with the thread; a later person is told that it counts."""
    dies = [True]

    def pause():
        if dies:
            dies.clear()
            raise RuntimeError("the process died")

    tool = Weather(pause=pause)
    graph = agent(tool.tool(is_async=mode.is_async), "Oslo", saver=checkpointer, mode=MODES[-1])
    mode.invoke(graph, HI, thread())
    (review,) = reviews(mode, graph, thread())
    with pytest.raises(RuntimeError):
        answer(mode, graph, thread(), approve())
    assert reviews(mode, graph, thread()) == []
    assert mode.call(threads, "list_reviews", graph) == []
    with pytest.raises(StaleDecision, match="continues from there"):
        mode.call(review, "answer", reject("no"))
    assert "sunny in Oslo" in said(answer(mode, graph, thread()))
    assert tool.calls == {"Oslo": 1}


class City(BaseModel):
    """What a node asks a person."""

    city: str
    days: int = 1


@pytest.mark.parametrize("value", ["Which city?", {"text": "Which city?"}])
def test_a_question_of_a_node_with_a_schema_is_a_review(mode, value):
    """`interrupt(value, response_schema=…)` is answered with a response, which is checked."""

    def ask(state):
        found = interrupt(value, response_schema=City)
        return {"outputs": [found]}

    builder = StateGraph(Both).add_node("ask", ask).add_edge(START, "ask")
    graph = builder.compile(checkpointer=InMemorySaver())
    mode.invoke(graph, HI, thread())
    (review,) = reviews(mode, graph, thread())
    assert (review.function_name, review.allowed_decisions) == ("City", ["respond"])
    assert "Which city?" in str(review.params)
    with pytest.raises(AnswerRefused, match="days"):
        answer(mode, graph, thread(), respond({"city": "Oslo", "days": "many"}))
    state = answer(mode, graph, thread(), respond({"city": "Oslo", "days": 2}))
    assert state["outputs"] == [City(city="Oslo", days=2)]


ACTION = {"action": "send_mail", "args": {"to": "ada"}}


@pytest.mark.parametrize(
    ("decision", "sent"),
    [
        (approve(), {"type": "accept", "args": ACTION}),
        (edit(to="bo"), {"type": "edit", "args": {**ACTION, "args": {"to": "bo"}}}),
        (respond("shorter"), {"type": "response", "args": "shorter"}),
        (reject("no"), {"type": "ignore", "args": None}),
    ],
)
def test_a_question_that_a_node_asks_for_agent_inbox_is_a_review(decision, sent):
    """Its answer has the form that Agent Inbox sends."""
    allowed = dict.fromkeys(["allow_accept", "allow_edit", "allow_respond", "allow_ignore"], True)

    def ask(state):
        return {"outputs": interrupt([{"action_request": ACTION, "config": allowed}])}

    builder = StateGraph(Both).add_node("ask", ask).add_edge(START, "ask")
    graph = builder.compile(checkpointer=InMemorySaver())
    graph.invoke(HI, thread())
    assert [each.function_name for each in pending_reviews(graph, thread())] == ["send_mail"]
    assert resume(graph, thread(), decision)["outputs"] == [sent]


def test_a_plain_interrupt_is_no_review():
    """Nobody knows what answer it wants; it is answered as before, and costs no second look."""

    def ask(state):
        return {"outputs": [interrupt("Which city?")]}

    builder = StateGraph(Both).add_node("ask", ask).add_edge(START, "ask")
    graph = builder.compile(checkpointer=InMemorySaver())
    graph.invoke(HI, thread())
    assert pending_reviews(graph, thread()) == threads.list_reviews(graph) == []
    assert graph.invoke(Command(resume="Oslo"), thread())["outputs"] == ["Oslo"]
