"""LangGraph's own time travel: a thread that is run from an earlier checkpoint.

The calls of that step continue, so that a finished request is not made again, and a review that
waits stays open. Calls of later steps are made again.
"""

from typing import Any

import pytest
from langgraph.graph import START, StateGraph

from graph_retry import StaleDecision, edit
from tests.loops import Model, State, answer, fan_out, one_call, reviews, thread
from tests.threads.threads import asked, current, decide, go_back, nested

SHAPES = ("alone", "nested", "branches")


def shaped(shape: str, form: str, mode: Any, model: Model, saver: Any) -> Any:
    """Compile a graph that makes one call, or one in each of two `Send` branches."""
    if shape == "branches":
        return fan_out(form, mode, model, saver, width=2)
    return (one_call if shape == "alone" else nested)(form, mode, model, saver)


def after(form: str, mode: Any, model: Model, saver: Any) -> Any:
    """Compile a graph that makes its call after another step."""
    inner = one_call(form, mode, model, None)
    builder = StateGraph(State).add_node("prepare", lambda state: {}).add_node("ask", inner)
    return builder.add_edge(START, "prepare").add_edge("prepare", "ask").compile(checkpointer=saver)


def places(mode: Any, graph: Any) -> list[Any]:
    """Return the thread's checkpoints that have a next step, newest first."""
    if mode.is_async:

        async def read() -> list[Any]:
            return [each async for each in graph.aget_state_history(thread())]

        found = mode.run(read)
    else:
        found = list(graph.get_state_history(thread()))
    return [each.config for each in found if each.next]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_waiting_thread_that_is_run_from_its_checkpoint_asks_the_same(
    mode, checkpointer, form, shape
):
    """However often; nothing is requested again, and the answer continues the call."""
    model = Model(goal=1)
    graph = shaped(shape, form, mode, model, checkpointer)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    before = sorted(each.review_id for each in reviews(mode, graph, thread()))
    made, original = len(model.calls), places(mode, graph)[0]

    for newest in (False, True, False):
        mode.invoke(graph, None, places(mode, graph)[0] if newest else original)
        assert sorted(each.review_id for each in reviews(mode, graph, thread())) == before
        assert len(model.calls) == made

    answer(mode, graph, thread(), answers=dict.fromkeys(before, edit(n=1)))
    assert len(model.calls) == made + len(before)
    assert {len(ledger.attempts) for ledger in current(mode, graph)} == {2}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_thread_that_is_over_gives_its_results_again(mode, checkpointer, form, shape):
    """A finished call keeps its ledger too."""
    model = Model(goal=1)
    graph = shaped(shape, form, mode, model, checkpointer)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    waiting = [each.review_id for each in reviews(mode, graph, thread())]
    ended = answer(mode, graph, thread(), answers=dict.fromkeys(waiting, edit(n=1)))
    made = len(model.calls)

    assert mode.invoke(graph, None, places(mode, graph)[0]) == ended
    assert len(model.calls) == made
    ledgers = current(mode, graph)
    assert {(ledger.outcome, len(ledger.attempts)) for ledger in ledgers} == {("succeeded", 2)}


def test_a_rewind_after_it_changes_the_newest_call(mode, checkpointer, form):
    """And time travel after that rewind continues the rewound call."""
    model = Model(goal=1)
    graph = one_call(form, mode, model, checkpointer)
    mode.invoke(graph, {"params": {"n": 1}}, thread())
    mode.invoke(graph, None, places(mode, graph)[0])
    assert go_back(mode, graph, attempt=1, params={"n": 2})["output"] == {"n": 2}
    assert mode.invoke(graph, None, places(mode, graph)[0])["output"] == {"n": 2}
    assert [call["n"] for call in model.calls] == [1, 2]


def test_a_run_from_an_earlier_step_ends_an_open_review_and_tells_it(
    mode, checkpointer, form, caplog
):
    """The call is made again; the ended review names the cause, and its ledger does."""
    model = Model(goal=1)
    graph = after(form, mode, model, checkpointer)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    first = asked(mode, graph)
    mode.invoke(graph, None, places(mode, graph)[1])

    assert f"review {first.review_id} of `count`" in caplog.text
    assert "was ended unanswered: the thread was run from an earlier checkpoint" in caplog.text
    assert asked(mode, graph).review_id != first.review_id
    with pytest.raises(StaleDecision, match="the thread was run from an earlier checkpoint at 2"):
        answer(mode, graph, thread(), answers={first.review_id: edit(n=1)})
    assert decide(mode, graph, edit(n=1))["output"] == {"n": 1}
    assert len(model.calls) == 3
