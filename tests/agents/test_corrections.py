"""What people corrected in an agent's model calls: changed in part, exported and evaluated."""

import json

import pytest
from langchain.agents.structured_output import AutoStrategy, ProviderStrategy, ToolStrategy
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel

from graph_retry import approve, respond
from graph_retry.agents import RetryMiddleware
from graph_retry.data import corrections_of, evaluate, export, import_corrections
from tests.agents.scripted import ScriptedChat, Weather, agent_of, asking, weather_of
from tests.loops import answer, refused, thread

HI = {"messages": [HumanMessage("Where is it sunny?")]}
FITTING = {"city": "Rome", "days": 3}


class Report(BaseModel):
    """The best city."""

    city: str
    days: int


def reporting(days, said=""):
    made = asking({"name": "Report", "args": {"city": "Rome", "days": days}, "id": "r"})
    return made.model_copy(update={"content": said})


def started(mode, said, *tools, options=None, **more):
    """Run an agent whose model says one thing until it asks."""
    model = ScriptedChat(answer=lambda _: said)
    retry = RetryMiddleware(**(options or {}))
    agent = agent_of(model, tools, retry, checkpointer=InMemorySaver(), **more)
    mode.invoke(agent, HI, thread())
    return agent


def exported(agent, path, format):
    """Export to a file; return its lines, and the rows left out."""
    told = export(agent, path, format)
    return [json.loads(line) for line in path.read_text().splitlines()], told.left_out


NO_TEXT = "one of its outputs is an agent's structured response instead of text"
NO_TOOLS = "one of its outputs calls tools, whose definitions are not recorded"


@pytest.mark.parametrize("format", ["openai", "preference"])
def test_a_structured_response_becomes_no_chat(mode, tmp_path, format):
    """A model that learnt from it would learn the library's own form of a message."""
    agent = started(mode, reporting("many"), response_format=ToolStrategy(Report))
    answer(mode, agent, thread(), respond(FITTING))
    assert exported(agent, tmp_path / "c.jsonl", format) == ([], {NO_TEXT: 1})
    export(agent, tmp_path / "rows.jsonl")
    (row,) = import_corrections(tmp_path / "rows.jsonl")
    assert (row["is_message"], [row]) == (True, list(corrections_of(agent)))
    assert exported([row], tmp_path / "c.jsonl", format) == ([], {NO_TEXT: 1})


def test_tool_calls_become_no_chat(mode, tmp_path):
    """What the model was offered is unknown, on either side of a pair."""
    weather = Weather().tool(is_async=mode.is_async)
    always = {"review": "always"}
    for said, given in ((asking(weather_of("Rome")), "Rome."), ("Rome.", {"tool_calls": [SUNNY]})):
        agent = started(mode, said, weather, options=always)
        answer(mode, agent, thread(), respond(given))
        assert exported(agent, tmp_path / "c.jsonl", "preference") == ([], {NO_TOOLS: 1})


SUNNY = {"name": "weather", "args": {"city": "Oslo"}}


def test_words_become_a_chat_with_the_system_prompt(mode, tmp_path):
    """The assistant's message is the person's words alone."""
    agent = started(mode, "Rome.", options={"review": "always"}, system_prompt="Be kind.")
    answer(mode, agent, thread(), respond("Oslo."))
    asked = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "Where is it sunny?"},
    ]
    right, wrong = ({"role": "assistant", "content": said} for said in ("Oslo.", "Rome."))
    path = tmp_path / "c.jsonl"
    assert exported(agent, path, "openai") == ([{"messages": [*asked, right]}], {})
    ((pair,), left_out) = exported(agent, path, "preference")
    assert (pair["input"], left_out) == ({"messages": asked}, {})
    assert (pair["preferred_output"], pair["non_preferred_output"]) == ([right], [wrong])


@pytest.mark.parametrize(("days", "agreement"), [(3, 1.0), (4, 0.0)])
def test_an_evaluation_compares_the_structured_response(mode, days, agreement):
    """A function that returns the response agrees with a person who gave the same."""
    agent = started(mode, reporting("many"), response_format=ToolStrategy(Report))
    answer(mode, agent, thread(), respond(FITTING))
    done = evaluate(agent, lambda _: {"city": "Rome", "days": days}, calls=["model"], output=Report)
    (one,) = done.results
    assert (one["expected"], one["agreement"]) == (FITTING, agreement)


def test_an_evaluation_compares_no_other_message(mode):
    """No function of the params returns the same message, so nothing can differ."""
    always = {"review": "always"}
    agent = started(mode, reporting(3), options=always, response_format=ToolStrategy(Report))
    answer(mode, agent, thread(), approve())
    (one,) = evaluate(agent, lambda _: FITTING, output=Report).results
    assert (one["ended"], one["expected"], one["agreement"]) == ("at_once", None, None)


RESPONSES = {
    "tool call": (reporting("many"), ToolStrategy),
    "tool call with words": (reporting("many", "I looked."), AutoStrategy),
    "broken tool call": (
        asking(broken=[{"name": "Report", "args": '{"city": "Rome", "days": "x",}', "id": "r"}]),
        ToolStrategy,
    ),
    "text": ('{"city": "Rome", "days": "many"}', ProviderStrategy),
}


@pytest.mark.parametrize("name", RESPONSES)
def test_a_part_of_a_structured_response_is_changed(mode, name):
    """The fields that the person does not name stay as the model gave them."""
    said, strategy = RESPONSES[name]
    agent = started(mode, said, response_format=strategy(Report))
    refused(mode, agent, thread(), respond(changes={"dyas": 3}))
    state = answer(mode, agent, thread(), respond(changes={"days": 3}))
    assert state["structured_response"] == Report(city="Rome", days=3)


def test_a_valid_structured_response_is_changed_in_part(mode):
    """So is one that waits for approval, and its words."""
    always = {"review": "always"}
    agent = started(mode, reporting(3), options=always, response_format=ToolStrategy(Report))
    changed = respond(changes={"days": 4}, replace={"Rome": "Oslo"})
    state = answer(mode, agent, thread(), changed)
    assert state["structured_response"] == Report(city="Oslo", days=4)


def test_a_part_of_a_message_of_several_calls_is_changed_as_before(mode):
    """The structured response is then not the whole answer."""
    weather = Weather().tool(is_async=mode.is_async)
    said = reporting("many")
    said.tool_calls.append({**SUNNY, "id": "w", "type": "tool_call"})
    agent = started(mode, said, weather, response_format=ToolStrategy(Report))
    calls = [{"name": "Report", "args": FITTING, "id": "r"}]
    state = answer(mode, agent, thread(), respond(changes={"tool_calls": calls}))
    assert state["structured_response"] == Report(city="Rome", days=3)
