"""What can be watched from outside: callbacks, events, tokens, the ledger itself."""

import json
import pickle  # noqa: TID251 (errors cross processes)

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver

from graph_retry import (
    AttemptFailed,
    AttemptsExhausted,
    CallCancelled,
    Completion,
    InterventionRequired,
    ReplayMismatch,
    StaleDecision,
    create_retry_node,
    edit,
    reject,
    retry_llm_call,
)
from graph_retry._core.state.attempts import params_at
from tests.loops import Model, answer, one_call, refused, thread


def test_on_attempt_is_called_once_per_attempt(form, mode, checkpointer):
    """Resumes and re-asked questions do not report an attempt twice."""
    seen = []
    model = Model(goal=2)
    on_attempt = mode.colour(lambda record: seen.append((record["number"], record["status"])))
    graph = one_call(form, mode, model, checkpointer, on_attempt=on_attempt)

    mode.invoke(graph, {"params": {"n": 0}}, thread())
    refused(mode, graph, thread(), "nonsense")
    answer(mode, graph, thread(), edit(n=1))
    answer(mode, graph, thread(), edit(n=2))

    assert seen == [(1, "failed"), (2, "failed"), (3, "succeeded")]


def test_events_tell_the_story_on_the_custom_stream(form, mode):
    """Started, finished, asked, answered: each once, in order, without `subgraphs=True`."""
    graph = one_call(form, mode, Model(goal=1), InMemorySaver())
    told = []
    for given in ({"params": {"n": 0}}, edit(n=1)):
        from langgraph.types import Command

        step = Command(resume=given) if told else given
        parts = mode.call(graph, "stream", step, thread(), stream_mode="custom")
        told += [(part["event"], part["attempt"]) for part in parts]

    assert told == [
        ("attempt_started", 1),
        ("attempt_finished", 1),
        ("review_asked", 1),
        ("review_answered", 1),
        ("attempt_started", 2),
        ("attempt_finished", 2),
    ]


def test_tokens_of_a_chat_model_still_reach_the_message_stream(form, mode):
    """Calling a LangChain model inside `llm_call` streams as it would without us."""
    chat = GenericFakeChatModel(messages=iter([AIMessage("one two three")]))
    if mode.is_async:

        async def call(params):
            return await chat.ainvoke("count")
    else:

        def call(params):
            return chat.invoke("count")

    graph = one_call(form, mode, call, InMemorySaver(), output=str)
    parts = mode.call(
        graph, "stream", {"params": {}}, thread(), stream_mode="messages", subgraphs=True
    )
    text = "".join(message.content for _, (message, _) in parts)
    assert text == "one two three"


def test_the_ledger_is_json_and_holds_only_what_changed(mode, checkpointer):
    """Params of 100 kB appear once; each further attempt adds its patch."""
    model = Model(goal=4)
    graph = one_call("node", mode, model, checkpointer)
    mode.invoke(graph, {"params": {"n": 0, "text": "x" * 100_000}}, thread())
    for n in range(1, 5):
        state = answer(mode, graph, thread(), edit(n=n))

    ledger = state["attempts"]
    assert json.loads(json.dumps(ledger)) == ledger
    assert len(json.dumps(ledger)) < 110_000
    assert [params_at(ledger, k).view["n"] for k in range(1, 6)] == list(range(5))
    assert params_at(ledger).view["text"] == "x" * 100_000


def test_usage_and_finish_reason_are_recorded():
    """What the provider said about a completion is in the ledger, null where unknown."""
    records = []
    message = AIMessage(
        '{"n": 1}',
        usage_metadata={"input_tokens": 3, "output_tokens": 4, "total_tokens": 7},
        response_metadata={"finish_reason": "stop"},
    )
    for result in (Completion('{"n": 1}', {"total_tokens": 7}, "stop"), message, '{"n": 1}'):
        retry_llm_call(
            lambda params, result=result: result,
            {},
            output=dict[str, int],
            on_attempt=records.append,
        )
    told = [((r["usage"] or {}).get("total_tokens"), r["finish_reason"]) for r in records]
    assert told == [(7, "stop"), (7, "stop"), (None, None)]


def test_every_error_carries_the_ledger_and_survives_pickling(mode):
    """Errors cross process boundaries with their attempts."""
    graph = one_call("function", mode, Model(), InMemorySaver())
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    with pytest.raises(CallCancelled) as caught:
        answer(mode, graph, thread(), reject("enough"))

    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.reason, copy.attempts) == (
        str(caught.value),
        "enough",
        caught.value.attempts,
    )
    assert copy.attempts[0]["failure"]["message"] == "0 is too small"
    kinds = (AttemptFailed, AttemptsExhausted, InterventionRequired, StaleDecision, ReplayMismatch)
    for kind in kinds:
        again = pickle.loads(pickle.dumps(kind("why", copy.attempts)))
        assert (type(again), str(again), again.attempts) == (kind, "why", copy.attempts)


@pytest.mark.parametrize("value", [None, 3, "text", ["a", 1.5], {"k": {"deep": [True]}}])
def test_without_output_any_return_value_is_a_success(mode, value):
    """`output=None` gives back what the call returned."""
    graph = one_call("function", mode, Model(lambda params: value), InMemorySaver(), output=None)
    assert mode.invoke(graph, {"params": {"n": 0}}, thread())["output"] == value


def test_a_ledger_of_a_newer_version_is_refused():
    """What this version cannot read is not continued by guessing."""
    attempt = retry_and_record()
    node = create_retry_node(lambda params: "1", dict, output=int)
    newer = {**attempt, "status": "failed", "schema_version": 99}
    with pytest.raises(ReplayMismatch, match="upgrade graph-retry"):
        node.invoke({"params": {}, "attempts": [newer]})


def retry_and_record():
    """Return the record of one successful call."""
    records = []
    retry_llm_call(lambda params: "1", {}, output=int, on_attempt=records.append)
    return records[0]


def test_a_call_that_changes_its_params_in_place_is_named():
    """The change is lost, since the call works on a copy, and the author is told (I3)."""

    def scribbler(params):
        params["n"] = 99
        return "1"

    given = {"n": 0}
    with pytest.warns(UserWarning, match="scribbler"):
        assert retry_llm_call(scribbler, given, output=int) == 1
    assert given == {"n": 0}
