"""The four ways to hand over a call, from a closure to an explicit params object."""

import pytest
from langgraph.checkpoint.memory import InMemorySaver
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
from tests.loops import State, answer, reviews, thread


class Image(BaseModel):
    """Everything about an image somebody might want to change."""

    prompt: str
    model: str = "imagen-3.0"
    seed: int = 12345


class Studio:
    """An SDK client with a method to call."""

    def __init__(self):
        self.seen = []

    def generate(self, params):
        """Refuse the small model."""
        self.seen.append(params)
        if params.model == "imagen-3.0":
            message = "Resource exhausted"
            raise RuntimeError(message)
        return f"{params.prompt} by {params.model}"


def test_pattern_closure_without_params():
    """With `None` params there is nothing to edit: retry, respond or cancel."""
    tries = []

    def call(_):
        tries.append(1)
        if len(tries) == 1:
            message = "hiccup"
            raise ConnectionError(message)
        return "done"

    builder = StateGraph(State)
    builder.add_node("ask", lambda state: {"output": retry_llm_call(call, None)})
    builder.add_edge(START, "ask")
    graph = builder.compile(checkpointer=InMemorySaver())
    graph.invoke({"params": None}, thread())

    with pytest.raises(AnswerRefused):
        resume(graph, thread(), edit(anything=1))
    assert len(pending_reviews(graph, thread())) == 1
    assert resume(graph, thread(), approve())["output"] == "done"


def test_pattern_bound_method(mode):
    """A bound method works and has a readable name."""
    studio = Studio()
    builder = StateGraph(State)
    builder.add_node("draw", create_retry_node(studio.generate, Image))
    builder.add_edge(START, "draw")
    graph = builder.compile(checkpointer=InMemorySaver())

    mode.invoke(graph, {"params": {"prompt": "a cat"}}, thread())
    (review,) = reviews(mode, graph, thread())
    state = answer(mode, graph, thread(), edit(model="imagen-4.0"))

    assert review.function_name == "Studio.generate"
    assert state["output"] == "a cat by imagen-4.0"


def test_pattern_thin_lambda_exposing_one_value(mode):
    """A bare value is shown as `value` and can be edited as one."""
    builder = StateGraph(State)
    prefix = "captured"

    def shout(prompt):
        if "please" not in prompt:
            message = "say please"
            raise ValueError(message)
        return f"{prefix}: {prompt}"

    node = create_retry_node(lambda prompt: shout(prompt + "!"), str, name="shout")
    builder.add_node("ask", node)
    builder.add_edge(START, "ask")
    graph = builder.compile(checkpointer=InMemorySaver())

    mode.invoke(graph, {"params": "draw"}, thread())
    (review,) = reviews(mode, graph, thread())
    assert review.params == {"value": "draw"}
    state = answer(mode, graph, thread(), edit(value="draw please"))
    assert state["output"] == "captured: draw please!"


def test_pattern_explicit_params_object(mode):
    """The recommended form, with the model switch of a hook."""
    studio = Studio()

    def switch(error, attempt, params):
        if "Resource exhausted" in str(error):
            return params.model_copy(update={"model": "imagen-4.0"})
        return None

    builder = StateGraph(State)
    node = create_retry_node(studio.generate, Image, switch, auto_retries=1)
    builder.add_node("draw", node)
    builder.add_edge(START, "draw")
    graph = builder.compile(checkpointer=InMemorySaver())

    state = mode.invoke(graph, {"params": {"prompt": "a cat"}}, thread())

    assert state["output"] == "a cat by imagen-4.0"
    assert [params.model for params in studio.seen] == ["imagen-3.0", "imagen-4.0"]
    assert state["attempts"][1]["author"] == "hook:switch"
