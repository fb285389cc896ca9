"""Rewinding a thread: where it is possible, what it costs, and what it says where it is not."""

from contextlib import suppress
from typing import Annotated, Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Send
from pydantic import BaseModel
from typing_extensions import TypedDict

import graph_retry.threads
from graph_retry import (
    AnswerRefused,
    CallCancelled,
    create_retry_node,
    edit,
    pending_reviews,
    reject,
    respond,
    resume,
)
from graph_retry.threads import attempts_of, rewind
from tests.loops import Model, answer, fan_out, one_call, reviews, thread


def go_back(mode, graph, **change):
    return mode.call(graph_retry.threads, "rewind", graph, thread(), **change)


def test_a_paused_call_goes_on_from_an_earlier_attempt(mode, checkpointer, form):
    """On every storage, in both forms: one new call, and the first attempt is kept."""
    model = Model(goal=3)
    graph = one_call(form, mode, model, checkpointer)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    for n in (1, 2):
        answer(mode, graph, thread(), edit(n=n))

    state = go_back(mode, graph, attempt=2, params={"n": 3}, reason="three is enough")

    assert state["output"] == {"n": 3}
    assert [call["n"] for call in model.calls] == [0, 1, 2, 3]
    (ledger,) = mode.call(graph_retry.threads, "attempts_of", graph, thread())
    assert [each["author"] for each in ledger.attempts] == ["caller", "rewind"]
    assert ledger.at(2)["reason"] == "three is enough"


def test_a_finished_call_goes_on_from_an_earlier_attempt(mode, checkpointer, form):
    """The graph is forked before the node: one new call, and the thread shows the new result."""
    model = Model(goal=1)
    graph = one_call(form, mode, model, checkpointer)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    answer(mode, graph, thread(), edit(n=1))

    go_back(mode, graph, attempt=2, params={"n": 0.5})
    (review,) = reviews(mode, graph, thread())
    assert (review.attempt, review.params) == (2, {"n": 0.5})
    state = answer(mode, graph, thread(), edit(n=7))

    assert state["output"] == {"n": 7}
    assert len(model.calls) == 4
    ledgers = mode.call(graph_retry.threads, "attempts_of", graph, thread())
    authors = [each["author"] for each in ledgers[-1].attempts]
    assert authors == ["caller", "rewind", "human"]
    assert [(len(ledger.attempts), ledger.current) for ledger in ledgers] == [(2, False), (3, True)]


class Results(TypedDict, total=False):
    params: Any
    attempts: Annotated[list[Any], lambda left, right: [*(left or []), right]]
    output: Annotated[list[Any], lambda left, right: [*(left or []), right]]
    status: Annotated[list[Any], lambda left, right: [*(left or []), right]]


def test_one_of_several_finished_branches_costs_one_call(mode, checkpointer):
    """The other `Send` branches keep their results, and a branch can be rewound again."""
    model = Model(goal=1)
    builder = StateGraph(Results)
    node = create_retry_node(mode.colour(model), dict, output=dict[str, int], name="count")
    builder.add_node("ask", node)
    targets = [Send("ask", {"params": {"n": n}}) for n in (0, 1, 2)]
    builder.add_conditional_edges(START, lambda state: targets, ["ask"])
    graph = builder.compile(checkpointer=checkpointer)
    mode.invoke(graph, {}, thread())
    answer(mode, graph, thread(), edit(n=5))

    for n in (7, 8):
        ledgers = mode.call(graph_retry.threads, "attempts_of", graph, thread())
        (ledger,) = [each for each in ledgers if each.current and len(each.attempts) == 2]
        state = go_back(mode, graph, ledger=ledger, attempt=2, params={"n": n})
        assert sorted(output["n"] for output in state["output"]) == [1, 2, n]
    assert len(model.calls) == 6


@pytest.mark.parametrize("form", ["node", "function"])
def test_a_paused_branch_goes_back_alone(mode, form):
    """A review deep in a `Send` branch is rewound; the others wait as before."""
    model = Model(goal=2)
    graph = fan_out(form, mode, model, InMemorySaver(), width=3)
    mode.invoke(graph, {}, thread())
    first = reviews(mode, graph, thread())[0]
    answer(mode, graph, thread(), answers={first.review_id: edit(n=1)})
    ledgers = mode.call(graph_retry.threads, "attempts_of", graph, thread())
    (ledger,) = [each for each in ledgers if len(each.attempts) == 2]

    go_back(mode, graph, ledger=ledger, attempt=1, params={"n": 2})

    assert len(model.calls) == 5
    assert len(reviews(mode, graph, thread())) == 2


def test_a_call_that_ended_in_an_error_is_rewound(mode):
    """With `on_cancel="raise"` a rejected call can be taken up again."""
    model = Model(goal=1)
    graph = one_call("node", mode, model, InMemorySaver(), on_cancel="raise")
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    with pytest.raises(graph_retry.CallCancelled):
        answer(mode, graph, thread(), reject("no"))
    assert go_back(mode, graph, attempt=1, decision=edit(n=1))["output"] == {"n": 1}
    assert len(model.calls) == 2


def test_going_back_to_the_same_params_is_a_new_request():
    """A provider that deduplicates by the idempotency key must not answer as before."""
    graph = one_call("node", None, Model(goal=5), InMemorySaver())
    graph.invoke({"params": {"n": 0}}, thread())
    keys = []
    for _ in range(3):
        (ledger,) = attempts_of(graph, thread())
        keys.append(ledger.at(1)["idempotency_key"])
        rewind(graph, thread(), attempt=1)
    assert len(set(keys)) == 3


def test_a_paused_call_asks_again_about_params_that_do_not_fit():
    """A rewind is an answer: a bad one loses nothing and says why."""
    model = Model(goal=1)
    graph = one_call("node", None, model, InMemorySaver(), locked=["key"])
    graph.invoke({"params": {"n": 0, "key": "a"}}, thread())
    with pytest.raises(AnswerRefused, match="locked"):
        rewind(graph, thread(), attempt=1, params={"key": "b"})
    with pytest.raises(AnswerRefused, match="rewind"):
        resume(graph, thread(), {"type": "approve", "rewind": {"attempt": 9}})
    assert len(pending_reviews(graph, thread())) == 1
    assert len(model.calls) == 1


def test_the_last_attempt_can_be_taken_back():
    """Where all attempts are used, making the last one again is no further attempt."""
    model = Model(goal=1)
    graph = one_call("node", None, model, InMemorySaver(), max_attempts=1)
    graph.invoke({"params": {"n": 0}}, thread())
    assert rewind(graph, thread(), attempt=1, params={"n": 1})["output"] == {"n": 1}
    assert len(model.calls) == 2


def test_an_agent_cannot_go_back():
    """Only a person may leave the budget behind: an automatic reviewer's rewind is refused."""
    model = Model(goal=1)
    back = {"type": "edit", "params": {"n": 0}, "rewind": {"attempt": 1, "again": True}}
    graph = one_call("node", None, model, InMemorySaver(), reviewer=lambda review: back)
    graph.invoke({"params": {"n": 0}}, thread())
    assert len(model.calls) == 1
    assert len(pending_reviews(graph, thread())) == 1


def test_a_finished_call_refuses_params_that_do_not_fit():
    """The error names the field, and the thread stays what it was."""
    graph = one_call("node", None, Model(goal=0), InMemorySaver(), locked=["key"])
    graph.invoke({"params": {"n": 0, "key": "a"}}, thread())
    with pytest.raises(ValueError, match="locked"):
        rewind(graph, thread(), attempt=1, params={"key": "b"})


class Asked(BaseModel):
    """Params of a declared type."""

    n: int


ENDS = {"respond": respond({"n": 5}), "reject": reject("no"), "edit": edit(n=1)}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("change", [{"params": {"n": "many"}}, {"decision": respond("no object")}])
@pytest.mark.parametrize("form", ["node", "outermost", "function", "function of a model"])
def test_a_refused_rewind_leaves_a_finished_call_as_it_was(form, end, change):
    """However the call had ended, nothing is called or asked, and a fitting rewind still works."""
    model = Model(lambda params: dict(params) if dict(params)["n"] else "none")
    if form == "outermost":
        node = create_retry_node(model, Asked, output=dict[str, int], name="count")
        graph = node.copy(update={"checkpointer": InMemorySaver()})
    else:
        graph = one_call(form.split()[0], None, model, InMemorySaver())
    params = Asked(n=0) if form == "function of a model" else {"n": 0}
    graph.invoke({"params": params}, thread())
    with suppress(CallCancelled):
        resume(graph, thread(), ENDS[end])
    before, made = graph.get_state(thread()), len(model.calls)
    for _ in range(2):
        with pytest.raises(ValueError, match="this rewind is refused: "):
            rewind(graph, thread(), attempt=1, **change)
    after = graph.get_state(thread())
    assert (after.values, after.next, after.interrupts) == (before.values, before.next, ())
    assert len(model.calls) == made
    (ledger,) = [each for each in attempts_of(graph, thread()) if each.current]
    assert ledger.outcome == {"respond": "responded", "reject": "cancelled"}.get(end, "succeeded")
    assert rewind(graph, thread(), attempt=1, params={"n": 3})["output"] == {"n": 3}
    assert len(model.calls) == made + 1


def test_the_params_of_an_attempt_that_left_the_ledger_are_not_sent(mode):
    """A decision about an earlier attempt leaves the state with the params of that attempt."""
    model = Model(goal=1)
    graph = one_call("function", mode, model, InMemorySaver())
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    answer(mode, graph, thread(), edit(n=9))
    assert go_back(mode, graph, attempt=1, decision=respond({"n": 100}))["output"] == {"n": 100}
    with pytest.raises(ValueError, match="this rewind is refused: "):
        go_back(mode, graph, attempt=1, params={"n": "many"})
    assert mode.call(graph, "get_state", thread()).values["output"] == {"n": 100}
    assert [call["n"] for call in model.calls] == [0, 9]
    (ledger,) = [each for each in attempts_of(graph, thread()) if each.current]
    assert [attempt["decision"]["type"] for attempt in ledger.attempts] == ["respond"]


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"attempt": 3}, ValueError, "no attempt 3. Its attempts are 1, 2"),
        ({"attempt": 1, "params": {}, "decision": reject()}, TypeError, "not both"),
    ],
)
def test_what_cannot_be_done_is_told(change, error, says):
    """Nothing is called."""
    model = Model(goal=1)
    graph = one_call("function", None, model, InMemorySaver())
    graph.invoke({"params": {"n": 0}}, thread())
    resume(graph, thread(), edit(n=1))
    with pytest.raises(error, match=says):
        rewind(graph, thread(), **change)
    assert len(model.calls) == 2


def test_a_thread_without_calls_is_probably_another_one():
    """There is no ledger to choose, so the error asks for the thread."""
    graph = one_call("function", None, Model(goal=1), InMemorySaver())
    with pytest.raises(ValueError, match=r"has no calls.*check the `thread_id` in `config`"):
        rewind(graph, thread(), attempt=1)


def test_several_calls_need_to_be_told_apart():
    """The error lists them with the params by which a person knows them."""
    graph = fan_out("function", Sync, Model(goal=1), InMemorySaver(), width=2)
    graph.invoke({}, thread())
    known = r'made 2 calls: (count in ask with the params \{"n": 0, "item": [01]\}.*){2}'
    with pytest.raises(ValueError, match=known):
        rewind(graph, thread(), attempt=1)


class Sync:
    is_async = False
    colour = staticmethod(lambda function: function)


def test_an_attempt_is_asked_for_by_hand(mode):
    """A record left `running` at the end of `attempts`, at a fork before the node, is made."""
    model, saver = Model(goal=2), InMemorySaver()
    graph = one_call("node", mode, model, saver)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    answer(mode, graph, thread(), edit(n=2))
    first, second = mode.call(graph, "get_state", thread()).values["attempts"]
    history = mode.call(graph, "get_state_history", thread())
    before = next(each for each in history if each.next and "params" in each.values)
    asked = {**second, "status": "running", "author": "ada", "reason": "again"}
    update = {"params": {"n": 2}, "attempts": [first, asked]}
    mode.call(graph, "update_state", before.config, update)
    attempts = mode.invoke(graph, None, thread())["attempts"]
    assert [each["author"] for each in attempts] == ["caller", "ada"]
    assert [call["n"] for call in model.calls] == [0, 2, 2]


def test_a_call_whose_checkpoints_were_not_kept_is_refused(mode):
    """With `durability="exit"` the checkpoint that a finished call started from is not saved."""
    graph = one_call("node", mode, Model(goal=0), InMemorySaver())
    mode.invoke(graph, {"params": {"n": 0}}, thread(), durability="exit")
    with pytest.raises(ValueError, match="from which it was made was deleted"):
        go_back(mode, graph, attempt=1, params={"n": 1})
