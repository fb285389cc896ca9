"""LangChain's decision models as a gate and as a reviewer.

A decision model (`langchain_core.decisions`, from langchain-core 1.8 on) answers a question about
data with a probability. Nothing is imported from there before a model is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, cast

from langchain_core.runnables import Runnable, RunnableLambda

from graph_retry import Decision, reject
from graph_retry._core.review.review import Review
from graph_retry.hooks._gate import Gate
from graph_retry.plugins import Share, Within, checked
from graph_retry.records import Attempt

DecisionModel = Annotated[
    Runnable[Any, Any], "a decision model of LangChain (`langchain_core.decisions`)"
]


@checked
def decision_gate(
    model: DecisionModel, question: str, *, above: Share = 0.5, sample: Share = 0.0
) -> Gate:
    """Make a gate, a value of `review`, that asks a decision model whether a person is needed.

    The ledger keeps 1 minus the probability of "yes" as the confidence in the output.

    Args:
        model: A decision model of LangChain (`langchain_core.decisions.BaseDecisionModel`).
        question: A question whose "yes" asks a person, such as "Does a person need to see this?".
        above: The probability of "yes" above which a person is asked.
        sample: Share of the other outputs that a person sees, as in `Gate`.

    Example:
        >>> from langchain_core.runnables import RunnableLambda
        >>> from types import SimpleNamespace
        >>> model = RunnableLambda(lambda request: SimpleNamespace())
        >>> decision_gate(model, "Does a person need to see this invoice?", above=0.25).confidence
        0.75
    """

    def request(attempt: Attempt) -> dict[str, Any]:
        from langchain_core.decisions import Noul  # noqa: PLC0415 - newer than the oldest LangChain

        shown = {key: attempt.get(key) for key in ("name", "raw", "parsed")}
        return {"state": shown, "questions": {"ask": Noul(instructions=question)}}

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
    """Make a reviewer, a value of `reviewer`, that lets a decision model choose a decision.

    A person is asked if the model chooses `person` or is less sure than `above`. A model that
    chooses among labels cannot edit: use `model_reviewer` for edits.

    Args:
        model: A decision model of LangChain (`langchain_core.decisions.BaseDecisionModel`).
        question: What the model decides, such as "What is to be done about this failed call?".
        criteria: When to choose `approve`, `reject` and `person`: a text for each that is allowed.
        above: The least confidence with which the choice counts.

    Example:
        >>> from langchain_core.runnables import RunnableLambda
        >>> from types import SimpleNamespace
        >>> model = RunnableLambda(lambda request: SimpleNamespace())
        >>> when = {"approve": "a passing fault", "person": "anything else"}
        >>> decision_reviewer(model, "What now?", when).get_name()
        'decision_reviewer'
    """

    def request(review: Review) -> dict[str, Any]:
        from langchain_core.decisions import Choice  # noqa: PLC0415 - as above

        shown = {key: review.value[key] for key in ("message", "error", "params", "raw_output")}
        asked = Choice(instructions=question, criteria=dict(cast("Mapping[str, Any]", criteria)))
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
