"""LangChain's decision models as a gate and as a reviewer."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import pytest
from langchain_core.runnables import Runnable, RunnableLambda

from graph_retry import CallCancelled, InterventionRequired, aretry_llm_call, retry_llm_call
from graph_retry.hooks import decision_gate, decision_reviewer

WHEN = {"approve": "a passing fault", "reject": "hopeless", "person": "anything else"}
HAS_MODELS = find_spec("langchain_core.decisions") is not None


@contextmanager
def refused_if_old() -> Iterator[None]:
    """Expect the refusal of an installed LangChain that has no decision models."""
    if HAS_MODELS:
        yield
    else:
        with pytest.raises(ImportError, match=r"need langchain-core 1\.8 or newer"):
            yield


def decider(asked: list[Any], **said: Any) -> Runnable[Any, Any]:
    """Return a decision model that always says the same, and keeps what it was asked."""
    if not HAS_MODELS:
        return RunnableLambda(asked.append)
    from langchain_core.decisions import BaseDecisionModel, ClassifierResponse

    class Decider(BaseDecisionModel):
        model: str = "decider"

        @property
        def _provider(self) -> str:
            return "test"

        def _classify(self, state: Any, questions: Any) -> ClassifierResponse:
            asked.append((state, questions))
            [name] = questions
            return ClassifierResponse.model_validate({"model": "decider", "answers": {name: said}})

    return Decider()


def call(mode: Any, function: Any, **options: Any) -> Any:
    """Make a call outside any graph."""
    if mode.is_async:
        return mode.run(lambda: aretry_llm_call(function, "p", output=dict[str, int], **options))
    return retry_llm_call(function, "p", output=dict[str, int], **options)


@pytest.mark.parametrize(("probability", "asks"), [(0.1, False), (0.5, False), (0.9, True)])
@refused_if_old()
def test_a_gate_asks_a_person_if_the_model_says_so(mode, probability, asks):
    """The probability of "yes" decides, and stands in the ledger as the confidence."""
    asked = []
    gate = decision_gate(decider(asked, type="noul", noul=probability), "Is it odd?")

    if not asks:
        assert call(mode, lambda _: '{"n": 1}', review=gate) == {"n": 1}
    else:
        with pytest.raises(InterventionRequired) as needed:
            call(mode, lambda _: '{"n": 1}', review=gate)
        assert needed.value.attempts[0]["gate"]["confidence"] == pytest.approx(1 - probability)
    [(state, questions)] = asked
    assert state["parsed"] == {"value": {"n": 1}}
    assert questions["ask"].instructions == "Is it odd?"


@pytest.mark.parametrize(
    ("choice", "confidence", "end"),
    [
        ("approve", 0.9, {"n": 1}),
        ("approve", 0.5, InterventionRequired),
        ("reject", 0.9, CallCancelled),
        ("person", 0.99, InterventionRequired),
    ],
)
@refused_if_old()
def test_a_reviewer_chooses_a_decision(mode, choice, confidence, end):
    """A sure choice is the decision; an unsure one, or `person`, asks a person."""
    answers = iter(["nothing", '{"n": 1}'])
    said = {"choice": choice, "confidence": confidence, "probabilities": {choice: confidence}}
    reviewer = decision_reviewer(decider([], type="choice", **said), "What now?", WHEN)

    if isinstance(end, dict):
        assert call(mode, lambda _: next(answers), reviewer=reviewer) == end
    else:
        with pytest.raises(end):
            call(mode, lambda _: next(answers), reviewer=reviewer)


def test_an_old_langchain_is_refused_before_any_call(monkeypatch):
    """The model itself would be asked only after a call was paid for."""
    model = decider([])
    monkeypatch.setitem(sys.modules, "langchain_core.decisions", None)
    with pytest.raises(ImportError, match=r"need langchain-core 1\.8 or newer"):
        decision_gate(model, "Is it odd?")
    with pytest.raises(ImportError, match=r"need langchain-core 1\.8 or newer"):
        decision_reviewer(model, "What now?", WHEN)


def test_a_label_that_is_no_decision_is_refused():
    """A decision model cannot edit, so `edit` is no criterion."""
    with pytest.raises(ValueError, match="criteria"):
        decision_reviewer(decider([]), "What now?", {"edit": "x", "approve": "y"})
