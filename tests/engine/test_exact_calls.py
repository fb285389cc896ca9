"""Invariant I1: N human edits cost exactly N + 1 model calls, whatever the shape of the graph."""

import asyncio
import random

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.types import Command

from graph_retry import apending_reviews, aretry_llm_call, edit, gather_calls
from tests.loops import Model, answer, fan_out, gathered, one_call, reviews, thread
from tests.parts import draws

WIDTH = 5
WIDE = draws(8, 20)


MANY = [pytest.param(edits, marks=pytest.mark.long) for edits in range(3, 21)]


@pytest.mark.parametrize("edits", [0, 1, 2, *MANY])
def test_n_edits_cost_n_plus_one_calls(form, mode, edits):
    """However many edits it takes, each costs one call and none is lost."""
    model = Model(goal=edits)
    graph = one_call(form, mode, model, InMemorySaver(), max_attempts=25)

    state = mode.invoke(graph, {"params": {"n": 0}}, thread())
    for n in range(1, edits + 1):
        state = answer(mode, graph, thread(), edit(n=n))

    assert [params["n"] for params in model.calls] == list(range(edits + 1))
    assert state["output"] == {"n": edits}


def test_twenty_edits_on_every_storage(form, mode, checkpointer):
    """After each answer exactly one more call was made, on memory, SQLite and PostgreSQL."""
    model = Model(goal=20)
    graph = one_call(form, mode, model, checkpointer, max_attempts=25)

    state = mode.invoke(graph, {"params": {"n": 0}}, thread())
    for n in range(1, 21):
        assert len(model.calls) == n
        state = answer(mode, graph, thread(), edit(n=n))

    assert len(model.calls) == 21
    assert state["output"] == {"n": 20}


def test_plain_commands_cost_the_same(form, mode, checkpointer):
    """A client that only knows `Command(resume=…)` pays no more calls than our helper."""
    model = Model(goal=3)
    graph = one_call(form, mode, model, checkpointer)

    mode.invoke(graph, {"params": {"n": 0}}, thread())
    for n in (1, 2, 3):
        state = mode.invoke(graph, Command(resume={"type": "edit", "params": {"n": n}}), thread())

    assert len(model.calls) == 4
    assert state["output"] == {"n": 3}


@pytest.mark.drawn
@pytest.mark.parametrize("together", [True, False])
def test_a_wide_send_is_answered_in_any_order(form, mode, together):
    """Branches, answered at random one by one or all together, call once per attempt."""
    model = Model(goal=2)
    graph = fan_out(form, mode, model, InMemorySaver(), width=WIDE, calls=1)
    dice = random.Random(20)

    state = mode.invoke(graph, {"results": []}, thread())
    while open_ := reviews(mode, graph, thread()):
        chosen = open_ if together else dice.sample(open_, min(len(open_), dice.randint(1, 7)))
        answers = {review.review_id: edit(n=review.params["n"] + 1) for review in chosen}
        state = answer(mode, graph, thread(), answers=answers)

    assert len(model.calls) == WIDE * 3
    assert state["results"] == [{"n": 2}] * WIDE


@pytest.mark.drawn
def test_two_calls_in_each_of_many_branches_do_not_hang(mode):
    """The function form holds no worker while it waits: more calls than there are workers."""
    model = Model(goal=2)
    graph = fan_out("function", mode, model, InMemorySaver(), width=WIDE, calls=2)

    mode.invoke(graph, {"results": []}, thread())
    while open_ := reviews(mode, graph, thread()):
        third = open_[: max(1, len(open_) // 3)]
        answers = {review.review_id: edit(n=review.params["n"] + 1) for review in third}
        state = answer(mode, graph, thread(), answers=answers)

    assert len(model.calls) == WIDE * 2 * 3
    assert len(state["results"]) == WIDE


@pytest.mark.parametrize("mode", ["async"], indirect=True)
@pytest.mark.parametrize(("gather", "shown"), [(gather_calls, WIDTH), (asyncio.gather, 1)])
def test_gather_of_five_answered_one_by_one(mode, checkpointer, gather, shown):
    """`gather_calls` shows five questions at once, `asyncio.gather` one; both call once each."""
    model = Model(goal=2)
    graph = gathered(mode.colour(model), checkpointer, WIDTH, gather)
    dice = random.Random(5)

    state = mode.invoke(graph, {"results": []}, thread())
    assert len(reviews(mode, graph, thread())) == shown
    while open_ := reviews(mode, graph, thread()):
        review = dice.choice(open_)
        answers = {review.review_id: edit(n=review.params["n"] + 1)}
        state = answer(mode, graph, thread(), answers=answers)

    assert len(model.calls) == WIDTH * 3
    assert state["results"] == [{"n": 2}] * WIDTH


def test_calls_in_tasks_show_all_their_questions_and_go_on_alone():
    """A task that has not been answered is made again up to its question, and calls nothing."""
    model = Model()

    @task
    async def count(item):
        return await aretry_llm_call(model, {"n": 0, "item": item}, output=dict[str, int])

    @entrypoint(checkpointer=InMemorySaver())
    async def counts(items):
        return await gather_calls(*(count(item) for item in items))

    async def review():
        state = await counts.ainvoke([1, 2, 3], thread())
        shown = await apending_reviews(counts, thread())
        for waiting in shown[::-1]:
            state = await waiting.aanswer(edit(n=waiting.params["item"] * 10))
        return len(shown), state

    assert asyncio.run(review()) == (3, [{"n": 10}, {"n": 20}, {"n": 30}])
    assert len(model.calls) == 6


@pytest.mark.parametrize("mode", ["async"], indirect=True)
def test_gather_of_five_answered_together(mode):
    """Five questions answered in one go need two rounds for two edits each."""
    model = Model(goal=2)
    graph = gathered(mode.colour(model), InMemorySaver(), WIDTH)

    mode.invoke(graph, {"results": []}, thread())
    rounds = 0
    while open_ := reviews(mode, graph, thread()):
        rounds += 1
        answers = {review.review_id: edit(n=review.params["n"] + 1) for review in open_}
        answer(mode, graph, thread(), answers=answers)

    assert rounds == 2
    assert len(model.calls) == WIDTH * 3
