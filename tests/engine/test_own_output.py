"""State shows an output only where the call that ended last has one."""

import time

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

import graph_retry.threads
from graph_retry import CallCancelled, create_retry_node, edit, reject
from graph_retry._core.review.deadline import is_expired
from tests.loops import Model, answer, one_call, reviews, thread

RENAMED = {"params": "question", "output": "total", "status": "how", "attempts": "log"}


class Renamed(TypedDict, total=False):
    """A parent whose keys are not the default ones."""

    question: dict
    total: dict | None
    how: str
    log: list


def rejected(mode, graph):
    """End the open review by a person."""
    answer(mode, graph, thread(), reject("no"))


def expired(mode, graph):
    """End the open review by its default decision."""
    (review,) = reviews(mode, graph, thread())
    while not is_expired(review.expires_at):
        time.sleep(0.001)
    mode.call(graph_retry.threads, "expire_reviews", graph)


ENDINGS = {
    "rejected": ("cancelled", rejected, {}),
    "expired": ("cancelled", expired, {"expires_after": 0.001}),
    "nobody to ask": ("exhausted", None, {"review": False}),
    "reviewer escalates": (
        "exhausted",
        None,
        {"review": False, "reviewer": lambda review: None},
    ),
}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("keys", [{}, RENAMED], ids=["keys", "renamed"])
def test_a_call_without_an_output_shows_none(mode, checkpointer, ending, keys):
    """The output of the input before it on the same thread is not left in state."""
    status, end, options = ENDINGS[ending]
    names = {name: keys.get(name, name) for name in RENAMED}
    state = TypedDict("state", dict.fromkeys(names.values(), object), total=False)
    model = mode.colour(Model(goal=1))
    node = create_retry_node(model, dict, output=dict[str, int], keys=keys, **options)
    builder = StateGraph(state).add_node("ask", node).add_edge(START, "ask")
    graph = builder.compile(checkpointer=checkpointer)

    first = mode.invoke(graph, {names["params"]: {"n": 1}}, thread())
    assert (first[names["output"]], first[names["status"]]) == ({"n": 1}, "succeeded")
    mode.invoke(graph, {names["params"]: {"n": 0}}, thread())
    if end is not None:
        end(mode, graph)

    values = mode.call(graph, "get_state", thread()).values
    assert (values[names["output"]], values[names["status"]]) == (None, status)


def outermost(mode, model, saver, **options):
    """Compile a node that is the whole graph, so that its own state is the thread's."""
    llm_call = mode.colour(model)
    node = create_retry_node(llm_call, dict, output=dict[str, int], **options)
    node.checkpointer = saver
    return node


def test_a_node_alone_forgets_the_output_with_its_next_call(mode, checkpointer):
    """While it asks, and when it has raised, its state tells nothing of an earlier input."""
    graph = outermost(mode, Model(goal=1), checkpointer, on_cancel="raise")
    mode.invoke(graph, {"params": {"n": 1}}, thread())
    asking = mode.invoke(graph, {"params": {"n": 0}}, thread())
    assert (asking["output"], asking["status"]) == (None, None)

    with pytest.raises(CallCancelled):
        answer(mode, graph, thread(), reject("no"))
    values = mode.call(graph, "get_state", thread()).values
    assert (values["output"], values["status"]) == (None, "cancelled")


def test_a_call_that_raised_left_none_in_its_own_state(mode):
    """The graph around it is as before the node, as after any error; the call itself is not."""
    graph = one_call("node", mode, Model(goal=1), InMemorySaver(), on_cancel="raise")
    mode.invoke(graph, {"params": {"n": 1}}, thread())
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    with pytest.raises(CallCancelled):
        answer(mode, graph, thread(), reject("no"))
    (task,) = mode.call(graph, "get_state", thread(), subgraphs=True).tasks
    assert (task.state.values["output"], task.state.values["status"]) == (None, "cancelled")


def test_a_finished_call_that_is_rejected_after_all_shows_none(mode, checkpointer):
    """A rewind takes the output back, and so does one that asks again and is rejected."""
    graph = one_call("node", mode, Model(goal=1), checkpointer)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    assert answer(mode, graph, thread(), edit(n=1))["output"] == {"n": 1}
    change = {"attempt": 1, "decision": reject("after all")}
    state = mode.call(graph_retry.threads, "rewind", graph, thread(), **change)
    assert (state["output"], state["status"]) == (None, "cancelled")


def test_an_output_of_none_is_a_success(mode):
    """A call that gives nothing is told from one without an output by its status."""
    builder = StateGraph(Renamed)
    node = create_retry_node(mode.colour(lambda params: None), dict, keys=RENAMED)
    graph = builder.add_node("ask", node).add_edge(START, "ask").compile()
    state = mode.invoke(graph, {"question": {}})
    assert (state["total"], state["how"]) == (None, "succeeded")
