"""Ask automatic reviewers before a person; each is asked once per question."""

from typing import Any

from graph_retry.callables import name_of
from graph_retry.engine.plan import Plan
from graph_retry.flow import Durable, Flow, Run
from graph_retry.records import Attempt
from graph_retry.review.payload import build_payload
from graph_retry.review.question import Question
from graph_retry.review.shown import Review, Reviewer, parts_of


def ask_reviewers(
    plan: Plan[Any], question: Question, attempts: list[Attempt]
) -> Flow[tuple[str, Any]]:
    """Return the author and decision of the first reviewer that has one, else `None` for it."""
    review = Review(**parts_of(build_payload(question), attempts))
    for reviewer in plan.settings.reviewer:
        name = f"agent:{name_of(reviewer, 'reviewer')}"

        def ask(reviewer: Reviewer = reviewer) -> Flow[Any]:
            return (yield Run(reviewer, (review,)))

        decision = yield Durable(f"{name}#{question.review_id}", ask)
        if decision is not None:
            return name, decision
    return "agent", None
