"""Ask the automatic reviewers, and call the option `notify`, before a person answers.

Reviewers and `notify` are called in LangGraph tasks, so a resumed run does not call them again for
the same question.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from langgraph.errors import GraphBubbleUp
from langgraph.types import TimeoutPolicy
from typing_extensions import TypedDict

from graph_retry._core.ground.credentials import without_keys
from graph_retry._core.ground.functions.awaiting import AsyncUnderSyncError
from graph_retry._core.ground.functions.calling import call
from graph_retry._core.ground.functions.informing import informing
from graph_retry._core.ground.functions.limits import Limits
from graph_retry._core.ground.functions.signatures import name_of
from graph_retry._core.ground.json import is_object
from graph_retry._core.langgraph.run_config import current_thread, thread_in_logs
from graph_retry._core.loop.run.keeping import whole_here
from graph_retry._core.loop.run.plan import Plan
from graph_retry._core.loop.run.step import as_task
from graph_retry._core.params.patch import Encoded
from graph_retry._core.review.clients.payload import build_payload
from graph_retry._core.review.effects import Accepted
from graph_retry._core.review.review_record import Question, Review, Reviewer, parts_of
from graph_retry._core.state.attempts import times_sent
from graph_retry._core.state.transitions import why_no_call
from graph_retry.lossless._ground import text_of
from graph_retry.records import Attempt

_PATIENCE_S = 10.0
"""Maximum seconds that a question waits for `notify`."""


class Passed(TypedDict):
    """An automatic reviewer that did not decide.

    by: The name of the reviewer.
    decision: What the reviewer returned.
    problem: Why this is no decision that can be applied.
    """

    by: str
    decision: Any
    problem: str


async def ask_reviewers(
    plan: Plan[Any], question: Question, attempts: list[Attempt]
) -> tuple[str, Any, list[Passed]]:
    """Ask the automatic reviewers in order until one of them decides.

    Return the name of the reviewer that decided, its decision (None if nobody decided), and the
    reviewers that failed. If the call may make no further attempt, reviewers are not offered
    decisions that call the model.
    """
    attempts = await whole_here(attempts)
    if (why := _why_no_call(plan, attempts, "agent", sent=0)) is not None:
        question = replace(question, used_up=why)
    review = Review(**parts_of(build_payload(question), attempts, current_thread()))
    passed: list[Passed] = []
    for reviewer in plan.settings.reviewer:
        name = f"agent:{name_of(reviewer, 'reviewer')}"

        # The default argument binds the reviewer of this turn of the loop.
        async def ask(reviewer: Reviewer = reviewer) -> tuple[Any, str | None]:
            try:
                return await call(reviewer, review), None
            # LangGraph's control flow must pass. An async function in a sync run is a mistake that
            # the developer must see.
            except (GraphBubbleUp, AsyncUnderSyncError):
                raise
            except Exception as error:  # noqa: BLE001 - an agent's trouble must not hide the review
                return None, f"{type(error).__name__}: {without_keys(text_of(error))}"[:300]

        decision, trouble = await as_task(f"{name}#{question.review_id}", ask)
        if is_object(decision):
            return name, decision, passed
        if decision is not None:
            trouble = "this is not a decision: return one, such as `reject(…)`, or None"
        if trouble is not None:
            passed.append({"by": name, "decision": decision, "problem": trouble})
    return "agent", None, passed


async def not_again(
    plan: Plan[Any], attempts: list[Attempt], author: str, verdict: Accepted
) -> str | None:
    """Return why an automatic decision may not call the model again; None if it may.

    A decision that does not call the model always may.
    """
    if verdict.params is None:
        return None
    attempts = await whole_here(attempts)
    params = Encoded(verdict.params, verdict.types)
    return _why_no_call(plan, attempts, author, times_sent(attempts, params))


def _why_no_call(plan: Plan[Any], attempts: list[Attempt], author: str, sent: int) -> str | None:
    most, person = plan.settings.max_attempts, bool(plan.settings.review)
    return why_no_call(attempts, author, sent=sent, max_attempts=most, person=person)


async def notify(plan: Plan[Any], payload: dict[str, Any], attempts: list[Attempt]) -> None:
    """Call the option `notify`. If it fails or takes too long, the question is still asked."""
    hook = plan.settings.notify
    if hook is None:
        return
    attempts = await whole_here(attempts)
    review = Review(**parts_of(payload, attempts, current_thread()))

    async def tell() -> None:
        name = name_of(hook, "notify")
        what = f"`notify` (`{name}`) for review {review.review_id} ({thread_in_logs()})"
        with informing(what, plan.settings.redact):
            await call(hook, review, limits=Limits(TimeoutPolicy(run_timeout=_PATIENCE_S)))

    await as_task(f"{plan.settings.name}:{name_of(hook, 'notify')}#{review.review_id}", tell)
