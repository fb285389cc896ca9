"""LangGraph's `ToolNode` runs the tool calls of a message at once: each keeps its own result."""

from typing import Annotated

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode
from typing_extensions import TypedDict

from tests.identity.cities import (
    CITIES,
    REVIEWED,
    Guide,
    Preparation,
    finish,
    right,
    right_counts,
    seeds,
)
from tests.loops import thread


class State(TypedDict, total=False):
    messages: Annotated[list, add_messages]


def tools_graph(mode, saver, guide, seed, reviewed):
    """Compile a graph of a `ToolNode` whose tool looks something up before its call."""
    preparation = Preparation(seed, guide)

    @tool("tell")
    def tell_tool(city: str) -> str:
        """Tell of a city."""
        return preparation.call(city, reviewed)

    @tool("tell")
    async def atell_tool(city: str) -> str:
        """Tell of a city."""
        return await preparation.acall(city, reviewed)

    node = ToolNode([atell_tool if mode.is_async else tell_tool])
    builder = StateGraph(State).add_node("tools", node).add_edge(START, "tools")
    return builder.compile(checkpointer=saver)


def asked_for(cities):
    """Return a model's message that calls the tool once for each city; the id is the city."""
    calls = [{"name": "tell", "args": {"city": city}, "id": city} for city in cities]
    return {"messages": [AIMessage("", tool_calls=calls)]}


def told(state):
    """Return the content of each tool message by its call's id."""
    messages = [each for each in state["messages"] if isinstance(each, ToolMessage)]
    return {message.tool_call_id: message.content for message in messages}


def wrong_threads(mode, saver, way, cities, reviewed):
    """Run a thread for each seed; return what was wrong, by seed."""
    wrong = {}
    for seed in seeds():
        guide, config = Guide(), thread(str(seed))
        graph = tools_graph(mode, saver, guide, seed, reviewed)
        mode.invoke(graph, asked_for(cities), config)
        finish(mode, graph, config, way)

        got = told(mode.call(graph, "get_state", config).values)
        # An async `ToolNode` stops waiting at the first pause, which may cut off other calls.
        counted = mode.is_async or guide.counts() == right_counts(cities, reviewed)
        if got != right(cities, reviewed) or guide.repeated or not counted:
            wrong[seed] = (got, guide.counts(), guide.repeated)
    return wrong


@pytest.mark.parametrize(
    ("cities", "reviewed", "way"),
    [
        (CITIES[:3], ["Rome"], "resume"),
        (CITIES[:3], ["Rome"], "plain"),
        (CITIES, REVIEWED, "resume"),
        (CITIES, REVIEWED, "by id"),
    ],
)
def test_every_tool_message_carries_its_own_result(mode, checkpointer, cities, reviewed, way):
    """Protects a tool call from a sibling's result, params and answer; no finished call repeats."""
    assert wrong_threads(mode, checkpointer, way, cities, reviewed) == {}


def test_a_plain_answer_decides_the_question_that_was_shown(mode, checkpointer):
    """Protects the second question of a node, unseen so far, from the answer to the first.

    `ToolNode` shows one question at a time (langgraph#6624), and LangGraph gives a plain answer to
    whichever call of the node asks first.
    """
    assert wrong_threads(mode, checkpointer, "plain", CITIES, REVIEWED) == {}
