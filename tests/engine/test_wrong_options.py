"""Wrong options are told in one sentence, before a model is paid for."""

import re
from datetime import UTC, datetime

import pytest
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel

from graph_retry import (
    aretry_llm_call,
    create_retry_node,
    edit,
    gather_calls,
    reject,
    respond,
    resume,
    retry_llm_call,
)
from graph_retry._core.ground.functions.arguments import hints_of
from graph_retry._core.ground.functions.awaiting import AsyncUnderSyncError
from graph_retry.agents import RetryMiddleware
from graph_retry.data import (
    EvaluateOptions,
    ReplayOptions,
    Selection,
    corrections_of,
    evaluate,
    export,
    replay,
)
from graph_retry.hooks import (
    Budget,
    Gate,
    Lessons,
    SharedBudget,
    escalate,
    feedback,
    model_reviewer,
    raise_limit,
)
from graph_retry.options import RetryOptions, StateKeys
from graph_retry.threads import Change, attempts_of, defer, rewind
from tests.loops import Model, one_call, thread


class Params(BaseModel):
    """A type to be mistaken for others."""


def asked(params):
    """Be a model that must not be asked."""
    pytest.fail("the model was asked")


async def later(given):
    """Be a function of one argument that is async."""
    return given


async def propose_later(error, attempt, params):
    """Be a hook that is async."""


NAMED = {"type": "object", "properties": {"name": {"type": "string"}}}

FUNCTIONS = {
    "no argument": (lambda: "x", "too many positional arguments"),
    "two arguments": (lambda one, two: two, "missing a required argument: 'two'"),
    "a class": (ValueError, "; not the class `"),
    "a generic type": (dict[str, int], "; not the class `"),
}


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(
    ("option", "argument"),
    [
        ("repair", "a text"),
        ("review", "an `Attempt`"),
        ("classify", "an `Exception`"),
        ("reviewer", "`(review)`"),
        ("notify", "`(review)`"),
        ("redact", "a text"),
        ("on_attempt", "an `Attempt`"),
    ],
)
def test_a_function_that_takes_something_else_is_refused(option, argument, function):
    """Every option that is a function of one argument says which it is."""
    given, reason = FUNCTIONS[function]
    with pytest.raises(ValueError, match=f"`{option}`: give .*a function ") as refused:
        retry_llm_call(asked, {}, **{option: given})
    assert argument in str(refused.value)
    assert reason in str(refused.value)


def compares(given):
    given["total"] > 0  # noqa: B015


def judges(given):
    isinstance(given, dict)


def decides(given):
    """Forget the `return`."""
    edit(model="large")


def changes(error, attempt, params):
    dict(params, model="large")


def yields_a_verdict(value):
    yield value["n"] == 3


def yields_params(error, attempt, params):
    yield {**params, "model": "large"}


@pytest.mark.parametrize(
    ("option", "function"),
    [("output", yields_a_verdict), ("review", yields_a_verdict), ("on_retry", yields_params)],
)
def test_a_generator_function_is_refused_where_a_result_is_wanted(option, function):
    """Before a model call: a generator would count as a result."""
    with pytest.raises((TypeError, ValueError), match=r"generator function.*`return`"):
        retry_llm_call(asked, {}, **{option: function})


class Compares:
    def __call__(self, given):
        given not in ("no", "none")  # noqa: B015


@pytest.mark.parametrize(
    ("option", "function"),
    [
        *(("output", each) for each in (compares, judges, Compares())),
        ("review", compares),
        ("reviewer", decides),
        ("on_retry", changes),
    ],
)
def test_a_function_that_forgets_its_return_is_refused(option, function):
    """Otherwise its result would always be None: a valid output, no review, no decision."""
    with pytest.raises(TypeError, match=r"never returns what it computes in line \d+ of test_"):
        retry_llm_call(asked, {}, **{option: function})


def test_a_function_without_a_result_may_raise():
    """It drops only what may have an effect."""
    asserted = []

    def check(value):
        asserted.append(value)
        for part in value:
            if part == 3:
                raise ValueError("three")
        sorted(value)

    assert retry_llm_call(lambda _: "[1]", {}, output=check) == [1] == asserted[0]


@pytest.mark.parametrize("option", ["repair", "classify", "redact"])
def test_a_function_that_is_never_awaited_may_not_be_async(option):
    """Its coroutine would be taken for what it returns."""
    with pytest.raises(ValueError, match=f"`{option}`: give .*a function .* is async"):
        retry_llm_call(asked, {}, **{option: later})


@pytest.mark.parametrize(
    "option", ["output", "on_attempt", "review", "notify", "reviewer", "on_retry", "feedback"]
)
async def test_an_async_function_needs_an_async_run(option):
    """In a sync run that is told before the first call, not when it fails; else it works."""
    function = later if option not in ("on_retry", "feedback") else propose_later
    options = {"name": "ask", "output": dict, option: function}
    with pytest.raises(AsyncUnderSyncError, match=f"`{function.__name__}` is async"):
        retry_llm_call(asked, {}, **options)
    if option != "review":  # there is nobody to ask here
        assert await aretry_llm_call(lambda params: "{}", {}, **options) == {}


async def test_what_gather_calls_is_given_must_be_calls():
    """A list of calls, or what a sync call returned, is named, and nothing is called."""
    call = aretry_llm_call(asked, {})
    for given, came in (([call], r"\[<coroutine"), ({"n": 1}, "{'n': 1}")):
        with pytest.raises(
            TypeError, match=f"`calls`: give the coroutine of `aretry_llm_call.* not {came}"
        ):
            await gather_calls(given)
    call.close()


def test_what_redact_returns_must_be_text():
    """A value of another kind is named, and not met somewhere as an attribute that is missing."""
    with pytest.raises(TypeError, match="`redact` returned a `NoneType` for a text"):
        retry_llm_call(asked, {"prompt": "x"}, redact=lambda text: None)


MISTAKES = {
    "a negative budget": (
        lambda: Budget(tokens=-1),
        "`tokens`: give a whole number from 0 or None; not -1.",
    ),
    "a budget in words": (
        lambda: Budget(seconds="9"),
        "`seconds`: give a number from 0 or None; not",
    ),
    "a budget that is no number": (
        lambda: Budget(seconds=float("nan")),
        "`seconds`: give a number",
    ),
    "half a round": (lambda: Budget(rounds=1.5), "`rounds`: give a whole number"),
    "a cost without a price": (lambda: Budget(cost=3), "`cost` needs `price`"),
    "a circuit that never closes": (
        lambda: SharedBudget(failures=0),
        "`failures`: give a whole number from 1",
    ),
    "a step at no attempt": (
        lambda: escalate({"2": {}}),
        "`schedule, key '2'`: give a whole number from 1",
    ),
    "a step of no fields": (
        lambda: escalate({2: "large"}),
        "`schedule[2]`: give a dict; not 'large'.",
    ),
    "a limit below all": (lambda: raise_limit(most=0), "`most`: give a whole number from 1; not 0"),
    "a limit in words": (
        lambda: raise_limit(most="4000"),
        "`most`: give a whole number from 1; not",
    ),
    "no room for feedback": (lambda: feedback(limit=0), "`limit`: give a whole number from 1"),
    "a limit on a text": (
        lambda: raise_limit(most=9).check_params({"max_tokens": "5"}),
        "which is '5': give a number",
    ),
    "a schema of nothing": (
        lambda: create_retry_node(asked, dict, output={"name": "str"}),
        'has no keyword of JSON Schema, only ["name"]',
    ),
    "an empty edit": (
        lambda: create_retry_node(asked, dict, expires_after=9, default_decision={"type": "edit"}),
        "`default_decision` is an edit that changes nothing",
    ),
    "a response of nothing": (lambda: respond(changes={}), "`respond` got nothing to change: give"),
    "an edit of nothing": (edit, "`edit` has no field to change"),
    "a gate by an unknown word": (
        lambda: retry_llm_call(
            asked, {}, output=NAMED, review=Gate(confidence=0.5, of=["edge", "logprobs"])
        ),
        "`of` has the unknown name `logprobs`: allowed are a signal",
    ),
    "a gate by a field of a number": (
        lambda: retry_llm_call(asked, {}, output=int, review=Gate(confidence=0.5)),
        "the unknown name `confidence`",
    ),
    "a reviewer that may do nothing": (
        lambda: model_reviewer(RunnableLambda(later), allow=["aprove"]),
        "not 'aprove'. Did you mean `approve`?",
    ),
    "no name": (lambda: retry_llm_call(asked, {}, name=""), "`name`: "),
    "feedback switched on": (
        lambda: retry_llm_call(asked, {}, feedback=True),
        "`feedback`: give 'errors_only', 'full' or 'truncated', or a function `(error,",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_value_that_would_do_nothing_is_refused(mistake):
    """A limit that is never reached, a step that is never made: where it is written."""
    make, words = MISTAKES[mistake]
    with pytest.raises(ValueError, match=re.escape(words)):
        make()


def ended():
    """Make a generator, and read it to its end."""
    made = (row for row in [])
    list(made)
    return made


TYPES = {
    "a price that is a number": (
        lambda: Budget(cost=1, price=3),
        "`price`: give a function that takes only an `Attempt`; not 3.",
    ),
    "a measure that is a number": (
        lambda: feedback(measure=3),
        "`measure`: give a function that takes only a text; not 3.",
    ),
    "a schedule that is a list": (
        lambda: escalate([{"model": "x"}]),
        "`schedule`: give a dict of dicts; not ",
    ),
    "a repaired nothing": (
        lambda: retry_llm_call(lambda params: "{}", {}, output=dict, repair=lambda text: None),
        "`repair` returned a `NoneType` for a text",
    ),
    "an object for its class": (
        lambda: retry_llm_call(asked, {}, output=Params()),
        "(meant as the class `Params`?)",
    ),
    "types in a list": (
        lambda: retry_llm_call(asked, {}, output=[Params]),
        "(meant as `list[Params]`?)",
    ),
    "types in a tuple": (
        lambda: retry_llm_call(asked, {}, output=(Params, int)),
        "(meant as `Params | int`?)",
    ),
    "a list of no types": (lambda: retry_llm_call(asked, {}, output=[1]), "`output` is [1] (list)"),
    "a lesson in words": (
        lambda: Lessons(known="be brief"),
        "`known`: give what `lessons_of` returns; not",
    ),
    "a number by position": (
        lambda: Budget(1000),
        "`Budget`: give `tokens=`, `cost=`, `price=`, `seconds=` or `rounds=`, each by its name;",
    ),
    "a time that is no text": (
        lambda: defer(datetime(2030, 5, 1, tzinfo=UTC)),
        "`until`: give a text with a time in ISO 8601, such as '2030-05-01T08:00'; not",
    ),
    "a generator that has ended": (
        lambda: export(ended(), "rows.jsonl"),
        ", which has been read to its end (make it again).",
    ),
    "a number key": (lambda: retry_llm_call(asked, {1: 2}), "not `str`, such as 1: use str keys"),
    "a percentage": (
        lambda: retry_llm_call(lambda _: "1", {}, output=int, review=lambda _: 90),
        "or a number from 0 to 1",
    ),
    "a model's name": (
        lambda: model_reviewer("gpt"),
        "`chat_model`: give a chat model of LangChain, such as",
    ),
}


@pytest.mark.parametrize("mistake", TYPES)
def test_a_value_of_another_kind_is_refused(mistake):
    """Where it is written, and not where it is used."""
    make, words = TYPES[mistake]
    with pytest.raises(TypeError, match=re.escape(words)):
        make()


def test_what_is_allowed_is_taken():
    """A schema that only annotates, and a decision by default."""
    for schema in ({}, {"title": "anything"}, {"x-note": 1}):
        assert retry_llm_call(lambda params: "{}", {}, output=schema) == {}
    assert create_retry_node(asked, dict, expires_after=9, default_decision=reject("late"))


@pytest.mark.parametrize("option", ["reviewer", "labels", "locked", "classify", "name", "strict"])
def test_an_option_that_is_none_is_not_given(option):
    """A caller can pass on an option that its own caller left out."""
    assert retry_llm_call(lambda _: "1", {}, output=int, **{option: None}) == 1


def without(declared):
    """Give every option that a `TypedDict` does not require, as None."""
    return dict.fromkeys(name for name in hints_of(declared) if name != "attempt")


def test_an_option_of_any_function_that_is_none_is_not_given(tmp_path):
    """So it is for the functions around a call, the middleware, and the keys of an option."""
    graph = one_call("node", None, Model(), InMemorySaver(), keys=without(StateKeys))
    graph.invoke({"params": {"n": 0}}, thread())
    resume(graph, thread(), edit(n=1))
    rows = list(corrections_of(graph, **without(Selection)))
    assert [row["how"] for row in rows] == ["edited"]
    written = export(graph, tmp_path / "rows.jsonl", **without(Selection))
    assert list(written.written.values()) == [1]
    (ledger,) = attempts_of(graph, thread())
    assert len(replay(ledger, **without(ReplayOptions))) == 2
    given = {**without(EvaluateOptions), "output": dict[str, int]}
    done = evaluate([ledger], lambda params: '{"n": 1}', **given)
    assert done.figures()["calls"] == 1
    assert RetryMiddleware(**without(RetryOptions)).name == "RetryMiddleware"
    rewind(graph, thread(), attempt=1, **without(Change))
    (ledger,) = [each for each in attempts_of(graph, thread()) if each.current]
    assert [each["author"] for each in ledger.attempts] == ["rewind"]


def test_a_required_option_that_is_none_is_missing():
    """The error names it."""
    with pytest.raises(TypeError, match="missing argument `attempt`"):
        rewind(one_call("node", None, Model(), InMemorySaver()), thread(), attempt=None)
    with pytest.raises(TypeError, match="`default_decision` has no `type`"):
        create_retry_node(asked, dict, expires_after=9, default_decision={"type": None})
