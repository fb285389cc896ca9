"""Without a person: the loops of llm-retry and agentcast, with the options that make them."""

import pytest
from langchain_core.messages import HumanMessage
from pydantic import BaseModel

from graph_retry import AttemptsExhausted, Completion, create_retry_node, retry_llm_call
from graph_retry._core.state.attempts import params_at
from graph_retry.hooks import Budget, escalate, feedback
from tests.loops import Model


class Person(BaseModel):
    name: str
    age: int


def scripted(*texts):
    """Make a model that gives these texts in turn."""
    left = list(texts)
    return Model(lambda params: left.pop(0))


LOOP = {"review": False, "max_attempts": 3, "auto_retries": 2}
START = {"messages": [{"role": "user", "content": "Return a person."}]}
BAD = ['{"name": "Ada"}', '{"name": "Ada", "age": "old"}', "Sorry?"]
GOOD = 'Here:\n```json\n{"name": "Ada", "age": 36,}\n```'


@pytest.mark.parametrize("failures", [0, 1, 2])
def test_the_loop_ends_with_the_first_valid_output(mode, failures):
    """`retryWithValidation`: call, repair, validate, feed back; every attempt is recorded."""
    model = scripted(*BAD[:failures], GOOD)
    node = create_retry_node(
        mode.colour(model), dict, output=Person, feedback="errors_only", **LOOP
    )
    state = mode.invoke(node, {"params": START})

    assert (state["status"], state["output"]) == ("succeeded", {"name": "Ada", "age": 36})
    assert len(state["attempts"]) == len(model.calls) == failures + 1
    last = state["attempts"][-1]
    assert last["raw"] == {"text": GOOD}
    assert last["repairs"]
    if failures:
        (first,), (then,) = model.calls[0]["messages"], model.calls[1]["messages"]
        assert then["content"].startswith(first["content"] + "\n\n")
        assert "/age: Field required" in then["content"]


def test_when_the_attempts_are_used_up_the_history_is_in_hand(mode):
    """A result that says it failed (node), or an error that says so (function): both with all."""
    node = create_retry_node(
        mode.colour(scripted(*BAD)), dict, output=Person, feedback="full", **LOOP
    )
    state = mode.invoke(node, {"params": START})
    with pytest.raises(AttemptsExhausted) as caught:
        retry_llm_call(scripted(*BAD), START, output=Person, feedback="full", **LOOP)

    assert state["status"] == "exhausted"
    assert state["output"] is None
    for attempts in (state["attempts"], caught.value.attempts):
        assert [attempt["raw"]["text"] for attempt in attempts] == BAD
        assert all(attempt["issues"] and attempt["duration_s"] >= 0 for attempt in attempts)
        assert [attempt["status"] for attempt in attempts] == ["failed"] * 3


def test_an_exception_is_an_attempt_too_and_is_not_sent_again_blindly():
    """llm-retry calls again with the same prompt; here only what a hook changes goes out."""
    tries = []

    def model(params):
        tries.append(params["seed"])
        if len(tries) < 3:
            raise RuntimeError(f"hiccup {len(tries)}")
        return GOOD

    hook = escalate({n: {"seed": lambda seed: seed + 1} for n in (1, 2)})
    params = {**START, "seed": 1}
    assert retry_llm_call(model, params, hook, output=Person, **LOOP) == Person(name="Ada", age=36)
    assert tries == [1, 2, 3]
    tries.clear()
    with pytest.raises(AttemptsExhausted, match="hiccup 1"):
        retry_llm_call(model, params, output=Person, **LOOP)
    assert tries == [1]


def test_agentcasts_loop_casts_text_to_a_type_with_messages():
    """Typed output from a conversation of LangChain messages, the errors fed back."""
    records = []
    made = retry_llm_call(
        scripted(*BAD[:2], GOOD), {"messages": [HumanMessage("Return a person.")]}, output=Person,
        feedback=feedback("truncated"), on_attempt=records.append, **LOOP,
    )  # fmt: skip
    assert made == Person(name="Ada", age=36)
    assert [record["author"] for record in records] == ["caller", "feedback", "feedback"]
    (message,) = params_at(records).view["messages"]
    assert BAD[1] in message["content"]


@pytest.mark.parametrize("level", ["none", "minimal"])
def test_less_repair_means_more_retries(level):
    """The repair levels of llm-retry decide what counts as readable."""
    model = scripted(GOOD, '{"name": "Ada", "age": 36}')
    retry_llm_call(model, START, output=Person, feedback="errors_only", repair=level, **LOOP)
    assert len(model.calls) == 2


class AuthenticationError(Exception):
    """A failure that no other params help with."""


def unpaid(params):
    raise AuthenticationError("401: no key")


def prose(params):
    return Completion("none", usage={"total_tokens": 300})


def odd(params):
    raise RuntimeError("API 500")


def lost(params):
    raise ConnectionError("lost")


def longer(error, attempt, params):
    return {"n": params["n"] + 1}


def in_turn(error, attempt, params):
    return {"n": 1 - params["n"]}


@pytest.mark.parametrize(
    ("model", "hook", "options", "cause"),
    [
        (unpaid, longer, {"auto_retries": 3}, "a permanent failure is not retried"),
        (prose, longer, {"auto_retries": 3, "budget": Budget(tokens=500)}, "raise the budget,"),
        (prose, in_turn, {"auto_retries": 3}, "made with these params before: let hooks change"),
        (prose, longer, {"auto_retries": 2}, "2 automatic retries did not help: raise `auto_"),
        (prose, longer, {"auto_retries": 9, "max_attempts": 3}, "all 3 attempts are used: raise"),
        (prose, longer, {}, "`auto_retries` is 0: raise it"),
        (prose, None, {"auto_retries": 3}, "failure: give the params a `prompt` or `messages`"),
        (odd, None, {"auto_retries": 3}, '`classify=` that returns "transient" for this exception'),
        (lost, None, {"auto_retries": 3}, "to repeat such requests, give `transient=RetryPolicy"),
        (odd, longer, {}, "`auto_retries` is 0: raise it"),
        (prose, None, {"reviewer": lambda review: None}, "no reviewer decided: add one that does"),
    ],
)
@pytest.mark.parametrize("form", ["function", "node"])
def test_an_exhausted_call_tells_why_automation_ended(form, model, hook, options, cause):
    """The error names the one cause and what helps there, and no other options."""
    options = {"review": False, "output": int, **options}
    node = create_retry_node(model, dict, hook, on_cancel="raise", **options)
    calls = {
        "function": lambda: retry_llm_call(model, {"n": 0}, hook, **options),
        "node": lambda: node.invoke({"params": {"n": 0}}),
    }
    with pytest.raises(AttemptsExhausted) as caught:
        calls[form]()
    assert "Automation ended because " in str(caught.value)
    assert cause in str(caught.value)
    assert str(caught.value).endswith(", or allow `review`.")
