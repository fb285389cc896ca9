"""Idempotency keys and review ids: another one for every call, the same for a repeated one."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send
from typing_extensions import TypedDict

import graph_retry
from graph_retry import AttemptContext, StaleDecision, create_retry_node, reject
from tests.loops import State, answer, one_call, reviews, thread

OPTIONS: Any = {"output": dict[str, int], "name": "count"}
FIRST = {"n": 0}


class Given(TypedDict, total=False):
    params: Any


class Nothing(TypedDict, total=False):
    nothing: Any


class Crash(BaseException):
    """What ends a process from inside, as Ctrl-C does."""


@dataclass
class Keyed:
    """A model that needs `n` to be 1, notes the keys it was given, and may die in a call."""

    dies_at: int = 0
    keys: list[str] = field(default_factory=list)

    def call(self, mode: Any) -> Callable[..., Any]:
        """Return the function that is called with params and context."""

        def count(params: dict[str, int], context: AttemptContext) -> str:
            self.keys.append(context.idempotency_key)
            if len(self.keys) == self.dies_at:
                raise Crash
            return f'{{"n": {params["n"]}}}' if params["n"] else "not yet"

        return mode.colour(count)


@dataclass
class Situation:
    """Equal calls in different places: a graph, and the thread of each of its runs."""

    build: Callable[[str, Any, Any], Any]
    runs: tuple[str, ...] = ("1",)
    calls: int = 2
    forms: tuple[str, ...] = ("node", "function")


def outermost(form, mode, model):
    """Return a retry node that is itself the graph."""
    return create_retry_node(model, dict, **OPTIONS)


def asking(form, mode, model):
    """Return a node that makes one call."""
    if form == "node":
        return create_retry_node(model, dict, **OPTIONS)
    return several(1)(form, mode, model)


def several(times):
    """Return what builds a node that makes several calls."""

    def build(form, mode, model):
        def node(state):
            for _ in range(times):
                graph_retry.retry_llm_call(model, FIRST, **OPTIONS)
            return {}

        async def anode(state):
            for _ in range(times):
                await graph_retry.aretry_llm_call(model, FIRST, **OPTIONS)
            return {}

        return anode if mode.is_async else node

    return build


def one(form, mode, model):
    """Build a graph of one call."""
    return StateGraph(State).add_node("ask", asking(form, mode, model)).add_edge(START, "ask")


def equal(form, mode, model):
    """Build a graph whose one node makes two equal calls."""
    node = several(2)(form, mode, model)
    return StateGraph(State).add_node("ask", node).add_edge(START, "ask")


def subgraphs(form, mode, model):
    """Build a graph of two equal subgraphs, side by side."""
    builder = StateGraph(State)
    for name in ("first", "second"):
        builder.add_node(name, clean(asking(form, mode, model))).add_edge(START, name)
    return builder


def two_nodes(form, mode, model):
    """Build a graph of two nodes with one call each, one after the other."""
    builder = StateGraph(State)
    for name in ("first", "second"):
        builder.add_node(f"set {name}", lambda state: {"params": FIRST, "attempts": []})
        builder.add_node(name, clean(asking(form, mode, model)))
        builder.add_edge(f"set {name}", name)
    builder.add_edge(START, "set first").add_edge("first", "set second")
    return builder


def clean(node):
    """Put a node into a subgraph that hands nothing but `params` in and nothing out."""
    given = StateGraph(State, input_schema=Given, output_schema=Nothing)
    return given.add_node("ask", node).add_edge(START, "ask").compile()


def cycle(form, mode, model):
    """Build a graph that comes to its node twice."""
    builder = StateGraph(State)
    builder.add_node("set", lambda state: {"params": FIRST})
    builder.add_node("ask", clean(asking(form, mode, model)))
    builder.add_node("count", lambda state: {"output": (state.get("output") or 0) + 1})
    builder.add_edge(START, "set").add_edge("set", "ask").add_edge("ask", "count")
    builder.add_conditional_edges("count", lambda state: "set" if state["output"] < 2 else END)
    return builder


def branches(form, mode, model):
    """Build a graph of two `Send` branches with equal params."""
    builder = StateGraph(State).add_node("ask", clean(asking(form, mode, model)))
    sends = [Send("ask", {"params": FIRST}), Send("ask", {"params": FIRST})]
    return builder.add_conditional_edges(START, lambda state: sends, ["ask"])


SITUATIONS = {
    "two inputs, outermost": Situation(outermost, runs=("1", "1"), forms=("node",)),
    "two inputs": Situation(one, runs=("1", "1")),
    "two threads, outermost": Situation(outermost, runs=("1", "2"), forms=("node",)),
    "two threads": Situation(one, runs=("1", "2")),
    "two nodes": Situation(two_nodes),
    "one node twice": Situation(cycle),
    "branches": Situation(branches),
    "subgraphs": Situation(subgraphs),
    "equal calls in one node": Situation(equal, forms=("function",)),
}
CASES = [(form, name) for name, each in SITUATIONS.items() for form in each.forms]


def compiled(name, form, mode, model, saver):
    """Compile a situation's graph."""
    built = SITUATIONS[name].build(form, mode, model.call(mode))
    if isinstance(built, StateGraph):
        return built.compile(checkpointer=saver)
    return built.copy(update={"checkpointer": saver})


def carry_through(mode, graph, runs):
    """Make a situation's runs, continued after a crash; return the ids of the reviews answered."""
    ids = []
    for name in runs:
        config, given = thread(name), {"params": FIRST}
        while True:
            try:
                mode.invoke(graph, given, config, durability="sync")
                break
            except Crash:
                given = None
        while open_ := reviews(mode, graph, config):
            ids += [each.review_id for each in open_]
            answers = {each.review_id: {"type": "edit", "params": {"n": 1}} for each in open_}
            try:
                answer(mode, graph, config, answers=answers)
            except Crash:
                answer(mode, graph, config)
    return ids


@pytest.mark.parametrize(("form", "name"), CASES, indirect=["form"])
def test_calls_in_different_places_have_different_keys_and_ids(form, mode, checkpointer, name):
    """Protects a provider's deduplication and a review's id from two calls with equal params."""
    model = Keyed()
    ids = carry_through(
        mode, compiled(name, form, mode, model, checkpointer), SITUATIONS[name].runs
    )

    assert len(model.keys) == len(set(model.keys)) == 2 * SITUATIONS[name].calls
    assert len(ids) == len(set(ids)) == SITUATIONS[name].calls


@pytest.mark.parametrize("dies_at", [1, 2, 3, 4])
@pytest.mark.parametrize(("form", "name"), CASES, indirect=["form"])
def test_a_call_that_a_crash_repeats_has_its_key_again(form, mode, name, dies_at):
    """Protects the promise of the key: the call in flight is known by the same one."""
    model = Keyed(dies_at)
    ids = carry_through(
        mode, compiled(name, form, mode, model, InMemorySaver()), SITUATIONS[name].runs
    )

    assert len(set(model.keys)) == 2 * SITUATIONS[name].calls
    assert len(model.keys) > len(set(model.keys))
    assert len(set(ids)) == SITUATIONS[name].calls


def test_calls_outside_a_graph_have_keys_of_their_own(form, mode):
    """Protects three independent calls with equal params, where nothing tells them apart."""
    model = Keyed()
    llm_call, params = model.call(mode), {"n": 1}
    for _ in range(3):
        if form == "node":
            mode.invoke(create_retry_node(llm_call, dict, **OPTIONS), {"params": params})
        elif mode.is_async:
            mode.run(lambda: graph_retry.aretry_llm_call(llm_call, params, **OPTIONS))
        else:
            graph_retry.retry_llm_call(llm_call, params, **OPTIONS)

    assert len(set(model.keys)) == 3


@pytest.mark.parametrize("shape", ["outermost", "node", "function"])
def test_a_decision_of_monday_delivered_on_tuesday_is_stale(mode, checkpointer, shape):
    """Protects Tuesday's review: a second delivery is refused by any way and cancels nothing."""
    model = Keyed()
    if shape == "outermost":
        graph = compiled("two inputs, outermost", "node", mode, model, checkpointer)
    else:
        graph = one_call(
            shape,
            mode,
            model.call(mode),
            checkpointer,
            on_cancel="end" if shape == "node" else "raise",
        )
    mode.invoke(graph, {"params": FIRST}, thread())
    (monday,) = reviews(mode, graph, thread())
    answer(mode, graph, thread(), answers={monday.review_id: {"type": "edit", "params": {"n": 1}}})
    mode.invoke(graph, {"params": FIRST}, thread())
    (tuesday,) = reviews(mode, graph, thread())
    assert tuesday.review_id != monday.review_id
    calls = len(model.keys)

    again = {**reject("no longer needed"), "review_id": monday.review_id}
    with pytest.raises(StaleDecision):
        answer(mode, graph, thread(), answers={monday.review_id: again})
    with pytest.raises(StaleDecision):
        answer(mode, graph, thread(), again)
    mode.invoke(graph, Command(resume=again), thread())

    (review,) = reviews(mode, graph, thread())
    assert review.problem
    assert len(model.keys) == calls
    state = answer(mode, graph, thread(), {"type": "edit", "params": {"n": 1}})
    assert state["output"] == {"n": 1}
