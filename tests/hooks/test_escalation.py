"""Escalation hooks: what changes after which attempt, and that nothing else does."""

import dataclasses
from functools import partial
from typing import Literal, Self

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel, model_validator

from graph_retry import AttemptFailed, Completion, retry_llm_call
from graph_retry._core.state.attempts import params_at
from graph_retry.hooks import escalate, fall_back, raise_limit
from tests.loops import Model, one_call, reviews, thread

LADDER = {
    1: {"temperature": lambda old: old / 2},
    3: {"model": "large", "prompt": lambda old: old + " Think first."},
}


class Typed(BaseModel):
    prompt: str = "Go."
    model: str = "small"
    temperature: float = 0.5
    max_tokens: int | None = 100


@dataclasses.dataclass
class Classed:
    prompt: str = "Go."
    model: str = "small"
    temperature: float = 0.5
    max_tokens: int | None = 100


KINDS = [Typed(), Classed(), Typed().model_dump()]


def as_dict(params):
    """Return params as a dict."""
    if isinstance(params, dict):
        return params
    return params.model_dump() if isinstance(params, BaseModel) else dataclasses.asdict(params)


@pytest.mark.parametrize("params", KINDS, ids=lambda params: type(params).__name__)
def test_a_schedule_changes_fields_after_its_attempts(params):
    """A value replaces, a function computes; in between nothing changes."""
    hook, error = escalate(LADDER), AttemptFailed("no")
    start = as_dict(params)
    first, second, third = (hook(error, attempt, params) for attempt in (1, 2, 3))
    assert as_dict(first) == {**start, "temperature": 0.25}
    assert second is None
    assert as_dict(third) == {**start, "model": "large", "prompt": "Go. Think first."}
    assert type(first) is type(third) is type(params)
    assert as_dict(params) == start


def test_each_step_is_a_revision_in_the_ledger(form, mode):
    """Changes stay for the attempts after them, and each says who made it."""
    model = Model(lambda params: "1" if params["model"] == "large" else str(params["temperature"]))
    records = []
    up = {1: {"temperature": 0.25}, 2: {"model": "large"}}
    graph = one_call(
        form, mode, model, InMemorySaver(), mode.colour(escalate(up)),
        output=int, auto_retries=5, on_attempt=mode.colour(records.append),
    )  # fmt: skip
    start = {"model": "small", "temperature": 0.5}
    assert mode.invoke(graph, {"params": start}, thread())["output"] == 1
    assert model.calls == [
        start,
        {"model": "small", "temperature": 0.25},
        {"model": "large", "temperature": 0.25},
    ]
    assert [record["author"] for record in records] == ["caller", "hook:escalate", "hook:escalate"]
    assert records[2]["params_patch"] == [{"op": "replace", "path": "/model", "value": "large"}]


@pytest.mark.parametrize("params", [{"prompt": "Go."}, "Go.", None, 3])
def test_a_field_the_params_lack_is_never_added(params):
    """The error comes at the first failure, whenever the field's turn would be, and names it."""
    with pytest.raises(ValueError, match="`model`"):
        escalate({9: {"model": "large"}})(AttemptFailed("no"), 1, params)
    with pytest.raises(ValueError, match="`max_tokens`"):
        raise_limit(most=10)(AttemptFailed("no", kind="truncated"), 1, params)


class Chosen(BaseModel):
    """Params whose fields have types, and a validator that looks at two of them."""

    model: Literal["small", "large"] = "small"
    tokens: int = 10

    @model_validator(mode="after")
    def fits(self) -> Self:
        """Refuse many tokens of the small model."""
        if self.model == "small" and self.tokens > 100:
            raise ValueError("too many tokens")
        return self


@pytest.mark.parametrize("make", [lambda step: escalate({9: step}), partial(fall_back, "refusal")])
def test_a_value_that_its_field_cannot_have_is_refused_before_the_first_call(make):
    """A misspelt model costs no call; a value that fits only after another change is allowed."""
    calls = []
    for step, told in (
        ({"model": "huge"}, "`model` to 'huge', but its type .* should be 'small' or 'large'"),
        ({"tokens": "many"}, "`tokens` to 'many', but its type does not allow this"),
    ):
        with pytest.raises(ValueError, match=told):
            retry_llm_call(calls.append, Chosen(), make(step), review=False)
    assert calls == []
    later = make({"tokens": 1_000, "model": "large"})
    retry_llm_call(calls.append, Chosen(), later, review=False)
    assert calls == [Chosen()]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: escalate({0: {"model": "large"}}),
            "`schedule, key 0`: give a whole number from 1; not 0",
        ),
        (lambda: raise_limit(factor=1, most=10), "`factor`: give a number above 1; not 1"),
    ],
)
def test_schedules_that_make_no_sense_are_refused_early(make, message):
    """They are refused where they are written."""
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("params", KINDS, ids=lambda params: type(params).__name__)
@pytest.mark.parametrize(
    ("kind", "limit", "raised"),
    [
        ("truncated", 100, 200),
        ("truncated", 101, 202),
        ("truncated", 400, 500),
        ("truncated", 500, None),
        ("truncated", 600, None),
        ("truncated", None, None),
        ("invalid_syntax", 100, None),
        ("transient", 100, None),
    ],
)
def test_a_limit_is_raised_only_when_the_answer_was_cut_off(params, kind, limit, raised):
    """It grows by its factor up to a bound, and nothing but the limit changes."""
    given = type(params)(**{**as_dict(params), "max_tokens": limit})
    made = raise_limit(most=500)(AttemptFailed("cut", kind=kind), 1, given)
    expected = None if raised is None else {**as_dict(given), "max_tokens": raised}
    assert (made if made is None else as_dict(made)) == expected


def test_a_limit_that_begins_above_its_highest_value_is_refused():
    """It could never be raised, which is known before the first call."""
    model, hook = Model(lambda params: "1"), raise_limit(most=100)
    with pytest.raises(ValueError, match=r"raise_limit\(most=100\)` cannot raise .* is 500 from"):
        retry_llm_call(model, {"max_tokens": 500}, hook, output=int)
    assert retry_llm_call(model, {"max_tokens": 100}, hook, output=int) == 1
    assert model.calls == [{"max_tokens": 100}]


def test_a_cut_off_answer_is_asked_for_again_with_the_same_prompt(form, mode):
    """Feedback stays out of it, and at the bound a person is asked."""
    text = '{"numbers": [' + ", ".join(["1"] * 40) + "]}"
    model = Model(
        lambda params: Completion(
            text[: params["max_tokens"]],
            finish_reason="stop" if params["max_tokens"] >= len(text) else "length",
        )
    )
    options = {"output": dict[str, list[int]], "feedback": "errors_only", "auto_retries": 9}
    ask = {"prompt": "Count.", "max_tokens": 50}

    graph = one_call(form, mode, model, InMemorySaver(), raise_limit(most=200), **options)
    state = mode.invoke(graph, {"params": ask}, thread())
    assert state["output"] == {"numbers": [1] * 40}
    assert model.calls == [{**ask, "max_tokens": limit} for limit in (50, 100, 200)]

    model.calls.clear()
    graph = one_call(form, mode, model, InMemorySaver(), raise_limit(most=100), **options)
    mode.invoke(graph, {"params": ask}, thread())
    (review,) = reviews(mode, graph, thread())
    assert review.failure["kind"] == "truncated"
    assert model.calls == [{**ask, "max_tokens": limit} for limit in (50, 100)]


def test_hooks_are_alternatives_and_the_first_that_fits_has_it():
    """A cut-off answer gets more room; any other failure moves along the schedule."""
    answers = iter([Completion("{", finish_reason="length"), '{"n": "x"}', '{"n": 1}'])
    records = []
    hooks = [raise_limit(most=100), escalate({2: {"model": "large"}})]
    retry_llm_call(
        lambda params: next(answers),
        {"model": "small", "max_tokens": 50},
        hooks,
        output=dict[str, int],
        auto_retries=5,
        on_attempt=records.append,
    )
    assert [record["author"] for record in records[1:]] == ["hook:raise_limit", "hook:escalate"]
    assert params_at(records).view == {"model": "large", "max_tokens": 100}


@pytest.mark.parametrize(
    "fault",
    [
        "no JSON here",
        Completion("", finish_reason="content_filter"),
        Completion("", finish_reason="model_context_window_exceeded"),
        "I'm sorry, but I can't help with that.",
    ],
)
def test_a_step_of_the_schedule_comes_before_a_person_after_equal_failures(form, mode, fault):
    """The same failure or refusal twice does not stop the step that changes the model."""
    model = Model(lambda params: '{"n": 1}' if params["model"] == "large" else fault)
    hooks = [escalate({1: {"seed": 2}, 2: {"model": "large"}})]
    start = {"params": {"model": "small", "seed": 1}}
    graph = one_call(form, mode, model, InMemorySaver(), hooks, auto_retries=5)
    assert mode.invoke(graph, start, thread())["output"] == {"n": 1}
    assert len(model.calls) == 3

    model.calls.clear()
    graph = one_call(
        form, mode, model, InMemorySaver(), [escalate({1: {"seed": 2}})], auto_retries=5
    )
    mode.invoke(graph, start, thread())
    assert len(reviews(mode, graph, thread())) == 1
    assert len(model.calls) == 2, "with no step left two equal failures ask a person"


@pytest.mark.parametrize(
    "schedule",
    [
        {1: {"model": "small"}},
        {1: {"seed": 2}, 2: {"model": "small"}},
    ],
)
def test_a_step_that_changes_nothing_is_no_step(form, mode, schedule):
    """It sends nothing again: a person is asked."""
    model = Model(lambda params: "no")
    graph = one_call(form, mode, model, InMemorySaver(), escalate(schedule), auto_retries=5)
    mode.invoke(graph, {"params": {"model": "small", "seed": 1}}, thread())
    assert len(model.calls) == len(schedule)
    assert len(reviews(mode, graph, thread())) == 1
