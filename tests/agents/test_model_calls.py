"""A model call of an agent fails by what it would do, and is reviewed in the agent's thread."""

import asyncio
import json
from collections import Counter
from dataclasses import dataclass

import pytest
from langchain.agents.structured_output import AutoStrategy, ProviderStrategy, ToolStrategy
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import StateGraph
from pydantic import BaseModel

from graph_retry import (
    AnswerRefused,
    AttemptsExhausted,
    CallCancelled,
    approve,
    aresume,
    comment,
    edit,
    gather_calls,
    reject,
    respond,
)
from graph_retry.agents import RetryMiddleware
from tests.agents.scripted import ScriptedChat, Weather, agent_of, asking, told, weather_of
from tests.loops import answer, reviews, thread

HI = {"messages": [HumanMessage("Where is it sunny?")]}


RESPONSE = {"city": "Rome", "days": 3}


class Report(BaseModel):
    """The best city."""

    city: str
    days: int


@dataclass
class Place:
    """The best city, as a dataclass."""

    city: str
    days: int


def reporting(days):
    return asking({"name": "Report", "args": {"city": "Rome", "days": days}, "id": "r"})


def scripted(*answers):
    """Make a model that gives these answers one after the other."""
    steps = iter(answers)
    return ScriptedChat(answer=lambda _: next(steps))


def started(mode, model, tools=(), given=HI, middleware=None, **more):
    """Run an agent until it pauses or ends; return it and its state."""
    retry = middleware or RetryMiddleware()
    agent = agent_of(model, tools, retry, checkpointer=InMemorySaver(), **more)
    return agent, mode.invoke(agent, given, thread())


FAILURES = [
    (TimeoutError("no answer"), "transient", "no answer"),
    (asking({"name": "weather", "args": {"town": "Rome"}, "id": "1"}), "invalid_schema", "/city"),
    (asking({"name": "wether", "args": {}, "id": "1"}), "invalid_schema", "no tool `wether`"),
    (
        asking(broken=[{"name": "weather", "args": "Rome, I think", "id": "1"}]),
        "invalid_schema",
        "cannot be read",
    ),
]


@pytest.mark.parametrize(("first", "kind", "told"), FAILURES, ids=range(len(FAILURES)))
def test_a_model_call_that_cannot_be_used_is_reviewed(mode, first, kind, told):
    """It is reviewed before any tool runs; an edited prompt is what the model is asked next."""
    model, weather = scripted(first, "Rome."), Weather()
    tools = [weather.tool(is_async=mode.is_async)]
    agent, _ = started(mode, model, tools, system_prompt="Be kind.")
    (review,) = reviews(mode, agent, thread())
    assert (review.function_name, review.failure["kind"]) == ("model", kind)
    assert told in review.error
    assert review.params["system_prompt"] == "Be kind."
    assert review.params["messages"][0]["content"] == "Where is it sunny?"
    state = answer(mode, agent, thread(), edit(system_prompt="Be brief."))
    assert [said.content for said in state["messages"]] == ["Where is it sunny?", "Rome."]
    assert [calls[0].content for calls in model.calls] == ["Be kind.", "Be brief."]
    assert not weather.calls


def test_broken_arguments_are_read_where_that_loses_nothing(mode):
    """No call is repeated for a trailing comma, and the agent's ledger tells what was changed."""
    broken = {"name": "weather", "args": '{"city": "Lima",}', "id": "Lima"}
    model = scripted(asking(weather_of("Rome"), broken=[broken]), "Done.")
    weather = Weather()
    _, state = started(mode, model, [weather.tool(is_async=mode.is_async)])
    assert weather.calls == {"Rome": 1, "Lima": 1}
    (attempts,) = state["ledgers"].values()
    assert [repair["kind"] for repair in attempts[0]["repairs"]] == ["trailing_comma"]
    assert state["messages"][1].invalid_tool_calls == []


@pytest.mark.parametrize("strategy", [ToolStrategy, AutoStrategy, lambda schema: schema])
def test_a_structured_response_that_does_not_validate_is_reviewed(mode, strategy):
    """LangChain would ask again by itself; here a person's words go to the model."""
    model = scripted(reporting("many"), reporting(3))
    agent, _ = started(mode, model, response_format=strategy(Report))
    (review,) = reviews(mode, agent, thread())
    assert review.issues[0]["path"] == "/tool_calls/0/args/days"
    state = answer(mode, agent, thread(), comment("count the days"))
    assert state["structured_response"] == Report(city="Rome", days=3)
    assert isinstance(state["messages"][-1], ToolMessage)
    assert "count the days" in str(model.calls[1][-1].content)
    assert len(state["messages"]) == 3


@pytest.mark.parametrize("schema", [Report, Place, Report.model_json_schema()])
def test_structured_output_of_a_provider_is_repaired_and_validated(mode, schema):
    """Text that is JSON but for a fence is read; what does not fit is reviewed."""
    model = scripted('{"city": "Rome"}', '```json\n{"city": "Rome", "days": 3}\n```')
    agent, _ = started(mode, model, response_format=ProviderStrategy(schema))
    (review,) = reviews(mode, agent, thread())
    assert "days" in review.error
    response = answer(mode, agent, thread(), approve())["structured_response"]
    days = response["days"] if isinstance(response, dict) else response.days
    assert (days, len(model.calls)) == (3, 2)


@pytest.mark.parametrize(
    ("output", "content"),
    [("It is Rome.", "It is Rome."), ({"content": "Rome"}, "Rome")],
)
def test_a_person_answers_in_the_model_s_stead(mode, output, content):
    """Words become the agent's message; no call is paid."""
    model = scripted(TimeoutError("no"))
    agent, _ = started(mode, model)
    state = answer(mode, agent, thread(), respond(output))
    assert state["messages"][-1].content == content
    assert len(model.calls) == 1


@pytest.mark.parametrize("output", [RESPONSE, {"structured_response": RESPONSE}])
@pytest.mark.parametrize("strategy", [ToolStrategy, ProviderStrategy, AutoStrategy])
def test_a_person_s_structured_response_stands_in_the_message(mode, strategy, output):
    """The message is not empty, each tool call has its result, and the next model call is valid."""
    model = scripted(TimeoutError("no"), TimeoutError("again"))
    agent, _ = started(mode, model, response_format=strategy(Report))
    state = answer(mode, agent, thread(), respond(output))
    assert state["structured_response"] == Report(**RESPONSE)
    _, said, *results = state["messages"]
    if strategy is ToolStrategy:
        (call,), (result,) = said.tool_calls, results
        assert (call["name"], call["args"], call["id"]) == ("Report", RESPONSE, result.tool_call_id)
        assert "Rome" in result.content
    else:
        assert (json.loads(said.content), said.tool_calls, results) == (RESPONSE, [], [])
    mode.invoke(agent, HI, thread())
    assert all(sent.content or getattr(sent, "tool_calls", None) for sent in model.calls[-1])


@pytest.mark.parametrize("strategy", [ToolStrategy, AutoStrategy, lambda schema: schema])
def test_words_in_place_of_a_structured_response_are_a_failed_attempt(mode, strategy):
    """Without it the agent's run would succeed with nothing; words that are its JSON are read."""
    model = scripted("It is Rome.", 'Sure: {"city": "Rome", "days": 3,}')
    agent, _ = started(mode, model, response_format=strategy(Report))
    (review,) = reviews(mode, agent, thread())
    assert review.issues[0]["path"] == "/structured_response"
    state = answer(mode, agent, thread(), approve())
    assert state["structured_response"] == Report(city="Rome", days=3)
    (attempts,) = state["ledgers"].values()
    assert "trailing_comma" in [repair["kind"] for repair in attempts[1]["repairs"]]
    assert len(state["messages"]) == len(model.calls) == 2


TWO = 'Draft: {"city": "Rome"}\nFinal: {"city": "Rome", "days": 3}'


@pytest.mark.parametrize("where", ["words", "arguments"])
def test_of_several_answers_the_one_that_fits_is_read(mode, where):
    """As in every other call: exactly one of them is a report."""
    call = {"name": "Report", "args": TWO, "id": "1"}
    first = TWO if where == "words" else asking(broken=[call])
    _, state = started(mode, scripted(first), response_format=ToolStrategy(Report))
    assert state["structured_response"] == Report(city="Rome", days=3)


def test_words_that_could_be_several_responses_are_a_failed_attempt(mode):
    """Which one was meant is not guessed: one of them would lose a field."""

    class City(BaseModel):
        """A city alone."""

        city: str

    text = '{"city": "Rome", "days": 3}'
    model = scripted(text, reporting(3))
    agent, _ = started(mode, model, response_format=ToolStrategy(City | Report))
    (review,) = reviews(mode, agent, thread())
    assert "`City`, `Report`: call the tool of this name" in review.issues[0]["message"]
    state = answer(mode, agent, thread(), approve())
    assert state["structured_response"] == Report(city="Rome", days=3)


def test_a_person_calls_tools_in_the_model_s_stead(mode):
    """An id that is not given is supplied, and is the same whenever the thread is read."""
    model, weather = scripted(TimeoutError("no"), "Sunny."), Weather()
    agent, _ = started(mode, model, [weather.tool(is_async=mode.is_async)])
    calls = [{"name": "weather", "args": {"city": city}} for city in ("Rome", "Oslo")]
    state = answer(mode, agent, thread(), respond({"content": "", "tool_calls": calls}))
    known_as = [call["id"] for call in state["messages"][1].tool_calls]
    assert told(state) == dict(zip(known_as, ["sunny in Rome", "sunny in Oslo"], strict=True))
    assert weather.calls == {"Rome": 1, "Oslo": 1}
    assert (state["messages"][-1].content, len(model.calls)) == ("Sunny.", 2)


WEATHER = {"name": "weather", "args": {"city": "Rome"}, "id": "1"}


@pytest.mark.parametrize(
    ("output", "why"),
    [
        ({"city": "Oslo"}, "text, or a message"),
        ([1, 2], "text, or a message"),
        ({"content": "", "tool_cals": []}, "text, or a message"),
        ({"content": 5}, "/content"),
        ({"content": "", "tool_calls": WEATHER}, "a list of objects"),
        ({"content": "", "tool_calls": ["weather"]}, "a list of objects"),
        ({"tool_calls": [{"args": {"city": "Rome"}}]}, "a tool call needs a text as `name`"),
        ({"tool_calls": [{**WEATHER, "args": "Rome"}]}, "a tool call needs a text as `name`"),
        ({"tool_calls": [{**WEATHER, "args": {"town": "Rome"}}]}, "/city"),
        ({"tool_calls": [{**WEATHER, "name": "wether"}]}, "no tool `wether`"),
        ({"tool_calls": [{**WEATHER, "id": 5}]}, "`id` is a text"),
        ({"tool_calls": [WEATHER, WEATHER]}, "two tool calls have the same `id`"),
    ],
)
def test_an_answer_that_the_agent_could_not_go_on_with_is_refused(mode, output, why):
    """It is refused when it is given; the question stays, and no call is paid."""
    model, weather = scripted(TimeoutError("no"), "Rome."), Weather()
    agent, _ = started(mode, model, [weather.tool(is_async=mode.is_async)])
    with pytest.raises(AnswerRefused, match=why):
        answer(mode, agent, thread(), respond(output))
    state = answer(mode, agent, thread(), respond({"tool_calls": [WEATHER]}))
    assert told(state) == {"1": "sunny in Rome"}


def test_a_person_gives_the_structured_response(mode):
    """It is validated like the model's."""
    agent, _ = started(mode, scripted(TimeoutError("no")), response_format=ToolStrategy(Report))
    with pytest.raises(AnswerRefused, match="days"):
        answer(mode, agent, thread(), respond({"city": "Oslo"}))
    assert "days" in reviews(mode, agent, thread())[0].problem
    state = answer(mode, agent, thread(), respond({"city": "Oslo", "days": 1}))
    assert state["structured_response"] == Report(city="Oslo", days=1)


def test_another_model_is_chosen_by_name_and_no_unknown_one(mode):
    """The names that may be chosen are those the agent was given."""
    small, large = scripted(TimeoutError("no")), scripted("Rome.")
    large.model_name = "large"
    agent, _ = started(mode, small, middleware=RetryMiddleware(models={"big": large}))
    with pytest.raises(AnswerRefused, match="'small' or 'big'"):
        answer(mode, agent, thread(), edit(model="huge"))
    assert "'small' or 'big'" in reviews(mode, agent, thread())[0].problem
    state = answer(mode, agent, thread(), edit(model="big", settings={"temperature": 0}))
    assert state["messages"][-1].content == "Rome."
    assert (len(small.calls), large.bound) == (1, [{"temperature": 0}])


@pytest.mark.parametrize("options", [{"feedback": "errors_only"}, {}])
def test_feedback_asks_again_by_itself(mode, options):
    """What was wrong is told to the model, and is no part of the agent's conversation."""
    model = scripted(reporting("many"), reporting(3))
    retry = RetryMiddleware(auto_retries=1, **options)
    _, state = started(mode, model, middleware=retry, response_format=ToolStrategy(Report))
    assert state["structured_response"].days == 3
    told = str(model.calls[1][-1].content)
    assert "/tool_calls/0/args/days" in told
    assert "corrected JSON" not in told
    assert len(state["messages"]) == 3
    (attempts,) = state["ledgers"].values()
    assert [attempt["author"] for attempt in attempts] == ["caller", "feedback"]


def test_a_valid_answer_is_approved_before_its_tools_run(mode):
    """With `review="always"` the person sees the tool calls, and the agent waits for them."""
    model, weather = scripted(asking(weather_of("Rome")), "Sunny."), Weather()
    tools = [weather.tool(is_async=mode.is_async)]
    agent, _ = started(mode, model, tools, middleware=RetryMiddleware(review="always"))
    (review,) = reviews(mode, agent, thread())
    assert review.output["tool_calls"][0]["args"] == {"city": "Rome"}
    assert not weather.calls
    answer(mode, agent, thread(), approve())
    assert weather.calls == {"Rome": 1}
    state = answer(mode, agent, thread(), approve())
    assert (state["messages"][-1].content, len(model.calls)) == ("Sunny.", 2)


def test_the_ledger_of_a_person_s_message_has_the_message_s_id(mode):
    """LangGraph gives ids to messages that have none, but only after the step."""
    agent, _ = started(mode, scripted(TimeoutError("no")))
    state = answer(mode, agent, thread(), respond("Oslo."))
    assert [*state["ledgers"]] == [state["messages"][-1].id]


def test_a_rejected_model_call_ends_the_agent_s_run(mode):
    """The last message says so, the thread is finished, and the ledger has the decision."""
    model, retry = scripted(TimeoutError("no")), RetryMiddleware()
    agent, _ = started(mode, model, middleware=retry, response_format=ToolStrategy(Report))
    state = answer(mode, agent, thread(), reject("too late"))
    assert state["messages"][-1].content == "A person stopped this run: too late"
    assert state["ledgers"][state["messages"][-1].id][-1]["decision"]["type"] == "reject"
    assert mode.call(agent, "get_state", thread()).next == ()
    assert (state.get("structured_response"), len(model.calls)) == (None, 1)


def test_agents_of_one_node_repeat_no_call_under_gather_calls():
    """One of them pauses while another works: the other comes to its end first."""
    log = Counter()

    def answer_of(messages):
        (topic,) = [said.content for said in messages if isinstance(said, HumanMessage)]
        turn = len(messages)
        log[topic, turn] += 1
        if topic == "one" and log[topic, turn] == 1:
            return asking({"name": "nowhere", "args": {}, "id": "x"})
        return asking(weather_of(topic)) if turn < 3 and topic != "one" else f"{topic} is done"

    async def work(city: str) -> str:
        """Tell a city's weather."""
        await asyncio.sleep(0)
        log["tool", city] += 1
        return city

    tools = [StructuredTool.from_function(coroutine=work, name="weather")]
    agent = agent_of(ScriptedChat(answer=answer_of), tools, RetryMiddleware(tools=True))

    async def both(_state):
        given = ({"messages": [HumanMessage(topic)]} for topic in ("one", "two"))
        ended = await gather_calls(*map(agent.ainvoke, given))
        return {"said": [state["messages"][-1].content for state in ended]}

    builder = StateGraph(dict).add_node("both", both).set_entry_point("both")
    graph = builder.compile(checkpointer=InMemorySaver())

    async def run():
        await graph.ainvoke({}, thread())
        return await aresume(graph, thread(), approve())

    state = asyncio.run(run())
    assert state["said"] == ["one is done", "two is done"]
    assert {name for name, count in log.items() if count > 1} == {("one", 1)}


def test_an_agent_whose_model_is_given_up_raises(mode):
    """Where that is asked for, or nobody is to be asked, the error has the ledger."""
    with pytest.raises(AttemptsExhausted):
        started(mode, scripted(TimeoutError("no")), middleware=RetryMiddleware(review=False))
    retry = RetryMiddleware(rejected_model="raise")
    agent, _ = started(mode, scripted(TimeoutError("no")), middleware=retry)
    with pytest.raises(CallCancelled) as ended:
        answer(mode, agent, thread(), reject("too late"))
    assert ended.value.attempts[0]["failure"]["type"] == "TimeoutError"


def test_what_a_provider_adds_to_a_message_is_kept(mode):
    """Reasoning blocks, ids and figures come back as the model gave them."""
    blocks = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "R"},
    ]
    usage = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    said = AIMessage(
        blocks, id="m1", usage_metadata=usage, response_metadata={"stop_reason": "end"}
    )
    _, state = started(mode, scripted(said))
    last = state["messages"][-1]
    assert (last.content, last.id, last.usage_metadata) == (blocks, "m1", usage)
    assert last.response_metadata["stop_reason"] == "end"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"key": "x"}, "`key`"),
        ({"max_attempts": 0}, "`max_attempts`"),
        ({"on_cancel": "end"}, "on_cancel"),
    ],
)
def test_a_wrong_option_is_told_when_the_agent_is_made(options, told):
    """Not at the first failure."""
    with pytest.raises(ValueError, match=told):
        RetryMiddleware(**options)
