"""A tool call of an agent that fails is reviewed; several at once keep their results."""

import random
import time

import pytest
from langchain.agents.middleware import ModelRetryMiddleware, ToolRetryMiddleware
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import StructuredTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, RetryPolicy, interrupt

from graph_retry import AnswerRefused, CallCancelled, approve, comment, edit, reject, respond
from graph_retry.agents import RetryMiddleware
from tests.agents.scripted import CITIES, ScriptedChat, Weather, agent_of, asking, told, weather_of
from tests.loops import answer, reviews, thread

HI = {"messages": [HumanMessage("Where is it sunny?")]}


def travelling(messages):
    """Ask about three cities at once, one with broken JSON, and end with what was told."""
    if isinstance(messages[-1], ToolMessage):
        return "; ".join(str(said.content) for said in messages if isinstance(said, ToolMessage))
    lima = {"name": "weather", "args": '{"city": "Lima",}', "id": "Lima"}
    return asking(weather_of("Rome"), weather_of("Oslo"), broken=[lima])


def traveller(mode, weather, *middleware, saver=None, **options):
    """Make an agent whose tool calls are wrapped, and its model."""
    model = ScriptedChat(answer=travelling)
    retry = RetryMiddleware(tools=True, **options)
    tools = [weather.tool(is_async=mode.is_async)]
    more = {"checkpointer": saver or InMemorySaver()}
    return agent_of(model, tools, retry, *middleware, **more), model


@pytest.mark.parametrize(
    ("decision", "oslo", "calls"),
    [
        (edit(city="Bergen"), "sunny in Bergen", {"Rome": 1, "Oslo": 1, "Lima": 1, "Bergen": 1}),
        (respond("rain"), "rain", {"Rome": 1, "Oslo": 1, "Lima": 1}),
        (respond({"mm": 3}), '{"mm": 3}', {"Rome": 1, "Oslo": 1, "Lima": 1}),
        (
            reject("closed on Sundays"),
            "The call of `weather` failed, and a person stopped it: closed on Sundays.",
            {"Rome": 1, "Oslo": 1, "Lima": 1},
        ),
    ],
)
def test_a_failing_tool_is_reviewed_and_its_siblings_keep_their_results(
    mode, checkpointer, decision, oslo, calls
):
    """One of three calls at once fails: no other runs again, and each result is at its own call."""
    weather = Weather(failing=["Oslo"])
    agent, model = traveller(mode, weather, saver=checkpointer)
    mode.invoke(agent, HI, thread())
    (review,) = reviews(mode, agent, thread())
    assert (review.function_name, review.params) == ("weather", {"city": "Oslo"})
    state = answer(mode, agent, thread(), decision)
    assert told(state) == {"Rome": "sunny in Rome", "Oslo": oslo, "Lima": "sunny in Lima"}
    assert weather.calls == calls
    assert len(model.calls) == 2
    assert "Oslo" in state["ledgers"]


def test_a_rejected_tool_call_raises_where_that_is_asked_for(mode):
    """The agent's run ends with the reason."""
    agent, _ = traveller(mode, Weather(failing=["Oslo"]), rejected_tools="raise")
    mode.invoke(agent, HI, thread())
    with pytest.raises(CallCancelled, match="closed"):
        answer(mode, agent, thread(), reject("closed"))


@pytest.mark.parametrize("tools", ["search", [len], ["search", 1]])
def test_tools_that_are_no_names_are_refused(tools):
    """They would match no tool, and nobody would be asked about any."""
    with pytest.raises(
        TypeError, match=r"`tools.*: give .*the name of a tool, a text such as `tool.name`"
    ):
        RetryMiddleware(tools=tools)
    with pytest.raises(
        TypeError,
        match="`models`: give a dict by name, each value a `BaseChatModel`, or None; not 'large'",
    ):
        RetryMiddleware(models="large")


def test_only_the_named_tools_are_wrapped(mode):
    """Any other fails as it would without the middleware."""
    model = ScriptedChat(answer=travelling)
    tools = [Weather(failing=["Oslo"]).tool(is_async=mode.is_async)]
    retry = RetryMiddleware(tools=["search"])
    agent = agent_of(model, tools, retry, checkpointer=InMemorySaver())
    with pytest.raises(TimeoutError):
        mode.invoke(agent, HI, thread())


def test_nothing_is_told_to_a_tool(mode):
    """A comment is for the model: of a tool call it is refused, whatever its arguments."""
    agent, _ = traveller(mode, Weather(failing=["Oslo"]))
    mode.invoke(agent, HI, thread())
    why = (
        "Comment is not allowed here: params of a tool call have only the tool's arguments. Allowed"
    )
    with pytest.raises(AnswerRefused, match=why):
        answer(mode, agent, thread(), comment("look again"))
    assert why in reviews(mode, agent, thread())[0].problem


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"ctiy": "Bergen"}, "Did you mean `city`"),
        ({"city": 5}, "string"),
    ],
)
def test_an_edit_has_to_fit_the_tool(mode, changes, why):
    """What the tool does not take is refused when it is given, and the tool does not run."""
    weather = Weather(failing=["Oslo"])
    agent, _ = traveller(mode, weather)
    mode.invoke(agent, HI, thread())
    with pytest.raises(AnswerRefused, match=why):
        answer(mode, agent, thread(), edit(**changes))
    assert weather.calls["Oslo"] == 1
    state = answer(mode, agent, thread(), edit(city="Bergen"))
    assert told(state)["Oslo"] == "sunny in Bergen"


def test_the_schema_of_a_tool_that_is_plain_json_holds_too(mode):
    """Tools of MCP servers have a JSON Schema; other fields than its own are unknown."""
    calls = []

    def weather(**args):
        calls.append(args)
        if len(calls) == 1:
            raise TimeoutError("no answer")
        return "sunny"

    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    made = StructuredTool(name="weather", description="…", args_schema=schema, func=weather)
    asked = iter([asking(weather_of("Rome")), "Done."])
    model = ScriptedChat(answer=lambda _: next(asked))
    agent = agent_of(model, [made], RetryMiddleware(tools=True), checkpointer=InMemorySaver())
    mode.invoke(agent, HI, thread())
    for changes, why in (({"city": 5}, "string"), ({"ctiy": "Oslo"}, "Did you mean `city`")):
        with pytest.raises(AnswerRefused, match=why):
            answer(mode, agent, thread(), edit(**changes))
    state = answer(mode, agent, thread(), edit(city="Oslo"))
    assert (told(state), calls) == ({"Rome": "sunny"}, [{"city": "Rome"}, {"city": "Oslo"}])


def test_a_tool_s_own_question_is_shown_once(mode):
    """A wrapped tool may interrupt: its question is no review, and is answered as its own."""

    @tool
    def weather(city: str) -> str:
        """Tell a city's weather."""
        return f"{interrupt({'sure': city})} in {city}"

    asked = iter([asking(weather_of("Rome")), "Done."])
    model = ScriptedChat(answer=lambda _: next(asked))
    agent = agent_of(model, [weather], RetryMiddleware(tools=True), checkpointer=InMemorySaver())
    state = mode.invoke(agent, HI, thread())
    assert [question.value for question in state["__interrupt__"]] == [{"sure": "Rome"}]
    assert told(mode.invoke(agent, Command(resume="sunny"), thread())) == {"Rome": "sunny in Rome"}


@pytest.mark.parametrize("decision", [{"type": "edit", "params": {"city": "Bergen"}}, "reject"])
def test_two_failing_tools_ask_one_after_the_other(mode, decision):
    """A plain answer has one question to be for; the model is told to call one tool at a time."""
    calls = [weather_of("Rome"), weather_of("Oslo")]

    def travel(messages):
        if "only one may be called at a time" not in str(messages):
            return asking(*calls)
        done = {said.tool_call_id for said in messages if isinstance(said, ToolMessage)}
        return next((asking(call) for call in calls if call["id"] not in done), "Done.")

    model, weather = ScriptedChat(answer=travel), Weather(failing=["Rome", "Oslo"])
    options = {"one_at_a_time": True, "feedback": "errors_only", "auto_retries": 1}
    tools, retry = [weather.tool(is_async=mode.is_async)], RetryMiddleware(tools=True, **options)
    agent = agent_of(model, tools, retry, checkpointer=InMemorySaver())
    state = mode.invoke(agent, HI, thread())
    asked = []
    while questions := state.get("__interrupt__"):
        (question,) = questions
        asked.append(question.value["params"])
        state = mode.invoke(agent, Command(resume=decision), thread())
    assert asked == [{"city": "Rome"}, {"city": "Oslo"}]
    assert told(state).keys() == {"Rome", "Oslo"}


def test_an_id_that_is_used_again_keeps_both_ledgers(mode):
    """Some models number the calls of each message anew."""
    asked = iter([asking(weather_of("Oslo")), asking(weather_of("Oslo")), "Done."])
    model, weather = ScriptedChat(answer=lambda _: next(asked)), Weather(failing=["Oslo"])
    tools, retry = [weather.tool(is_async=mode.is_async)], RetryMiddleware(tools=True)
    agent = agent_of(model, tools, retry, checkpointer=InMemorySaver())
    mode.invoke(agent, HI, thread())
    answer(mode, agent, thread(), edit(city="Bergen"))
    state = answer(mode, agent, thread(), edit(city="Trondheim"))
    edited = {name: attempts[1]["params_patch"] for name, attempts in state["ledgers"].items()}
    assert {name: patch[0]["value"] for name, patch in edited.items()} == {
        "Oslo": "Bergen",
        "Oslo#2": "Trondheim",
    }


def test_a_tool_that_does_not_exist_is_told_at_the_first_run(mode, caplog):
    """Once, with what the model is offered: the tool that was meant would run without review."""
    model = ScriptedChat(answer=travelling)
    retry = RetryMiddleware(tools=["wether", "weather"])
    tools = [Weather().tool(is_async=mode.is_async)]
    agent = agent_of(model, tools, retry, checkpointer=InMemorySaver())
    mode.invoke(agent, HI, thread())
    (said,) = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
    assert "names `wether`, which the model cannot call: its tools are `weather`." in said
    assert "Did you mean `weather`?" in said


def test_a_misspelt_approval_runs_no_tool(mode):
    """The tool that was meant would run unasked, in every run; a later tool is only told."""
    for tools in (False, True):
        weather = Weather()
        retry = RetryMiddleware(tools=tools, approve={"wether": True})
        model = ScriptedChat(answer=travelling)
        agent = agent_of(
            model, [weather.tool(is_async=mode.is_async)], retry, checkpointer=InMemorySaver()
        )
        for _ in range(2):
            with pytest.raises(ValueError, match=r"`approve` .* names `wether`.*`weather`\?"):
                mode.invoke(agent, HI, thread())
        assert not weather.calls


def test_an_approval_in_another_unicode_form_runs_no_tool(mode):
    """Both names print alike, and the tool would run unasked."""
    weather = Weather()
    tool = weather.tool(is_async=mode.is_async)
    tool.name = "gr\u00f6\u00dfe"
    retry = RetryMiddleware(approve={"gro\u0308\u00dfe": True})
    agent = agent_of(ScriptedChat(answer=travelling), [tool], retry, checkpointer=InMemorySaver())
    with pytest.raises(ValueError, match="the same letters, in another Unicode form"):
        mode.invoke(agent, HI, thread())
    assert not weather.calls


def test_a_tool_that_updates_the_agent_s_state_still_does(mode):
    """A `Command` of a tool comes through, after a review as well."""
    failed = []

    @tool
    def weather(city: str) -> Command:
        """Tell a city's weather."""
        if not failed:
            failed.append(city)
            raise TimeoutError(city)
        return Command(update={"messages": [ToolMessage("sunny", tool_call_id="Rome")]})

    asked = iter([asking(weather_of("Rome")), "Done."])
    model = ScriptedChat(answer=lambda _: next(asked))
    agent = agent_of(model, [weather], RetryMiddleware(tools=True), checkpointer=InMemorySaver())
    mode.invoke(agent, HI, thread())
    state = answer(mode, agent, thread(), approve())
    assert told(state) == {"Rome": "sunny"}
    assert len(state["ledgers"]["Rome"]) == 2


def test_a_result_that_cannot_be_saved_is_told_by_the_tool_s_name(mode, caplog):
    """The person and the log are told which tool, and no file of ours."""

    @tool(response_format="content_and_artifact")
    def forecast() -> tuple[str, object]:
        """Tell tomorrow's weather."""
        return "sunny", object

    calls = {"name": "forecast", "args": {}, "id": "Rome"}
    model = ScriptedChat(answer=lambda _: asking(calls))
    agent = agent_of(model, [forecast], RetryMiddleware(tools=True), checkpointer=InMemorySaver())
    mode.invoke(agent, HI, thread())
    (review,) = reviews(mode, agent, thread())
    assert "`forecast` returned a `ToolMessage` that cannot be saved" in review.value["error"]
    assert "agents.py" not in caplog.text


def test_retries_of_langchain_s_own_happen_within_one_attempt(mode):
    """Placed after it in the list they do not multiply with it, and a person is asked once."""
    weather = Weather(failing=["Oslo"])
    own = ToolRetryMiddleware(max_retries=2, initial_delay=0, jitter=False, on_failure="error")
    again = ModelRetryMiddleware(max_retries=2, on_failure="error")
    agent, model = traveller(mode, weather, own, again)
    mode.invoke(agent, HI, thread())
    assert weather.calls == {"Rome": 1, "Oslo": 3, "Lima": 1}
    assert [review.attempt for review in reviews(mode, agent, thread())] == [1]
    answer(mode, agent, thread(), edit(city="Bergen"))
    assert (weather.calls["Bergen"], len(model.calls)) == (1, 2)


@pytest.mark.parametrize("threads", [5, pytest.param(50, marks=pytest.mark.long)])
def test_no_result_is_at_another_call(mode, threads):
    """Tools that take a random time, all failing first: every result is at its own call."""
    wrong = {}
    for seed in range(threads):
        draw, config = random.Random(seed), thread(str(seed))
        weather = Weather(CITIES, pause=lambda: time.sleep(draw.uniform(0, 0.01)))  # noqa: B023
        agent, model = traveller(mode, weather)
        mode.invoke(agent, HI, config)
        state: dict = {"messages": []}
        while open_reviews := reviews(mode, agent, config):
            draw.shuffle(open_reviews)
            chosen = open_reviews[: draw.randint(1, len(open_reviews))]
            answers = {
                review.review_id: edit(city=f"near {review.params['city']}") for review in chosen
            }
            state = answer(mode, agent, config, answers=answers)
        right = {city: f"sunny in near {city}" for city in CITIES}
        counts = {name: 1 for city in CITIES for name in (city, f"near {city}")}
        if told(state) != right or weather.calls != counts or len(model.calls) != 2:
            wrong[seed] = (told(state), weather.calls, len(model.calls))
    assert wrong == {}


@pytest.mark.parametrize(
    ("repeatable", "payments"),
    [(["weather"], 3), ([], 1), (None, 0)],
    ids=["safe", "unsafe", "unsaid"],
)
@pytest.mark.parametrize("mode", ["sync"], indirect=True)
def test_a_tool_is_repeated_only_if_it_is_safe(mode, repeatable, payments):
    """Protects a payment whose connection broke: nothing that was not named is made again."""
    calls = []

    @tool
    def weather(city: str) -> str:
        """Tell the weather."""
        calls.append(city)
        raise ConnectionError("broken")

    options = {"tools": True, "transient": RetryPolicy(max_attempts=3, initial_interval=0)}
    if repeatable is None:
        with pytest.raises(ValueError, match="`repeatable="):
            RetryMiddleware(**options)
        return
    middleware = RetryMiddleware(**options, repeatable=repeatable)
    model = ScriptedChat(answer=travelling)
    mode.invoke(agent_of(model, [weather], middleware, checkpointer=InMemorySaver()), HI, thread())

    assert len(calls) // len(set(calls)) == payments
