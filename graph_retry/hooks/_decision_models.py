"""Use LangChain's decision models as a gate and as a reviewer.

A decision model (`langchain_core.decisions`, langchain-core 1.8 or newer) answers a question about
data with a probability. With an older version, both functions raise `ImportError`.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Annotated, Any, Literal

from langchain_core.runnables import Runnable, RunnableLambda

from graph_retry import Decision, reject
from graph_retry._core.review.review_record import Review
from graph_retry.hooks._gate import Gate
from graph_retry.plugins import Share, Within, checked
from graph_retry.records import Attempt

DecisionModel = Annotated[
    Runnable[Any, Any], "a decision model of LangChain (`langchain_core.decisions`)"
]


def _question(kind: Literal["Noul", "Choice"], **said: Any) -> Any:
    try:
        decisions = import_module("langchain_core.decisions")
    except ImportError:
        raise ImportError("Decision models need langchain-core 1.8 or newer: update it.") from None
    return getattr(decisions, kind)(**said)


@checked
def decision_gate(
    model: DecisionModel, question: str, *, above: Share = 0.5, sample: Share = 0.0
) -> Gate:
    """Make a gate for the option `review`: a decision model says which outputs a person reviews.

    The confidence in an output is 1 minus the probability that the model gives to "yes". The
    recorded attempt has this confidence.

    Args:
        model: A decision model of LangChain (`langchain_core.decisions.BaseDecisionModel`). It
            needs langchain-core 1.8 or newer.
        question: A question to the model. If the answer is "yes", a person is asked. Example: "Does
            a person need to see this?".
        above: The probability of "yes" above which a person is asked.
        sample: The share of the other outputs that a person also reviews (0 to 1), as in `Gate`.

    Example:
        >>> from langchain_core.runnables import RunnableLambda
        >>> from types import SimpleNamespace
        >>> model = RunnableLambda(lambda request: SimpleNamespace())
        >>> decision_gate(model, "Does a person need to see this invoice?", above=0.25).confidence
        0.75
    """
    asked = _question("Noul", instructions=question)

    def request(attempt: Attempt) -> dict[str, Any]:
        shown = {key: attempt.get(key) for key in ("name", "raw", "parsed")}
        return {"state": shown, "questions": {"ask": asked}}

    def confidence(said: Any) -> float:
        return 1.0 - float(said.nouls["ask"].noul)

    ask = RunnableLambda[Any, Any](request) | model
    judge = ask | RunnableLambda[Any, Any](confidence)
    return Gate(confidence=1.0 - above, of="judge", judge=judge, sample=sample)


@checked
def decision_reviewer(
    model: DecisionModel,
    question: str,
    criteria: Annotated[Mapping[Literal["approve", "reject", "person"], Any], Within(2)],
    *,
    above: Share = 0.8,
) -> Runnable[Review, Decision | None]:
    """Make a reviewer for the option `reviewer`: a decision model approves or rejects.

    A person is asked if the model chooses `person`, or if its confidence in its choice is below
    `above`. A decision model can only choose one of several labels. For edits, use
    `model_reviewer`.

    Args:
        model: A decision model of LangChain (`langchain_core.decisions.BaseDecisionModel`). It
            needs langchain-core 1.8 or newer.
        question: The question to the model, such as "What should be done about this failed call?".
        criteria: A text for each choice (`approve`, `reject`, `person`): when to choose it.
        above: The minimum confidence (0 to 1) with which the model's choice is used.

    Example:
        >>> from langchain_core.runnables import RunnableLambda
        >>> from types import SimpleNamespace
        >>> model = RunnableLambda(lambda request: SimpleNamespace())
        >>> when = {"approve": "a passing fault", "person": "anything else"}
        >>> decision_reviewer(model, "What now?", when).get_name()
        'decision_reviewer'
    """
    asked = _question("Choice", instructions=question, criteria={**criteria})

    def request(review: Review) -> dict[str, Any]:
        shown = {key: review.value[key] for key in ("message", "error", "params", "raw_output")}
        return {"state": shown, "questions": {"what": asked}}

    def decision(said: Any) -> Decision | None:
        answer = said.choices["what"]
        if answer.confidence < above:
            return None
        why = f"a decision model chose it (confidence {answer.confidence:.2f})"
        decisions: dict[str, Decision] = {
            "approve": {"type": "approve", "message": why},
            "reject": reject(why),
        }
        return decisions.get(answer.choice)

    ask = RunnableLambda[Any, Any](request) | model
    chain = ask | RunnableLambda[Any, Any](decision)
    chain.name = "decision_reviewer"
    return chain
