"""A gate: what a model is sure of passes, a sample of it is shown, and metrics tell both."""

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver

import graph_retry.threads
from graph_retry import Completion, approve, pending_reviews, respond, retry_llm_call
from graph_retry.data import summarize
from graph_retry.hooks import Gate
from tests.loops import Model, answer, one_call, reviews, thread


def said(confidence):
    """Answer, and say how sure it is."""
    return lambda params: f'{{"n": 1, "confidence": {confidence}}}'


def by_tokens(*logprobs):
    """Answer with log-probabilities, as LangChain's OpenAI model does."""
    content = [{"token": "x", "logprob": each} for each in logprobs]
    return lambda params: AIMessage(
        '{"n": 1}', response_metadata={"logprobs": {"content": content}}
    )


CASES = {
    "sure": (said(0.9), Gate(confidence=0.9), False, 0.9),
    "unsure": (said(0.89), Gate(confidence=0.9), True, 0.89),
    "nothing said": (lambda params: '{"n": 1}', Gate(confidence=0.1), True, None),
    "nonsense said": (said(7), Gate(confidence=0.1), True, None),
    "tokens sure": (by_tokens(-0.01, -0.03), Gate(confidence=0.9, of="logprob"), False, 0.98),
    "tokens unsure": (by_tokens(-0.01, -2.0), Gate(confidence=0.9, of="logprob"), True, 0.366),
    "no tokens": (said(1), Gate(confidence=0.1, of="logprob"), True, None),
    "a number": (said(0.5), lambda attempt: 0.6, True, 0.5),
    "a lower number": (said(0.5), lambda attempt: 0.4, False, 0.5),
}


@pytest.mark.parametrize("name", CASES)
def test_only_what_is_sure_enough_passes(form, mode, name):
    """Where nothing tells how sure a model is, a person is asked; the ledger says why."""
    model, gate, asks, confidence = CASES[name]
    options = {"output": dict[str, float], "review": gate}
    graph = one_call(form, mode, Model(model), InMemorySaver(), **options)
    mode.invoke(graph, {"params": {}}, thread())
    assert bool(reviews(mode, graph, thread())) == asks
    (ledger,) = mode.call(graph_retry.threads, "attempts_of", graph, thread())
    verdict = ledger.attempts[0]["gate"]
    assert verdict["confidence"] == (confidence and pytest.approx(confidence, abs=1e-3))
    assert (verdict["ask"], verdict["sampled"]) == (asks, False)


def test_a_text_has_no_fields():
    """Nor does one that looks like an object: the field would always be unknown."""
    with pytest.raises(ValueError, match="a field of the output"):
        retry_llm_call(Model('{"confidence": 1}'), {}, output=str, review=Gate(confidence=0.5))


def test_a_judge_of_ones_own_is_asked_once(mode):
    """Sync or async, however often the thread is resumed."""
    asked = []

    def judge(attempt):
        asked.append(attempt["number"])
        return 0.2

    gate = Gate(confidence=0.5, of="judge", judge=mode.colour(judge))
    graph = one_call("node", mode, Model(said(1)), InMemorySaver(), output=dict, review=gate)
    mode.invoke(graph, {"params": {}}, thread())
    assert answer(mode, graph, thread(), approve())["output"]["n"] == 1
    assert asked == [1]


def test_a_sample_is_audited_and_the_errors_are_told():
    """About the share is shown; what the audit finds is told of all that passed."""
    graph = one_call(
        "node", None, Model(said(1)), InMemorySaver(), output=dict,
        review=Gate(confidence=0.5, sample=0.2),
    )  # fmt: skip
    waiting = []
    for n in range(100):
        graph.invoke({"params": {"n": n}}, thread(str(n)))
        waiting += [n for _ in pending_reviews(graph, thread(str(n)))]
    assert 5 <= len(waiting) <= 40
    for place, n in enumerate(waiting):
        decision = approve() if place else respond({"n": 2})
        graph_retry.resume(graph, thread(str(n)), decision)
    told = summarize(graph_retry.threads.every_ledger(graph))["gate"]
    many = len(waiting)
    assert told == {
        "passed": 100 - many,
        "asked": 0,
        "sampled": many,
        "audited": many,
        "audited_wrong": 1,
        "wrong_passed": pytest.approx((100 - many) / many),
    }


def test_a_gate_that_cannot_be_meant_is_refused():
    """Numbers beyond 0 to 1, and a judge without its name."""
    for options in ({"confidence": 90}, {"confidence": 0.9, "sample": 2}, {"confidence": True}):
        with pytest.raises(ValueError, match="give a number from 0 to 1"):
            Gate(**options)
    with pytest.raises(ValueError, match="go together"):
        Gate(confidence=0.5, of="judge")
    gate = Gate(confidence=0.5, of="judge", judge=lambda attempt: "very")
    with pytest.raises(ValueError, match="`judge` returned 'very'"):
        one_call("node", None, Model(said(1)), None, output=dict, review=gate).invoke(
            {"params": {}}
        )


def test_a_gate_alone_tells_a_record():
    """It can be called as the function that it stands for."""
    record = {"raw": {"text": "{}"}, "parsed": {"value": {"sure": 0.3}}, "idempotency_key": "k"}
    assert Gate(confidence=0.5, of="sure")(record)["ask"] is True
    assert Gate(confidence=0.2, of="sure")(record)["ask"] is False
    assert Completion("x").text == "x"
