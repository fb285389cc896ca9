"""Failures of the developer's own making: told with file and line, not only asked at night."""

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.types import Send
from pydantic import BaseModel
from typing_extensions import TypedDict

import graph_retry
from graph_retry import (
    AttemptsExhausted,
    InterventionRequired,
    aretry_llm_call,
    create_retry_node,
    edit,
    pending_reviews,
    retry_llm_call,
)
from graph_retry._core.ground import logs
from graph_retry._core.threads import expiry, history, inbox
from graph_retry._core.threads.answers import resumption, rewind
from graph_retry.hooks import Budget
from tests.loops import Model, one_call, reviews, thread


class Person(BaseModel):
    """What the model must give."""

    age: int


def misspelt(params):
    """Use a name that does not exist."""
    return promt  # noqa: F821


def no_attribute(params):
    """Use a field that params do not have."""
    return params.promt


def no_key(params):
    """Look up what is not there, inside a library's function."""
    return "".join(map(params.__getitem__, ["promt"]))


def forgets(params):
    """Compute an answer and keep it."""
    '{"age": 36}'.strip()


def unsavable(params):
    """Return what no checkpointer can save."""
    return object()


def warnings_of(caplog):
    return [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]


def line_of(function, text):
    """Return the number of the line of a function that has a text."""
    import inspect

    lines, first = inspect.getsourcelines(function)
    return first + next(n for n, line in enumerate(lines) if text in line)


@pytest.mark.parametrize(
    ("call", "at", "words"),
    [
        (misspelt, "return promt", "name 'promt' is not defined"),
        (no_attribute, "return params", "no attribute 'promt'"),
        (no_key, "return", "'promt'"),
    ],
)
def test_wrong_code_is_told_with_its_line(form, mode, caplog, call, at, words):
    """A warning names file and line, and so does the question: no other params would help."""
    graph = one_call(form, mode, mode.colour(call), InMemorySaver())
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    place = f"line {line_of(call, at)}"
    (review,) = reviews(mode, graph, thread())
    assert f"({place} of test_own_mistakes.py)" in review.error
    assert words in review.error
    (told,) = [text for text in warnings_of(caplog) if words in text]
    assert f'test_own_mistakes.py", {place}' in told


def test_a_failure_that_was_raised_on_purpose_is_told_as_it_is(caplog):
    """Only what Python raises for wrong code gets a line."""

    def looks_up(params):
        raise LookupError("no such city")

    graph = one_call("node", None, looks_up, InMemorySaver())
    graph.invoke({"params": {"n": 0}}, thread())
    assert pending_reviews(graph, thread())[0].error == "LookupError: no such city"
    assert warnings_of(caplog) == []


def test_a_forgotten_return_is_called_that(form, mode, caplog):
    """The question says that the function returned nothing, and not that a model was expected."""
    graph = one_call(
        form, mode, mode.colour(forgets), InMemorySaver(), output=Person, name="forgets"
    )
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    (review,) = reviews(mode, graph, thread())
    assert "`forgets` returned nothing" in review.error
    assert [issue["message"] for issue in review.issues] == [
        "`forgets` returned nothing (a forgotten `return`?)"
    ]
    (told,) = warnings_of(caplog)
    assert f'test_own_mistakes.py", line {line_of(forgets, "def forgets")}' in told


def test_none_is_an_answer_where_it_is_wanted():
    """An optional output, or none at all, takes it."""
    assert retry_llm_call(forgets, {}, output=Person | None) is None
    assert retry_llm_call(forgets, {}) is None


@pytest.mark.parametrize("output", [None, Person])
def test_a_value_that_cannot_be_saved_is_told_with_its_function(caplog, output):
    """The warning says where the function is."""
    graph = one_call("node", None, unsavable, InMemorySaver(), output=output)
    graph.invoke({"params": {"n": 0}}, thread())
    (told,) = warnings_of(caplog)
    assert "`unsavable` returned" in told
    assert f'test_own_mistakes.py", line {line_of(unsavable, "def unsavable")}' in told


def test_a_validator_with_a_mistake_is_told(caplog):
    """Else the model would be told, and paid, for what is wrong in the code around it."""

    def grown_up(value):
        return valeu["age"] > 17  # noqa: F821

    graph = one_call("node", None, lambda params: '{"age": 1}', InMemorySaver(), output=grown_up)
    graph.invoke({"params": {"n": 0}}, thread())
    place = f"line {line_of(grown_up, 'return')}"
    assert f"({place} of test_own_mistakes.py)" in pending_reviews(graph, thread())[0].error
    (told,) = warnings_of(caplog)
    assert "the validator `grown_up` has a mistake: NameError: name 'valeu'" in told
    assert place in told


def test_a_validator_that_may_have_a_mistake_is_told_once(caplog):
    """A misspelt key refuses each value, and the log names its line but no value of the model."""

    def grown_up(value):
        return {}[value] > 17

    answers = iter(("1", "2", "3"))
    for number in (1, 2, 3):
        with pytest.raises(AttemptsExhausted, match=f"KeyError: {number}"):
            retry_llm_call(lambda _: next(answers), {}, output=grown_up, review=False)
    told = [text for text in warnings_of(caplog) if "validator" in text]
    place = f'test_own_mistakes.py", line {line_of(grown_up, "return")}'
    assert ["raised `KeyError`" in text and place in text for text in told] == [True]


def raises(*_given):
    """Fail, as which option it may be passed."""
    raise LookupError("lost")


@pytest.mark.parametrize("option", ["feedback", "redact", "repair"])
def test_an_exception_of_a_function_names_its_option(form, mode, option):
    """The exception stays as it is, and a note tells which option brought the function."""
    model = mode.colour(lambda params: "no")
    graph = one_call(form, mode, model, InMemorySaver(), **{option: raises})
    with pytest.raises(LookupError, match="lost") as raised:
        mode.invoke(graph, {"params": {"n": 0}}, thread())
    notes = [note for note in raised.value.__notes__ if "passed as" in note]
    assert notes == [f"A function that was passed as `{option}` raised this exception."]


def test_a_redactor_that_raises_for_a_log_loses_no_call(form, mode, caplog):
    """The mistake of the model's function is logged before the call is saved."""
    is_broken = [True]

    def redact(text):
        if is_broken[0] and "promt" in text:
            raise LookupError("lost")
        return text

    model = Model(misspelt)
    graph = one_call(form, mode, model, InMemorySaver(), redact=redact)
    with pytest.raises(LookupError, match="lost"):
        mode.invoke(graph, {"params": {"n": 0}}, thread())
    assert "`redact` raised `LookupError`" in warnings_of(caplog)[0]
    is_broken.clear()
    is_broken.append(False)

    mode.invoke(graph, None, thread())

    (review,) = reviews(mode, graph, thread())
    assert "promt" in review.error
    assert len(model.calls) == 1


def test_an_exception_of_a_hook_a_rule_or_a_price_names_its_option(mode):
    """The same for `on_retry`, for the function in `review`, and for the price of a budget."""
    for option, hook, options in [
        ("on_retry", raises, {}),
        ("review", None, {"review": raises}),
        ("price", None, {"budget": Budget(cost=1, price=raises)}),
    ]:
        model = mode.colour(Model(goal=0 if option == "review" else 1))
        graph = one_call("node", mode, model, InMemorySaver(), hook, **options)
        with pytest.raises(LookupError, match="lost") as raised:
            mode.invoke(graph, {"params": {"n": 0}}, thread())
        assert f"passed as `{option}`" in raised.value.__notes__[0]


def test_texts_of_mistakes_are_redacted(caplog):
    """What an error quotes may be private."""
    redact = lambda text: text.replace("promt", "NAME")  # noqa: E731
    graph = one_call("node", None, misspelt, InMemorySaver(), redact=redact)
    graph.invoke({"params": {"n": 0}}, thread())
    assert "name 'NAME' is not defined" in warnings_of(caplog)[0]


def test_a_thread_without_the_runs_context_is_told_so():
    """A pool's thread knows nothing of the node; with a copy of the context it pauses."""
    errors = []

    def ask(state, run):
        model = Model()
        with ThreadPoolExecutor(1) as pool:
            call = pool.submit(*run, retry_llm_call, model, state["params"], output=int)
        return {"output": call.result()}

    def graph(context):
        builder = StateGraph(State)
        builder.add_node("ask", lambda state: ask(state, context()))
        return builder.set_entry_point("ask").compile(checkpointer=InMemorySaver())

    with pytest.raises(InterventionRequired) as caught:
        graph(list).invoke({"params": {"n": 0}}, thread())
    errors.append(str(caught.value))
    assert "the thread lacks the run's context" in errors[0]
    assert "`contextvars.copy_context().run`" in errors[0]
    right = graph(lambda: [copy_context().run])
    assert "__interrupt__" in right.invoke({"params": {"n": 0}}, thread())

    with pytest.raises(InterventionRequired, match="only a LangGraph run can pause") as caught:
        retry_llm_call(Model(), {"n": 0}, output=int)
    assert "thread" not in str(caught.value)


class State(TypedDict, total=False):
    """A graph's state."""

    params: Any
    output: Any


class WithoutOutput(TypedDict, total=False):
    """A graph's state that lacks the keys of all results."""

    params: Any
    result: Any


class WithLedger(TypedDict, total=False):
    """A graph's state that lacks the key of the output, and keeps the ledger."""

    params: Any
    attempts: list[Any]


TWINS = {
    "apending_reviews": lambda graph: pending_reviews(graph, thread()),
    "aresume": lambda graph: graph_retry.resume(graph, thread(), edit(n=1)),
    "alist_reviews": inbox.list_reviews,
    "aexpire_reviews": expiry.expire_reviews,
    "aattempts_of": lambda graph: history.attempts_of(graph, thread()),
    "arewind": lambda graph: rewind.rewind(graph, thread(), attempt=1),
    "aresumption": lambda graph: resumption.resumption(graph, thread(), edit(n=1)).__enter__(),
}


def test_a_sync_function_on_an_async_saver_names_its_twin():
    """LangGraph's own message names methods of the saver."""

    async def use():
        async with AsyncSqliteSaver.from_conn_string(":memory:") as saver:
            graph = one_call("node", None, Model(), saver)
            await graph.ainvoke({"params": {"n": 0}}, thread())
            for twin, call in TWINS.items():
                with pytest.raises(TypeError, match=rf"use `await {twin}\(…\)`") as caught:
                    call(graph)
                assert f"`{twin[1:]}` is sync" in str(caught.value)

            async def node(state):
                return {"output": retry_llm_call(Model(), state["params"])}

            wrong = StateGraph(State).add_node(node).set_entry_point("node")
            with pytest.raises(TypeError, match=r"use `await aretry_llm_call\(…\)`"):
                await wrong.compile(checkpointer=saver).ainvoke({"params": {"n": 0}}, thread("2"))

    asyncio.run(use())


def test_a_sync_function_on_an_async_graph_names_its_twin_and_loses_nothing():
    """The answer is saved before the run fails: the twin goes on with it."""
    model = Model()

    async def node(state):
        return {"output": await aretry_llm_call(model, state["params"], output=dict)}

    graph = StateGraph(State).add_node(node).set_entry_point("node").compile(
        checkpointer=InMemorySaver()
    )  # fmt: skip

    async def use():
        await graph.ainvoke({"params": {"n": 0}}, thread())
        with pytest.raises(TypeError, match=r"Your answer is saved.*`await aresume"):
            graph_retry.resume(graph, thread(), edit(n=1))
        return await graph_retry.aresume(graph, thread())

    assert asyncio.run(use())["output"] == {"n": 1}
    assert [params["n"] for params in model.calls] == [0, 1]


def retry_node(**options):
    return create_retry_node(lambda params: "x", dict, name="extract", review=False, **options)


def test_a_state_without_a_key_for_any_result_is_refused_before_a_call_is_paid(mode, caplog):
    """LangGraph drops values under unknown keys. If the ledger is kept, a warning is enough."""
    logs.warn_once.cache_clear()
    calls = []

    def run(node, state=WithoutOutput):
        graph = StateGraph(state).add_node("ask", node).set_entry_point("ask").compile()
        mode.invoke(graph, {"params": {}}, thread())

    run(retry_node(keys={"output": "result"}))

    def by_hand(state: WithoutOutput, config: RunnableConfig):
        return {"result": retry_node().invoke({"params": {}})["output"]}

    run(by_hand)
    assert warnings_of(caplog) == []
    told = "`extract` writes its output to the state key `output`, which is not in"
    with pytest.raises(ValueError, match=told):
        run(create_retry_node(calls.append, dict, name="extract", review=False))
    assert calls == []
    run(retry_node(), WithLedger)
    run(retry_node(), WithLedger)
    (warned,) = warnings_of(caplog)
    assert told in warned


@pytest.mark.parametrize("width", [1, 2])
def test_sends_that_write_a_key_without_a_reducer_cost_no_call(mode, width):
    """LangGraph refuses such a step after its calls; one `Send` alone writes each key once."""
    calls = []
    node = create_retry_node(calls.append, dict, name="extract")
    graph = StateGraph(WithLedger).add_node("ask", node)
    sent = [Send("ask", {"params": {"n": n}}) for n in range(width)]
    graph = graph.add_conditional_edges(START, lambda _: sent, ["ask"]).compile(InMemorySaver())
    if width == 1:
        mode.invoke(graph, {}, thread())
    else:
        told = r"several `Send`s .* the retry node `extract`, .* need a reducer, .*: attempts\."
        with pytest.raises(ValueError, match=told):
            mode.invoke(graph, {}, thread())
    assert len(calls) == (width == 1)
