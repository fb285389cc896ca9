"""What `llm_call` returned without an `output` type, and no checkpointer could save."""

import re
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from graph_retry import (
    AnswerRefused,
    AttemptsExhausted,
    Completion,
    approve,
    edit,
    respond,
    retry_llm_call,
)
from graph_retry.data import replay
from graph_retry.threads import attempts_of
from tests.loops import Model, answer, one_call, refused, reviews, thread


class Client:
    """Something a program holds on to."""


def looped() -> Any:
    """Build a list that holds itself."""
    value: list[Any] = []
    value.append(value)
    return value


UNSAVABLE = {
    "Client": Client(),
    "dict": {"client": Client()},
    "list": ["\ud800"],
    "AIMessage": AIMessage("hi", additional_kwargs={"client": Client()}),
    "Completion": Completion("hi", usage={"client": Client()}),
    "str": "a\0b",
    "tuple": (looped(),),
}
SAVABLE = [
    None, "hi", b"\xff", {1, 2}, {"\0": ["\0"]}, {1: {"n": 2}}, re.compile("a+"), AIMessage("\0"),
    Completion("hi", usage={"total_tokens": 1}),
]  # fmt: skip


def test_it_is_a_failure_that_tells_what_to_return(form: str, mode: Any, checkpointer: Any) -> None:
    """No hook and no second call can help: a person is told, and a mended program goes on."""
    returned, hooked = dict(UNSAVABLE), list[Any]()
    model = Model(lambda params: returned.get(params["n"], "mended"))

    def hook(*told: Any) -> None:
        hooked.append(told)

    graph = one_call(form, mode, model, checkpointer, hook, output=None, auto_retries=3)
    for made, came in enumerate(UNSAVABLE, 1):
        mode.invoke(graph, {"params": {"n": came}}, thread(came))
        (review,) = reviews(mode, graph, thread(came))
        assert review.failure["kind"] == "permanent"
        article = "an" if came == "AIMessage" else "a"
        assert f"returned {article} `{came}` that cannot be saved (" in review.error
        assert "return text, a LangChain message" in review.error
        assert review.raw_output == {"AIMessage": "hi", "Completion": "hi", "str": "a\0b"}.get(came)
        assert len(model.calls) == made
    assert hooked == []
    returned.clear()
    for came in UNSAVABLE:
        assert answer(mode, graph, thread(came), approve())["output"] == "mended"
    assert len(model.calls) == 2 * len(UNSAVABLE)


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_it_is_told_whenever_the_run_is_saved(durability: str, form: str, mode: Any) -> None:
    """Nothing is left to fail in the checkpointer; nobody to ask is an error with the reason."""
    model = Model(lambda params: Client())
    graph = one_call(form, mode, model, InMemorySaver(), output=None, review=False, auto_retries=3)
    if form == "function":
        with pytest.raises(AttemptsExhausted, match="returned a `Client` that cannot be saved"):
            mode.invoke(graph, {"params": {"n": 0}}, thread(), durability=durability)
    else:
        done = mode.invoke(graph, {"params": {"n": 0}}, thread(), durability=durability)
        assert "returned a `Client`" in done["attempts"][-1]["failure"]["message"]
    assert len(model.calls) == 1


def test_what_is_never_saved_may_be_anything(form: str, mode: Any) -> None:
    """Outside a graph, and in one without a checkpointer, the very object comes back."""
    for came in UNSAVABLE.values():
        graph = one_call(form, mode, Model(lambda params, came=came: came), None, output=None)
        assert mode.invoke(graph, {"params": {"n": 0}})["output"] is came
        assert retry_llm_call(lambda params, came=came: came, {"n": 0}) is came


def test_what_can_be_saved_is_a_success(form: str, mode: Any, checkpointer: Any) -> None:
    """JSON, LangChain's and Python's own types need no `output` type on any storage."""
    for number, came in enumerate(SAVABLE):
        model = Model(lambda params, came=came: came)
        graph = one_call(form, mode, model, checkpointer, output=None)
        done = mode.invoke(graph, {"params": {"n": 0}}, thread(str(number)))
        assert reviews(mode, graph, thread(str(number))) == []
        if form == "function":
            assert done["output"] == came
        else:
            saved = mode.call(graph, "get_state", thread(str(number))).values["output"]
            assert repr(saved) == repr(done["output"])


def test_text_that_a_storage_refuses_is_refused_before(
    form: str, mode: Any, checkpointer: Any
) -> None:
    """A model's NUL character is a failure, and a person's is asked again, on every storage."""
    outputs = [str, {"type": "string"}, lambda value: isinstance(value, str), None]
    for number, output in enumerate(outputs):
        here, said = thread(str(number)), "\0" if output in (str, None) else '"\\u0000"'
        model = Model(lambda params, said=said: said)
        graph = one_call(form, mode, model, checkpointer, output=output)
        mode.invoke(graph, {"params": {"n": 0}}, here)
        told = refused(mode, graph, here, respond("a\0b"))
        (review,) = reviews(mode, graph, here)
        assert "NUL character" in review.error
        assert "NUL character" in told.message
        assert answer(mode, graph, here, respond("ab"))["output"] == "ab"
        assert len(model.calls) == 1


@pytest.mark.parametrize("came", ["Client", "Completion"])
def test_a_replay_knows_what_could_not_be_saved(came: str, form: str) -> None:
    """The attempt stays failed without the object it was about."""
    graph = one_call(form, None, lambda params: UNSAVABLE[came], InMemorySaver(), output=None)
    graph.invoke({"params": {"n": 0}}, thread())
    (ledger,) = attempts_of(graph, thread())
    replayed = replay(ledger.attempts, check=True, name="count")
    assert [each.attempt for each in replayed] == ledger.attempts


def test_a_validator_that_makes_an_object_is_told_so(form: str, mode: Any) -> None:
    """The call is finished then: running the thread on judges its output again, and only that."""
    model = Model(lambda params: '{"n": 1}')
    graph = one_call(form, mode, model, InMemorySaver(), output=lambda value: Client())
    for given in ({"params": {"n": 0}}, None):
        with pytest.raises(TypeError, match="accepted a `Client`, which has no plain JSON form"):
            mode.invoke(graph, given, thread())
    assert len(model.calls) == 1


def test_a_plain_answer_that_cannot_be_saved_is_refused_before_a_call(form, mode, checkpointer):
    """LangGraph fails to save it only after the step: the call was paid, and the review gone."""
    model = Model()
    graph = one_call(form, mode, model, checkpointer)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    with pytest.raises(AnswerRefused, match=r"cannot be saved .*64 bits.*still open"):
        mode.invoke(graph, Command(resume={"type": "edit", "params": {"n": 2**64}}), thread())
    assert model.calls == [{"n": 0}]
    (review,) = reviews(mode, graph, thread())
    assert answer(mode, graph, thread(), answers={review.review_id: edit(n=3)})["output"] == {
        "n": 3
    }
