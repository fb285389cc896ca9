"""What a client's error means is known from the code that raised it, not from its words alone."""

import asyncio

import pytest
from anthropic.lib.streaming import _messages
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph

from graph_retry import retry_llm_call
from graph_retry._core.ground.functions.awaiting import is_async_only
from graph_retry._core.output.failures import failure_of
from tests.loops import State

WORDS = "Unable to parse tool parameter JSON from model. Error: x. JSON: [1"


def raised(call):
    """Return the error that a call raises."""
    with pytest.raises((TypeError, ValueError, asyncio.InvalidStateError)) as caught:
        call()
    return caught.value


def quoting():
    """Raise the words of Anthropic's client from other code, as a proxy may."""
    raise ValueError(WORDS)


def test_the_words_of_anthropics_client_count_only_in_its_own_errors():
    """A text that merely quotes them is the error of the function that raised it."""
    own = {"__name__": _messages.__name__, "words": WORDS}
    exec("def fails():\n    raise ValueError(words)", own)
    assert failure_of(raised(own["fails"]))["kind"] == "invalid_syntax"
    assert failure_of(raised(quoting))["kind"] == "rejected_input"


def test_only_a_graph_or_its_saver_is_async_only():
    """An error of a user's function with LangGraph's words is this function's error."""

    async def node(state):
        return {}

    graph = StateGraph(State).add_node("n", node).add_edge(START, "n").add_edge("n", END).compile()
    assert is_async_only(raised(lambda: graph.invoke({})))

    def same_words(params):
        raise TypeError('No synchronous function provided to "n".')

    assert not is_async_only(raised(lambda: same_words({})))
    with pytest.raises(Exception, match="No synchronous function"):
        retry_llm_call(same_words, {})

    def wrong(first, second):
        return {}

    bad = StateGraph(State).add_node("n", wrong).add_edge(START, "n").compile()
    assert not is_async_only(raised(lambda: bad.invoke({})))


async def test_an_async_saver_is_async_only(tmp_path):
    """The saver raises an `InvalidStateError` in its own event loop."""
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "a.db")) as saver:
        config = {"configurable": {"thread_id": "1"}}
        assert is_async_only(raised(lambda: saver.get_tuple(config)))
    assert not is_async_only(raised(asyncio.Future().result))
