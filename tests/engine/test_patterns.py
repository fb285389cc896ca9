"""The four ways to hand over a call, from a closure to an explicit params object."""

import functools
import types

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.prompt_values import PromptValue
from langchain_core.runnables import Runnable
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from pydantic import BaseModel

from graph_retry import (
    AnswerRefused,
    AttemptContext,
    approve,
    aretry_llm_call,
    create_retry_node,
    edit,
    pending_reviews,
    resume,
    retry_llm_call,
)
from tests.loops import State, answer, reviews, thread

CHAT = FakeListChatModel(responses=[])
"""A model that would fail at each call."""


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


@pytest.mark.parametrize("form", ["function", "node"])
@pytest.mark.parametrize("has_parameter", [False, True])
def test_pattern_closure_without_params(form, has_parameter):
    """With `None` params there is nothing to edit: retry, respond or cancel."""
    tries = []

    def call(_):
        tries.append(1)
        if len(tries) == 1:
            message = "hiccup"
            raise ConnectionError(message)
        return "done"

    def without():
        return call(None)

    llm_call = call if has_parameter else without
    node = create_retry_node(llm_call, None)
    if form == "function":
        node = lambda state: {"output": retry_llm_call(llm_call, None)}  # noqa: E731
    graph = compiled(node, InMemorySaver())
    graph.invoke({"params": None}, thread())

    with pytest.raises(AnswerRefused):
        resume(graph, thread(), edit(anything=1))
    (review,) = pending_reviews(graph, thread())
    allowed = review.value["review_configs"][0]["allowed_decisions"]
    assert allowed == ["approve", "reject", "respond"]
    assert resume(graph, thread(), approve())["output"] == "done"
    assert len(tries) == 2


class Completions:
    """A resource of an SDK whose method has only keyword arguments, as OpenAI's and Anthropic's.

    A decorator hides the method, as in these SDKs.
    """

    def __init__(self, mode):
        self.seen = []
        self.create = types.MethodType(mode.colour(type(self).create), self)

    def create(self, *, model, messages, temperature=1.0):
        """Refuse the small model."""
        self.seen.append((model, len(messages), temperature))
        if model == "small":
            message = "overloaded"
            raise ConnectionError(message)
        return f"by {model}"


@pytest.mark.parametrize("form", ["function", "node"])
@pytest.mark.parametrize(
    "wrap", [lambda method: method, functools.partial], ids=["bound", "partial"]
)
def test_pattern_method_with_keyword_arguments_only(mode, form, wrap):
    """Dict params become its keyword arguments, and the question has the method's name."""
    completions = Completions(mode)
    create = wrap(completions.create)
    params = {"model": "small", "messages": [{"role": "user", "content": "Hi"}]}
    graph = compiled(node_of(form, mode, create, params), InMemorySaver())
    mode.invoke(graph, {"params": params}, thread())
    (review,) = reviews(mode, graph, thread())
    state = answer(mode, graph, thread(), edit(model="large", temperature=0.5))

    assert review.function_name == "Completions.create"
    assert state["output"] == "by large"
    assert completions.seen == [("small", 1, 1.0), ("large", 1, 0.5)]


def test_a_context_is_passed_by_name_as_well():
    """A function with keyword arguments only may have one for the facts about the attempt."""

    def ask(*, prompt, context: AttemptContext):
        return prompt, context.attempt

    assert retry_llm_call(ask, {"prompt": "Hi"}) == ("Hi", 1)


MISSING = "do not fit its arguments: missing a required (keyword-only )?argument: 'a'"


@pytest.mark.parametrize(
    ("llm_call", "params", "named"),
    [
        (lambda: "x", {"a": 1}, "has no parameter, so nobody could change"),
        (lambda *, a: a, "text", "has only keyword arguments"),
        (lambda *, a: a, Image(prompt="a cat"), "has only keyword arguments"),
        (lambda *, a: a, {"b": 1}, MISSING),
        (lambda *, a: a, {"a": 1, "b": 1}, "do not fit its arguments: got an unexpected keyword"),
        (lambda *, a: a, None, MISSING),
        (CHAT, {"prompt": "x"}, "takes a text or a list of messages, but the params are a `dict`"),
        (CHAT | str, Image(prompt="a cat"), "messages, but the params are an `Image`: give a"),
        (lambda a, b: a, {"a": 1, "b": 1}, r"needs `b`.*`lambda params: llm_call\(\*\*params\)`"),
    ],
)
def test_params_that_do_not_fit_a_function_are_refused(llm_call, params, named):
    """Before anything is called, and with what to give instead."""
    with pytest.raises(TypeError, match=named):
        retry_llm_call(llm_call, params)
    kind = None if params is None else type(params)
    with pytest.raises(TypeError, match=named):
        compiled(create_retry_node(llm_call, kind), InMemorySaver()).invoke(
            {"params": params}, thread()
        )


class TextOrDict(Runnable[dict[str, str] | str | PromptValue, str]):
    """A runnable that takes prompts, and dicts as well."""

    def invoke(self, input, config=None, **options):
        return input["prompt"]


def test_a_runnable_gets_what_it_declares():
    """A model takes no dict; a runnable of the user may take one beside prompts."""
    assert retry_llm_call(TextOrDict(), {"prompt": "x"}) == "x"


def test_a_function_of_any_keyword_arguments_gets_all_params():
    """`**more` takes what the params have; with `None`, nothing is passed."""
    assert retry_llm_call(lambda **more: more, {"a": 1, "b": 2}) == {"a": 1, "b": 2}
    assert retry_llm_call(lambda *, a=1: a, None) == 1


def compiled(node, saver):
    """Compile a graph of one node."""
    return (
        StateGraph(State).add_node("ask", node).set_entry_point("ask").compile(checkpointer=saver)
    )


def node_of(form, mode, llm_call, params):
    """Make a node of either form, in the mode's way."""
    if form == "node":
        return create_retry_node(llm_call, dict)
    if not mode.is_async:
        return lambda state: {"output": retry_llm_call(llm_call, params)}

    async def node(state):
        return {"output": await aretry_llm_call(llm_call, params)}

    return node


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
