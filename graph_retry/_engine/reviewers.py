"""Before a person answers: ask automatic reviewers, and tell that a review waits; each once."""

from __future__ import annotations

import logging
import traceback
from typing import Any

from langgraph.errors import GraphBubbleUp

from graph_retry._awaiting import AsyncUnderSyncError, call
from graph_retry._credentials import without_keys
from graph_retry._engine.keeping import whole_here
from graph_retry._engine.plan import Plan
from graph_retry._engine.state import current_thread, thread_in_logs
from graph_retry._engine.task import as_task
from graph_retry._issues import text_of
from graph_retry._redact import redacted
from graph_retry._review.payload import build_payload
from graph_retry._review.question import Question
from graph_retry._review.shown import Review, Reviewer, parts_of
from graph_retry._signatures import name_of
from graph_retry.records import Attempt

_LOG = logging.getLogger("graph_retry")


async def ask_reviewers(
    plan: Plan[Any], question: Question, attempts: list[Attempt]
) -> tuple[str, Any, str | None]:
    """Return the author and decision of the first reviewer that has one, else `None` for it.

    One that fails is passed over, and the last such problem returned: a person must still be asked.
    """
    attempts = await whole_here(attempts)
    review = Review(**parts_of(build_payload(question), attempts, current_thread()))
    author, problem = "agent", None
    for reviewer in plan.settings.reviewer:
        name = f"agent:{name_of(reviewer, 'reviewer')}"

        async def ask(reviewer: Reviewer = reviewer) -> tuple[Any, str | None]:
            try:
                return await call(reviewer, review), None
            except (GraphBubbleUp, AsyncUnderSyncError):
                raise
            except Exception as error:  # noqa: BLE001 - an agent's trouble must not hide the review
                return None, f"{type(error).__name__}: {without_keys(text_of(error))}"[:300]

        decision, trouble = await as_task(f"{name}#{question.review_id}", ask)
        if decision is not None:
            return name, decision, None
        if trouble is not None:
            author, problem = name, trouble
    return author, None, problem


async def notify(plan: Plan[Any], payload: dict[str, Any], attempts: list[Attempt]) -> None:
    """Call the user's `notify` hook; its trouble is logged, for the review must still be asked."""
    hook = plan.settings.notify
    if hook is None:
        return
    attempts = await whole_here(attempts)
    review = Review(**parts_of(payload, attempts, current_thread()))

    async def tell() -> None:
        try:
            await call(hook, review)
        except (GraphBubbleUp, AsyncUnderSyncError):
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the question comes first
            trace = without_keys("".join(traceback.format_exception(error)))
            trace = redacted(trace, plan.settings.redact)
            what, name = "`%s` failed for review %s (%s):\n%s", name_of(hook, "notify")
            _LOG.error(what, name, review.review_id, thread_in_logs(), trace)

    await as_task(f"{plan.settings.name}:{name_of(hook, 'notify')}#{review.review_id}", tell)
