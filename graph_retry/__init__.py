"""Human-in-the-loop retry for LangGraph model calls.

Call a model with `retry_llm_call`, `aretry_llm_call` or the node of `create_retry_node`. List the
waiting reviews with `pending_reviews`, and answer them with `resume`. Other modules of the package
have the rest: `hooks` (automation), `threads` (all threads, their ledgers, ways back), `data`
(corrections, evaluations, figures, plots), `observers` (messages to people), `agents`, `output`,
`lossless` (the reader), `desk` (the page) and `testing`.
"""

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from graph_retry._core.ground.functions.signatures import AttemptContext
from graph_retry._core.ground.on_demand import on_demand
from graph_retry._core.output.completion import Completion
from graph_retry._core.review.answers import accept, approve, comment, edit, reject, respond
from graph_retry._core.review.review import Decision
from graph_retry.errors import (
    AnswerRefused,
    AttemptFailed,
    AttemptsExhausted,
    CallCancelled,
    GraphRetryError,
    InterventionRequired,
    ReplayMismatch,
    StaleDecision,
)
from graph_retry.function import aretry_llm_call, gather_calls, retry_llm_call
from graph_retry.node import create_retry_node, review_later
from graph_retry.options import RetryOptions
from graph_retry.records import Attempt, Issue

if TYPE_CHECKING:
    from graph_retry.answering import (
        PendingReview,
        apending_reviews,
        aresume,
        pending_reviews,
        resume,
    )

__all__ = [
    "AnswerRefused",
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
    "accept",
    "apending_reviews",
    "approve",
    "aresume",
    "aretry_llm_call",
    "comment",
    "create_retry_node",
    "edit",
    "gather_calls",
    "pending_reviews",
    "reject",
    "respond",
    "resume",
    "retry_llm_call",
    "review_later",
]

_of_answering = on_demand(__name__, "answering")


def __getattr__(name: str) -> Any:
    """Load a public name when a program first uses it.

    Raises:
        ImportError: If another public module has the name; the message says which.
        AttributeError: If there is no such name.
    """
    if place := _elsewhere(name):
        raise ImportError(f"`{name}` is not at the top: write `from {place} import {name}`.")
    return _of_answering(name)


def _elsewhere(name: str) -> str | None:
    """Return the public module whose `__all__` contains a name; None if there is none."""
    import importlib  # noqa: PLC0415
    import pkgutil  # noqa: PLC0415

    modules = [module.name for module in pkgutil.iter_modules(__path__)]
    if name.startswith("_") or name in (*modules, *__all__):
        return None
    for module in modules:
        if module.startswith("_"):
            continue
        with suppress(ImportError):  # The module may need an extra that is not installed.
            found = importlib.import_module(f"{__name__}.{module}")
            if name in getattr(found, "__all__", ()):
                return found.__name__
    return None


def __dir__() -> list[str]:
    """List the public names for completion, including those that are not loaded yet."""
    return __all__
