"""Reading the ledgers of a thread in every state it can be in."""

import operator
from typing import Annotated, Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Send
from typing_extensions import TypedDict

import graph_retry.threads
from graph_retry import (
    InterventionRequired,
    create_retry_node,
    edit,
    reject,
    respond,
    retry_llm_call,
)
from graph_retry.errors import ReplayMismatch
from graph_retry.ledger import Ledger
from graph_retry.threads import attempts_of
from tests.loops import Model, State, answer, fan_out, one_call, thread


def ledgers(mode, graph):
    return mode.call(graph_retry.threads, "attempts_of", graph, thread())


@pytest.mark.parametrize("end", [None, edit(n=2), reject("no"), respond({"n": 9})])
def test_a_ledger_is_whole_in_every_state(mode, checkpointer, form, end):
    """Paused, finished, cancelled or answered: params and output of each attempt are there."""
    graph = one_call(form, mode, Model(goal=2), checkpointer)
    mode.invoke(graph, {"params": {"n": 0, "text": "x" * 500}}, thread())
    answer(mode, graph, thread(), edit(n=1))
    if end is not None and not (form == "function" and end["type"] == "reject"):
        answer(mode, graph, thread(), end)

    (ledger,) = ledgers(mode, graph)

    assert (ledger.name, ledger.node, ledger.title) == ("count", "ask", "count in ask")
    assert [ledger.params_at(number)["n"] for number in (1, 2)] == [0, 1]
    assert len(ledger.params_at(2)["text"]) == 500
    assert ledger.params_diff(2) == [{"path": "/n", "before": 0, "after": 1}]
    assert [attempt["author"] for attempt in ledger.attempts[:2]] == ["caller", "human"]
    if end and end["type"] == "edit":
        assert ledger.params_diff(3, since=1) == [{"path": "/n", "before": 0, "after": 2}]
        change = {"path": "/output", "before": None, "after": {"n": 2}}
        assert ledger.output_diff(3) == [change]


def test_every_branch_has_its_ledger(mode, form):
    """Calls of `Send` branches are told apart by namespace, in the order they were made."""
    graph = fan_out(form, mode, Model(goal=1), InMemorySaver(), width=3)
    mode.invoke(graph, {}, thread())
    found = ledgers(mode, graph)
    assert len({ledger.namespace for ledger in found}) == 3
    assert {ledger.params_at(1)["item"] for ledger in found} == {0, 1, 2}


def test_a_copy_of_a_checkpoint_replaces_only_that_checkpoint():
    """A fork made with LangGraph's `__copy__`, as on a server, keeps earlier calls current."""

    def ask(state):
        return {"output": retry_llm_call(lambda params: "1", {"n": 1}, output=int)}

    builder = StateGraph(State).add_node("first", ask).add_node("second", ask)
    builder.add_edge(START, "first").add_edge("first", "second")
    graph = builder.compile(checkpointer=InMemorySaver())
    graph.invoke({"params": {"n": 0}}, thread())
    before = next(each for each in graph.get_state_history(thread()) if each.next == ("second",))
    graph.update_state(before.config, None, as_node="__copy__")
    graph.invoke(None, thread())
    found = [(each.node, each.current) for each in attempts_of(graph, thread())]
    assert found == [("first", True), ("second", False), ("second", True)]


def test_a_run_that_kept_only_its_end_still_shows_it(mode, form):
    """With `durability="exit"` the graph keeps its end alone, and a call all of its own steps."""
    graph = one_call(form, mode, Model(goal=0), InMemorySaver())
    mode.invoke(graph, {"params": {"n": 0}}, thread(), durability="exit")
    (ledger,) = ledgers(mode, graph)
    assert (ledger.params_at(1), ledger.current) == ({"n": 0}, True)


def test_a_call_that_only_the_state_tells_of_is_shown():
    """Where its checkpoints were deleted, the attempts in the graph's state are what is left."""
    saver = InMemorySaver()
    graph = one_call("node", None, Model(goal=0), saver)
    graph.invoke({"params": {"n": 0}}, thread())
    for namespace in [each for each in saver.storage["1"] if each]:
        del saver.storage["1"][namespace]
    (ledger,) = attempts_of(graph, thread())
    assert (ledger.params_at(1), ledger.current) == ({"n": 0}, True)


def test_an_error_has_a_ledger():
    """Where there is no thread, the error that was raised tells all."""
    with pytest.raises(InterventionRequired) as caught:
        retry_llm_call(lambda params: "no", {"n": 1}, output=int)
    ledger = Ledger(caught.value.attempts)
    assert (ledger.params_at(1), ledger.value_at(1)) == ({"n": 1}, "no")
    with pytest.raises(ValueError, match=r"has no attempt 2\. Its attempts are 1"):
        ledger.params_at(2)
    with pytest.raises(ValueError, match=r"has no attempt 1\. It has no attempts\."):
        Ledger([]).at(1)


@pytest.mark.parametrize("text", ["42", "null", "[1]", ""])
def test_an_output_that_is_a_text_stays_one(text):
    """What the model wrote for a type that takes text is the value, even if it is JSON."""
    records = []
    assert retry_llm_call(lambda params: text, {}, output=str, on_attempt=records.append) == text
    assert Ledger(records).value_at(1) == text


def test_a_newer_ledger_is_refused():
    """A record this version cannot know is not misread."""
    with pytest.raises(ReplayMismatch, match="upgrade"):
        Ledger([{"number": 1, "schema_version": 99}])


class Gathered(TypedDict, total=False):
    """A state whose own reducer gathers the attempts of all calls."""

    attempts: Annotated[list[Any], operator.add]


@pytest.mark.parametrize("tries", [1, 2])
def test_a_list_of_the_attempts_of_several_calls_is_no_ledger(mode, checkpointer, tries):
    """Only the calls that were made are listed."""
    node = create_retry_node(
        mode.colour(Model(goal=tries)), dict, lambda error, attempt, params: {"n": attempt + 1},
        output=dict[str, int], auto_retries=1,
    )  # fmt: skip
    sends = [Send("ask", {"params": {"n": 1, "item": item}}) for item in range(3)]
    builder = StateGraph(Gathered).add_node("ask", node)
    builder.add_conditional_edges(START, lambda state: sends, ["ask"])
    graph = builder.compile(checkpointer=checkpointer)
    state = mode.invoke(graph, {}, thread())
    assert len(state["attempts"]) == 3 * tries
    listed = ledgers(mode, graph)
    assert [(ledger.node, len(ledger.attempts)) for ledger in listed] == [("ask", tries)] * 3
