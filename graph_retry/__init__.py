"""Human-in-the-loop retry for LangGraph model calls."""

from typing import TYPE_CHECKING, Any

from graph_retry.callables import AttemptContext
from graph_retry.errors import (
    AttemptFailed,
    AttemptsExhausted,
    CallCancelled,
    GraphRetryError,
    InterventionRequired,
    ReplayMismatch,
    StaleDecision,
)
from graph_retry.function import aretry_llm_call, retry_llm_call
from graph_retry.gathering import gather_calls
from graph_retry.node import create_retry_node
from graph_retry.options import RetryOptions
from graph_retry.outcome import Completion
from graph_retry.records import Attempt, Issue
from graph_retry.review.decision import Decision, approve, edit, reject, respond

if TYPE_CHECKING:
    from graph_retry.answering import (
        PendingReview,
        apending_reviews,
        aresume,
        pending_reviews,
        resume,
    )

__all__ = [
    "Attempt",
    "AttemptContext",
    "AttemptFailed",
    "AttemptsExhausted",
    "CallCancelled",
    "Completion",
    "Decision",
    "GraphRetryError",
    "InterventionRequired",
    "Issue",
    "PendingReview",
    "ReplayMismatch",
    "RetryOptions",
    "StaleDecision",
    "apending_reviews",
    "approve",
    "aresume",
    "aretry_llm_call",
    "create_retry_node",
    "edit",
    "gather_calls",
    "pending_reviews",
    "reject",
    "respond",
    "resume",
    "retry_llm_call",
]

_ANSWERING = {"PendingReview", "apending_reviews", "aresume", "pending_reviews", "resume"}


def __getattr__(name: str) -> Any:
    """Load what answers reviews when it is first asked for: to run a graph takes none of it."""
    if name in _ANSWERING:
        from graph_retry import answering  # noqa: PLC0415

        return getattr(answering, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
