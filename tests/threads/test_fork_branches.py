"""In a fork, a call finds its own past also if it is in a subgraph that runs several times."""

import operator
from typing import Annotated, Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Send
from typing_extensions import TypedDict

from graph_retry import aretry_llm_call, create_retry_node, retry_llm_call
from tests.loops import Model, reviews, thread
from tests.threads.threads import current, go_back

PAGES = ("a", "bb", "ccc")


class Branch(TypedDict, total=False):
    params: Any
    output: Any
    status: str
    attempts: list[Any]
    done: Annotated[list[str], operator.add]


class Done(TypedDict, total=False):
    done: Annotated[list[str], operator.add]


def counted(params):
    """Answer with the length of a page; the page `wait` cannot be counted."""
    if params["page"] == "wait" and "times" not in params:
        return "many"
    return str(len(params["page"]) * params.get("times", 1))


def branch(form, mode, model):
    """Compile a subgraph that makes one call and tells its page and its output."""
    options: Any = {"output": int, "name": "count"}

    def ask(state):
        return {"output": retry_llm_call(model, state["params"], **options)}

    async def aask(state):
        return {"output": await aretry_llm_call(mode.colour(model), state["params"], **options)}

    node: Any = aask if mode.is_async else ask
    if form == "node":
        node = create_retry_node(mode.colour(model), dict, **options)
    builder = StateGraph(Branch, output_schema=Done).add_node("count", node)
    builder.add_node("tell", lambda now: {"done": [f"{now['params']['page']}={now['output']}"]})
    return builder.add_edge(START, "count").add_edge("count", "tell").compile()


def fanned(inner, pages, saver=None):
    """Compile a graph with a `Send` branch for each page."""
    builder = StateGraph(Branch, output_schema=Done).add_node("one", inner)
    sent = [Send("one", {"params": {"page": page}}) for page in pages]
    return builder.add_conditional_edges(START, lambda _: sent, ["one"]).compile(checkpointer=saver)


def called_of(mode, graph, page, place=0):
    """Return the ledger of a call by its first params."""
    found = [each for each in current(mode, graph) if each.params_at(1)["page"] == page]
    return found[place]


def differing(one, other):
    """Return the places at which two lists differ."""
    return [place for place, pair in enumerate(zip(one, other, strict=True)) if len({*pair}) == 2]


@pytest.mark.parametrize("waits", [False, True])
def test_one_send_branch_of_a_subgraph_is_rewound_alone(mode, checkpointer, form, waits):
    """The other branches keep their results, and a review that waits in one of them stays open."""
    model = Model(counted)
    pages = ("a", "bb", "wait" if waits else "ccc")
    graph = fanned(branch(form, mode, model), pages, checkpointer)
    mode.invoke(graph, {}, thread())

    for times in (10, 20):
        model.calls.clear()
        change = {"attempt": 1, "params": {"times": times}}
        state = go_back(mode, graph, ledger=called_of(mode, graph, "bb"), **change)
        assert state["done"] == ["a=1", f"bb={2 * times}", *([] if waits else ["ccc=3"])]
        assert model.calls == [{"page": "bb", "times": times}]
        assert [each.params["page"] for each in reviews(mode, graph, thread())] == (
            ["wait"] if waits else []
        )


def test_equal_branches_are_known_by_their_places(mode, form):
    """Of three branches with the same input, the rewound one changes and keeps its place."""
    model = Model(counted)
    graph = fanned(branch(form, mode, model), ["bb"] * 3, InMemorySaver())
    done = mode.invoke(graph, {}, thread())["done"]
    changed = []
    for times in (5, 6, 7):
        left = [each for each in current(mode, graph) if each.params_at(1) == {"page": "bb"}]
        state = go_back(mode, graph, ledger=left[0], attempt=1, params={"times": times})
        (place,) = differing(done, state["done"])
        done = state["done"]
        assert done[place] == f"bb={2 * times}"
        changed.append(place)
    assert sorted(changed) == [0, 1, 2]
    assert len(model.calls) == 6


def test_branches_of_branches_are_kept_apart(mode, form):
    """Two levels of `Send`, with the same pages in each outer branch."""
    model = Model(counted)
    builder = StateGraph(Done).add_node("half", fanned(branch(form, mode, model), PAGES))
    builder.add_conditional_edges(START, lambda _: [Send("half", {})] * 2, ["half"])
    graph = builder.compile(checkpointer=InMemorySaver())
    first = mode.invoke(graph, {}, thread())["done"]
    model.calls.clear()
    change = {"attempt": 1, "params": {"times": 10}}
    state = go_back(mode, graph, ledger=called_of(mode, graph, "bb", 1), **change)
    assert len(model.calls) == 1
    assert sorted([first.index("bb=2"), first.index("bb=2", 3)]) == [1, 4]
    assert sorted(state["done"]) == sorted([*first[:4], "bb=20", first[5]])
    assert state["done"].index("bb=20") in (1, 4)


def test_a_subgraph_that_a_node_invokes_in_a_loop_is_kept_apart(mode, form):
    """Each run of the subgraph keeps its call."""
    model = Model(counted)
    inner = branch(form, mode, model)

    def ask(_):
        return {"done": [inner.invoke({"params": {"page": each}})["done"][0] for each in PAGES]}

    async def aask(_):
        made = [await inner.ainvoke({"params": {"page": each}}) for each in PAGES]
        return {"done": [each["done"][0] for each in made]}

    builder = StateGraph(Done).add_node("ask", aask if mode.is_async else ask)
    graph = builder.add_edge(START, "ask").compile(checkpointer=InMemorySaver())
    mode.invoke(graph, {}, thread())
    expected = ["a=1", "bb=2", "ccc=3"]
    for place in (1, 0, 2):
        model.calls.clear()
        page = PAGES[place]
        expected[place] = f"{page}={10 * (place + 1)}"
        change = {"attempt": 1, "params": {"times": 10}}
        state = go_back(mode, graph, ledger=called_of(mode, graph, page), **change)
        assert state["done"] == expected
        assert model.calls == [{"page": page, "times": 10}]


def test_a_retry_node_whose_params_come_from_the_rewound_call_is_made_again(mode):
    """In a subgraph the second node gets the new output of the first, so it is another call."""
    model = Model(lambda params: str(params["n"] * 2))
    names: Any = {"params": "next", "output": "last", "attempts": "more", "status": "state"}
    state: Any = TypedDict(
        "State", dict.fromkeys(("params", "output", "attempts", "status", *names.values()), Any)
    )
    inner = StateGraph(state)
    inner.add_node("first", create_retry_node(mode.colour(model), dict, output=int))
    inner.add_node("hand_on", lambda now: {"next": {"n": now["output"]}})
    inner.add_node("second", create_retry_node(mode.colour(model), dict, output=int, keys=names))
    inner.add_edge(START, "first").add_edge("first", "hand_on").add_edge("hand_on", "second")
    builder = StateGraph(state).add_node("inner", inner.compile()).add_edge(START, "inner")
    graph = builder.compile(checkpointer=InMemorySaver())
    assert mode.invoke(graph, {"params": {"n": 1}}, thread())["last"] == 4
    first = current(mode, graph)[0]
    assert go_back(mode, graph, ledger=first, attempt=1, params={"n": 5})["last"] == 20
    assert [each["n"] for each in model.calls] == [1, 2, 5, 10]
