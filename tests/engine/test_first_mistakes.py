"""What people get wrong on their first day: each is told by name, before a model is paid for."""

import asyncio
import copy
import functools
import logging
import re
import traceback
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint
from langgraph.graph import StateGraph
from langgraph.types import RetryPolicy
from pydantic import BaseModel
from typing_extensions import TypedDict

import graph_retry
from graph_retry import (
    AnswerRefused,
    InterventionRequired,
    approve,
    aretry_llm_call,
    create_retry_node,
    edit,
    pending_reviews,
    respond,
    resume,
    retry_llm_call,
)
from graph_retry.agents import RetryMiddleware
from graph_retry.hooks import escalate, feedback, model_reviewer, raise_limit
from tests.loops import Model, one_call, thread

CONFIG: Any = {"configurable": {"thread_id": "1"}}


class Params(BaseModel):
    """What a person may change."""

    prompt: str
    model: str = "small"


class Alternator:
    def __call__(self, error, attempt, params):
        return None


class Toml:
    name = "toml"
    parse = repair = describe = print


class Letter(BaseModel):
    """What the model must give."""

    body: str


class State(TypedDict, total=False):
    """A graph's state."""

    params: Any
    output: Any


def write(params):
    """Stand in for a model; the tests count on its not being asked."""
    pytest.fail("the model was asked")


def waiting(call, **options):
    """Build a graph of one retry node."""
    builder = StateGraph(State)
    builder.add_node("write", create_retry_node(call, Params, output=Letter, **options))
    return builder.set_entry_point("write").compile(checkpointer=InMemorySaver())


@pytest.mark.parametrize(
    ("hook", "words"),
    [
        (Letter, "; not the class `Letter`. Is it meant as `output=`?"),
        (Alternator, "not the class `Alternator`. Make an object of it: `Alternator(…)`."),
        (lambda error, params: None, "which cannot be called so (too many positional arguments)"),
        (lambda error, attempt, params, extra: None, "(missing a required argument: 'extra')"),
        (dict[str, int], "not the class `dict[str, int]`. Is it meant as `output=`?"),
        ("large", "not 'large'"),
        ([print, None], "`on_retry[1]`: give a function `(error, attempt, params)`; not None"),
    ],
)
def test_a_hook_that_cannot_be_called_is_refused_at_once(hook, words):
    """Both forms look at a hook's arguments when they are given it."""
    for form in (
        lambda: create_retry_node(write, Params, hook, output=Letter),
        lambda: retry_llm_call(write, Params(prompt="Hi."), hook, output=Letter),
    ):
        with pytest.raises(TypeError, match=re.escape(words)) as caught:
            form()
        assert "`on_retry" in str(caught.value)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        (
            {"feedback": "eror_only"},
            ValueError,
            "or a function `(error, attempt, params)`; not 'eror_only'. Did you mean `err",
        ),
        (
            {"feedback": Letter},
            TypeError,
            "or a function `(error, attempt, params)`; not the class `Letter`.",
        ),
        ({"feedback": dict[str, int]}, TypeError, "not the class `dict[str, int]`."),
        ({"transient": RetryPolicy}, TypeError, "the class `RetryPolicy`. Make an object of it"),
        ({"format": Toml}, TypeError, "`Format`; not the class `Toml`. Make an object of it: `T"),
        ({"budget": 800}, ValueError, "or a `Budget`, such as `Budget(tokens=10_000)`"),
        (
            {"reviewer": approve},
            TypeError,
            "or a list of these; not `approve`. Write `lambda review: approve(…)`.",
        ),
        (
            {"reviewer": [lambda review: None, respond]},
            TypeError,
            "`reviewer[1]`: give a function `(review)` or a `Runnable`; not `respond`. Write `lamb",
        ),
        ({"reviewer": model_reviewer}, TypeError, "Call it: `model_reviewer(…)`."),
        (
            {"notify": approve},
            TypeError,
            "`notify`: give a function `(review)`, such as `Slack(links, webhook)`; not `approve`.",
        ),
        (
            {"repair": False},
            ValueError,
            "a function that takes only a text, or a pair of these in this order; not False.",
        ),
    ],
)
def test_an_option_that_cannot_work_is_refused_at_once(options, error, words):
    """Both forms say so before a graph is made or a model asked."""
    for form in (
        lambda: create_retry_node(write, Params, output=Letter, **options),
        lambda: retry_llm_call(write, Params(prompt="Hi."), output=Letter, **options),
    ):
        with pytest.raises(error, match=re.escape(words)):
            form()


@pytest.mark.parametrize(
    ("hook", "options", "words"),
    [
        (
            escalate({2: {"modle": "large"}}),
            {},
            "`escalate` changes the field `modle`, which the params do not have (they have",
        ),
        (raise_limit(most=9), {}, "`raise_limit` changes the field `max_tokens`, which"),
        (None, {"feedback": feedback(field="text")}, "in the params' `text`: name the field"),
    ],
)
def test_a_hook_with_nothing_to_work_on_is_refused_before_the_first_call(hook, options, words):
    """The params of this call lack its field, so the model is not asked."""
    graph = waiting(write, on_retry=hook, **options)
    for form in (
        lambda: graph.invoke({"params": {"prompt": "Hi."}}, CONFIG),
        lambda: retry_llm_call(write, Params(prompt="Hi."), hook, output=Letter, **options),
    ):
        with pytest.raises(ValueError, match=re.escape(words)):
            form()


@pytest.mark.parametrize(
    "hook",
    [
        lambda *given: None,
        lambda error, attempt, params, extra=1: None,
        functools.partial(lambda extra, error, attempt, params: None, 1),
        max,
        type("Hook", (), {"__call__": lambda self, error, attempt, params: None})(),
    ],
)
def test_whatever_takes_three_arguments_is_a_hook(hook):
    """The check refuses nothing that would have worked; what does not tell is let through."""
    create_retry_node(write, Params, hook)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "`params` is not in the state, and `keys=` names no other key: give a"),
        ({"params": "Hi."}, f"`params` is a `str`: give a `{__name__}.Params`"),
        (
            {"params": {"promt": "Hi."}},
            "`params.promt` is not a known field; the known ones are `prompt`, `model`",
        ),
    ],
)
def test_params_that_do_not_fit_say_what_came(given, words):
    """A missing key, another type and a misspelt field are different mistakes."""
    with pytest.raises(ValueError, match=re.escape(words)):
        waiting(write).invoke(given, CONFIG)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: retry_llm_call(write, Params),
            "`Params`: pass an instance of it",
        ),
        (lambda: create_retry_node(write, Params(prompt="x")), "pass the class of the params"),
        (lambda: create_retry_node(write, {"prompt": "x"}), "pass the class of the params"),
        (
            lambda: edit(Params(prompt="Hi.")),
            "give a dict of the fields to change (`edit(value=…)` for params that are a single",
        ),
        (
            lambda: resume(waiting(write), "1", "approve"),
            '`config`: give a config, such as {"configurable"',
        ),
        (lambda: pending_reviews(waiting(write), None), "`config`: give a config"),
        (lambda: pending_reviews(waiting(write).builder, CONFIG), "`graph` is a `StateGraph`"),
        (lambda: create_retry_node(write, dict, max_attempt=3), "Did you mean `max_attempts`?"),
        (lambda: create_retry_node(write, dict, ouput=Letter), "Did you mean `output`?"),
        (lambda: create_retry_node(write, dict, zzz=3), "Known are repair, format, strict"),
        (lambda: RetryMiddleware(zzz=3), "unknown argument `zzz`. Known are on_retry, tools"),
        (
            lambda: create_retry_node(write, dict, allowed_decisions="approve"),
            "`allowed_decisions`: give a list that is not empty, each item 'approve', 'edit'",
        ),
    ],
)
def test_what_is_taken_for_something_else_is_named(make, words):
    """A class for an object, an object for a class, a builder for a graph, a text for a config."""
    with pytest.raises(TypeError, match=re.escape(words)):
        make()


@pytest.mark.parametrize(
    "ask", [pending_reviews, lambda graph, config: resume(graph, config, approve())]
)
def test_a_graph_without_a_checkpointer_is_named(ask):
    """It has no threads: whoever looks for one passed another graph than the one that asked."""
    bare = waiting(write).builder.compile()
    with pytest.raises(ValueError, match=r"`graph` has no checkpointer.*checkpointer=…"):
        ask(bare, CONFIG)


def test_a_bug_in_the_call_can_be_found(caplog):
    """The error names the exception's type, and the log has its traceback at level DEBUG."""

    def buggy(params):
        return params.promt

    with (
        caplog.at_level(logging.DEBUG, "graph_retry"),
        pytest.raises(InterventionRequired, match=r"AttributeError: .*no attribute 'promt'"),
    ):
        retry_llm_call(buggy, Params(prompt="Hi."), output=Letter)
    assert "return params.promt" in caplog.text

    caplog.clear()
    with caplog.at_level(logging.DEBUG, "graph_retry"), pytest.raises(InterventionRequired):
        retry_llm_call(buggy, Params(prompt="Hi."), redact=lambda text: "…")
    assert "attempt 1 of" in caplog.text
    assert "promt" not in caplog.text


def test_a_decision_that_was_not_called_is_named():
    """And what to give; the review goes on waiting."""
    graph = waiting(lambda params: "no")
    graph.invoke({"params": {"prompt": "Hi."}}, CONFIG)
    with pytest.raises(TypeError, match=r"not `approve`. Call it: `approve\(…\)`"):
        resume(graph, CONFIG, approve)
    assert len(pending_reviews(graph, CONFIG)) == 1


def test_completion_shows_every_public_name():
    """What is loaded late, such as `resume`, is offered at the prompt, too."""
    assert set(dir(graph_retry)) == set(graph_retry.__all__)


@pytest.mark.parametrize(("known", "new"), [("k", "ok"), ("n", "no"), ("id", "aid"), ("x", "xy")])
def test_a_new_field_beside_a_short_name_is_no_misspelling(known, new):
    """Half of the letters of `ok` are those of `k`, so that only another case looks like `k`."""
    sent = []
    call = lambda params: sent.append(params) or ("[]" if new in params else "?")  # noqa: E731

    @entrypoint(checkpointer=InMemorySaver())
    def read(_):
        return retry_llm_call(call, {known: 1}, output=list[int])

    read.invoke(0, CONFIG)
    with pytest.raises(AnswerRefused, match=f"Did you mean `{known}`"):
        resume(read, CONFIG, edit(**{known.upper(): 2}))
    assert resume(read, CONFIG, edit(**{new: True})) == []
    assert sent == [{known: 1}, {known: 1, new: True}]


def test_the_printed_result_of_a_paused_graph_fits_a_terminal():
    """`print(graph.invoke(…))` shows what waits, without what only clients need."""
    graph = waiting(lambda params: "no " * 5_000)
    result = graph.invoke({"params": {"prompt": "?" * 5_000}}, CONFIG)
    assert len(repr(result["__interrupt__"])) < 600
    assert "InvalidJSON" in repr(result["__interrupt__"])
    (saved,) = graph.get_state(CONFIG).interrupts
    assert type(saved.value) is dict
    assert saved.value == result["__interrupt__"][0].value
    assert type(copy.deepcopy(result)["__interrupt__"][0].value) is dict


async def test_a_task_group_says_how_to_pause():
    """The pauses in an `ExceptionGroup` name the call and `gather_calls`."""

    @entrypoint(checkpointer=InMemorySaver())
    async def read(pages):
        async with asyncio.TaskGroup() as group:
            for page in pages:
                group.create_task(aretry_llm_call(lambda _: "?", page, output=int, name="count"))

    with pytest.raises(ExceptionGroup) as raised:
        await read.ainvoke(["a", "b"], CONFIG)
    told = "".join(traceback.format_exception(raised.value))
    assert "`count` waits for a person" in told
    assert "gather_calls" in told


def counted(hook):
    """Make a call that only the large model can, with a hook."""
    params = {"prompt": "How many?", "model": "small"}
    return retry_llm_call(
        lambda params: "42" if params["model"] == "large" else "many",
        params,
        lambda error, attempt, params: hook(params),
        output=int,
        auto_retries=1,
    )


def test_a_hook_that_returns_a_decision_is_refused():
    """An `edit` in place of params would be sent to the model."""
    with pytest.raises(TypeError, match="hook `on_retry` returned a decision"):
        counted(lambda params: edit(model="large"))


@pytest.mark.parametrize("kept", [True, False])
def test_a_hook_that_loses_a_key_is_told(caplog, kept):
    """Params are sent as a hook returns them, so the keys that it left out are named."""
    assert counted(lambda params: {**(params if kept else {}), "model": "large"}) == 42
    assert ("the params of hook `on_retry` lack `prompt`" in caplog.text) != kept


@pytest.mark.parametrize(
    ("keyword", "near"),
    [("requried", "required"), ("propertys", "properties"), ("anyof", "anyOf"), ("example", None)],
)
def test_a_misspelt_keyword_of_a_schema_is_told(caplog, keyword, near):
    """JSON Schema ignores unknown keywords, so that a typo would check nothing in silence."""
    schema = {"type": "object", keyword: [], "x-requried": []}
    assert retry_llm_call(lambda: "{}", None, output=schema) == {}
    assert ("Did you mean" in caplog.text) == bool(near)
    assert not near or f"`{keyword}`, which checks nothing. Did you mean `{near}`?" in caplog.text


@pytest.mark.parametrize("subject", ["prompt", "about {prompt}"])
def test_a_subject_that_names_a_field_is_refused(subject):
    """The list of reviews would show the word `prompt` for each of them."""
    with pytest.raises(ValueError, match=r"`subject` is the name of the field `prompt`"):
        retry_llm_call(lambda params: "42", {"prompt": "How many?"}, subject=subject)


@pytest.mark.parametrize("said", ["0.5", {"type": "approve"}])
def test_a_review_function_that_returns_text_or_a_decision_is_told(said):
    """Either would count as true, so that each output would be asked about."""
    with pytest.raises(TypeError, match="return True or False, or a number from 0 to 1"):
        retry_llm_call(lambda params: "42", {}, output=int, review=lambda attempt: said)


def test_params_that_are_a_function_are_refused():
    """A hook in the second place is the third argument."""
    with pytest.raises(TypeError, match="`params`, the second argument, is a function"):
        retry_llm_call(lambda params: "42", lambda error, attempt, params: None)


def test_a_path_in_place_of_a_fields_name_is_refused():
    """It would become a new field, and the model would be paid for the same request."""
    graph = one_call("node", None, Model(), InMemorySaver())
    graph.invoke({"params": {"n": 0}}, thread())
    with pytest.raises(AnswerRefused, match="Did you mean `n`"):
        resume(graph, thread(), edit(**{"params.n": 1}))
