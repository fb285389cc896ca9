"""An answer that no call takes is told to its giver."""

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command

from graph_retry import (
    AnswerRefused,
    StaleDecision,
    create_retry_node,
    edit,
    pending_reviews,
    resume,
    retry_llm_call,
)
from tests.loops import Model, State, thread

ASKED = {"n": 0}


def graph_of(model, saver, version):
    """Compile a version of a graph of one node `ask`."""

    def call(params=ASKED, **options):
        return retry_llm_call(model, params, output=dict[str, int], **{"name": "count", **options})

    def other_first(params, name):
        call(params, name=name)
        return call()

    nodes = {
        "function": lambda _: {"output": call()},
        "with a key": lambda _: {"output": call(key="k")},
        "another name": lambda _: {"output": call(name="tally")},
        "a new call first": lambda _: {"output": other_first({"n": -1}, "count")},
        "a new name first": lambda _: {"output": other_first(ASKED, "net")},
        "without the call": lambda _: {"output": 5},
        "node": create_retry_node(model, dict, output=dict[str, int], name="count"),
        "node, another name": create_retry_node(model, dict, output=dict[str, int], name="tally"),
    }
    builder = StateGraph(State).add_node("ask", nodes[version]).add_edge(START, "ask")
    return builder.compile(checkpointer=saver)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("function", "with a key"),
        ("function", "another name"),
        ("function", "a new call first"),
        ("function", "a new name first"),
        ("function", "without the call"),
        ("function", "node"),
        ("node", "function"),
        ("node", "with a key"),
        ("node", "node, another name"),
    ],
)
def test_an_answer_that_is_not_used_is_an_error(before, after):
    """Whoever answers learns that the deployed code did not make the call that asked."""
    model, saver = Model(), InMemorySaver()
    graph_of(model, saver, before).invoke({"params": ASKED}, thread())

    with pytest.raises(
        AnswerRefused, match="This run did not make the call of `count`, which had asked"
    ) as refused:
        resume(graph_of(model, saver, after), thread(), edit(n=1))

    forms = ["a retry node" if "node" in each else "a function" for each in (before, after)]
    told = f"Node `ask` was {forms[0]} when it asked, and is {forms[1]} now."
    is_told = forms[0] != forms[1]
    assert (told in str(refused.value)) == ("when it asked" in str(refused.value)) == is_told
    assert {"n": 1} not in model.calls
    if after != "without the call":
        answered = graph_of(model, saver, before).invoke(None, thread())
        assert answered["output"] == {"n": 1}


@pytest.mark.parametrize("version", ["function", "node"])
@pytest.mark.parametrize("by_id", [False, True])
def test_an_answer_to_an_earlier_checkpoint_is_told(version, by_id, caplog):
    """A `Command` to a checkpoint whose call is over decides nothing: the log names the review."""
    model, saver = Model(), InMemorySaver()
    graph = graph_of(model, saver, version)
    graph.invoke({"params": ASKED}, thread())
    (question,), earlier = graph.get_state(thread()).interrupts, graph.get_state(thread()).config
    resume(graph, thread(), edit(n=1))

    value = {"type": "edit", "params": {"n": 2}}
    graph.invoke(Command(resume={question.id: value} if by_id else value), earlier)

    assert [params["n"] for params in model.calls] == [0, 1]
    (told,) = [each.message for each in caplog.records if each.levelname == "WARNING"]
    assert question.value["review_id"] in told
    assert "`rewind`" in told


def test_an_answer_to_a_call_in_another_order_is_used_when_it_is_reached():
    """The giver learns which question is open now, and that nothing is lost."""
    model, orders = Model(), iter([(0, -1), (-1, 0), (-1, 0)])

    def node(_):
        tell = {"output": dict[str, int], "name": "count"}
        return {"output": [retry_llm_call(model, {"n": n}, **tell) for n in next(orders)]}

    builder = StateGraph(State).add_node("ask", node).add_edge(START, "ask")
    graph = builder.compile(checkpointer=InMemorySaver())
    graph.invoke({}, thread())

    with pytest.raises(AnswerRefused, match="is used when the node makes this call") as told:
        resume(graph, thread(), edit(n=1))
    (open_now,) = pending_reviews(graph, thread())
    assert f"waits for an answer to `count` ({open_now.review_id!r})" in str(told.value)

    assert resume(graph, thread(), edit(n=2))["output"] == [{"n": 2}, {"n": 1}]


def test_where_nothing_differs_no_difference_is_named():
    """A call that had a key and has none now: this is the reason, and no field."""
    model, saver = Model(), InMemorySaver()
    graph_of(model, saver, "with a key").invoke({"params": ASKED}, thread())

    with pytest.raises(AnswerRefused, match="with equal params, but under another `key=`") as told:
        resume(graph_of(model, saver, "function"), thread(), edit(n=1))

    assert "differ" not in str(told.value)


def test_a_key_that_was_given_later_is_the_reason():
    """The call had no key when it asked: the note says so, and how the answer is used."""
    model, saver = Model(), InMemorySaver()
    graph_of(model, saver, "function").invoke({"params": ASKED}, thread())

    with pytest.raises(AnswerRefused, match=r"with equal params and no `key=`.*leave the key out"):
        resume(graph_of(model, saver, "with a key"), thread(), edit(n=1))


@pytest.fixture
def graph_that_counts_on():
    """Return a function that compiles a graph whose node counts other numbers in each run."""

    def compiled(*numbers):
        model, left = Model(), iter(numbers)

        def node(_):
            return {"output": retry_llm_call(model, {"n": next(left)}, output=dict[str, int])}

        builder = StateGraph(State).add_node("ask", node).add_edge(START, "ask")
        return builder.compile(checkpointer=InMemorySaver())

    return compiled


def test_numbers_that_are_equal_to_python_differ_in_their_type(graph_that_counts_on):
    """1 and 1.0 make two calls: the type is the reason, not a key."""
    graph = graph_that_counts_on(-1, -1.0)
    graph.invoke({}, thread())

    with pytest.raises(AnswerRefused, match="they differ in the type of `n`"):
        resume(graph, thread(), edit(n=1))


def test_an_answer_that_no_call_took_is_told_as_unused(graph_that_counts_on):
    """A second answerer learns that the first answer was not used so far."""
    graph = graph_that_counts_on(-1, -2)
    graph.invoke({}, thread())
    (first,) = pending_reviews(graph, thread())
    with pytest.raises(AnswerRefused):
        resume(graph, thread(), edit(n=1))

    with pytest.raises(StaleDecision, match=r"human answered it at .* \(not used so far\)"):
        resume(graph, thread(), answers={first.review_id: edit(n=1)})
    with pytest.raises(StaleDecision, match="shows no question of that id, and no answer to one"):
        resume(graph, thread(), answers={"another": edit(n=1)})
