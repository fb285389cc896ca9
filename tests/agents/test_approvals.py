"""A person approves a tool call before it runs, in the same inbox as failures."""

import pytest
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

import graph_retry
from graph_retry import AnswerRefused, approve, edit, pending_reviews, reject, respond, resume
from graph_retry.agents import RetryMiddleware
from graph_retry.data import corrections_of
from tests.agents.scripted import CITIES, ScriptedChat, Weather, agent_of, asking, told, weather_of
from tests.loops import thread


def sending(tool, *cities, approves=True, **options):
    """Make an agent that calls the tool for each city at once, and then tells what it got."""

    def answer_of(messages):
        if not isinstance(messages[-1], ToolMessage):
            return asking(*map(weather_of, cities))
        return "told: " + " | ".join(str(m.content) for m in messages if isinstance(m, ToolMessage))

    middleware = RetryMiddleware(approve={"weather": approves}, **options)
    model = ScriptedChat(answer=answer_of)
    return agent_of(model, [tool], middleware, checkpointer=InMemorySaver())


def start(agent, mode=None):
    given = {"messages": [HumanMessage("Where is it sunny?")]}
    return mode.invoke(agent, given, thread()) if mode else agent.invoke(given, thread())


@pytest.mark.parametrize(
    ("decision", "calls", "result", "note"),
    [
        (approve(), {"Oslo": 1}, "sunny in Oslo", None),
        (edit(city="Rome"), {"Rome": 1}, "sunny in Rome", "replaced this tool call"),
        (reject("too cold"), {}, "has not been executed: too cold", None),
        (respond("rain"), {}, "rain", "was not executed, and a person supplied"),
    ],
    ids=["approve", "edit", "reject", "respond"],
)
def test_nothing_runs_before_a_person_decides_and_the_model_is_told(
    mode, decision, calls, result, note
):
    """Each decision has its effect before the first call, and nothing untrue is told."""
    tool = Weather()
    agent = sending(tool.tool(is_async=mode.is_async), "Oslo")
    start(agent, mode)
    (review,) = mode.call(graph_retry, "pending_reviews", agent, thread())
    assert tool.calls == {}
    assert review.title.startswith("weather awaits approval (attempt 1)")
    state = mode.call(graph_retry, "resume", agent, thread(), decision)
    assert tool.calls == calls
    text = str(state["messages"][-1].content)
    assert result in text
    assert "failed" not in text
    assert (note in text) if note else ("Note:" not in text)


def test_an_approved_call_that_fails_is_reviewed_and_an_edit_must_fit():
    """After the approval the call is one like any other: a failure asks again."""
    tool = Weather(failing=["Oslo"])
    agent = sending(tool.tool(is_async=False), "Oslo", max_attempts=1)
    start(agent)
    with pytest.raises(AnswerRefused):
        resume(agent, thread(), edit(city=[1]))
    resume(agent, thread(), approve())
    (review,) = pending_reviews(agent, thread())
    assert "no answer about Oslo" in review.error
    assert tool.calls == {"Oslo": 1}


def test_a_function_of_the_call_decides_which_calls_are_asked_about():
    """Calls of one message are asked about one by one, and the others run at once."""
    tool = Weather()

    def cold(request):
        return request.tool_call["args"]["city"] != "Rome"

    agent = sending(tool.tool(is_async=False), *CITIES, approves=cold)
    start(agent)
    open_reviews = pending_reviews(agent, thread())
    assert {review.params["city"] for review in open_reviews} == {"Oslo", "Lima"}
    assert tool.calls == {"Rome": 1}
    answers = {review.review_id: approve() for review in open_reviews}
    state = resume(agent, thread(), answers=answers)
    assert told(state) == {city: f"sunny in {city}" for city in CITIES}
    assert tool.calls == dict.fromkeys(CITIES, 1)


def test_automatic_reviewers_approve_nothing_and_corrections_are_kept():
    """A `reviewer` is not asked about these tools; a person's edit is a correction."""
    tool, asked = Weather(), []

    def reviewer(review):
        asked.append(review)
        return approve()

    agent = sending(tool.tool(is_async=False), "Oslo", reviewer=reviewer)
    start(agent)
    resume(agent, thread(), edit(city="Rome"))
    assert asked == []
    (row,) = corrections_of(agent)
    assert (row["params"], row["revised"]) == ({"city": "Oslo"}, {"city": "Rome"})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"approve": {"weather": True}, "review": False}, "`approve` asks a person"),
        ({"approve": {"weather": "yes"}}, "approve"),
        ({"approve": ["weather"]}, "approve"),
    ],
)
def test_wrong_values_are_refused(options, message):
    """What `approve` cannot mean is an error at once."""
    with pytest.raises((TypeError, ValueError), match=message):
        RetryMiddleware(**options)


def test_a_function_that_returns_no_bool_lets_nothing_run():
    """The answer of such a function is not guessed: a person reads the mistake."""
    tool = Weather()
    agent = sending(tool.tool(is_async=False), "Oslo", approves=lambda _: "no")
    start(agent)
    assert "return a bool" in pending_reviews(agent, thread())[0].error
    assert tool.calls == {}


def test_it_works_beside_the_middleware_of_langchain():
    """`HumanInTheLoopMiddleware` asks for one tool, and `approve` for another."""
    tool, other = Weather(), Weather()
    mail = other.tool(is_async=False)
    mail.name = "mail"
    model = ScriptedChat(
        answer=lambda messages: (
            "done"
            if isinstance(messages[-1], ToolMessage)
            else asking({**weather_of("Oslo"), "name": "mail"}, weather_of("Rome"))
        )
    )
    human = HumanInTheLoopMiddleware(interrupt_on={"mail": True})
    ours = RetryMiddleware(approve={"weather": True})
    agent = agent_of(
        model, [tool.tool(is_async=False), mail], human, ours, checkpointer=InMemorySaver()
    )
    start(agent)
    agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), thread())
    assert tool.calls == {}
    state = resume(agent, thread(), approve())
    assert (tool.calls, other.calls) == ({"Rome": 1}, {"Oslo": 1})
    assert state["messages"][-1].content == "done"
