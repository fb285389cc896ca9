"""Tell somebody that a review waits, once for each question."""

from __future__ import annotations

import logging
from typing import Any

from langgraph.errors import GraphBubbleUp

from graph_retry.callables import name_of
from graph_retry.engine.plan import Plan
from graph_retry.engine.state import current_thread
from graph_retry.flow import AsyncUnderSyncError, Durable, Flow, Run
from graph_retry.records import Attempt
from graph_retry.review.shown import Review, parts_of

_LOG = logging.getLogger("graph_retry")


def notify(plan: Plan[Any], payload: dict[str, Any], attempts: list[Attempt]) -> Flow[None]:
    """Call the user's `notify` hook; its trouble is logged, for the review must still be asked."""
    hook = plan.settings.notify
    if hook is None:
        return
    review = Review(**parts_of(payload, attempts, current_thread()))

    def tell() -> Flow[None]:
        try:
            yield Run(hook, (review,))
        except (GraphBubbleUp, AsyncUnderSyncError):
            raise
        except Exception:  # noqa: BLE001 - whatever it is, the question comes first
            what = "`%s` failed for review %s of thread %s"
            _LOG.exception(what, name_of(hook, "notify"), review.review_id, review.thread_id)

    yield Durable(f"{plan.settings.name}:{name_of(hook, 'notify')}#{review.review_id}", tell)
