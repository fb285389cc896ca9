"""The node form as part of a larger graph, and alone."""

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from pydantic import BaseModel
from typing_extensions import TypedDict

from graph_retry import (
    CallCancelled,
    Completion,
    create_retry_node,
    edit,
    pending_reviews,
    reject,
    respond,
    resume,
)
from graph_retry.hooks import Budget
from tests.loops import Model, State, answer, one_call, reviews, thread


def test_the_steps_are_visible_in_the_drawn_graph():
    """`get_graph(xray=1)` shows what Studio shows."""
    graph = one_call("node", None, Model(), None)
    drawn = set(graph.get_graph(xray=1).nodes)
    assert {f"ask:{step}" for step in ("call", "repair", "validate", "revise", "review")} <= drawn


def test_alone_its_state_is_the_whole_result():
    """Invoked by itself the node returns output, status and ledger and nothing private."""
    node = create_retry_node(Model(goal=0), dict, output=dict[str, int])
    state = node.invoke({"params": {"n": 0}})
    assert set(state) == {"output", "status", "attempts"}
    assert (state["output"], state["status"], len(state["attempts"])) == ({"n": 0}, "succeeded", 1)


def test_two_nodes_with_keys_of_their_own_fit_one_parent():
    """Renamed keys keep two calls of one parent apart."""

    class Two(TypedDict, total=False):
        draft_params: dict
        draft: dict
        final_params: dict
        final: dict
        output: str

    first, second = Model(goal=1), Model(goal=2)
    builder = StateGraph(Two)
    for name, model in (("draft", first), ("final", second)):
        keys = {"params": f"{name}_params", "output": name, "status": f"{name}_status"}
        node = create_retry_node(
            model, dict, output=dict[str, int], name=name, keys={**keys, "attempts": f"{name}_log"}
        )
        builder.add_node(f"make_{name}", node)
    builder.add_edge(START, "make_draft")
    builder.add_edge("make_draft", "make_final")
    graph = builder.compile(checkpointer=InMemorySaver())

    graph.invoke({"draft_params": {"n": 0}, "final_params": {"n": 0}, "output": "mine"}, thread())
    names = []
    for n in (1, 2):
        (review,) = pending_reviews(graph, thread())
        names.append((review.function_name, len(review.history)))
        state = resume(graph, thread(), edit(n=n))

    assert names == [("draft", 1), ("final", 1)]
    assert (state["draft"], state["final"], state["output"]) == ({"n": 1}, {"n": 2}, "mine")


def test_a_second_run_through_the_node_starts_a_new_ledger(mode, checkpointer):
    """A parent that visits the node again is not charged for the earlier call's attempts."""
    model = Model(goal=1)
    builder = StateGraph(State)
    node = create_retry_node(mode.colour(model), dict, output=dict[str, int], max_attempts=2)
    builder.add_node("ask", node)
    builder.add_edge(START, "ask")
    graph = builder.compile(checkpointer=checkpointer)

    for _ in range(2):
        mode.invoke(graph, {"params": {"n": 0}}, thread())
        state = answer(mode, graph, thread(), edit(n=1))
        assert [attempt["number"] for attempt in state["attempts"]] == [1, 2]
    assert len(model.calls) == 4


@pytest.mark.parametrize(
    "options", [{"max_attempts": 2}, {"budget": Budget(tokens=250)}], ids=["most", "budget"]
)
def test_an_exhausted_call_costs_the_next_one_nothing(mode, checkpointer, options):
    """The next input of the thread has its own attempts, retries and budget."""

    def answer_to(params):
        helped = "feedback" in params["prompt"] and params["prompt"].startswith("two")
        return Completion("2" if helped else "many", usage={"total_tokens": 100})

    model = Model(answer_to)
    builder = StateGraph(State)
    node = create_retry_node(
        mode.colour(model),
        dict,
        output=int,
        feedback="errors_only",
        auto_retries=3,
        review=False,
        **options,
    )
    builder.add_node("ask", node)
    builder.add_edge(START, "ask")
    graph = builder.compile(checkpointer=checkpointer)

    for prompt, status in (("one", "exhausted"), ("two", "succeeded"), ("one", "exhausted")):
        made = len(model.calls)
        state = mode.invoke(graph, {"params": {"prompt": prompt}}, thread())
        numbers = [attempt["number"] for attempt in state["attempts"]]
        assert state["status"] == status
        assert numbers == list(range(1, len(model.calls) - made + 1))
    assert mode.invoke(graph, {"params": {"prompt": "two"}}, thread())["output"] == 2


def test_a_record_to_be_made_goes_on_after_an_exhausted_call(mode):
    """A `running` record asks for a further attempt, whatever the `status` in state is."""
    model = Model(goal=2)
    node = create_retry_node(mode.colour(model), dict, output=dict[str, int], review=False)
    graph = StateGraph(State).add_node("ask", node).add_edge(START, "ask").compile(InMemorySaver())
    ended = mode.invoke(graph, {"params": {"n": 0}}, thread())
    (failed,) = ended["attempts"]
    asked = {**failed, "number": 2, "status": "running", "author": "rewind", "failure": None}

    given = {"params": {"n": 2}, "attempts": [failed, asked]}
    state = mode.invoke(graph, given, thread())
    mine = {"params": {"n": 2}, "attempts": [failed], "status": None}
    by_hand = mode.invoke(graph, mine, thread())

    assert [each["author"] for each in state["attempts"]] == ["caller", "rewind"]
    assert [each["number"] for each in by_hand["attempts"]] == [1, 2]


def test_given_failed_attempts_it_goes_on_after_them(mode):
    """The loop's position is data: earlier attempts in the input are kept and counted."""
    model = Model(goal=1)
    graph = one_call("node", mode, model, InMemorySaver())
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    (review,) = reviews(mode, graph, thread())

    fork = {"params": {"n": 1}, "attempts": review.history}
    state = mode.invoke(graph, fork, thread("fork"))

    assert [attempt["number"] for attempt in state["attempts"]] == [1, 2]
    assert state["attempts"][1]["params_patch"] == [{"op": "replace", "path": "/n", "value": 1}]
    assert len(model.calls) == 2


@pytest.mark.parametrize("as_node", ["review", "revise", None])
def test_params_edited_in_state_at_a_review_go_on_with_them(mode, checkpointer, as_node):
    """What Studio does when a person edits state instead of answering: one call, nothing lost."""
    model = Model(goal=1)
    graph = one_call("node", mode, model, checkpointer)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    update = {"params": {"n": 1}}
    (task,) = mode.call(graph, "get_state", thread(), subgraphs=True).tasks
    mode.call(graph, "update_state", task.state.config, update, as_node=as_node)
    state = mode.invoke(graph, None, thread())

    assert state["output"] == {"n": 1}
    assert len(model.calls) == 2
    assert state["attempts"][1]["author"] == "state edit"


def test_an_edit_that_leaves_the_params_asks_the_same_question_again(mode, checkpointer):
    """An edit of the state at a pause that changes no params loses no review."""
    model = Model(goal=1)
    graph = one_call("node", mode, model, checkpointer)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    (before,) = reviews(mode, graph, thread())
    (task,) = mode.call(graph, "get_state", thread(), subgraphs=True).tasks
    mode.call(graph, "update_state", task.state.config, {"output": "noted"})
    mode.invoke(graph, None, thread())

    (review,) = reviews(mode, graph, thread())
    assert (review.attempt, review.review_id) == (1, before.review_id)
    assert answer(mode, graph, thread(), edit(n=1))["output"] == {"n": 1}
    assert len(model.calls) == 2


def test_raw_text_edited_in_state_is_read_again_without_a_call(mode, checkpointer):
    """Editing an attempt's raw text and going on from `repair` calls no model."""
    model = Model(answer=lambda params: '{"n": one}')
    graph = one_call("node", mode, model, checkpointer)
    mode.invoke(graph, {"params": {"n": 0}}, thread())

    inner = mode.call(graph, "get_state", thread(), subgraphs=True).tasks[0].state
    namespace = inner.config["configurable"]["checkpoint_ns"]
    past = {"configurable": {"thread_id": "1", "checkpoint_ns": namespace}}
    history = mode.call(graph, "get_state_history", past)
    called = next(step for step in history if step.next == ("repair",))
    edited = {"attempts": [{"number": 1, "raw": {"text": '{"n": 1}'}}]}
    mode.call(graph, "update_state", called.config, edited, as_node="call")
    state = mode.invoke(graph, None, thread())

    assert state["output"] == {"n": 1}
    assert len(model.calls) == 1


class Shape(BaseModel):
    """Typed params."""

    n: int


def test_typed_params_arrive_as_their_type_from_json():
    """State may hold the model or its JSON; the call gets the model, and its own copy."""
    seen = []
    node = create_retry_node(lambda params: seen.append(params) or "1", Shape, output=int)
    node.invoke({"params": {"n": 1}})
    given = Shape(n=2)
    node.invoke({"params": given})
    assert seen == [Shape(n=1), Shape(n=2)]
    assert seen[1] is not given


def test_params_of_the_wrong_shape_are_refused_by_field():
    """A bad input names the field before any call."""
    model = Model()
    node = create_retry_node(model, Shape)
    with pytest.raises(ValueError, match="n"):
        node.invoke({"params": {"n": "many"}})
    assert model.calls == []


def test_a_rejection_is_a_status_or_an_error(mode):
    """The node form ends `cancelled`; with `on_cancel="raise"` it raises, the reason included."""
    graph = one_call("node", mode, Model(), InMemorySaver())
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    state = answer(mode, graph, thread(), reject("not worth it"))
    assert state["status"] == "cancelled"
    assert state["attempts"][0]["decision"]["message"] == "not worth it"

    model = Model()
    graph = one_call("node", mode, model, InMemorySaver(), on_cancel="raise")
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    with pytest.raises(CallCancelled, match="not worth it") as caught:
        answer(mode, graph, thread(), reject("not worth it"))
    assert caught.value.reason == "not worth it"
    with pytest.raises(CallCancelled, match="not worth it"):
        mode.invoke(graph, None, thread())
    assert len(model.calls) == 1


@pytest.mark.parametrize("ending", [edit(n=1), reject("no"), respond({"n": 7})])
def test_a_new_input_on_a_finished_thread_starts_a_new_ledger(form, mode, checkpointer, ending):
    """However the last call ended: in a chat, the next message is another call."""
    model = Model()
    graph = one_call(form, mode, model, checkpointer, on_cancel=END_OF[form])
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    try:
        answer(mode, graph, thread(), ending)
    except CallCancelled:
        assert form == "function"
    mode.invoke(graph, {"params": {"n": -5}}, thread())
    (review,) = reviews(mode, graph, thread())
    assert (review.attempt, len(review.history)) == (1, 1)
    assert review.history[0]["author"] == "caller"


END_OF = {"node": "end", "function": "raise"}
