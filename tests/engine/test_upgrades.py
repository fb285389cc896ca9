"""Threads that were saved by other code than the code that continues them."""

from functools import partial

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph
from pydantic import BaseModel

from graph_retry import (
    AnswerRefused,
    approve,
    create_retry_node,
    edit,
    pending_reviews,
    resume,
    retry_llm_call,
)
from graph_retry.threads import attempts_of
from tests.loops import State, thread


class Before(BaseModel):
    """The params of yesterday."""

    prompt: str
    style: str = "plain"


class After(BaseModel):
    """The params of today: one field gone, one new, one narrower."""

    prompt: str
    audience: str


def graph_with(params_type, saver):
    """Compile the same graph with the params type of the day."""

    def call(params):
        return "1" if getattr(params, "audience", "") == "all" else "no"

    builder = StateGraph(State)
    builder.add_node("ask", create_retry_node(call, params_type, output=int, name="count"))
    builder.add_edge(START, "ask")
    return builder.compile(checkpointer=saver)


def test_a_changed_params_model_asks_again_with_what_no_longer_fits(tmp_path):
    """A paused thread goes on under the new model: the old field is gone, the new one is asked."""
    with SqliteSaver.from_conn_string(str(tmp_path / "thread.sqlite")) as saver:
        graph_with(Before, saver).invoke({"params": {"prompt": "hi"}}, thread())

        graph = graph_with(After, saver)
        with pytest.raises(AnswerRefused, match="audience"):
            resume(graph, thread(), approve())
        (review,) = pending_reviews(graph, thread())
        assert review.params == {"prompt": "hi"}
        assert resume(graph, thread(), edit(audience="all"))["output"] == 1


@pytest.mark.parametrize("saved", [Before, After])
def test_a_model_that_still_fits_goes_on_as_before(tmp_path, saved):
    """Nothing is asked twice where the params fit."""
    with SqliteSaver.from_conn_string(str(tmp_path / "thread.sqlite")) as saver:
        given = {"prompt": "hi", "audience": "few"} if saved is After else {"prompt": "hi"}
        graph_with(saved, saver).invoke({"params": given}, thread())
        resume(graph_with(saved, saver), thread(), approve())
        (review,) = pending_reviews(graph_with(saved, saver), thread())
        assert (review.attempt, review.problem) == (2, None)


class More(Before):
    """The params of today: one field more, with a default."""

    audience: str = "few"


def calling(params_type, saver, **options):
    """Compile a graph whose function makes the call, with the params type of the day."""

    def call(params):
        return "1" if getattr(params, "style", "") == "good" else "no"

    def ask(state):
        given = params_type(**state["params"])
        return {"output": retry_llm_call(call, given, output=int, name="count", **options)}

    return StateGraph(State).add_node("ask", ask).add_edge(START, "ask").compile(checkpointer=saver)


def invoking(params_type, saver):
    """Compile a graph whose function invokes a retry node."""
    node = create_retry_node(
        lambda params: "1" if params.style == "good" else "no", params_type, output=int
    )

    def ask(state):
        return {"output": node.invoke({"params": state["params"]})["output"]}

    return StateGraph(State).add_node("ask", ask).add_edge(START, "ask").compile(checkpointer=saver)


@pytest.mark.parametrize("options", [{"key": "mine"}, None], ids=["key", "node by hand"])
def test_a_new_field_with_a_default_changes_no_waiting_call(options):
    """Known by its key, or by what it is given, it goes on with the saved params."""
    saver = InMemorySaver()
    make = invoking if options is None else partial(calling, **options)
    make(Before, saver).invoke({"params": {"prompt": "hi"}}, thread())

    graph = make(More, saver)
    assert resume(graph, thread(), edit(style="good"))["output"] == 1
    assert len(list(attempts_of(graph, thread()))) == 1


def test_without_a_key_a_new_field_is_told_with_its_name(caplog):
    """The call is another one; the answer to the waiting one is kept and nothing is silent."""
    saver = InMemorySaver()
    calling(Before, saver).invoke({"params": {"prompt": "hi"}}, thread())

    with pytest.raises(AnswerRefused, match=r"differ in `audience`.*`key=`"):
        resume(calling(More, saver), thread(), edit(style="good"))
    assert "differ in `audience`" in caplog.text
