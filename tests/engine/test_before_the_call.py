"""What cannot work is told before a model is paid for: params of another type, no checkpointer."""

import dataclasses
import functools
import re
from collections.abc import Mapping
from typing import Any

import pydantic
import pytest
from pydantic import BaseModel

from graph_retry import (
    AttemptsExhausted,
    InterventionRequired,
    approve,
    create_retry_node,
    retry_llm_call,
)
from tests.loops import Model, State, one_call


class Params(BaseModel):
    """What a person may change."""

    prompt: str
    model: str = "small"


class Letter(BaseModel):
    """What the model must give."""

    body: str


@dataclasses.dataclass
class Options:
    """What a person may change, as a dataclass."""

    prompt: str


class LongerParams(BaseModel):
    """Another model, with the fields of `Params` and more."""

    prompt: str
    model: str
    tone: str = "kind"


def of_model(params: Params):
    """Stand in for a model whose params have a type."""
    return '{"body": "Dear Ada"}'


def of_dataclass(params: Options):
    """Stand in for another one."""
    return of_model(params)


def made_model(function):
    """Make the model of what comes, as pydantic's `validate_call` does."""
    return functools.wraps(function)(lambda params: function(Params.model_validate(params)))


def typed(annotation):
    """Stand in for a model whose params have another type."""

    def ask(params):
        return of_model(params)

    ask.__annotations__["params"] = annotation
    return ask


class Caller:
    """Has a method that calls a model."""

    def ask(self, params: Params):
        """Stand in for a model."""
        return of_model(params)


@pytest.mark.parametrize(
    ("call", "params", "words"),
    [
        (of_model, {"prompt": "Hi."}, "`of_model` declares its params as `Params`, but they are a"),
        (of_model, Options("Hi."), "but they are an `Options`: pass a `Params` (of a retry node"),
        (of_dataclass, {"prompt": "Hi."}, "as `Options`, but they are a `dict`: pass an `Options`"),
        (Caller().ask, {"prompt": "Hi."}, "`Caller.ask` declares its params as `Params`"),
    ],
)
def test_params_that_are_not_what_the_function_declares_are_refused(call, params, words):
    """Both forms name the two types; a review of the error could not have mended it."""
    with pytest.raises(TypeError, match=re.escape(words)):
        retry_llm_call(call, params, output=Letter)
    with pytest.raises(TypeError, match=re.escape(words)):
        create_retry_node(call, type(params), output=Letter)


@pytest.mark.parametrize(
    ("call", "params"),
    [
        (of_model, Params(prompt="Hi.")),
        (of_model, type("Further", (Params,), {})(prompt="Hi.")),
        (of_model, LongerParams(prompt="Hi.", model="large")),
        (of_dataclass, Params(prompt="Hi.")),
        (of_model, "Hi."),
        (of_model, None),
        (made_model(of_model), {"prompt": "Hi."}),
        (pydantic.validate_call(of_model), {"prompt": "Hi."}),
        (functools.partial(of_model), {"prompt": "Hi."}),
        *(
            (typed(annotation), {"prompt": "Hi."})
            for annotation in (dict, dict[str, str], Any, Mapping, State, Params | dict, "Unknown")
        ),
    ],
)
def test_a_call_that_may_work_is_made_whatever_it_declares(call, params):
    """A subclass, the same fields, a decorator, a union or an unknown name may all be right."""
    assert retry_llm_call(call, params, output=Letter).body == "Dear Ada"


def test_a_missing_checkpointer_is_told_before_the_model_is_asked(mode, form, caplog):
    """Once for each name, in a graph; a call that never asks a person needs none."""
    told = []

    def model(params):
        told.append(caplog.text)
        return '{"n": 1}'

    for options in ({"review": False}, {}, {}):
        name = f"{form} without a saver, {mode}"
        graph = one_call(form, mode, mode.colour(model), None, name=name, **options)
        mode.invoke(graph, {"params": {"n": 0}})
    assert [text.count("but this run has no checkpointer to pause on") for text in told] == [
        0,
        1,
        1,
    ]
    caplog.clear()
    assert retry_llm_call(model, {"n": 0}, output=dict[str, int]) == {"n": 1}
    assert not caplog.text


@pytest.mark.parametrize("reviewer", [False, True])
def test_a_call_that_is_reviewed_in_any_case_needs_a_checkpointer_first(mode, form, reviewer):
    """Nothing is called without one, unless an agent may decide."""
    model = Model(goal=0)
    options = {"reviewer": lambda review: approve()} if reviewer else {}
    graph = one_call(form, mode, model, None, review="always", **options)
    if reviewer:
        assert mode.invoke(graph, {"params": {"n": 0}})["output"] == {"n": 0}
    else:
        with pytest.raises(InterventionRequired, match=r"`review='always'`.*give the graph"):
            mode.invoke(graph, {"params": {"n": 0}})
    assert len(model.calls) == reviewer


ASKED = []


def forgets_params(params):
    ASKED.append(params)
    {**params, "model": "large"}  # noqa: B018


def forgets_a_text(params):
    ASKED.append(params)
    f"{params} and more"


def forgets_a_name(params):
    ASKED.append(params)
    params  # noqa: B018


@pytest.mark.parametrize("function", [forgets_params, forgets_a_text, forgets_a_name])
def test_a_model_that_forgets_its_return_is_refused(function):
    """Its None would be a success."""
    ASKED.clear()
    with pytest.raises(TypeError, match=r"`forgets_\w+` never returns what it computes in line "):
        retry_llm_call(function, {"prompt": "x"})
    assert not ASKED


def test_a_model_that_returns_nothing_is_told(caplog):
    """Without `output`, unless the function declares that it returns None."""

    def says(params):
        ASKED.append(params)

    def acts(params) -> None:
        ASKED.append(caplog.text)

    def fails(params):
        raise LookupError(params)

    retry_llm_call(acts, "x", name="acts")
    with pytest.raises(AttemptsExhausted):
        retry_llm_call(fails, "x", review=False)
    assert "returns no value" not in caplog.text
    retry_llm_call(says, "x")
    assert "`says` returns no value, so its output is always None: add `return`" in caplog.text
