"""Several calls of one node, answered one after the other, as web clients have to."""

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command

from graph_retry import apending_reviews, aresume, aretry_llm_call, edit, gather_calls
from tests.loops import Fanned, thread

APPROVAL = {"decisions": [{"type": "approve"}]}
"""What Agent Chat UI sends, to no question in particular."""


def three_calls(calls):
    """Return a graph whose calls fail once, then once more for the one in the middle."""

    async def model(params):
        calls.append(params["who"])
        if calls.count(params["who"]) < params["fails"] + 1 and "n" not in params:
            raise ValueError("not yet")
        return params["who"]

    async def node(state):
        made = (
            aretry_llm_call(model, {"who": who, "fails": fails}, name="count")
            for who, fails in (("a", 1), ("b", 2), ("c", 1), ("d", 0))
        )
        return {"results": await gather_calls(*made, one_at_a_time=True)}

    builder = StateGraph(Fanned).add_node("ask", node).add_edge(START, "ask")
    return builder.compile(checkpointer=InMemorySaver())


@pytest.mark.parametrize("plain", [True, False], ids=["plain", "by review"])
async def test_each_question_is_shown_and_answered_alone(plain):
    """In the order of the calls, each with its own answer; no finished call is made again."""
    calls = []
    graph = three_calls(calls)
    await graph.ainvoke({}, thread())
    asked = []
    while shown := await apending_reviews(graph, thread()):
        (review,) = shown
        asked.append((review.params["who"], review.attempt))
        if plain:
            state = await graph.ainvoke(Command(resume=APPROVAL), thread())
        else:
            state = await aresume(graph, thread(), {"type": "approve"})
    assert asked == [("a", 1), ("b", 1), ("b", 2), ("c", 1)]
    assert state["results"] == ["a", "b", "c", "d"]
    assert sorted(calls) == sorted("aabbbccd")


async def test_an_answer_is_not_given_to_a_question_that_is_not_shown():
    """An edit by review id reaches its own call; the neighbours keep their params."""
    calls = []
    graph = three_calls(calls)
    await graph.ainvoke({}, thread())
    (review,) = await apending_reviews(graph, thread())
    await aresume(graph, thread(), answers={review.review_id: edit(n=1)})
    (following,) = await apending_reviews(graph, thread())
    assert (following.params, following.problem) == ({"who": "b", "fails": 2}, None)
    assert len(calls) == 5
